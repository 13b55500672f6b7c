/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts, stops and runs systemd units through org.freedesktop.systemd1(5). */

#include "units.h"

#include <errno.h>
#include <signal.h>
#include <systemd/sd-bus.h>

#include "util/clock.h"
#include "util/strings.h"

#define SERVICE    "org.freedesktop.systemd1"
#define PATH       "/org/freedesktop/systemd1"
#define MANAGER    SERVICE ".Manager"
#define UNIT       SERVICE ".Unit"
/* How long systemd may take to kill a command after the time limit. */
#define GRACE_USEC 1000000U
/* systemd gets at least this long to queue a start, even if the caller's limit is shorter, because systemd may be slow
 * on a busy host. */
#define ASK_USEC   2000000U

/* A systemd job whose JobRemoved signal is awaited. */
typedef struct UnitJob {
        const char *path;
        bool removed; /* its signal has arrived */
        bool done;    /* the job has succeeded */
} UnitJob;

static uint64_t left_until(uint64_t end) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        return end > now ? end - now : 0;
}

static int open_bus(uint64_t end, sd_bus **ret) {
        int r = sd_bus_open_system(ret);

        return r < 0 ? r : sd_bus_set_method_call_timeout(*ret, MAX(left_until(end), (uint64_t) 1));
}

/* Returns true when the error means that the unit is not loaded, or systemd is not on the bus. */
static bool is_absent(const sd_bus_error *error) {
        return sd_bus_error_has_name(error, SERVICE ".NoSuchUnit") ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) ||
               (error->name && strncmp(error->name, "org.freedesktop.DBus.Error.Spawn.", 33) == 0);
}

/* Returns whether a start job of the unit waits, for example for other units at boot. If the job ends before its type
 * is read, the unit's state, which is read afterwards, shows the effect of the job. */
static bool start_is_queued(sd_bus *bus, const char *path) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_free_ char *type = NULL;
        const char *job;
        uint32_t id = 0; /* none */
        int r = sd_bus_get_property(bus, SERVICE, path, UNIT, "Job", NULL, &reply, "(uo)");

        if (r < 0)
                return false;
        r = sd_bus_message_read(reply, "(uo)", &id, &job);
        if (r < 0 || id == 0)
                return false;
        r = sd_bus_get_property_string(bus, SERVICE, job, SERVICE ".Job", "JobType", NULL, &type);
        return r >= 0 && (streq(type, "start") || streq(type, "restart"));
}

int unit_read_use(const char *name, uint64_t end, UnitUse *ret) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_free_ char *state = NULL;
        bool queued;
        const char *path;
        int r = open_bus(end, &bus);

        *ret = UNIT_UNUSED;
        if (r < 0)
                return r;
        r = sd_bus_call_method(bus, SERVICE, PATH, MANAGER, "GetUnit", &error, &reply, "s", name);
        if (r < 0)
                return is_absent(&error) ? 0 : r;
        r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return r;
        queued = start_is_queued(bus, path);
        r = sd_bus_get_property_string(bus, SERVICE, path, UNIT, "ActiveState", &error, &state);
        if (r < 0)
                return is_absent(&error) ? 0 : r;
        if (streq(state, "active") || streq(state, "reloading") || streq(state, "activating"))
                *ret = UNIT_ACTIVE;
        else if (queued)
                *ret = UNIT_QUEUED;
        return 0;
}

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        UnitJob *job = userdata;
        const char *path, *unit, *result;
        uint32_t id;

        if (sd_bus_message_read(m, "uoss", &id, &path, &unit, &result) < 0 || !streq(path, job->path))
                return 0;
        job->removed = true;
        job->done = streq(result, "done") || streq(result, "skipped");
        return 0;
}

/* Waits for the job's JobRemoved signal. sd-bus queues signals that arrive before the reply of the method call. */
static int wait_for_job(sd_bus *bus, UnitJob *job, uint64_t end) {
        while (!job->removed) {
                int r = sd_bus_process(bus, NULL);

                if (r == 0 && left_until(end) == 0)
                        return -ETIMEDOUT;
                if (r == 0)
                        r = sd_bus_wait(bus, left_until(end));
                if (r < 0)
                        return r;
        }
        return job->done ? 0 : -EIO;
}

static int subscribe(sd_bus *bus, UnitJob *job, sd_bus_error *error) {
        int r = sd_bus_match_signal(bus, NULL, SERVICE, PATH, MANAGER, "JobRemoved", on_job_removed, job);

        /* Without a subscriber systemd sends no JobRemoved. */
        return r < 0 ? r : sd_bus_call_method(bus, SERVICE, PATH, MANAGER, "Subscribe", error, NULL, NULL);
}

