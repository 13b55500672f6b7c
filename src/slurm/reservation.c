/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocates and releases for a job, over D-Bus. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "bus/names.h"
#include "model/cpuset.h"
#include "node.h"
#include "reservation.h"
#include "slurm/gres.h"
#include "util/clock.h"
#include "util/strings.h"

#define SECOND UINT64_C(1000000)

/* While the bus itself is away. */
#define PAUSE_MSEC 200

/* The object path of no job. */
#define JOB_NONE "/"

/* Not an Outcome: the daemon or the bus was away, or a job of the allocation is running. */
#define AGAIN (-1)

#define MATCH_JOBS                                                                                                     \
        "type='signal',sender='" BUS_NAME "',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"  \
        "path_namespace='" BUS_JOB_PREFIX "'"
#define MATCH_REMOVED "type='signal',sender='" BUS_NAME "',interface='" BUS_MANAGER_INTERFACE "',member='JobRemoved'"
#define MATCH_OWNER   "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" BUS_NAME "'"

/* What the signals tell. */
typedef struct News {
        sd_bus *bus;
        const char *daemon; /* unique name of the daemon that has the job; NULL: no job. Not owned */
        const char *job;    /* object path, not owned */
        char *message, *result;
        bool any_removed, owner_changed;
} News;

static void news_done(News *n) {
        sd_bus_flush_close_unref(n->bus);
        free(n->message);
        free(n->result);
        *n = (News){ 0 };
}
#define _cleanup_news_ _cleanup_(news_done)

void reservation_name(uint32_t id, char buf[static RESERVATION_NAME_MAX]) {
        (void) snprintf(buf, RESERVATION_NAME_MAX, GRES_ALLOCATION_PREFIX "%" PRIu32, id);
}

/* Keeps the message of the job, which a signal changed. */
static int take_properties(News *n, sd_bus_message *m) {
        const char *interface, *key, *text;
        int r = sd_bus_message_read(m, "s", &interface);

        if (r >= 0)
                r = sd_bus_message_enter_container(m, SD_BUS_TYPE_ARRAY, "{sv}");
        while (r >= 0 && (r = sd_bus_message_enter_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv")) > 0) {
                r = sd_bus_message_read(m, "s", &key);
                if (r >= 0 && streq(key, "Message"))
                        r = sd_bus_message_read(m, "v", "s", &text) < 0 ? -EBADMSG : string_copy(&n->message, text);
                else if (r >= 0)
                        r = sd_bus_message_skip(m, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r;
}

static int take_removed(News *n, sd_bus_message *m) {
        const char *job, *result;
        uint32_t id;
        int r = sd_bus_message_read(m, "uos", &id, &job, &result);

        n->any_removed = true;
        return r < 0 || !streq_ptr(job, n->job) ? r : string_copy(&n->result, result);
}

/* A signal that cannot be read is skipped. */
static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        News *n = userdata;

        if (sd_bus_message_is_signal(m, "org.freedesktop.DBus", "NameOwnerChanged"))
                n->owner_changed = true;
        else if (n->daemon && !streq_ptr(sd_bus_message_get_sender(m), n->daemon))
                return 0;
        else if (sd_bus_message_is_signal(m, BUS_MANAGER_INTERFACE, "JobRemoved"))
                (void) take_removed(n, m);
        else if (streq_ptr(sd_bus_message_get_path(m), n->job))
                (void) take_properties(n, m);
        return 0;
}

static int open_news(const Settings *settings, News *n) {
        static const char *const matches[] = { MATCH_JOBS, MATCH_REMOVED, MATCH_OWNER };
        int r = node_open_bus(settings->bus, &n->bus);

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(matches); i++)
                r = sd_bus_add_match(n->bus, NULL, matches[i], on_signal, n);
        return r;
}

/* Handles what came, or waits for more until the time. A negative errno when the connection is lost. */
static int turn(News *n, uint64_t until) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC);
        int r = sd_bus_process(n->bus, NULL);

        return r != 0 ? r : sd_bus_wait(n->bus, until == UINT64_MAX ? UINT64_MAX : until > now ? until - now : 0);
}

