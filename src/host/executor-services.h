/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Steps about services, for executor.c alone. */

#include "host/executor.h"

/* What becomes of one. */
typedef struct ServiceDone {
        bool active;      /* before: it is stopped and started, and the reporter knows it */
        uint64_t stop_by; /* until then it may take to stop; CLOCK_MONOTONIC, microseconds */
} ServiceDone;

/* CLOCK_MONOTONIC after a part of the job's time. */
uint64_t services_after(const StepList *steps, unsigned part);
/* Of STEP_STOP_SERVICE: 1 when its service is active, which is reported. */
int service_tell(const StepList *steps, size_t i, ServiceDone *done, ReportFunction report, void *userdata);
int service_stop(const Step *s, const ServiceDone *done);
/* Never fails: what is to be known of it is reported. */
void service_start(const StepList *steps, size_t i, ReportFunction report, void *userdata);
/* Of STEP_CLEAN: step j is of the same pool, so one command is for both. */
bool clean_together(const StepList *steps, size_t i, size_t j);
/* Cleans the device of first and those of the same pool that follow and are not left out. As unit_run(). */
int devices_clean(const StepList *steps, size_t first, const bool *left_out, int *ret_status);
/* Of STEP_CHECK_IDLE: its device, and at once with it those of the same steps that follow. Reports its failure. */
int device_is_unused(const Sysfs *fs, const StepList *steps, size_t i, ReportFunction report, void *userdata);
