/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a probe in a child process, and gives the probe up after a deadline. */

#include "watch-probe.h"

#include <assert.h>
#include <errno.h>

#include "jobs-worker.h"
#include "util/cleanup.h"

/* A message from the child. Only the bytes that the answer has are sent. It is smaller than PIPE_BUF, so the write is
 * atomic. */
typedef struct Message {
        uint64_t asked; /* index in Probe.asked */
        uint8_t answer[PROBE_ANSWER_MAX];
} Message;

struct Probe {
        const ProbeKind *kind;
        void *userdata;
        Probe **slot;  /* the owner's pointer to this probe, set to NULL when the probe is freed */
        uint64_t each; /* time limit of each answer in usec */
        Worker worker;
        PciAddress *asked;
        size_t n_asked, n_answered; /* answers come in the order of asked */
};

void probe_tell(const Probe *s, size_t i, const void *answer) {
        Message m = { .asked = i };

        assert(i < s->n_asked);
        memcpy(m.answer, answer, s->kind->size);
        worker_report(&m, offsetof(Message, answer) + s->kind->size);
}

static int run(const Sysfs *fs, void *userdata) {
        const Probe *s = userdata;

        return s->kind->look(fs, s, s->asked, s->n_asked, s->userdata) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

bool probe_is_asking(const Probe *s) {
        return s && s->n_answered < s->n_asked;
}

/* Takes the answer of the next device; answer NULL: the device gave none. */
static void take(Probe *s, const void *answer) {
        PciAddress device;

        assert(s->n_answered < s->n_asked);
        device = s->asked[s->n_answered++];
        if (answer)
                s->kind->told(device, answer, s->userdata);
        if (s->n_answered == s->n_asked && s->kind->done)
                s->kind->done(s->userdata);
}

static void drain(Probe *s) {
        Message m;

        while (worker_read(&s->worker, &m, offsetof(Message, answer) + s->kind->size))
                if (m.asked == s->n_answered && s->n_answered < s->n_asked)
                        take(s, m.answer);
}

static void give_up(Probe *s) {
        while (s->n_answered < s->n_asked)
                take(s, NULL);
}

static void on_readable(void *userdata) {
        Probe *s = userdata;

        drain(s);
        if (probe_is_asking(s))
                worker_extend(&s->worker, s->each);
}

static void on_late(void *userdata) {
        Probe *s = userdata;
        size_t before = s->n_answered;

        drain(s);
        /* An answer arrived just before the deadline, so wait for the next one. */
        if (s->n_answered > before && probe_is_asking(s)) {
                worker_extend(&s->worker, s->each);
                return;
        }
        if (probe_is_asking(s))
                s->kind->late(s->asked + s->n_answered, s->n_asked - s->n_answered, s->userdata);
        worker_kill(&s->worker);
        give_up(s);
}

static Probe *probe_free(Probe *s) {
        worker_done(&s->worker);
        free(s->asked);
        free(s);
        return NULL;
}
DEFINE_CLEANUP(Probe *, probe_free)

static void on_exit_of_child(const siginfo_t *end, void *userdata) {
        Probe *s = userdata;
        const ProbeKind *kind = s->kind;
        void *owner = s->userdata;

        give_up(s);
        *s->slot = NULL;
        probe_free(s);
        kind->ended(owner);
}

static const WorkerKind worker_kind = { run, on_readable, on_late, on_exit_of_child };

int probe_begin(const ProbeKind *kind, sd_event *event, const Sysfs *fs, PciAddress *devices, size_t n,
                unsigned timeout_sec, void *userdata, Probe **ret) {
        _cleanup_free_ PciAddress *asked = devices;
        _cleanup_(cleanup_probe_free) Probe *s = calloc(1, sizeof(*s));
        int r;

        assert(n > 0 && kind->size <= PROBE_ANSWER_MAX && !*ret);
        if (!s)
                return -ENOMEM;
        *s = (Probe) { .kind = kind,
                       .userdata = userdata,
                       .slot = ret,
                       .each = timeout_sec * UINT64_C(1000000),
                       .worker = WORKER(kind->process),
                       .asked = TAKE_PTR(asked),
                       .n_asked = n };
        *ret = s;
        r = worker_start(&s->worker, &worker_kind, event, fs, s->each, s);
        if (r < 0)
                *ret = NULL;
        else
                (void) TAKE_PTR(s);
        return r;
}

Probe *probe_close(Probe *s) {
        return s ? probe_free(s) : NULL;
}