typedef struct Verdict {
        const char *error;
        int outcome;
} Verdict;

/* The others are of a daemon that is broken, or that does not know this plugin. */
static const Verdict verdicts[] = {
        { SD_BUS_ERROR_SERVICE_UNKNOWN, AGAIN },
        { SD_BUS_ERROR_NAME_HAS_NO_OWNER, AGAIN },
        { SD_BUS_ERROR_NO_REPLY, AGAIN },
        { SD_BUS_ERROR_TIMEOUT, AGAIN },
        { SD_BUS_ERROR_DISCONNECTED, AGAIN },
        { BUS_ERROR_WRONG_STATE, AGAIN },
        { BUS_ERROR_INSUFFICIENT, OUTCOME_SHORT },
        { BUS_ERROR_UNAVAILABLE, OUTCOME_SHORT },
        { BUS_ERROR_LIMIT_EXCEEDED, OUTCOME_SHORT },
        { BUS_ERROR_NOT_ANSWERED, OUTCOME_SHORT },
        { BUS_ERROR_NAME_TAKEN, OUTCOME_SHORT },
        { BUS_ERROR_NO_SUCH_ALLOCATION, OUTCOME_DONE },
        { BUS_ERROR_STALE, OUTCOME_DONE },
        { BUS_ERROR_INVALID_REQUEST, OUTCOME_INVALID },
        { BUS_ERROR_NO_SUCH_POOL, OUTCOME_INVALID },
        { BUS_ERROR_NOT_SUPPORTED, OUTCOME_INVALID },
};

static int judge(int error, const sd_bus_error *e, char **ret_sentence) {
        if (error == -ENOMEM)
                return OUTCOME_BROKEN;
        (void) string_replace(ret_sentence, "%s", e->message && *e->message ? e->message : strerror(-error));
        for (size_t i = 0; e->name && i < ELEMENTSOF(verdicts); i++)
                if (streq(e->name, verdicts[i].error))
                        return verdicts[i].outcome;
        return e->name ? OUTCOME_BROKEN : AGAIN;
}

/* Waits for the end of the job that the reply started. verb is for the sentence: "prepare". */
static int wait_for_job(News *n, sd_bus_message *reply, const char *job, const char *verb, char **ret_sentence) {
        int r = 0;

        n->daemon = sd_bus_message_get_sender(reply);
        n->job = job;
        n->owner_changed = false;
        while (r >= 0 && !n->result && !n->owner_changed)
                r = turn(n, UINT64_MAX);
        if (!n->result)
                return AGAIN;
        if (streq(n->result, JOB_RESULT_DONE))
                return OUTCOME_DONE;
        (void) string_replace(ret_sentence, n->message ? "%s" : "The job to %s the devices ended with result '%s'.",
                              n->message ? n->message : verb, n->result);
        return streq(n->result, JOB_RESULT_FAILED) || streq(n->result, JOB_RESULT_TIMEOUT) ? OUTCOME_BROKEN
                                                                                           : OUTCOME_SHORT;
}

/* One attempt: an Outcome or AGAIN. */
typedef int (*Attempt)(News *n, const void *what, char **ret_sentence);

static void wait_for_change(News *n, int opened, uint64_t until) {
        int r = opened;

        while (r >= 0 && !n->owner_changed && !n->any_removed && clock_usec(CLOCK_MONOTONIC) < until)
                r = turn(n, until);
        if (r < 0)
                (void) poll(NULL, 0, PAUSE_MSEC);
}

static Outcome try_until(const Settings *settings, Attempt attempt, const void *what, char **ret_sentence) {
        uint64_t until = clock_usec(CLOCK_MONOTONIC) + settings->wait * SECOND;

        for (;;) {
                _cleanup_news_ News n = { 0 };
                int r = open_news(settings, &n), outcome = AGAIN;

                if (r >= 0)
                        outcome = attempt(&n, what, ret_sentence);
                else
                        (void) string_replace(ret_sentence, "Cannot reach the system bus: %s.", strerror(-r));
                if (outcome != AGAIN)
                        return (Outcome) outcome;
                if (clock_usec(CLOCK_MONOTONIC) >= until)
                        return OUTCOME_BROKEN;
                wait_for_change(&n, r, until);
        }
}

