/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops and starts the services that may hold a device, and checks whether devices are idle. */

#include "executor-services.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "host/nvidia.h"
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

/* NVIDIA's driver takes the memory of a GPU offline when the last process closes the GPU. As find_holder(). */
static int find_online_memory(const Sysfs *fs, const StepList *steps, size_t i, char *buf, size_t size) {
        const Step *s = steps->steps;

        for (; i < steps->n && s[i].kind == STEP_CHECK_IDLE; i++) {
                bool online;
                int node;

                if (!s[i].from || !streq(s[i].from, NVIDIA_DRIVER) ||
                    !nvidia_read_memory(fs, s[i].device, &node, &online) || !online)
                        continue;
                (void) snprintf(buf, size, "The host has the memory of %s online, as NUMA node %d.",
                                PCI_ADDRESS_STR(s[i].device), node);
                return 1;
        }
        return 0;
}

/* Returns 1 and a sentence in buf when a device is in use, 0 when none is, or a negative errno. */
static int find_holder(const Sysfs *fs, const StepList *steps, size_t i, char *buf, size_t size) {
        _cleanup_free_ HolderQuery *queries = calloc(steps->n, sizeof(*queries));
        const Step *s = steps->steps;
        Holder holder;
        size_t n = 0;
        int r;

        if (!queries)
                return -ENOMEM;
        for (size_t j = i; j < steps->n && s[j].kind == STEP_CHECK_IDLE; j++) {
                queries[n] = (HolderQuery) { .address = s[j].device,
                                             .group = -1,
                                             .driver = s[j].from,
                                             .is_vf = s[j].vf > 0,
                                             .nvidia_minor = NVIDIA_MINOR_UNKNOWN };
                if (s[j].from && streq(s[j].from, NVIDIA_DRIVER))
                        queries[n].nvidia_minor = nvidia_read_minor(fs, s[j].device);
                n++;
        }
        r = holders_find(fs, queries, n, &holder);
        if (r > 0)
                (void) snprintf(buf, size, "%s is in use by %s. %s", holder.subject, holder.text, holder.remedy);
        return r == 0 ? find_online_memory(fs, steps, i, buf, size) : r;
}

int devices_check_idle(const Sysfs *fs, const StepList *steps, size_t i, ReportFunction report, void *userdata) {
        Report failed = { .kind = REPORT_FAILED, .step = (uint32_t) i };
        int r;

        /* The check of the preceding step covered this device. */
        if (i > 0 && steps->steps[i - 1].kind == STEP_CHECK_IDLE)
                return 0;
        r = find_holder(fs, steps, i, failed.message, sizeof(failed.message));
        if (r == 0)
                return 0;
        failed.error = r > 0 ? -EBUSY : r;
        (void) report(&failed, userdata);
        return failed.error;
}
