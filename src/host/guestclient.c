/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "host/guestclient.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/socket.h>

#include "guest/validation.h"
#include "host/child.h"
#include "util/strings.h"
#include "util/wire.h"
#include "virtprogram.h"

#define SYSTEM_URI "qemu:///system"
#define SOCKETS    "run/libvirt"

/* For the answer to a request and, if GuestClient.expected is set, for the first list of a new process. */
#define ANSWER_TIMEOUT_SEC 30U
#define DELAY_MAX_SEC      256U
#define RECORDS_MAX        64U /* the most records that one turn of the loop handles */

struct GuestClient {
        sd_event *event;
        const Sysfs *fs;
        char *uri;
        GuestsChanged changed;
        void *userdata;
        GuestList list;
        uint64_t asked, answered; /* numbers of the last request, and of the last one that was answered or given up */
        char *unknown;
        unsigned delay;       /* seconds before the process is started again */
        bool dirty;           /* changed() must be called: the list became complete, or has changed since */
        bool expected;        /* guest_client_expect() was called: libvirt must answer in time */
        bool ended;           /* the process was killed or has closed its socket, but has not exited yet */
        bool waits_in_parent; /* run/libvirt is missing, so the directory run is watched until it appears */
        int fd;               /* the daemon's end of the socket pair to the process; -1: no process */
        ChildWatch child;
        sd_event_source *io, *timer, *sockets;
};

static void start_process(GuestClient *c);

const GuestList *guest_client_list(const GuestClient *c) {
        return &c->list;
}

const char *guest_client_unknown(const GuestClient *c) {
        return c->unknown;
}

bool guest_client_is_idle(const GuestClient *c) {
        return !c->child.exit && c->unknown && streq(c->unknown, GUEST_CLIENT_WAITS);
}

static void set_timer(GuestClient *c, uint64_t seconds) {
        (void) sd_event_source_set_time_relative(c->timer, seconds * UINT64_C(1000000));
        (void) sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

static void stop_timer(GuestClient *c) {
        (void) sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
}

static void set_unknown(GuestClient *c, const char *reason) {
        bool differs = !c->unknown || !streq(c->unknown, reason);

        if (differs && string_copy(&c->unknown, reason) >= 0)
                c->changed(c->userdata);
}

/* Kills the process, and notes why. It is started again after its exit. */
static void end_process(GuestClient *c, const char *reason) {
        child_watch_kill(&c->child);
        c->io = sd_event_source_disable_unref(c->io);
        c->ended = true;
        c->answered = c->asked;
        stop_timer(c);
        set_unknown(c, reason);
}

static void end_failed(GuestClient *c) {
        _cleanup_free_ char *reason = string_format("libvirt cannot be asked: %s.", c->list.reason);

        end_process(c, reason ?: "libvirt cannot be asked.");
}

static void complete(GuestClient *c) {
        c->answered = MIN(c->answered + 1, c->asked);
        c->delay = 1;
        if (c->answered < c->asked)
                set_timer(c, ANSWER_TIMEOUT_SEC);
        else
                stop_timer(c);
        free(TAKE_PTR(c->unknown));
        c->dirty = true;
}

static void apply(GuestClient *c, int kind) {
        switch (kind) {
        case GUEST_RECORD_LIST:
                return;
        case GUEST_RECORD_COMPLETE:
                return complete(c);
        case GUEST_RECORD_FAILED:
                return end_failed(c);
        case -EAGAIN:
                return;
        case -EBADMSG:
                return end_process(c, VALIDATION_PROGRAM " sent a malformed record.");
        case -EPROTONOSUPPORT:
                return end_process(c, VALIDATION_PROGRAM " has another version than this daemon.");
        case -ENOMEM:
                return end_process(c, "Out of memory.");
        case -ECONNRESET:
                return end_process(c, VALIDATION_PROGRAM " has ended.");
        default:
                /* While the guests are unknown, a single record does not make them known, so no change is told. */
                c->dirty = !c->unknown;
        }
}

static int on_record(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        GuestClient *c = userdata;
        int r = 0;

        for (unsigned i = 0; i < RECORDS_MAX && !c->ended && r != -EAGAIN; i++) {
                _cleanup_wire_ WireMessage m = { 0 };

                r = wire_receive(fd, GUEST_RECORD_MAX, &m);
                if (r >= 0)
                        r = strlen(m.data) == m.size ? guest_list_apply(&c->list, m.code, m.data) : -EBADMSG;
                apply(c, r);
        }
        if (c->dirty) {
                c->dirty = false;
                c->changed(c->userdata);
        }
        return 0;
}

static int on_program_exit(sd_event_source *source, const siginfo_t *info, void *userdata) {
        GuestClient *c = userdata;

        /* The process's last records may say why it ended. */
        if (!c->ended)
                (void) on_record(c->io, c->fd, 0, c);
        if (!c->ended)
                end_process(c, VALIDATION_PROGRAM " has ended.");
        child_watch_done(&c->child);
        cleanup_close(&c->fd);
        c->fd = -1;
        c->ended = false;
        set_timer(c, c->delay);
        c->delay = MIN(c->delay * 2, DELAY_MAX_SEC);
        return 0;
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        GuestClient *c = userdata;

        if (c->child.exit)
                end_process(c, "libvirt does not answer.");
        else
                start_process(c);
        return 0;
}

static int spawn(GuestClient *c) {
        int fds[2], r;
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        c->fd = fds[0];
        r = fcntl(c->fd, F_SETFL, O_NONBLOCK) < 0
                    ? -errno
                    : virt_program_start((const char *[]) { c->uri }, 1, fds[1], STDERR_FILENO, &pid);
        (void) close(fds[1]);
        if (r < 0)
                return r;
        r = child_watch(&c->child, c->event, pid, 0, on_program_exit, NULL, c);
        if (r < 0)
                return r;
        r = sd_event_add_io(c->event, &c->io, c->fd, EPOLLIN, on_record, c);
        if (r < 0)
                child_watch_done(&c->child);
        return r;
}

static bool has_socket(const GuestClient *c) {
        static const char *const names[] = { SOCKETS "/virtqemud-sock-ro", SOCKETS "/libvirt-sock-ro" };

        if (!streq(c->uri, SYSTEM_URI))
                return true;
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_close_ int fd = sysfs_open(c->fs, names[i], O_PATH);

                if (fd >= 0)
                        return true;
        }
        return false;
}

