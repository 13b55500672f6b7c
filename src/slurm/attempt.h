/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Calls passthroughd, and repeats a call that a restart of the daemon or of the bus interrupted. */

#include <systemd/sd-bus.h>

#include "settings.h"
#include "util/cleanup.h"

/* The outcome for the job and for the node. */
typedef enum Outcome {
        OUTCOME_DONE,
        OUTCOME_SHORT,   /* not possible now: the job can run later, or on another node */
        OUTCOME_INVALID, /* never possible: the request must be changed */
        OUTCOME_BROKEN,  /* an administrator must repair the node */
        OUTCOME_AGAIN,   /* only of an attempt: the daemon is away, or works on the allocation */
} Outcome;

/* An attempt has a connection of its own, and what signals on it reported. */
typedef struct Attempt {
        sd_bus *bus;
        const char *daemon; /* unique name of the daemon that has the job; NULL: no job. Not owned */
        const char *job;    /* object path, not owned */
        char *message, *result;
        bool any_removed, owner_changed;
        uint64_t waited; /* time spent waiting for jobs, in microseconds */
} Attempt;

/* what: the argument of attempt_repeat(). Sets the sentence unless the outcome is OUTCOME_DONE. */
typedef Outcome (*AttemptFunction)(Attempt *a, const void *what, char **ret_sentence);

/*
 * Calls the function until its outcome is not OUTCOME_AGAIN, after each change of the daemon. After the time
 * Settings.wait, in which waiting for jobs does not count, the outcome is OUTCOME_BROKEN. Unless the outcome is
 * OUTCOME_DONE, the caller frees *ret_sentence, which is NULL if there is no memory for it.
 */
Outcome attempt_repeat(const Settings *settings, AttemptFunction function, const void *what, char **ret_sentence);

/* Maps an error reply to an Outcome and sets the sentence. An error without a D-Bus name is OUTCOME_AGAIN. */
Outcome attempt_judge(int error, const sd_bus_error *e, char **ret_sentence);

/* Waits for the end of the job that the reply started. verb: for the sentence, as in "prepare". */
Outcome attempt_wait(Attempt *a, sd_bus_message *reply, const char *job, const char *verb, char **ret_sentence);

/* The object path that means that there is no job. */
#define JOB_NONE "/"
