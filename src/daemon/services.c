/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Services that jobs stop (StopServices=). Their names are on disk before the first is stopped, and until systemd was
 * asked to start it again. So a restarted daemon starts them after a crash.
 */

#include <errno.h>

#include "manager.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

bool manager_service_is_noted(const Manager *m, const char *name) {
        for (size_t i = 0; i < m->jobs.n_stopped; i++)
                if (streq(m->jobs.stopped[i], name))
                        return true;
        return false;
}

int manager_load_services(Manager *m, char *text) {
        char *name;
        int r = 0;

        while (r >= 0 && text && (name = strsep(&text, "\n")))
                if (service_name_is_valid(name))
                        r = manager_service_active(m, name);
        return r;
}

int manager_save_services(Manager *m) {
        _cleanup_free_ char *text = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < m->jobs.n_stopped; i++)
                r = string_replace(&text, "%s%s\n", text ?: "", m->jobs.stopped[i]);
        if (r >= 0)
                r = store_save_services(m->store, text);
        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields){ .id = MESSAGE_LEDGER_WRITE }),
                         "Failed to write the list of stopped services: %m");
        return r;
}

int manager_service_active(Manager *m, const char *name) {
        if (manager_service_is_noted(m, name))
                return 0;
        if (ARRAY_RESERVE(m->jobs.stopped, m->jobs.n_stopped) < 0 ||
            !(m->jobs.stopped[m->jobs.n_stopped] = strdup(name)))
                return -ENOMEM;
        m->jobs.n_stopped++;
        return 0;
}

void manager_service_started(Manager *m, const char *name, bool asked, int error) {
        if (error < 0)
                log_full(LOG_WARNING, error, (&(LogFields){ .id = MESSAGE_SERVICE_DOWN }),
                         asked ? "%s was stopped for a job and failed to start again, ignoring: %m"
                               : "%s was stopped for a job and is not started yet, systemd could not be asked: %m",
                         name);
        for (size_t i = 0; asked && i < m->jobs.n_stopped; i++)
                if (streq(m->jobs.stopped[i], name)) {
                        free(m->jobs.stopped[i]);
                        memmove(&m->jobs.stopped[i], &m->jobs.stopped[i + 1],
                                (--m->jobs.n_stopped - i) * sizeof(*m->jobs.stopped));
                        (void) manager_save_services(m);
                        return;
                }
}

bool manager_job_must_wait(const Manager *m, const Job *job) {
        for (size_t i = 0; i < m->jobs.n; i++) {
                const Job *other = m->jobs.list[i].job;

                if (other != job && !job_has_result(other) && job_id(other) < job_id(job) &&
                    (step_lists_share_service(job_steps(other), job_steps(job)) ||
                     step_lists_share_region(job_steps(other), job_steps(job))))
                        return true;
        }
        return false;
}
