/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates and frees the manager, serves D-Bus calls, handles Unix signals, and runs the event loop. */

#include "manager.h"
#include "facts.h"
#include "operations.h"

#include <errno.h>
#include <signal.h>
#include <systemd/sd-daemon.h>

#include "util/log.h"

int manager_new(const char *sysroot, const char *config_path, const char *state_dir, const char *modprobe_dir,
                Manager **ret) {
        _cleanup_(cleanup_manager_free) Manager *m = calloc(1, sizeof(*m));
        _cleanup_free_ char *services = NULL;
        int r;

        if (!m)
                return -ENOMEM;
        m->jobs.orphans.dir_fd = -1;
        m->host.sysroot = sysroot;
        m->host.config_path = config_path;
        m->modprobe_dir = modprobe_dir;
        r = sysfs_new(sysroot, &m->fs);
        if (r < 0)
                return log_error_errno(r, "Failed to open the root %s: %m", sysroot);
        r = manager_load_config(m);
        if (r < 0)
                return r;
        m->host.ledger = ledger_new();
        if (!m->host.ledger)
                return -ENOMEM;
        r = store_open(state_dir, &m->store);
        if (r < 0)
                return r;
        r = store_load(m->store, m->host.ledger, &services);
        if (r < 0)
                return r;
        r = services_load(&m->jobs, services);
        if (r < 0)
                return r;
        manager_load_modules(m);
        manager_find_orphans(m, state_dir);
        r = host_state_read_machine_id(&m->host, m->fs);
        if (r < 0)
                return r;
        manager_open_uevents(m);
        r = manager_scan(m);
        if (r < 0)
                return r;
        manager_find_moved(m);
        r = manager_check_config(&m->host);
        if (r != 0)
                return r;
        manager_write_options(m, true);
        *ret = TAKE_PTR(m);
        return 0;
}

static void watches_done(Watches *w) {
        uevent_queue_free(w->uevents);
        guest_client_free(w->guests);
        probe_close(w->attributes.probe);
        sd_event_source_disable_unref(w->attributes.links);
        probe_close(w->gpu_probe);
        free(w->gpus);
        sd_event_source_disable_unref(w->shm);
        for (size_t i = 0; i < ELEMENTSOF(w->checkups); i++)
                probe_close(w->checkups[i].probe);
        fabric_watch_done(&w->fabric);
        endpoint_watch_done(&w->endpoints);
}

Manager *manager_free(Manager *m) {
        if (!m)
                return NULL;
        job_queue_done(&m->jobs);
        settle_done(&m->settle);
        notes_done(&m->notes);
        sd_event_source_disable_unref(m->lease_timer);
        watches_done(&m->watches);
        told_done(&m->told);
        sd_event_unref(m->event);
        store_close(m->store);
        mlx4_done(&m->options);
        host_state_done(&m->host);
        sysfs_free(m->fs);
        free(m);
        return NULL;
}

/* The callbacks of the D-Bus server. */

static HostView on_view(void *userdata) {
        const Manager *m = userdata;
        HostView view = host_state_view(&m->host);

        view.may_miss_guests = manager_may_miss_guests(m);
        return view;
}

static Verdict on_allocate(void *userdata, const char *name, const Request *r, uint32_t owner, uint32_t *ret_job,
                           Refusal *ret) {
        Manager *m = userdata;
        Verdict v = manager_allocate(m, name, r, owner, ret_job, ret);

        /* The new facts may mean work for settle. */
        note_turn(m);
        return v;
}

static Verdict on_release(void *userdata, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret) {
        Manager *m = userdata;
        Verdict v = manager_release(m, name, generation, ret_job, ret);

        note_turn(m);
        return v;
}

static uint64_t on_ask_guests(void *userdata, const char *name) {
        Manager *m = userdata;
        const Allocation *a = ledger_find(m->host.ledger, name);

        return a && a->status.domain && manager_knows_guests(m) ? guest_client_ask(m->watches.guests) : 0;
}

static Verdict on_check_runnable(void *userdata, const char *name, Refusal *ret) {
        return manager_check_runnable(userdata, name, ret);
}

