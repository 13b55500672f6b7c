/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a probe in a child process, and gives up on it after a deadline. */

#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/child.h"
#include "util/cleanup.h"

/* A message from the child, shortened to the size of the answer. Smaller than PIPE_BUF, so it is written atomically. */
typedef struct Message {
        uint64_t asked; /* index in Probe.asked */
        uint8_t answer[PROBE_ANSWER_MAX];
} Message;

struct Probe {
        const ProbeKind *kind;
        void *userdata;
        Probe **slot;  /* the owner's pointer to this probe */
        uint64_t each; /* timeout of each answer in usec */
        pid_t pid;
        int fd;
        sd_event_source *io, *child, *timer;
        PciAddress *asked;
        size_t n_asked, n_answered; /* the answers come in the order of asked */
};

void probe_tell(const Probe *s, size_t i, const void *answer) {
        Message m = { .asked = i };

        memcpy(m.answer, answer, s->kind->size);
        /* A failure means that the parent has died, and then PR_SET_PDEATHSIG kills this process. */
        (void) !write(CHILD_REPORT_FD, &m, offsetof(Message, answer) + s->kind->size);
}

_Noreturn static void run_child(Probe *s, const Sysfs *inherited, pid_t parent, int report) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        int r;

        /* This child waits for no byte from its parent, so report stands in for go. */
        if (child_settle(parent, s->kind->process, report, report, -1) < 0 ||
            sysfs_new(sysfs_root(inherited)[0] ? sysfs_root(inherited) : "/", &fs) < 0)
                _exit(EXIT_FAILURE);
        r = s->kind->look(fs, s, s->asked, s->n_asked, s->userdata);
        _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

bool probe_is_asking(const Probe *s) {
        return s && s->n_answered < s->n_asked;
}

/* answer: NULL when the device gave none. */
static void take(Probe *s, const void *answer) {
        PciAddress device = s->asked[s->n_answered++];

        if (answer)
                s->kind->told(device, answer, s->userdata);
        if (s->n_answered == s->n_asked && s->kind->done)
                s->kind->done(s->userdata);
}

static void drain(Probe *s) {
        const ssize_t size = (ssize_t) (offsetof(Message, answer) + s->kind->size);
        Message m;

        while (read(s->fd, &m, (size_t) size) == size)
                if (m.asked == s->n_answered && s->n_answered < s->n_asked)
                        take(s, m.answer);
}

static void give_up(Probe *s) {
        while (s->n_answered < s->n_asked)
                take(s, NULL);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Probe *s = userdata;

        drain(s);
        (void) sd_event_source_set_time_relative(s->timer, s->each);
        /* on_child() handles the end; a closed pipe would wake the event loop without end. */
        if (!(events & EPOLLIN))
                s->io = sd_event_source_disable_unref(s->io);
        return 0;
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Probe *s = userdata;
        size_t before = s->n_answered;

        drain(s);
        /* An answer arrived just before the deadline. */
        if (s->n_answered > before && s->n_answered < s->n_asked) {
                (void) sd_event_source_set_time_relative(source, s->each);
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        if (s->n_answered < s->n_asked)
                s->kind->late(s->asked + s->n_answered, s->n_asked - s->n_answered, s->userdata);
        (void) kill(s->pid, SIGKILL);
        give_up(s);
        return 0;
}

static Probe *probe_free(Probe *s) {
        sd_event_source_disable_unref(s->io);
        sd_event_source_disable_unref(s->child);
        sd_event_source_disable_unref(s->timer);
        cleanup_close(&s->fd);
        free(s->asked);
        free(s);
        return NULL;
}
DEFINE_CLEANUP(Probe *, probe_free)

static int on_child(sd_event_source *source, const siginfo_t *si, void *userdata) {
        Probe *s = userdata;
        const ProbeKind *kind = s->kind;
        void *owner = s->userdata;

        drain(s);
        give_up(s);
        *s->slot = NULL;
        probe_free(s);
        kind->ended(owner);
        return 0;
}

static int watch(Probe *s, sd_event *event) {
        int r = sd_event_add_child(event, &s->child, s->pid, WEXITED, on_child, s);

        if (r >= 0)
                r = sd_event_add_io(event, &s->io, s->fd, EPOLLIN, on_io, s);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &s->timer, CLOCK_MONOTONIC, s->each, 0, on_timeout, s);
        return r;
}

static int begin(Probe *s, sd_event *event, const Sysfs *fs) {
        _cleanup_close_ int report_read = -1, report_write = -1;
        pid_t parent = getpid();
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        report_read = fds[0];
        report_write = fds[1];
        s->pid = fork();
        if (s->pid < 0)
                return -errno;
        if (s->pid == 0)
                run_child(s, fs, parent, report_write);
        (void) fcntl(report_read, F_SETFL, O_NONBLOCK);
        s->fd = TAKE_FD(report_read);
        r = watch(s, event);
        if (r < 0)
                (void) kill(s->pid, SIGKILL);
        return r;
}

int probe_begin(const ProbeKind *kind, sd_event *event, const Sysfs *fs, PciAddress *devices, size_t n,
                unsigned timeout_sec, void *userdata, Probe **ret) {
        _cleanup_free_ PciAddress *asked = devices;
        _cleanup_(cleanup_probe_free) Probe *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        *s = (Probe){ .kind = kind,
                      .userdata = userdata,
                      .slot = ret,
                      .each = timeout_sec * UINT64_C(1000000),
                      .fd = -1,
                      .asked = TAKE_PTR(asked),
                      .n_asked = n };
        *ret = s;
        r = begin(s, event, fs);
        if (r < 0)
                *ret = NULL;
        else
                (void) TAKE_PTR(s);
        return r;
}

Probe *probe_close(Probe *s) {
        if (!s)
                return NULL;
        (void) kill(s->pid, SIGKILL);
        return probe_free(s);
}
