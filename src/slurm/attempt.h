/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Calls passthroughd, and repeats a call that a restart of the daemon or of the bus interrupted. */

#include <systemd/sd-bus.h>

#include "settings.h"
#include "util/cleanup.h"

/* The result of a call, for the job and the node. */
typedef enum Outcome {
        OUTCOME_DONE,
        OUTCOME_SHORT,   /* not possible now, but maybe later or on another node */
        OUTCOME_INVALID, /* never possible: the request must be changed */
        OUTCOME_BROKEN,  /* an administrator must repair the node */
        OUTCOME_AGAIN,   /* never returned by attempt_repeat(): try again, because the daemon is away or works on the
                            allocation */
} Outcome;

/* One attempt: its own connection to the bus, and what the signals on that connection have reported. */
typedef struct Attempt {
        sd_bus *bus;
        const char *daemon; /* unique bus name of the daemon that runs the job; NULL: no job. Not owned */
        const char *job;    /* object path of that job, not owned */
        char *message, *result;
        bool any_removed, owner_changed;
        uint64_t waited; /* time spent waiting for jobs, in microseconds */
} Attempt;

/* Makes one attempt. what: passed on from attempt_repeat(). Sets *ret_sentence, unless the outcome is OUTCOME_DONE.
 */
typedef Outcome (*AttemptFunction)(Attempt *a, const void *what, char **ret_sentence);

/*
 * Calls the function. While the outcome is OUTCOME_AGAIN, calls it again each time the daemon has started or stopped,
 * or one of its jobs has ended; while the bus cannot be reached, after a short pause. Gives up with OUTCOME_BROKEN
 * after Settings.wait, not counting the time spent waiting for jobs.
 *
 * *ret_sentence must be NULL or an allocated text. The caller frees it after any outcome. Unless the outcome is
 * OUTCOME_DONE, it tells the reason; NULL: out of memory.
 */
Outcome attempt_repeat(const Settings *settings, AttemptFunction function, const void *what, char **ret_sentence);

/* Maps an error reply to an outcome, and sets *ret_sentence. An error without a D-Bus name is OUTCOME_AGAIN. */
Outcome attempt_judge(int error, const sd_bus_error *e, char **ret_sentence);

/* Waits until the job has ended, and returns its outcome; OUTCOME_AGAIN if the daemon or the bus went away before. job:
 * the path of the job, from the reply. verb: what the job does, for the sentence: "prepare". */
Outcome attempt_wait(Attempt *a, sd_bus_message *reply, const char *job, const char *verb, char **ret_sentence);

/* Methods return this object path when they have started no job. */
#define JOB_NONE "/"