static Verdict on_prepare(void *userdata, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret) {
        Manager *m = userdata;
        Verdict v = manager_prepare(m, name, generation, ret_job, ret);

        note_turn(m);
        return v;
}

static Verdict on_renew(void *userdata, const char *name, uint64_t generation, uint32_t seconds, Refusal *ret) {
        return manager_renew(userdata, name, generation, seconds, ret);
}

static Verdict on_attach(void *userdata, const char *name, uint64_t generation, const Request *r, uint32_t *ret_job,
                         Refusal *ret) {
        Manager *m = userdata;
        Verdict v = manager_attach(m, name, generation, r, ret_job, ret);

        note_turn(m);
        return v;
}

static Verdict on_detach(void *userdata, const char *name, uint64_t generation, const char *slot, uint32_t *ret_job,
                         Refusal *ret) {
        Manager *m = userdata;
        Verdict v = manager_detach(m, name, generation, slot, ret_job, ret);

        note_turn(m);
        return v;
}

static Verdict on_accept(void *userdata, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret) {
        Manager *m = userdata;
        Verdict v = manager_accept(m, name, generation, ret_job, ret);

        note_turn(m);
        return v;
}

static Verdict on_set_virtual_functions(void *userdata, PciAddress pf, unsigned count, uint32_t *ret_job,
                                        Refusal *ret) {
        return manager_set_virtual_functions(userdata, pf, count, ret_job, ret);
}

static Verdict on_rescan(void *userdata, Refusal *ret) {
        Manager *m = userdata;
        int r = manager_scan(m);

        /* While `taken` is set, the reason of the allocation names the program, or the use by the host, that kept the
         * allocation from being resumed. That use may have ended since, so let the next check replace the reason. */
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++)
                m->host.ledger->allocations[i]->status.taken = false;
        manager_forget_modes(m);
        note_facts(m);
        manager_find_guests(m);
        manager_ask_guests(m);
        manager_make_attributes_due(m);
        manager_probe_gpus_again(m);
        manager_check_health(m, HEALTH_DUE_RESCAN);
        manager_check_endpoints(m);
        note_turn(m);
        return r < 0 ? refuse(ret, VERDICT_LIMIT, NULL, NULL, "The node could not be read: %s.", strerror(-r))
                     : VERDICT_NONE;
}

static Verdict on_reload(void *userdata, Refusal *ret) {
        return manager_reload(userdata, ret);
}

static Verdict on_clear_quarantine(void *userdata, PciAddress device, uint32_t *ret_job, Refusal *ret) {
        return manager_clear_quarantine(userdata, device, ret_job, ret);
}

static Capacity *on_measure(void *userdata) {
        Manager *m = userdata;
        HostView view = host_state_view(&m->host);

        if (!m->announced || !m->notes.unmeasured)
                return NULL;
        m->notes.unmeasured = false;
        return capacity_new(&view, m->told.devices);
}

static bool on_find_job(void *userdata, uint32_t id, JobView *ret) {
        const Manager *m = userdata;
        const Job *job = job_queue_find(&m->jobs, id);

        if (!job || job->removed)
                return false;
        *ret = (JobView) {
                .id = job->id,
                .verb = job->kind->verb,
                .subject = job->subject,
                .step = job->counted_step ?: "",
                .message = job->message,
                .steps_done = job_steps_done(job),
                .steps_total = (unsigned) job->steps->n,
                .deadline = job->deadline,
        };
        return true;
}

static int on_list_device_steps(void *userdata, uint32_t id, DeviceStep **ret, size_t *ret_n) {
        const Manager *m = userdata;

        return job_device_steps(job_queue_find(&m->jobs, id), ret, ret_n);
}

static size_t on_list_jobs(void *userdata, uint32_t *ret_ids, size_t max) {
        Manager *m = userdata;
        size_t n = 0;

        for (size_t i = 0; i < m->jobs.n && n < max; i++)
                if (!m->jobs.list[i]->removed)
                        ret_ids[n++] = m->jobs.list[i]->id;
        return n;
}

