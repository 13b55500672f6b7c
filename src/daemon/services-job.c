/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job that starts services which another job, or an earlier daemon, left stopped. */

#include <errno.h>

#include "manager.h"
#include "util/log.h"
#include "util/messages.h"

static JobResult start_finished(Manager *m, const ManagerJob *mj, JobResult result);

static const JobKind start_kind = { .verb = MANAGER_VERB_START_SERVICES, .finished = start_finished };

/* A running or waiting job will start the service itself. */
static bool has_job(const Manager *m, const char *name) {
        for (size_t i = 0; i < m->jobs.n; i++)
                if (!job_has_result(m->jobs.list[i].job) && step_list_has_service(job_steps(m->jobs.list[i].job), name))
                        return true;
        return false;
}

/* Starts the services in the reverse order of their stops. */
static int add_steps(const Manager *m, StepList *l) {
        int r = 0;

        for (size_t i = m->jobs.n_stopped; r == 0 && i-- > 0;)
                if (!has_job(m, m->jobs.stopped[i]))
                        r = step_list_add(l, STEP_START_SERVICE, (PciAddress){ 0 }, NULL, m->jobs.stopped[i]);
        return r;
}

void manager_start_services(Manager *m) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        _cleanup_refusal_ Refusal refusal = { 0 };
        uint32_t job;

        if (!l || add_steps(m, l) < 0 || l->n == 0)
                return;
        /* This subject contains a space, so no allocation has the same name. */
        if (manager_start_job(m, &start_kind, "stopped services", TAKE_PTR(l), NULL, 0, &job, &refusal) != VERDICT_NONE)
                log_full(LOG_ERR, 0, (&(LogFields){ .id = MESSAGE_SERVICE_DOWN }),
                         "Services that were stopped for a job are not started yet: %s", refusal.message);
}

static JobResult start_finished(Manager *m, const ManagerJob *mj, JobResult result) {
        const StepList *l = job_steps(mj->job);

        for (size_t i = 0; result == JOB_DONE && i < l->n; i++)
                if (manager_service_is_noted(m, l->steps[i].to)) {
                        job_set_message(mj->job,
                                        "systemd could not be asked; the next start of the daemon tries again.");
                        return JOB_FAILED;
                }
        return result;
}
