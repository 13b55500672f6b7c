/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fake-systemd DIR: systemd's interface for passthroughd on the system bus. DIR/UNIT.state has "active" or "inactive";
 * without it there is no such unit. DIR/log has a line for each call. The job of a unit with DIR/UNIT.hang never ends,
 * and a unit with DIR/UNIT.fail does not start. When a unit stops, the lines of DIR/UNIT.stop are written to
 * $NODE_CONTROL. DIR/UNIT.job has the type of a queued job, for example "start"; with DIR/UNIT.wait that job never
 * runs. Commands do not run: DIR/command.state has their result, a number or "timeout".
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define SERVICE "org.freedesktop.systemd1"
#define ROOT    "/org/freedesktop/systemd1"
#define UNITS   ROOT "/unit"
#define JOBS    ROOT "/queued"

static const char *dir;
static unsigned last_job;

static FILE *open_file(const char *unit, const char *what, const char *mode) {
        char path[1024];

        (void) snprintf(path, sizeof(path), "%s/%s%s", dir, unit, what);
        return fopen(path, mode);
}

static int has_file(const char *unit, const char *what) {
        FILE *f = open_file(unit, what, "re");

        if (f)
                (void) fclose(f);
        return f != NULL;
}

static void put(const char *unit, const char *what, const char *mode, const char *text) {
        FILE *f = open_file(unit, what, mode);

        if (!f || fprintf(f, "%s\n", text) < 0 || fclose(f) != 0)
                abort();
}

static void note(const char *verb, const char *unit) {
        char line[512];

        (void) snprintf(line, sizeof(line), "%s %s", verb, unit);
        put("", "log", "ae", line);
}

static void first_line(const char *unit, const char *what, char *buf, size_t size) {
        FILE *f = open_file(unit, what, "re");

        buf[0] = '\0';
        if (f && fgets(buf, (int) size, f))
                buf[strcspn(buf, "\n")] = '\0';
        if (f)
                (void) fclose(f);
}

static void state_of(const char *unit, char *buf, size_t size) {
        first_line(unit, ".state", buf, size);
}

static void remove_job(const char *unit) {
        char path[1024];

        (void) snprintf(path, sizeof(path), "%s/%s.job", dir, unit);
        (void) unlink(path);
}

static void tell_node(const char *unit) {
        FILE *f = open_file(unit, ".stop", "re");
        char line[1024];

        while (f && fgets(line, sizeof(line), f)) {
                int fd = open(getenv("NODE_CONTROL"), O_WRONLY | O_CLOEXEC);

                /* A line of the last time may fail now, for example when its device is gone. */
                if (fd < 0 || (write(fd, line, strlen(line)) < 0 && errno != ENOENT))
                        abort();
                (void) close(fd);
        }
        if (f)
                (void) fclose(f);
}

static int find_unit(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret,
                     sd_bus_error *error) {
        char state[64];
        char *unit = NULL;
        int r = sd_bus_path_decode(path, UNITS, &unit);

        if (r <= 0)
                return r;
        state_of(unit, state, sizeof(state));
        *ret = unit; /* never freed */
        return state[0] != '\0';
}

static int get_state(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
                     void *userdata, sd_bus_error *error) {
        char state[64];

        state_of(userdata, state, sizeof(state));
        return sd_bus_message_append(reply, "s", state);
}

/* Each unit has at most one job, as with systemd. */
static int get_job(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
                   void *userdata, sd_bus_error *error) {
        char *job = NULL;
        int r = has_file(userdata, ".job") ? sd_bus_path_encode(JOBS, userdata, &job) : 0;

        r = r < 0 ? r : sd_bus_message_append(reply, "(uo)", job ? 7 : 0, job ? job : "/");
        free(job);
        return r;
}

static int find_job(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret,
                    sd_bus_error *error) {
        char *unit = NULL;
        int r = sd_bus_path_decode(path, JOBS, &unit);

        if (r <= 0)
                return r;
        *ret = unit; /* as in find_unit() */
        return has_file(unit, ".job");
}

static int get_job_type(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        char type[64];

        first_line(userdata, ".job", type, sizeof(type));
        return sd_bus_message_append(reply, "s", type);
}

static int get_unit(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        char *path = NULL, state[64];
        const char *unit;
        int r = sd_bus_message_read(m, "s", &unit);

        if (r < 0)
                return r;
        state_of(unit, state, sizeof(state));
        if (!state[0])
                return sd_bus_error_setf(error, SERVICE ".NoSuchUnit", "Unit %s not loaded.", unit);
        r = sd_bus_path_encode(UNITS, unit, &path);
        return r < 0 ? r : sd_bus_reply_method_return(m, "o", path);
}

/* The signal precedes the reply: a client that subscribes after the reply misses it. */
static int end_job(sd_bus_message *m, const char *unit, const char *result) {
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/job/%u", ROOT, ++last_job);
        if (result && sd_bus_emit_signal(sd_bus_message_get_bus(m), ROOT, SERVICE ".Manager", "JobRemoved", "uoss",
                                         last_job, path, unit, result) < 0)
                abort();
        return sd_bus_reply_method_return(m, "o", path);
}

