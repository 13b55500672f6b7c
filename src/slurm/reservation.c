/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocates and releases for a job, over D-Bus. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "bus/names.h"
#include "bus/reply-text.h"
#include "model/cpuset.h"
#include "node.h"
#include "reservation.h"
#include "slurm/gres.h"
#include "util/strings.h"

void reservation_name(uint32_t id, char buf[static RESERVATION_NAME_MAX]) {
        (void) snprintf(buf, RESERVATION_NAME_MAX, GRES_ALLOCATION_PREFIX "%" PRIu32, id);
}

/* Returns 1 if this plugin made the allocation for a job, 0 if not, or a negative errno. daemon: the unique name of the
 * daemon, because the bus starts no daemon for a unique name. */
static int is_of_job(sd_bus *bus, const char *daemon, const char *path, sd_bus_error *error) {
        _cleanup_free_ char *tag = NULL;
        int r = sd_bus_get_property_string(bus, daemon, path, BUS_ALLOCATION_INTERFACE, "Tag", error, &tag);

        if (sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT)) /* released meanwhile */
                return 0;
        return r < 0 ? r : streq(tag, GRES_ALLOCATION_TAG);
}

/*
 * Sets *ret to the generation of the allocation that this plugin made under this name; 0 if there is none. Returns 0 or
 * more, or a negative errno.
 */
static int find_generation(sd_bus *bus, const char *name, uint64_t *ret, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *found, *state, *path;
        uint64_t generation;
        uint32_t owner;
        int r;

        *ret = 0;
        r = node_call(bus, "ListAllocations", error, &reply, "");
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(reply, SD_BUS_TYPE_ARRAY, "(sstuo)");
        while (r >= 0 && (r = sd_bus_message_read(reply, "(sstuo)", &found, &state, &generation, &owner, &path)) > 0)
                if (streq(found, name)) {
                        r = is_of_job(bus, sd_bus_message_get_sender(reply), path, error);
                        *ret = r > 0 ? generation : 0;
                        return r;
                }
        return r;
}

static Outcome try_release(Attempt *a, const void *what, char **ret_sentence) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *name = what, *job;
        uint64_t generation;
        int r;

        r = find_generation(a->bus, name, &generation, &error);
        if (r < 0)
                return attempt_judge(r, &error, ret_sentence);
        if (generation == 0)
                return OUTCOME_DONE;
        r = node_call(a->bus, "Release", &error, &reply, "st", name, generation);
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &job);
        if (sd_bus_error_has_names(&error, BUS_ERROR_NO_SUCH_ALLOCATION, BUS_ERROR_STALE))
                return OUTCOME_DONE;
        if (r < 0)
                return attempt_judge(r, &error, ret_sentence);
        return streq(job, JOB_NONE) ? OUTCOME_DONE : attempt_wait(a, reply, job, "release", ret_sentence);
}

Outcome reservation_release(const Settings *settings, uint32_t id, char **ret_sentence) {
        char name[RESERVATION_NAME_MAX];

        reservation_name(id, name);
        return attempt_repeat(settings, try_release, name, ret_sentence);
}

static Outcome try_find(Attempt *a, const void *what, char **ret_sentence) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *name = what;
        uint64_t generation;
        int r = find_generation(a->bus, name, &generation, &error);

        if (r < 0)
                return attempt_judge(r, &error, ret_sentence);
        if (generation > 0)
                return OUTCOME_DONE;
        (void) string_replace(ret_sentence, "%s was released while the job was being prepared.", name);
        return OUTCOME_SHORT;
}

Outcome reservation_check(const Settings *settings, uint32_t id, char **ret_sentence) {
        char name[RESERVATION_NAME_MAX];

        reservation_name(id, name);
        return attempt_repeat(settings, try_find, name, ret_sentence);
}

typedef struct Wanted {
        const char *name, *token, *cpus, *numa;
        const SlurmJob *job;
        const JobRequest *request;
        unsigned n_cpus;
        uint32_t uid;
} Wanted;

bool reservation_has_guest(const SlurmJob *job) {
        return job->cores && job->memory > 0;
}

static int append_devices(sd_bus_message *m, const JobRequest *request) {
        int r = sd_bus_message_open_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv");

        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", REQUEST_KEY_DEVICES);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, SD_BUS_TYPE_VARIANT, "a(su)");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, SD_BUS_TYPE_ARRAY, "(su)");
        for (size_t i = 0; r >= 0 && i < request->n_pools; i++)
                r = sd_bus_message_append(m, "(su)", request->pools[i].pool, request->pools[i].count);
        for (size_t open = 3; r >= 0 && open > 0; open--)
                r = sd_bus_message_close_container(m);
        return r;
}

static int append_cpus(sd_bus_message *m, const Wanted *w) {
        if (!reservation_has_guest(w->job))
                return 0;
        return sd_bus_message_append(m, "{sv}{sv}{sv}{sv}", REQUEST_KEY_CPUS, "u", w->n_cpus, REQUEST_KEY_CPUS_FROM,
                                     "s", w->cpus, REQUEST_KEY_NUMA, "s", w->numa, REQUEST_KEY_MEMORY, "t",
                                     w->job->memory);
}

