/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Waiting for a job. The watch is created before the call that starts the job. Signals that arrive before the reply to
 * that call, which names the job, are queued and handled when it is known, so that no step and no result is lost.
 */

#include "client.h"

typedef struct Watch Watch;

/* verb and subject are for messages ("allocate", the allocation's name) and are borrowed. Also calls
 * client_catch_interrupt(). 0 or a negative errno, reported. */
int watch_new(Client *c, const char *verb, const char *subject, Watch **ret);
Watch *watch_free(Watch *w);
DEFINE_CLEANUP(Watch *, watch_free)

/*
 * Waits until the job ends; prints each of its steps, unless --json is given. reply: to the call that started the job,
 * for its sender. job: object path, borrowed. EXIT_SUCCESS, EXIT_FAILURE or EXIT_INTERRUPTED; the latter two are
 * reported, except that with --json the caller reports a failed job.
 */
int watch_wait(Watch *w, sd_bus_message *reply, const char *job);
/* Reports that Ctrl-C ended the wait. Returns EXIT_INTERRUPTED. */
int watch_interrupted(const Watch *w);
/* JOB_RESULT_*; NULL unless the job has ended. */
const char *watch_result(const Watch *w);

/*
 * Prints the document of --json: {"name":, "allocation":, "job":, "result":, "message":}. w is NULL with --no-wait: the
 * result is null then. allocation may be NULL. EXIT_SUCCESS; EXIT_FAILURE when the result is not JOB_RESULT_DONE; or a
 * negative errno, reported.
 */
int watch_print_json(const Args *args, const Watch *w, const char *name, const char *allocation, const char *job);

/*
 * Handles a reply whose only value is the job: waits for the job and prints "SUBJECT DONE", or with w NULL prints
 * "SUBJECT BEGUN" at once. With --json prints the document of watch_print_json(). Returns what the verb returns.
 */
int watch_follow(Client *c, Watch *w, const char *subject, sd_bus_message *reply, const char *done, const char *begun);
