/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops and starts the services that may hold a device. */

#include "executor-services.h"

#include <errno.h>
#include <time.h>

#include "host/rootservice.h"

uint64_t job_deadline(const StepList *steps, unsigned part) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000U + (uint64_t) ts.tv_nsec / 1000U + steps->timeout_sec * 1000000ULL / part;
}

static unsigned count_service_starts(const StepList *steps) {
        unsigned n = 0;

        for (size_t i = 0; i < steps->n; i++)
                n += steps->steps[i].kind == STEP_START_SERVICE;
        return n;
}

int service_report_active(const StepList *steps, size_t i, ServiceState *state, ReportFunction report, void *userdata) {
        int r;

        /* All services share one deadline: half of the timeout of the job. */
        state->stop_by = job_deadline(steps, 2);
        r = unit_read_use(steps->steps[i].to, state->stop_by, &state->use);
        if (r < 0 || state->use == UNIT_UNUSED)
                return r;
        (void) report(&(Report) { .kind = REPORT_ACTIVE, .step = (uint32_t) i }, userdata);
        return 1;
}

int service_stop(const Step *s, const ServiceState *state) {
        return state->use != UNIT_UNUSED ? root_stop_unit(s->to, state->stop_by) : 0;
}

/* All starts together get a quarter of the timeout of the job. After that the job goes on while systemd continues to
 * start the service. */
void service_start(const StepList *steps, size_t i, UnitUse use, ReportFunction report, void *userdata) {
        /* One second is enough to queue the start again. */
        unsigned part = use == UNIT_QUEUED ? MAX(steps->timeout_sec, 1U) : 4 * MAX(count_service_starts(steps), 1U);
        bool asked;
        int r = root_start_unit(steps->steps[i].to, job_deadline(steps, part), &asked);

        (void) report(&(Report) { .kind = asked ? REPORT_STARTED : REPORT_NOT_STARTED,
                                  .step = (uint32_t) i,
                                  .error = asked && r == -ETIMEDOUT ? 0 : r },
                      userdata);
}
