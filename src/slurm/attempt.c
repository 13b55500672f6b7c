/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls passthroughd, waits for its jobs, and calls again after a restart. */
#include <errno.h>
#include <poll.h>

#include "attempt.h"
#include "bus/names.h"
#include "node.h"
#include "util/clock.h"
#include "util/strings.h"

#define SECOND UINT64_C(1000000)

/* A daemon on a busy node may need more than a second for a reply. */
#define REPLY_SEC 5U

/* The pause between attempts while no bus can be reached. */
#define PAUSE_MSEC 200

#define MATCH_JOBS                                                                                                     \
        "type='signal',sender='" BUS_NAME "',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"  \
        "path_namespace='" BUS_JOB_PREFIX "'"
#define MATCH_REMOVED "type='signal',sender='" BUS_NAME "',interface='" BUS_MANAGER_INTERFACE "',member='JobRemoved'"
#define MATCH_OWNER   "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" BUS_NAME "'"

static void attempt_done(Attempt *a) {
        sd_bus_flush_close_unref(a->bus);
        free(a->message);
        free(a->result);
        *a = (Attempt) { 0 };
}
#define _cleanup_attempt_ _cleanup_(attempt_done)

/* Stores the Message property of the job from a PropertiesChanged signal. */
static int take_properties(Attempt *a, sd_bus_message *m) {
        const char *interface, *key, *text;
        int r = sd_bus_message_read(m, "s", &interface);

        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(m, SD_BUS_TYPE_ARRAY, "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv")) > 0) {
                r = sd_bus_message_read(m, "s", &key);
                if (r < 0)
                        return r;
                if (streq(key, "Message"))
                        r = sd_bus_message_read(m, "v", "s", &text) < 0 ? -EBADMSG : string_copy(&a->message, text);
                else
                        r = sd_bus_message_skip(m, "v");
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r;
}

static int take_removed(Attempt *a, sd_bus_message *m) {
        const char *job, *result;
        uint32_t id;
        int r = sd_bus_message_read(m, "uos", &id, &job, &result);

        a->any_removed = true;
        return r < 0 || !streq_ptr(job, a->job) ? r : string_copy(&a->result, result);
}

/* Notes what a signal says about the daemon or the job. Ignores a signal that cannot be parsed. */
static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Attempt *a = userdata;

        if (sd_bus_message_is_signal(m, "org.freedesktop.DBus", "NameOwnerChanged"))
                a->owner_changed = true;
        else if (a->daemon && !streq_ptr(sd_bus_message_get_sender(m), a->daemon))
                return 0;
        else if (sd_bus_message_is_signal(m, BUS_MANAGER_INTERFACE, "JobRemoved"))
                (void) take_removed(a, m);
        else if (streq_ptr(sd_bus_message_get_path(m), a->job))
                (void) take_properties(a, m);
        return 0;
}

static int open_attempt(const Settings *settings, Attempt *a) {
        static const char *const matches[] = { MATCH_JOBS, MATCH_REMOVED, MATCH_OWNER };
        int r = node_open_bus(settings->bus, &a->bus);

        if (r < 0)
                return r;
        r = sd_bus_set_method_call_timeout(a->bus, MAX(settings->wait, REPLY_SEC) * SECOND);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(matches); i++)
                r = sd_bus_add_match(a->bus, NULL, matches[i], on_signal, a);
        return r;
}

/* Handles one received message. If there is none, waits for one, at most until the CLOCK_MONOTONIC time `until`;
 * UINT64_MAX: without limit. Returns -errno when the connection is lost. */
static int turn(Attempt *a, uint64_t until) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC);
        int r = sd_bus_process(a->bus, NULL);

        return r != 0 ? r : sd_bus_wait(a->bus, until == UINT64_MAX ? UINT64_MAX : until > now ? until - now : 0);
}

typedef struct Verdict {
        const char *error;
        Outcome outcome;
        const char *sentence; /* shown instead of the error's message, unless NULL */
} Verdict;

#define IS_AWAY "passthroughd does not run on this node."
#define IS_DUMB "passthroughd does not reply."