static const JobTime *on_list_job_times(void *userdata, size_t *ret_n) {
        const Manager *m = userdata;

        *ret_n = m->jobs.n_times;
        return m->jobs.times;
}

static void on_bus_settled(void *userdata) {
        Manager *m = userdata;

        note_turn(m);
}

static const ServerCallbacks server_callbacks = {
        .view = on_view,
        .allocate = on_allocate,
        .release = on_release,
        .ask_guests = on_ask_guests,
        .check_runnable = on_check_runnable,
        .prepare = on_prepare,
        .renew = on_renew,
        .attach = on_attach,
        .detach = on_detach,
        .accept = on_accept,
        .set_virtual_functions = on_set_virtual_functions,
        .clear_quarantine = on_clear_quarantine,
        .rescan = on_rescan,
        .reload = on_reload,
        .measure = on_measure,
        .find_job = on_find_job,
        .list_device_steps = on_list_device_steps,
        .list_jobs = on_list_jobs,
        .list_job_times = on_list_job_times,
        .bus_settled = on_bus_settled,
};

/* Handles SIGTERM and SIGINT. The first signal lets running jobs finish. The second one kills them, and the next start
 * of the daemon resumes their work. */
static int on_stop(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Manager *m = userdata;
        const size_t active = job_queue_active(&m->jobs);

        (void) sd_notify(false, "STOPPING=1");
        if (m->stopping)
                return sd_event_exit(m->event, 0);
        if (active > 0)
                log_info("Stopping when %zu running job%s %s ended; a second signal stops at once.", active,
                         PLURAL(active), active == 1 ? "has" : "have");
        m->stopping = true;
        note_turn(m);
        return 0;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        (void) manager_reload(userdata, NULL);
        return 0;
}

static int make_event_loop(Manager *m) {
        sigset_t mask;
        int r;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigaddset(&mask, SIGINT);
        (void) sigaddset(&mask, SIGHUP);
        (void) sigaddset(&mask, SIGCHLD);
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
                return -errno;
        r = sd_event_default(&m->event);
        if (r < 0)
                return r;
        r = sd_event_set_watchdog(m->event, true);
        if (r < 0)
                return r;
        r = sd_event_add_signal(m->event, NULL, SIGTERM, on_stop, m);
        if (r < 0)
                return r;
        r = sd_event_add_signal(m->event, NULL, SIGINT, on_stop, m);
        return r < 0 ? r : sd_event_add_signal(m->event, NULL, SIGHUP, on_hangup, m);
}

static int on_settle(sd_event_source *source, void *userdata) {
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        manager_settle(userdata);
        return 0;
}

static int add_settle(Manager *m) {
        /* Enabled from the start, to begin the phases of startup. */
        int r = sd_event_add_defer(m->event, &m->notes.settle, on_settle, m);

        if (r < 0)
                return r;
        /* If the source is enabled, settle runs as its prepare callback before the loop waits for the next event, so
         * that clients learn the changes of one event before the next event changes more. The source itself is
         * dispatched only if this run of settle has made new notes. */
        r = sd_event_source_set_prepare(m->notes.settle, on_settle);
        if (r < 0)
                return r;
        /* Settle runs before the prepare callbacks of the buses, which send the messages in their queues. */
        return sd_event_source_set_priority(m->notes.settle, SD_EVENT_PRIORITY_NORMAL - 2);
}

int manager_run(Manager *m) {
        int r = make_event_loop(m);

        if (r < 0)
                return log_error_errno(r, "Failed to set up the event loop: %m");
        r = server_new(m->event, &server_callbacks, m, &m->told.server);
        if (r < 0)
                return r;
        r = manager_follow_orphans(m);
        if (r < 0)
                return r;
        manager_follow_guests(m);
        manager_follow_links(m);
        manager_follow_regions(m);
        manager_follow_fabric(m);
        manager_follow_endpoints(m);
        manager_probe_gpus(m);
        r = add_settle(m);
        if (r < 0)
                return log_error_errno(r, "Failed to set up the event loop: %m");
        r = sd_event_loop(m->event);
        return r < 0 ? log_error_errno(r, "The event loop failed: %m") : r;
}