static int stop_unit(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *unit, *mode;
        int r = sd_bus_message_read(m, "ss", &unit, &mode);

        if (r < 0)
                return r;
        note("stop", unit);
        if (has_file(unit, ".hang"))
                return end_job(m, unit, NULL);
        tell_node(unit);
        remove_job(unit);
        put(unit, ".state", "we", "inactive");
        return end_job(m, unit, "done");
}

static int start_unit(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *unit, *mode;
        int r = sd_bus_message_read(m, "ss", &unit, &mode);

        if (r < 0)
                return r;
        note("start", unit);
        if (has_file(unit, ".fail"))
                return end_job(m, unit, "failed");
        if (has_file(unit, ".wait")) {
                put(unit, ".job", "we", "start");
                return end_job(m, unit, NULL);
        }
        put(unit, ".state", "we", "active");
        return end_job(m, unit, "done");
}

/* Reads ssa(sv)a(sa(sv)). Of the properties only ExecStart is used. */
static int start_transient(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *unit, *mode, *property, *path;
        char state[64], line[1024] = "";
        int r = sd_bus_message_read(m, "ss", &unit, &mode);

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "(sv)");
        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "sv")) > 0) {
                char **words = NULL;

                r = sd_bus_message_read(m, "s", &property);
                if (r >= 0 && strcmp(property, "ExecStart") != 0)
                        r = sd_bus_message_skip(m, "v");
                else if (r >= 0 && sd_bus_message_enter_container(m, 'v', "a(sasb)") > 0 &&
                         sd_bus_message_enter_container(m, 'a', "(sasb)") > 0 &&
                         sd_bus_message_enter_container(m, 'r', "sasb") > 0 &&
                         sd_bus_message_read(m, "s", &path) >= 0 && sd_bus_message_read_strv(m, &words) >= 0 &&
                         sd_bus_message_skip(m, "b") >= 0) {
                        for (size_t i = 0; words[i]; i++)
                                (void) snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s", i ? " " : "",
                                                words[i]);
                        r = sd_bus_message_exit_container(m);
                        if (r >= 0)
                                r = sd_bus_message_exit_container(m);
                        if (r >= 0)
                                r = sd_bus_message_exit_container(m);
                }
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r < 0)
                return r;
        note("run", line);
        state_of("command", state, sizeof(state));
        put(unit, ".state", "we", "failed");
        return end_job(m, unit, strcmp(state, "0") == 0 ? "done" : strcmp(state, "hang") == 0 ? NULL : "failed");
}

static int get_result(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
                      void *userdata, sd_bus_error *error) {
        char state[64];

        state_of("command", state, sizeof(state));
        if (strcmp(property, "Result") == 0)
                return sd_bus_message_append(reply, "s", strcmp(state, "timeout") == 0 ? state : "exit-code");
        return sd_bus_message_append(reply, "i", strcmp(property, "ExecMainCode") == 0 ? CLD_EXITED : atoi(state));
}

static int subscribe(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Subscribe", "", "", subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetUnit", "s", "o", get_unit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StopUnit", "ss", "o", stop_unit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StartUnit", "ss", "o", start_unit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StartTransientUnit", "ssa(sv)a(sa(sv))", "o", start_transient, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ResetFailedUnit", "s", "", subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL("JobRemoved", "uoss", 0),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable unit_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("ActiveState", "s", get_state, 0, 0),
        SD_BUS_PROPERTY("Job", "(uo)", get_job, 0, 0),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable job_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("JobType", "s", get_job_type, 0, 0),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable service_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Result", "s", get_result, 0, 0),
        SD_BUS_PROPERTY("ExecMainCode", "i", get_result, 0, 0),
        SD_BUS_PROPERTY("ExecMainStatus", "i", get_result, 0, 0),
        SD_BUS_VTABLE_END,
};

int main(int argc, char *argv[]) {
        sd_bus *bus = NULL;
        int r = argc == 2 ? sd_bus_open_system(&bus) : -EINVAL;

        dir = argv[1];
        if (r >= 0)
                r = sd_bus_add_object_vtable(bus, NULL, ROOT, SERVICE ".Manager", manager_vtable, NULL);
        if (r >= 0)
                r = sd_bus_add_fallback_vtable(bus, NULL, UNITS, SERVICE ".Unit", unit_vtable, find_unit, NULL);
        if (r >= 0)
                r = sd_bus_add_fallback_vtable(bus, NULL, UNITS, SERVICE ".Service", service_vtable, find_unit, NULL);
        if (r >= 0)
                r = sd_bus_add_fallback_vtable(bus, NULL, JOBS, SERVICE ".Job", job_vtable, find_job, NULL);
        if (r >= 0)
                r = sd_bus_request_name(bus, SERVICE, 0);
        while (r >= 0) {
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(bus, UINT64_MAX);
        }
        (void) fprintf(stderr, "fake-systemd: %s\n", strerror(-r));
        return EXIT_FAILURE;
}