/* The generation of an allocation; 0 if there is none. */
static int find_generation(sd_bus *bus, const char *name, uint64_t *ret, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *found, *state, *path;
        uint64_t generation;
        uint32_t owner;
        int r;

        *ret = 0;
        r = sd_bus_call_method(bus, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, "ListAllocations", error, &reply, "");
        if (r >= 0)
                r = sd_bus_message_enter_container(reply, SD_BUS_TYPE_ARRAY, "(sstuo)");
        while (r >= 0 && (r = sd_bus_message_read(reply, "(sstuo)", &found, &state, &generation, &owner, &path)) > 0)
                if (streq(found, name))
                        *ret = generation;
        return r;
}

static int try_release(News *n, const void *what, char **ret_sentence) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *name = what, *job;
        uint64_t generation;
        int r;

        r = find_generation(n->bus, name, &generation, &error);
        if (r < 0)
                return judge(r, &error, ret_sentence);
        if (generation == 0)
                return OUTCOME_DONE;
        r = sd_bus_call_method(n->bus, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, "Release", &error, &reply, "st", name,
                               generation);
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &job);
        if (r < 0)
                return judge(r, &error, ret_sentence);
        return streq(job, JOB_NONE) ? OUTCOME_DONE : wait_for_job(n, reply, job, "release", ret_sentence);
}

Outcome reservation_release(const Settings *settings, uint32_t id, char **ret_sentence) {
        char name[RESERVATION_NAME_MAX];

        reservation_name(id, name);
        return try_until(settings, try_release, name, ret_sentence);
}

typedef struct Wanted {
        const char *name, *token, *cpus, *numa;
        const SlurmJob *job;
        const JobRequest *request;
        unsigned n_cpus;
        uint32_t uid;
} Wanted;

static int append_devices(sd_bus_message *m, const JobRequest *request) {
        int r = sd_bus_message_open_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv");

        if (r >= 0)
                r = sd_bus_message_append(m, "s", REQUEST_KEY_DEVICES);
        if (r >= 0)
                r = sd_bus_message_open_container(m, SD_BUS_TYPE_VARIANT, "a(su)");
        if (r >= 0)
                r = sd_bus_message_open_container(m, SD_BUS_TYPE_ARRAY, "(su)");
        for (size_t i = 0; r >= 0 && i < request->n_pools; i++)
                r = sd_bus_message_append(m, "(su)", request->pools[i].pool, request->pools[i].count);
        for (size_t open = 3; r >= 0 && open > 0; open--)
                r = sd_bus_message_close_container(m);
        return r;
}

/* A guest has CPUs only with memory. */
static int append_cpus(sd_bus_message *m, const Wanted *w) {
        int r;

        if (!w->cpus || w->job->memory == 0)
                return 0;
        r = sd_bus_message_append(m, "{sv}", REQUEST_KEY_CPUS, "u", w->n_cpus);
        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}", REQUEST_KEY_CPUS_FROM, "s", w->cpus);
        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}", REQUEST_KEY_NUMA, "s", w->numa);
        return r < 0 ? r : sd_bus_message_append(m, "{sv}", REQUEST_KEY_MEMORY, "t", w->job->memory);
}

static int make_call(sd_bus *bus, const Wanted *w, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = sd_bus_message_new_method_call(bus, &m, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, "Allocate");

        if (r >= 0)
                r = sd_bus_message_append(m, "s", w->name);
        if (r >= 0)
                r = sd_bus_message_open_container(m, SD_BUS_TYPE_ARRAY, "{sv}");
        if (r >= 0)
                r = append_devices(m, w->request);
        if (r >= 0)
                r = append_cpus(m, w);
        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}", REQUEST_KEY_OWNER, "u", w->uid);
        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}", REQUEST_KEY_TOKEN, "s", w->token);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

