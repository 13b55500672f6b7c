/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A worker: a child process for calls that may block for ever. It has a deadline, and reports through a pipe. Even if
 * the child cannot be killed, the event loop continues. */

#include <signal.h>
#include <systemd/sd-event.h>

#include "host/child.h"
#include "util/sysfs.h"

typedef struct WorkerKind {
        /* Runs in the child, and returns its exit status. May call worker_report() and worker_may_continue(). */
        int (*run)(const Sysfs *fs, void *userdata);
        /* Called in the parent when worker_read() can read reports, and once more before exited(). */
        void (*readable)(void *userdata);
        /* Called in the parent when the deadline has passed. */
        void (*late)(void *userdata);
        /* Called in the parent when the child has exited. May free the Worker. */
        void (*exited)(const siginfo_t *end, void *userdata);
} WorkerKind;

typedef struct Worker {
        const char *process; /* process name of the child */
        const WorkerKind *kind;
        void *userdata;
        int lock;  /* descriptor of a lock that the child holds until it exits; worker_start() closes it in the parent;
                      negative: none */
        pid_t pid; /* 0: no child was started, or it has exited */
        int reports; /* read end of the pipe for reports */
        int go;      /* write end of the pipe for the bytes of worker_start() and worker_continue(); -1: closed */
        sd_event_source *io;
        ChildWatch watch;
} Worker;
#define WORKER(process_name)                                                                                           \
        ((Worker) { .process = (process_name), .lock = -1, .reports = -1, .go = -1, .watch.may_hang = true })

/* Forks the child. It inherits only these descriptors: stdio, its ends of the pipes and the lock. It has no signal
 * blocked, and dies with its parent, also if the parent dies during this call. Returns 0 or a negative errno. */
int worker_start(Worker *w, const WorkerKind *kind, sd_event *event, const Sysfs *fs, uint64_t timeout_usec,
                 void *userdata);
/* Reads the next report. Returns false when there is none now. */
bool worker_read(const Worker *w, void *report, size_t size);
/* Answers worker_may_continue() in the child, once. Returns false when the child will not continue. */
bool worker_continue(Worker *w, bool may);
/* Sets the deadline to timeout_usec from now. */
void worker_extend(const Worker *w, uint64_t timeout_usec);
void worker_drop_deadline(Worker *w);
void worker_kill(const Worker *w);
/* Kills the child and frees the members of w, without a callback. */
void worker_done(Worker *w);

/* Runs in the child: returns the descriptor of the lock; negative: none. */
int worker_lock(const Worker *w);
/* Runs in the child: writes a report of at most PIPE_BUF bytes, so that the write is atomic. */
void worker_report(const void *report, size_t size);
/* Runs in the child: waits for worker_continue(), and returns its argument `may`. */
bool worker_may_continue(void);
