/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A child process for calls that may block for ever. It reports through a pipe and has a deadline. A child that cannot
 * be killed never blocks the event loop.
 */

#include <signal.h>
#include <systemd/sd-event.h>

#include "host/child.h"
#include "util/sysfs.h"

typedef struct WorkerKind {
        /* In the child: returns its exit status. worker_report() and worker_may_continue() talk to the parent. */
        int (*run)(const Sysfs *fs, void *userdata);
        /* In the parent: worker_read() can read reports. */
        void (*readable)(void *userdata);
        /* The deadline has passed. */
        void (*late)(void *userdata);
        /* The child has exited. May free the Worker. */
        void (*exited)(const siginfo_t *end, void *userdata);
} WorkerKind;

typedef struct Worker {
        const char *process; /* process name of the child */
        const WorkerKind *kind;
        void *userdata;
        int lock;    /* the child holds this lock until it exits; negative: none */
        pid_t pid;   /* 0: no child was started, or it has exited */
        int reports; /* read end of the pipe for reports */
        int go;      /* write end of the pipe for the byte that lets the child continue; -1 when closed */
        sd_event_source *io;
        ChildWatch watch;
} Worker;
#define WORKER(process_name)                                                                                           \
        ((Worker) { .process = (process_name), .lock = -1, .reports = -1, .go = -1, .watch.may_hang = true })

/*
 * Forks the child. Its only descriptors are stdio, its ends of the pipes and the lock; no signal is blocked; it dies
 * with its parent, also when the parent dies during this call. Returns 0 or a negative errno.
 */
int worker_start(Worker *w, const WorkerKind *kind, sd_event *event, const Sysfs *fs, uint64_t timeout_usec,
                 void *userdata);
/* Reads the next report. Returns false when there is none. */
bool worker_read(const Worker *w, void *report, size_t size);
/* Allows or forbids the child to continue, once. Returns false when it will not continue. */
bool worker_continue(Worker *w, bool may);
/* Sets the deadline again, from now. */
void worker_extend(const Worker *w, uint64_t timeout_usec);
void worker_drop_deadline(Worker *w);
void worker_kill(const Worker *w);
/* Kills the child and frees the members of w, without a callback. */
void worker_done(Worker *w);

/* In the child: returns the descriptor of the lock; negative: none. */
int worker_lock(const Worker *w);
/* In the child: writes a report of at most PIPE_BUF bytes atomically. */
void worker_report(const void *report, size_t size);
/* In the child: waits for worker_continue(). */
bool worker_may_continue(void);