/* Starts the process, if none runs and libvirt's socket exists. The socket is only looked for if the URI is
 * SYSTEM_URI. */
static void start_process(GuestClient *c) {
        int r;

        if (c->child.exit)
                return;
        stop_timer(c);
        if (!has_socket(c))
                return set_unknown(c, GUEST_CLIENT_WAITS);
        r = spawn(c);
        if (r >= 0) {
                c->asked++; /* a new process lists the guests unasked */
                if (c->expected)
                        set_timer(c, ANSWER_TIMEOUT_SEC);
                return;
        }
        cleanup_close(&c->fd);
        c->fd = -1;
        set_unknown(c, VALIDATION_PROGRAM " cannot be started.");
        set_timer(c, c->delay);
        c->delay = MIN(c->delay * 2, DELAY_MAX_SEC);
}

static int on_socket(sd_event_source *source, const struct inotify_event *event, void *userdata);

/* Watches run/libvirt for libvirt's socket; if that directory is missing, watches its parent. */
static int watch(GuestClient *c) {
        static const char *const directories[] = { SOCKETS, "run" };
        int r = -ENOENT;

        for (size_t i = 0; i < ELEMENTSOF(directories) && r == -ENOENT; i++) {
                _cleanup_free_ char *path = string_format("%s/%s", sysfs_root(c->fs), directories[i]);

                c->sockets = sd_event_source_disable_unref(c->sockets);
                r = path ? sd_event_add_inotify(c->event, &c->sockets, path,
                                                IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR,
                                                on_socket, c)
                         : -ENOMEM;
                c->waits_in_parent = i > 0;
        }
        return r == -ENOENT ? 0 : r; /* no run/ either: the next guest_client_ask() looks for the socket */
}

static int on_socket(sd_event_source *source, const struct inotify_event *event, void *userdata) {
        GuestClient *c = userdata;
        bool gone = event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED);

        if (gone || (c->waits_in_parent && event->len > 0 && streq(event->name, "libvirt")))
                (void) watch(c);
        start_process(c);
        return 0;
}

uint64_t guest_client_ask(GuestClient *c) {
        int waits;

        if (!c->child.exit)
                start_process(c);
        /* While the guests are unknown, no process runs, or its first list is on its way. */
        if (c->unknown || wire_send(c->fd, GUEST_RECORD_LIST, NULL, 0) < 0)
                return 0;
        /* A running timer, that of an earlier request, stays. */
        if (sd_event_source_get_enabled(c->timer, &waits) >= 0 && waits == SD_EVENT_OFF)
                set_timer(c, ANSWER_TIMEOUT_SEC);
        return ++c->asked;
}

uint64_t guest_client_answered(const GuestClient *c) {
        return c->answered;
}

void guest_client_expect(GuestClient *c) {
        c->expected = true;
        if (c->child.exit && !c->ended && c->unknown)
                set_timer(c, ANSWER_TIMEOUT_SEC);
}

GuestClient *guest_client_free(GuestClient *c) {
        if (!c)
                return NULL;
        sd_event_source_disable_unref(c->io);
        sd_event_source_disable_unref(c->timer);
        sd_event_source_disable_unref(c->sockets);
        child_watch_done(&c->child);
        cleanup_close(&c->fd);
        guest_list_done(&c->list);
        free(c->unknown);
        free(c->uri);
        free(c);
        return NULL;
}
DEFINE_CLEANUP(GuestClient *, guest_client_free)

int guest_client_new(sd_event *event, const Sysfs *fs, const char *uri, GuestsChanged changed, void *userdata,
                     GuestClient **ret) {
        _cleanup_(cleanup_guest_client_free) GuestClient *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        *c = (GuestClient) { .event = event, .fs = fs, .changed = changed, .userdata = userdata, .delay = 1, .fd = -1 };
        if (string_copy(&c->uri, uri) < 0 || string_copy(&c->unknown, GUEST_CLIENT_WAITS) < 0)
                return -ENOMEM;
        r = sd_event_add_time_relative(event, &c->timer, CLOCK_MONOTONIC, 0, 0, on_retry, c);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        if (streq(uri, SYSTEM_URI))
                r = watch(c);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}