/* What each D-Bus error means for the job and the node. Any other D-Bus error means OUTCOME_BROKEN. */
static const Verdict verdicts[] = {
        { SD_BUS_ERROR_SERVICE_UNKNOWN, OUTCOME_AGAIN, IS_AWAY },
        { SD_BUS_ERROR_NAME_HAS_NO_OWNER, OUTCOME_AGAIN, IS_AWAY },
        { SD_BUS_ERROR_NO_REPLY, OUTCOME_AGAIN, IS_DUMB },
        { SD_BUS_ERROR_TIMEOUT, OUTCOME_AGAIN, IS_DUMB },
        { SD_BUS_ERROR_DISCONNECTED, OUTCOME_AGAIN, IS_DUMB },
        { BUS_ERROR_WRONG_STATE, OUTCOME_AGAIN, NULL },
        { BUS_ERROR_INSUFFICIENT, OUTCOME_SHORT, NULL },
        { BUS_ERROR_UNAVAILABLE, OUTCOME_SHORT, NULL },
        { BUS_ERROR_LIMIT_EXCEEDED, OUTCOME_SHORT, NULL },
        { BUS_ERROR_NOT_ANSWERED, OUTCOME_SHORT, NULL },
        { BUS_ERROR_NAME_TAKEN, OUTCOME_SHORT, NULL },
        { BUS_ERROR_NO_SUCH_ALLOCATION, OUTCOME_SHORT, NULL },
        { BUS_ERROR_STALE, OUTCOME_SHORT, NULL },
        { BUS_ERROR_INVALID_REQUEST, OUTCOME_INVALID, NULL },
        { BUS_ERROR_NO_SUCH_POOL, OUTCOME_INVALID, NULL },
        { BUS_ERROR_NOT_SUPPORTED, OUTCOME_INVALID, NULL },
};

Outcome attempt_judge(int error, const sd_bus_error *e, char **ret_sentence) {
        Verdict verdict = { .outcome = e->name ? OUTCOME_BROKEN : OUTCOME_AGAIN };

        for (size_t i = 0; e->name && i < ELEMENTSOF(verdicts); i++)
                if (streq(e->name, verdicts[i].error))
                        verdict = verdicts[i];
        if (!verdict.sentence)
                verdict.sentence = e->message && *e->message ? e->message : strerror(-error);
        (void) string_replace(ret_sentence, "%s", verdict.sentence);
        return verdict.outcome;
}

Outcome attempt_wait(Attempt *a, sd_bus_message *reply, const char *job, const char *verb, char **ret_sentence) {
        uint64_t begin = clock_usec(CLOCK_MONOTONIC);
        int r = 0;

        a->daemon = sd_bus_message_get_sender(reply);
        a->job = job;
        a->owner_changed = false;
        while (r >= 0 && !a->result && !a->owner_changed)
                r = turn(a, UINT64_MAX);
        a->waited += clock_usec(CLOCK_MONOTONIC) - begin;
        if (!a->result) {
                (void) string_replace(ret_sentence,
                                      "passthroughd went away during the job to %s the devices. See 'journalctl -u "
                                      "passthroughd'.",
                                      verb);
                return OUTCOME_AGAIN;
        }
        if (streq(a->result, JOB_RESULT_DONE))
                return OUTCOME_DONE;
        (void) string_replace(ret_sentence, a->message ? "%s" : "The job to %s the devices ended with result '%s'.",
                              a->message ? a->message : verb, a->result);
        return streq(a->result, JOB_RESULT_FAILED) || streq(a->result, JOB_RESULT_TIMEOUT) ? OUTCOME_BROKEN
                                                                                           : OUTCOME_SHORT;
}

static void wait_for_change(Attempt *a, int opened, uint64_t until) {
        int r = opened;

        while (r >= 0 && !a->owner_changed && !a->any_removed && clock_usec(CLOCK_MONOTONIC) < until)
                r = turn(a, until);
        if (r < 0)
                (void) poll(NULL, 0, PAUSE_MSEC);
}

Outcome attempt_repeat(const Settings *settings, AttemptFunction function, const void *what, char **ret_sentence) {
        uint64_t until = clock_usec(CLOCK_MONOTONIC) + settings->wait * SECOND;

        for (;;) {
                _cleanup_attempt_ Attempt a = { 0 };
                int r = open_attempt(settings, &a);
                Outcome outcome = OUTCOME_AGAIN;

                if (r >= 0)
                        outcome = function(&a, what, ret_sentence);
                else
                        (void) string_replace(ret_sentence, "Cannot reach the system bus: %s.", strerror(-r));
                if (outcome != OUTCOME_AGAIN)
                        return outcome;
                until += a.waited;
                if (clock_usec(CLOCK_MONOTONIC) >= until)
                        return OUTCOME_BROKEN;
                wait_for_change(&a, r, until);
        }
}
