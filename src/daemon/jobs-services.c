/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The services that jobs stop (StopServices=). The name of a service is written to disk before the service is stopped,
 * and stays there until systemd was asked to start it again. So a daemon that starts after a crash knows which services
 * to start. */

#include <errno.h>

#include "state.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

static JobResult start_finished(Manager *m, Job *job, JobResult result);

static const JobKind start_kind = { .verb = MANAGER_VERB_START_SERVICES, .finished = start_finished };

bool services_have(const JobQueue *q, const char *name) {
        for (size_t i = 0; i < q->n_stopped; i++)
                if (streq(q->stopped[i], name))
                        return true;
        return false;
}

int services_load(JobQueue *q, char *text) {
        char *name;
        int r = 0;

        while (r >= 0 && text && (name = strsep(&text, "\n")))
                if (service_name_is_valid(name))
                        r = services_add(q, name);
        return r;
}

int services_save(JobQueue *q, Store *store) {
        _cleanup_free_ char *text = NULL;
        int r = 0;

        if (q->stopped_saved)
                return 0;

        for (size_t i = 0; r >= 0 && i < q->n_stopped; i++)
                r = string_replace(&text, "%s%s\n", text ?: "", q->stopped[i]);
        if (r >= 0)
                r = store_save_services(store, text);
        q->stopped_saved = r >= 0;
        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE }),
                         "Failed to write the list of stopped services: %m");
        return r;
}

int services_add(JobQueue *q, const char *name) {
        if (services_have(q, name))
                return 0;
        if (ARRAY_RESERVE(q->stopped, q->n_stopped) < 0 || !(q->stopped[q->n_stopped] = strdup(name)))
                return -ENOMEM;
        q->n_stopped++;
        q->stopped_saved = false;
        return 0;
}

void services_started(JobQueue *q, Store *store, const char *name, bool asked, int error) {
        if (error < 0)
                log_full(LOG_WARNING, error, (&(LogFields) { .id = MESSAGE_SERVICE_DOWN }),
                         asked ? "%s was stopped for a job and failed to start again, ignoring: %m"
                               : "%s was stopped for a job and is not started yet, systemd could not be asked: %m",
                         name);
        for (size_t i = 0; asked && i < q->n_stopped; i++)
                if (streq(q->stopped[i], name)) {
                        free(q->stopped[i]);
                        memmove(&q->stopped[i], &q->stopped[i + 1], (--q->n_stopped - i) * sizeof(*q->stopped));
                        q->stopped_saved = false;
                        (void) services_save(q, store);
                        return;
                }
}

/* Returns true when a job of the queue will start the service itself. */
static bool has_job(const JobQueue *q, const char *name) {
        for (size_t i = 0; i < q->n; i++)
                if (!q->list[i]->has_result && step_list_has_service(q->list[i]->steps, name))
                        return true;
        return false;
}

/* Adds steps that start the stopped services, the last one first. Returns 0 or -ENOMEM. */
static int add_steps(const JobQueue *q, StepList *l) {
        for (size_t i = q->n_stopped; i-- > 0;)
                if (!has_job(q, q->stopped[i]))
                        step_list_add(l, (Step) { .kind = STEP_START_SERVICE, .service = q->stopped[i] });
        return step_list_result(l);
}

void manager_start_services(Manager *m) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        _cleanup_refusal_ Refusal refusal = { 0 };
        uint32_t job;

        if (!l || add_steps(&m->jobs, l) < 0 || l->n == 0)
                return;
        /* "stopped services" has a space, so it is no name of an allocation. */
        if (manager_start_job(m, &start_kind, "stopped services", TAKE_PTR(l), NULL, 0, &job, &refusal) != VERDICT_NONE)
                log_full(LOG_ERR, 0, (&(LogFields) { .id = MESSAGE_SERVICE_DOWN }),
                         "Services that were stopped for a job are not started yet: %s", refusal.message);
}

static JobResult start_finished(Manager *m, Job *job, JobResult result) {
        const StepList *l = job->steps;

        for (size_t i = 0; result == JOB_DONE && i < l->n; i++)
                if (services_have(&m->jobs, l->steps[i].service)) {
                        job_set_message(job, "systemd could not be asked; the next start of the daemon tries again.");
                        return JOB_FAILED;
                }
        return result;
}