static int try_allocate_once(News *n, const Wanted *w, bool *ret_taken, char **ret_sentence) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        const char *allocation, *job;
        int r;

        r = make_call(n->bus, w, &call);
        if (r >= 0)
                r = sd_bus_call(n->bus, call, 0, &error, &reply);
        if (r >= 0)
                r = sd_bus_message_read(reply, "oo", &allocation, &job);
        *ret_taken = sd_bus_error_has_name(&error, BUS_ERROR_NAME_TAKEN);
        if (r < 0)
                return judge(r, &error, ret_sentence);
        return streq(job, JOB_NONE) ? OUTCOME_DONE : wait_for_job(n, reply, job, "prepare", ret_sentence);
}

/* The name may be of an earlier start of the job, whose epilog did not run: that one is released first. */
static int try_allocate(News *n, const void *what, char **ret_sentence) {
        const Wanted *w = what;
        bool taken;
        int r = try_allocate_once(n, w, &taken, ret_sentence);

        if (!taken)
                return r;
        r = try_release(n, w->name, ret_sentence);
        if (r != OUTCOME_DONE)
                return r;
        free(TAKE_PTR(n->message));
        free(TAKE_PTR(n->result));
        return try_allocate_once(n, w, &taken, ret_sentence);
}

Outcome reservation_make(const Settings *settings, const SlurmJob *job, uid_t uid, const JobRequest *request,
                         const char *cpus, char **ret_sentence) {
        char name[RESERVATION_NAME_MAX], token[RESERVATION_NAME_MAX];
        Wanted w = { .name = name,
                     .token = token,
                     .cpus = cpus,
                     .numa = settings->numa,
                     .job = job,
                     .request = request,
                     .uid = uid };
        CpuSet set;

        reservation_name(job->id, name);
        (void) snprintf(token, sizeof(token), "%" PRIu32 ".%u", job->id, job->restarts);
        if (cpus && cpuset_parse(cpus, &set) == 0)
                w.n_cpus = cpuset_count(&set);
        return try_until(settings, try_allocate, &w, ret_sentence);
}

typedef struct DescribeCall {
        const char *name;
        char **ret_document, **ret_devices;
} DescribeCall;

static int read_devices(sd_bus_message *reply, char **ret) {
        const char *slot, *address;
        int r = sd_bus_message_enter_container(reply, SD_BUS_TYPE_ARRAY, "(ss)");

        while (r >= 0 && (r = sd_bus_message_read(reply, "(ss)", &slot, &address)) > 0)
                r = string_append(ret, ",", "%s=%s", slot, address);
        return r;
}

static int describe(sd_bus *bus, const char *name, char **ret_document, char **ret_devices, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *document = NULL, *allocation = NULL, *devices = NULL;
        const char *path;
        int r;

        r = sd_bus_call_method(bus, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, "GetDomainXML", error, &document,
                               "sa{sv}", name, 0);
        if (r >= 0)
                r = node_read_text(document, ret_document);
        if (r >= 0)
                r = sd_bus_call_method(bus, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, "GetAllocation", error,
                                       &allocation, "s", name);
        if (r >= 0)
                r = sd_bus_message_read(allocation, "o", &path);
        if (r >= 0)
                r = sd_bus_get_property(bus, BUS_NAME, path, BUS_ALLOCATION_INTERFACE, "Devices", error, &devices,
                                        "a(ss)");
        return r < 0 ? r : read_devices(devices, ret_devices);
}

static int try_describe(News *n, const void *what, char **ret_sentence) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *document = NULL, *devices = NULL;
        const DescribeCall *call = what;
        int r = describe(n->bus, call->name, &document, &devices, &error);

        if (r < 0)
                return judge(r, &error, ret_sentence);
        *call->ret_document = TAKE_PTR(document);
        *call->ret_devices = TAKE_PTR(devices);
        return OUTCOME_DONE;
}

Outcome reservation_describe(const Settings *settings, uint32_t id, char **ret_document, char **ret_devices,
                             char **ret_sentence) {
        char name[RESERVATION_NAME_MAX];
        DescribeCall call = { .name = name, .ret_document = ret_document, .ret_devices = ret_devices };

        reservation_name(id, name);
        return try_until(settings, try_describe, &call, ret_sentence);
}
