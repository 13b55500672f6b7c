/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Waiting for a job. The watch is set up before the call that starts the job; what arrives before the reply names the
 * job is kept and looked at then, so that no step and no result is missed.
 */

#include "client.h"

typedef struct Watch Watch;

/* verb and subject are for sentences ("allocate", the allocation's name); not owned. */
int watch_new(Client *c, const char *verb, const char *subject, Watch **ret);
Watch *watch_free(Watch *w);
DEFINE_CLEANUP(Watch *, watch_free)

/*
 * Waits until the job that reply announced is over, printing each step unless --json was given. EXIT_SUCCESS;
 * EXIT_FAILURE or EXIT_INTERRUPTED, reported; or a negative errno, reported. With --json a failed job is left to the
 * caller to report.
 */
int watch_wait(Watch *w, sd_bus_message *reply, const char *job);
/* Tells of a Ctrl-C before the job was known. EXIT_INTERRUPTED. */
int watch_interrupted(const Watch *w);
/* JOB_RESULT_*; NULL unless the job is over. */
const char *watch_result(const Watch *w);

/*
 * For --json: {"name":, "allocation":, "job":, "result":, "message":}. w NULL: nobody waited, there is no result.
 * allocation may be NULL. EXIT_FAILURE when the result is not JOB_RESULT_DONE.
 */
int watch_print_json(const Args *args, const Watch *w, const char *name, const char *allocation, const char *job);

/*
 * What comes after a reply that names a job: waits for its end, or not (w NULL), and prints what came of it, "SUBJECT
 * DONE", "SUBJECT BEGUN" or JSON. Exit status.
 */
int watch_follow(Client *c, Watch *w, const char *subject, sd_bus_message *reply, const char *done, const char *begun);