/* Starts or stops a unit. ask_end: until when systemd may queue the job. end: until when the job may run. */
static int change_unit(const char *method, const char *name, uint64_t ask_end, uint64_t end, bool *ret_asked) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        UnitJob job = { 0 };
        int r = open_bus(ask_end, &bus);

        *ret_asked = false;
        if (r < 0)
                return r;
        r = subscribe(bus, &job, &error);
        if (r < 0)
                return r;
        r = sd_bus_call_method(bus, SERVICE, PATH, MANAGER, method, &error, &reply, "ss", name, "replace");
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &job.path);
        *ret_asked = r >= 0 || (error.name && strncmp(error.name, SERVICE, strlen(SERVICE)) == 0);
        return r < 0 ? r : wait_for_job(bus, &job, end);
}

int unit_stop(const char *name, uint64_t end) {
        bool asked;

        return change_unit("StopUnit", name, end, end, &asked);
}

int unit_start(const char *name, uint64_t end, bool *ret_asked) {
        return change_unit("StartUnit", name, MAX(end, clock_usec(CLOCK_MONOTONIC) + ASK_USEC), end, ret_asked);
}

static int append_command(sd_bus_message *m, const char *const *words) {
        int r = sd_bus_message_open_container(m, 'r', "sv");

        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", "ExecStart");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'v', "a(sasb)");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'a', "(sasb)");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'r', "sasb");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", words[0]);
        if (r < 0)
                return r;
        r = sd_bus_message_append_strv(m, (char **) words);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "b", false);
        for (int i = 0; r >= 0 && i < 4; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

/* The unit is a oneshot service, so that its start job ends when the command exits. TimeoutStartSec= of a oneshot
 * service limits the run time of the command. */
static int new_transient(sd_bus *bus, const char *name, const char *description, const char *const *words, uint64_t end,
                         sd_bus_message **ret) {
        int r = sd_bus_message_new_method_call(bus, ret, SERVICE, PATH, MANAGER, "StartTransientUnit");

        if (r < 0)
                return r;
        r = sd_bus_message_append(*ret, "ss", name, "fail");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(*ret, 'a', "(sv)");
        if (r < 0)
                return r;
        r = sd_bus_message_append(*ret, "(sv)(sv)(sv)", "Description", "s", description, "Type", "s", "oneshot",
                                  "TimeoutStartUSec", "t", left_until(end));
        if (r < 0)
                return r;
        r = append_command(*ret, words);
        if (r < 0)
                return r;
        r = sd_bus_message_close_container(*ret);
        return r < 0 ? r : sd_bus_message_append(*ret, "a(sa(sv))", 0);
}

static int read_failure(sd_bus *bus, const char *name, int *ret_status) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_free_ char *result = NULL;
        const char *path;
        int32_t code = 0, status = 0;
        int r = sd_bus_call_method(bus, SERVICE, PATH, MANAGER, "GetUnit", NULL, &reply, "s", name);

        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return r;
        r = sd_bus_get_property_string(bus, SERVICE, path, SERVICE ".Service", "Result", NULL, &result);
        if (r < 0)
                return r;
        r = sd_bus_get_property_trivial(bus, SERVICE, path, SERVICE ".Service", "ExecMainCode", NULL, 'i', &code);
        if (r < 0)
                return r;
        r = sd_bus_get_property_trivial(bus, SERVICE, path, SERVICE ".Service", "ExecMainStatus", NULL, 'i', &status);
        if (r < 0)
                return r;
        if (streq(result, "timeout"))
                return -ETIMEDOUT;
        *ret_status = code == CLD_EXITED ? status : 128 + status;
        return 1;
}

/* Reads the exit status of a failed unit, and removes the unit with ResetFailedUnit: systemd keeps failed units loaded.
 */
static int failed_status(sd_bus *bus, const char *name, int *ret_status) {
        int r = read_failure(bus, name, ret_status);

        (void) sd_bus_call_method(bus, SERVICE, PATH, MANAGER, "ResetFailedUnit", NULL, NULL, "s", name);
        return r;
}

int unit_run(const char *name, const char *description, const char *const *words, uint64_t end, int *ret_status) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        UnitJob job = { 0 };
        int r = open_bus(end, &bus);

        if (r < 0)
                return r;
        r = new_transient(bus, name, description, words, end, &call);
        if (r < 0)
                return r;
        r = subscribe(bus, &job, &error);
        if (r >= 0)
                r = sd_bus_call(bus, call, 0, &error, &reply);
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &job.path);
        if (r < 0)
                return is_absent(&error) ? -ENOSYS : r;
        r = wait_for_job(bus, &job, end + GRACE_USEC);
        if (r == -ETIMEDOUT)
                (void) sd_bus_call_method(bus, SERVICE, PATH, MANAGER, "StopUnit", NULL, NULL, "ss", name, "replace");
        return r == -EIO ? failed_status(bus, name, ret_status) : r;
}
