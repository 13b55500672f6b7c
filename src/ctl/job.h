/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Waits for a job. The watch must be created before the call that starts the job. Signals that arrive before the reply
 * to this call are queued (at most BACKLOG_MAX of job.c), because only the reply tells which job to follow. */

#include "reply.h"

typedef struct Watch Watch;

/* The object path in a reply that means: there is no job to wait for. */
#define JOB_NONE "/"

/* Creates a watch. verb and subject are for messages ("allocate", the allocation's name), and are borrowed. Also calls
 * client_catch_interrupt(). Returns 0 or a negative errno, reported. */
int watch_new(Client *c, const char *verb, const char *subject, Watch **ret);
Watch *watch_free(Watch *w);
DEFINE_CLEANUP(Watch *, watch_free)

/* Waits until the job ends, the daemon leaves the bus, the connection is lost, or the user presses Ctrl-C. Without
 * --json, shows what the job does. reply: the reply to the call that started the job; only signals of its sender count.
 * job: object path. Both are borrowed. Returns EXIT_SUCCESS, EXIT_FAILURE or EXIT_INTERRUPTED. The latter two were
 * reported, except a failed job with --json, which the caller reports. */
int watch_wait(Watch *w, sd_bus_message *reply, const char *job);
/* Reports that Ctrl-C has ended the wait. Returns EXIT_INTERRUPTED. */
int watch_interrupted(Watch *w);
/* Returns the JOB_RESULT_* of the job; NULL until the job has ended. */
const char *watch_result(const Watch *w);

/* Prints the document of --json, an object with "name", "allocation", "job", "result", "message" and "devices". `w` is
 * NULL with --no-wait or without a job; then "result" is null. allocation and devices are borrowed and may be NULL;
 * then the document lacks them. The document has "message" if the job did not succeed or has a message. Returns
 * EXIT_SUCCESS if `w` is NULL or the job has JOB_RESULT_DONE, else EXIT_FAILURE; or a negative errno, reported. */
int watch_print_json(const Args *args, const Watch *w, const char *name, const char *allocation, const char *job,
                     json_object *devices);

/* A method that starts a job and replies with its path, and the words for messages about it. */
typedef struct JobCall {
        const char *method;
        const char *verb; /* as for watch_new() */
        const char *done, *begun;
        /*
         * Lists the devices that the call was about, as an array of objects with slot and address. They are printed
         * after the sentence, or with --json are "devices" of the document. Called when the job is done; at once with
         * --no-wait or without a job. Returns 0 or a negative errno; the caller frees *ret. The pointer is NULL for
         * verbs that print no devices.
         */
        int (*list_devices)(Client *c, const struct JobCall *call, const char *subject, json_object **ret);
        json_object *before; /* for list_devices(): the allocation before the call, or NULL; borrowed */
} JobCall;

/* Implements a verb: calls the method, waits for its job, and prints "SUBJECT DONE". With --no-wait, prints at once
 * "SUBJECT BEGUN", or "SUBJECT DONE" if there is no job. With --json, prints the document of watch_print_json()
 * instead. types and the arguments after it are those of sd_bus_message_append(). Returns the result of the verb. */
int watch_call(Client *c, const JobCall *call, const char *subject, const char *types, ...);
/* As watch_call(), for a call that client_method() has made and to which the arguments were added. */
int watch_send(Client *c, const JobCall *call, const char *subject, sd_bus_message *message);
/* Reads the allocation with this name into *ret, which the caller frees; NULL when there is none. Returns as
 * reply_ask(). */
int watch_allocation(Client *c, const char *name, json_object **ret);
/* Sets *ret to the generation for a call: the value of --generation, or else the present generation of the allocation.
 * If there is no such allocation, sets *ret to 0; the daemon refuses the call then. Returns 0 or a negative errno,
 * reported. */
int watch_generation(Client *c, const char *name, uint64_t *ret);