static int make_call(sd_bus *bus, const Wanted *w, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = node_new_call(bus, "Allocate", &m);

        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", w->name);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, SD_BUS_TYPE_ARRAY, "{sv}");
        if (r < 0)
                return r;
        r = append_devices(m, w->request);
        if (r < 0)
                return r;
        r = append_cpus(m, w);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "{sv}{sv}{sv}", REQUEST_KEY_OWNER, "u", w->uid, REQUEST_KEY_TOKEN, "s", w->token,
                                  REQUEST_KEY_TAG, "s", GRES_ALLOCATION_TAG);
        if (r < 0)
                return r;
        r = sd_bus_message_close_container(m);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

static Outcome try_allocate_once(Attempt *a, const Wanted *w, bool *ret_taken, char **ret_sentence) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        const char *allocation, *job;
        int r;

        r = make_call(a->bus, w, &call);
        if (r >= 0)
                r = sd_bus_call(a->bus, call, 0, &error, &reply);
        if (r >= 0)
                r = sd_bus_message_read(reply, "oo", &allocation, &job);
        *ret_taken = sd_bus_error_has_name(&error, BUS_ERROR_NAME_TAKEN);
        if (r < 0)
                return attempt_judge(r, &error, ret_sentence);
        return streq(job, JOB_NONE) ? OUTCOME_DONE : attempt_wait(a, reply, job, "prepare", ret_sentence);
}

/* Tries to allocate. If an earlier run of the job left an allocation of this name, because its epilog did not run,
 * releases that first. An allocation of this name that another program made stays, and the job is refused. */
static Outcome try_allocate(Attempt *a, const void *what, char **ret_sentence) {
        const Wanted *w = what;
        bool taken;
        Outcome outcome = try_allocate_once(a, w, &taken, ret_sentence);

        if (!taken)
                return outcome;
        outcome = try_release(a, w->name, ret_sentence);
        if (outcome != OUTCOME_DONE)
                return outcome;
        free(TAKE_PTR(a->message));
        free(TAKE_PTR(a->result));
        return try_allocate_once(a, w, &taken, ret_sentence);
}

Outcome reservation_make(const Settings *settings, const SlurmJob *job, uid_t uid, const JobRequest *request,
                         const char *cpus, char **ret_sentence) {
        char name[RESERVATION_NAME_MAX], token[64];
        Wanted w = { .name = name,
                     .token = token,
                     .cpus = cpus,
                     .numa = settings->numa,
                     .job = job,
                     .request = request,
                     .uid = uid };
        CpuSet set;

        reservation_name(job->id, name);
        /* The number of the job is not unique: Slurm counts jobs from 1 again when it has lost its state. */
        (void) snprintf(token, sizeof(token), "%" PRIu32 ".%u.%jd", job->id, job->restarts, (intmax_t) job->submitted);
        if (cpus && cpuset_parse(cpus, &set) == 0)
                w.n_cpus = cpuset_count(&set);
        return attempt_repeat(settings, try_allocate, &w, ret_sentence);
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

static int read_description(sd_bus *bus, const char *name, char **ret_document, char **ret_devices,
                            sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *document = NULL, *allocation = NULL, *devices = NULL;
        const char *path;
        int r;

        if (ret_document) {
                r = node_call(bus, "GetDomainXML", error, &document, "sa{sv}", name, 0);
                if (r < 0)
                        return r;
                r = bus_read_reply_text(document, ret_document);
                if (r < 0)
                        return r;
        }
        r = node_call(bus, "GetAllocation", error, &allocation, "s", name);
        if (r < 0)
                return r;
        r = sd_bus_message_read(allocation, "o", &path);
        if (r < 0)
                return r;
        /* Call the unique name of the daemon: the bus starts no daemon for a unique name. */
        r = sd_bus_get_property(bus, sd_bus_message_get_sender(allocation), path, BUS_ALLOCATION_INTERFACE, "Devices",
                                error, &devices, "a(ss)");
        return r < 0 ? r : read_devices(devices, ret_devices);
}

static Outcome try_describe(Attempt *a, const void *what, char **ret_sentence) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *document = NULL, *devices = NULL;
        const DescribeCall *call = what;
        int r = read_description(a->bus, call->name, call->ret_document ? &document : NULL, &devices, &error);

        if (r < 0)
                return attempt_judge(r, &error, ret_sentence);
        if (call->ret_document)
                *call->ret_document = TAKE_PTR(document);
        *call->ret_devices = TAKE_PTR(devices);
        return OUTCOME_DONE;
}

Outcome reservation_describe(const Settings *settings, uint32_t id, char **ret_document, char **ret_devices,
                             char **ret_sentence) {
        char name[RESERVATION_NAME_MAX];
        DescribeCall call = { .name = name, .ret_document = ret_document, .ret_devices = ret_devices };

        reservation_name(id, name);
        return attempt_repeat(settings, try_describe, &call, ret_sentence);
}
