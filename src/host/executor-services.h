/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Steps of the executor that need the system bus or concern several devices: services, cleaning. For executor.c only.
 */

#include "host/executor.h"
#include "units.h"

/* The state of a service that the run stops. */
typedef struct ServiceState {
        UnitUse use;      /* before the run, and reported if used; the run stops the service and starts it again */
        uint64_t stop_by; /* deadline for stopping; CLOCK_MONOTONIC, microseconds */
} ServiceState;

/* Returns the time (CLOCK_MONOTONIC, microseconds) when 1/part of the timeout of the job has passed from now. */
uint64_t job_deadline(const StepList *steps, unsigned part);
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
