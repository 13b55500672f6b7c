/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which allocations running domains use. A process asks libvirt, which may hang; here its reports are read. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "daemon/child.h"
#include "daemon/manager.h"
#include "host/libvirt.h"
#include "util/log.h"
#include "util/strings.h"

/* Of one report; a node has fewer functions. */
#define GUEST_DEVICES_MAX 65536U
#define READS_PER_TURN    256U
/* Until a process that died is replaced. */
#define AGAIN_USEC        (1000U * 1000U)

struct Guests {
        pid_t pid;
        int fd;
        sd_event_source *io, *child, *again;
        LibvirtReport *devices; /* of the report that is being read */
        size_t n_devices;
        bool lost; /* said so */
};

static bool send_report(const LibvirtReport *r, void *userdata) {
        return write(CHILD_REPORT_FD, r, sizeof(*r)) == (ssize_t) sizeof(*r);
}

_Noreturn static void run_child(pid_t parent, int fd) {
        const char *uri = secure_getenv("LIBVIRT_DEFAULT_URI");

        if (child_settle(parent, "passthroughd-vm", fd) >= 0)
                libvirt_follow(uri && *uri ? uri : "qemu:///system", send_report, NULL);
        _exit(0);
}

static const char *find_domain(const Guests *g, const Allocation *a) {
        for (size_t i = 0; i < g->n_devices; i++)
                if (allocation_find_device(a, g->devices[i].address))
                        return g->devices[i].domain;
        return NULL;
}

static void take_report(Manager *m) {
        for (size_t i = 0; i < m->node.ledger->n_allocations; i++) {
                Allocation *a = m->node.ledger->allocations[i];
                const char *domain = find_domain(m->guests, a);

                if (streq_ptr(domain, a->domain) || string_copy(&a->domain, domain) < 0)
                        continue;
                if (domain)
                        log_full(LOG_INFO, 0, (&(LogFields){ .allocation = a->name }),
                                 "The domain '%s' runs with '%s'.", domain, a->name);
                else
                        log_full(LOG_INFO, 0, (&(LogFields){ .allocation = a->name }),
                                 "No domain runs with '%s' any more.", a->name);
                if (m->announced)
                        server_allocation_changed(m->server, a->name);
        }
}

static void add_device(Guests *g, const LibvirtReport *r) {
        if (g->n_devices >= GUEST_DEVICES_MAX || ARRAY_RESERVE(g->devices, g->n_devices) < 0)
                return;
        g->devices[g->n_devices++] = *r;
}

static void on_report(Manager *m, const LibvirtReport *r) {
        Guests *g = m->guests;

        switch (r->kind) {
        case LIBVIRT_BEGIN:
                g->n_devices = 0;
                break;
        case LIBVIRT_DEVICE:
                add_device(g, r);
                break;
        case LIBVIRT_END:
                if (g->lost)
                        log_info("libvirt tells again which domains run.");
                g->lost = false;
                take_report(m);
                break;
        case LIBVIRT_LOST:
        case LIBVIRT_MISSING:
        default:
                /* What was true last stays: a guest outlives libvirt. */
                if (!g->lost)
                        log_info("libvirt does not tell which domains run%s; who has a device open is seen all the "
                                 "same.",
                                 r->kind == LIBVIRT_MISSING ? ", it is not installed" : "");
                g->lost = true;
                break;
        }
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Manager *m = userdata;
        LibvirtReport r;

        for (unsigned i = 0; i < READS_PER_TURN; i++) {
                ssize_t n = read(fd, &r, sizeof(r));

                if (n != (ssize_t) sizeof(r))
                        break;
                on_report(m, &r);
                /* Nothing can come of asking again. */
                if (r.kind == LIBVIRT_MISSING)
                        m->guests->again = sd_event_source_disable_unref(m->guests->again);
        }
        return 0;
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata);

static void forget_child(Guests *g) {
        g->io = sd_event_source_disable_unref(g->io);
        g->child = sd_event_source_disable_unref(g->child);
        cleanup_close(&g->fd);
        g->fd = -1;
        g->pid = 0;
}

static int on_child(sd_event_source *source, const siginfo_t *si, void *userdata) {
        Manager *m = userdata;
        Guests *g = m->guests;

        (void) on_io(NULL, g->fd, EPOLLIN, m);
        forget_child(g);
        if (g->again && sd_event_source_set_time_relative(g->again, AGAIN_USEC) >= 0)
                (void) sd_event_source_set_enabled(g->again, SD_EVENT_ONESHOT);
        return 0;
}

static int start(Manager *m) {
        Guests *g = m->guests;
        _cleanup_close_ int report_read = -1, report_write = -1;
        pid_t parent = getpid();
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        report_read = fds[0];
        report_write = fds[1];
        g->pid = fork();
        if (g->pid == 0)
                run_child(parent, report_write);
        if (g->pid < 0) {
                g->pid = 0;
                return -errno;
        }
        (void) fcntl(report_read, F_SETFL, O_NONBLOCK);
        g->fd = TAKE_FD(report_read);
        r = sd_event_add_io(m->event, &g->io, g->fd, EPOLLIN, on_io, m);
        return r < 0 ? r : sd_event_add_child(m->event, &g->child, g->pid, WEXITED, on_child, m);
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        int r = start(m);

        if (r < 0 && m->guests->pid > 0) {
                (void) kill(m->guests->pid, SIGKILL);
                forget_child(m->guests);
        }
        if (r < 0)
                log_warning_errno(r, "Failed to ask libvirt which domains run, ignoring: %m");
        return 0;
}

int manager_guests_start(Manager *m) {
        int r;

        m->guests = calloc(1, sizeof(*m->guests));
        if (!m->guests)
                return -ENOMEM;
        m->guests->fd = -1;
        r = sd_event_add_time(m->event, &m->guests->again, CLOCK_MONOTONIC, 0, 0, on_again, m);
        return r < 0 ? r : sd_event_source_set_enabled(m->guests->again, SD_EVENT_ONESHOT);
}

void manager_guests_stop(Manager *m) {
        Guests *g = m->guests;

        if (!g)
                return;
        if (g->pid > 0)
                (void) kill(g->pid, SIGKILL);
        forget_child(g);
        sd_event_source_disable_unref(g->again);
        free(g->devices);
        free(g);
        m->guests = NULL;
}
