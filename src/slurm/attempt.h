/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Calls of passthroughd that are made again when a restart of the daemon or of the bus interrupted them. */

#include <systemd/sd-bus.h>

#include "settings.h"
#include "util/cleanup.h"

/* What follows for the job and for the node. */
typedef enum Outcome {
        OUTCOME_DONE,
        OUTCOME_SHORT,   /* not now: the job can run later, or on another node */
        OUTCOME_INVALID, /* never: the request has to be changed */
        OUTCOME_BROKEN,  /* the node needs its administrator */
        OUTCOME_AGAIN,   /* of an attempt: the daemon is away, or works on the allocation */
} Outcome;

/* One attempt has a connection of its own, and what signals told on it. */
typedef struct Attempt {
        sd_bus *bus;
        const char *daemon; /* unique name of the daemon that has the job; NULL: no job. Not owned */
        const char *job;    /* object path, not owned */
        char *message, *result;
        bool any_removed, owner_changed;
        uint64_t waited; /* microseconds, for jobs */
} Attempt;

/* what is that of attempt_repeat(). Without OUTCOME_DONE it sets the sentence. */
typedef Outcome (*AttemptFunction)(Attempt *a, const void *what, char **ret_sentence);

/*
 * Calls the function until its outcome is not OUTCOME_AGAIN: after each change of the daemon, for at most the time of
 * the settings besides the time that it waited for jobs. Then the outcome is OUTCOME_BROKEN. Without OUTCOME_DONE the
 * caller frees *ret_sentence, which is NULL if there is no memory for it.
 */
Outcome attempt_repeat(const Settings *settings, AttemptFunction function, const void *what, char **ret_sentence);

/* What an error reply means. */
Outcome attempt_judge(int error, const sd_bus_error *e, char **ret_sentence);

/* Waits for the end of the job that the reply started. verb is for the sentence: "prepare". */
Outcome attempt_wait(Attempt *a, sd_bus_message *reply, const char *job, const char *verb, char **ret_sentence);

/* The object path of no job. */
#define JOB_NONE "/"
