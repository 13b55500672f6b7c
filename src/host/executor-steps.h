/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Actions of the steps that need nothing but their own entry of the list; and for executor.c those that need the system
 * bus or concern several devices: services, cleaning, NVIDIA's driver.
 */

#include "host/executor.h"
#include "units.h"

/* Both functions return 1 when they changed something, 0 when nothing had to change, or a negative errno. found: the
 * attributes of the VF of the step before the run. */
typedef struct StepAction {
        int (*run)(const Sysfs *fs, const Step *s, VfAttributes *found);        /* NULL: executor.c runs the step */
        int (*undo)(const Sysfs *fs, const Step *s, const VfAttributes *found); /* NULL: the step has no undo */
        /* A failed write can have taken effect all the same, so the failed step is undone too. true: the step cleans up
         * after its own failure. */
        bool undoes_itself;
        bool fails_device; /* a failure condemns the device but does not end the run, and the step is not undone */
} StepAction;
extern const StepAction step_actions[_STEP_KIND_MAX];

/* Reads the attributes of the VF of the step. found->set is empty when the PF offers none. */
int step_read_attributes(const Sysfs *fs, const Step *s, VfAttributes *found);

/* The state of a service that the run stops. */
typedef struct ServiceState {
        UnitUse use;      /* before the run, and reported if used; the run stops the service and starts it again */
        uint64_t stop_by; /* deadline for stopping; CLOCK_MONOTONIC, microseconds */
} ServiceState;

/* For STEP_STOP_SERVICE: returns 1 and reports REPORT_ACTIVE when the service is active or about to start, 0 when it is
 * not, or a negative errno. */
int service_report_active(const StepList *steps, size_t i, ServiceState *state, ReportFunction report, void *userdata);
int service_stop(const Step *s, const ServiceState *state);
/* Starts the service of step i, and waits until it has started unless only its start was queued: that may wait for the
 * daemon itself. The result is only reported: a failure does not end the run. */
void service_start(const StepList *steps, size_t i, UnitUse use, ReportFunction report, void *userdata);
/* Whether one command cleans the devices of the steps i and j: step j is a STEP_CLEAN of the same pool as step i, which
 * must be a STEP_CLEAN. */
bool clean_is_shared(const StepList *steps, size_t i, size_t j);
/* Cleans the device of step first and those of later steps for the same pool, except where skipped is true for the
 * step. Returns the result of root_clean(). */
int devices_clean(const StepList *steps, size_t first, const bool *skipped, int *ret_status);

/* Whether the step unbinds a GPU from NVIDIA's driver that may be in persistence mode. */
bool gpu_may_be_persistent(const Sysfs *fs, const Step *s);
/* One question about all GPUs. The results are those of root_read_persistence(), and are 0 before the call. */
void gpus_read_persistence(const PciAddress *gpus, size_t n, int32_t *results);
/* As gpus_read_persistence(); the results are those of root_check_health(). */
void gpus_check(const PciAddress *gpus, size_t n, int32_t *results);
