/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Waits for a job. The watch is created before the call that starts the job. Signals that arrive before the reply to
 * this call, which names the job, are queued and handled later, so that no step and no result is lost.
 */

#include "reply.h"

typedef struct Watch Watch;

/* The object path that means that there is no job to wait for. */
#define JOB_NONE "/"

/* verb and subject are for messages ("allocate", the allocation's name) and are borrowed. Also calls
 * client_catch_interrupt(). 0 or a negative errno, reported. */
int watch_new(Client *c, const char *verb, const char *subject, Watch **ret);
Watch *watch_free(Watch *w);
DEFINE_CLEANUP(Watch *, watch_free)

/*
 * Waits until the job ends; shows what it does, unless --json is given. reply: to the call that started the job,
 * for its sender. job: object path, borrowed. EXIT_SUCCESS, EXIT_FAILURE or EXIT_INTERRUPTED; the latter two are
 * reported, except that with --json the caller reports a failed job.
 */
int watch_wait(Watch *w, sd_bus_message *reply, const char *job);
/* Reports that Ctrl-C ended the wait. Returns EXIT_INTERRUPTED. */
int watch_interrupted(Watch *w);
/* Returns a JOB_RESULT_*; NULL unless the job has ended. */
const char *watch_result(const Watch *w);

/*
 * Prints the document of --json: {"name":, "allocation":, "job":, "result":, "message":, "devices":}. w is NULL with
 * --no-wait: the result is null then. allocation and devices may be NULL. EXIT_SUCCESS; EXIT_FAILURE when the result is
 * not JOB_RESULT_DONE; or a negative errno, reported.
 */
int watch_print_json(const Args *args, const Watch *w, const char *name, const char *allocation, const char *job,
                     json_object *devices);

/* A method that replies with the job that it started, and the words for messages about it. */
typedef struct JobCall {
        const char *method;
        const char *verb; /* as for watch_new() */
        const char *done, *begun;
        /* Lists the devices of the call, an array of objects with slot and address. They are printed after the
         * sentence, and are "devices" of the document. Called when the job is done, or with --no-wait or without a job,
         * after the call. NULL: devices are not printed. before: the allocation before the call, or NULL. 0 or a
         * negative errno, reported. */
        int (*list_devices)(Client *c, const struct JobCall *call, const char *subject, json_object **ret);
        json_object *before;
} JobCall;

/*
 * Implements a verb: calls the method, waits for its job, and prints "SUBJECT DONE"; with --no-wait prints "SUBJECT
 * BEGUN" at once. With --json prints the document of watch_print_json(). Arguments as for sd_bus_message_append().
 * Returns the result of the verb.
 */
int watch_call(Client *c, const JobCall *call, const char *subject, const char *types, ...);
/* As watch_call(), with a message for the method of the call that client_method() has made. */
int watch_send(Client *c, const JobCall *call, const char *subject, sd_bus_message *message);
/* Reads the allocation, which the caller frees; NULL when no allocation has this name. 0 or a negative errno,
 * reported. */
int watch_allocation(Client *c, const char *name, json_object **ret);
/* Finds the generation for a call: that of --generation, else the present one of the allocation; 0 when there is none,
 * for which the daemon refuses the call. 0 or a negative errno, reported. */
int watch_generation(Client *c, const char *name, uint64_t *ret);
