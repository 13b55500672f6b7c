/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Calls the daemon on the system bus and prints the microseconds each reply took.
 *
 * client call TIMES MEMBER                        Ping, or a method of the Manager without arguments
 * client plan TIMES POOL=N ...                    the request as of passthroughctl plan, memory= in GiB
 * client allocate TIMES DIR POOL=N ...            as "FLOOR OURS": a Ping and a durable 4 KiB file in DIR; Allocate.
 *                                                 All is released again.
 * client keep TIMES DIR PREFIX POOL=N ...         the same, but the allocations PREFIX1, PREFIX2, ... stay
 * client checked TIMES DIR POOL=N ...             as "POLKIT OURS", of a user for whom the daemon asks polkit: polkit's
 *                                                 own answer; Allocate. The allocations stay
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "clock.h"

#include "bus/names.h"
#include "util/cleanup.h"
#include "util/strings.h"

static sd_bus *bus;
static char **words; /* of the request */
static char last_job[256];

/* Both measurements begin with sleeping processes, because a process that was just awake answers faster. */
#define IDLE_USEC 2000U

#define check(expression)                                                                                              \
        do {                                                                                                           \
                int result_ = (expression);                                                                            \
                if (result_ < 0) {                                                                                     \
                        (void) fprintf(stderr, "client: %s: %s\n", #expression, strerror(-result_));                   \
                        exit(EXIT_FAILURE);                                                                            \
                }                                                                                                      \
        } while (0)

static int new_call(const char *member, sd_bus_message **ret) {
        bool ping = streq(member, "Ping");

        return sd_bus_message_new_method_call(bus, ret, BUS_NAME, BUS_PATH,
                                              ping ? "org.freedesktop.DBus.Peer" : BUS_MANAGER_INTERFACE, member);
}

static int append_number(sd_bus_message *m, const char *key, unsigned long n) {
        if (streq(key, "cpus"))
                return sd_bus_message_append(m, "{sv}", key, "u", (uint32_t) n);
        if (streq(key, "memory"))
                return sd_bus_message_append(m, "{sv}", key, "t", (uint64_t) n << 30);
        return 0;
}

static int append_request(sd_bus_message *m) {
        char key[64];
        unsigned n;
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        for (char **word = words; r >= 0 && *word; word++)
                if (sscanf(*word, "%63[^=]=%u", key, &n) == 2)
                        r = append_number(m, key, n);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", "devices");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "a(su)");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "(su)");
        for (char **word = words; r >= 0 && *word; word++)
                if (sscanf(*word, "%63[^=]=%u", key, &n) == 2 && !streq(key, "cpus") && !streq(key, "memory"))
                        r = sd_bus_message_append(m, "(su)", key, n);
        for (int i = 0; i < 4 && r >= 0; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

/* Returns the microseconds until the reply. */
static double ask(sd_bus_message *call, sd_bus_message **ret) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        double start = now_us();

        if (sd_bus_call(bus, call, 0, &error, ret) < 0) {
                (void) fprintf(stderr, "client: %s\n", error.message);
                exit(EXIT_FAILURE);
        }
        return now_us() - start;
}

static double ask_simple(const char *member) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;

        check(new_call(member, &call));
        return ask(call, &reply);
}

static double ask_plan(void) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;

        check(new_call("Plan", &call));
        check(append_request(call));
        return ask(call, &reply);
}

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *job, *result;

        if (sd_bus_message_read(m, "uos", NULL, &job, &result) < 0 || !streq(result, "done")) {
                (void) fprintf(stderr, "client: a job did not end well\n");
                exit(EXIT_FAILURE);
        }
        (void) snprintf(last_job, sizeof(last_job), "%s", job);
        return 0;
}

static void wait_for(const char *job) {
        while (!streq(last_job, job)) {
                int r = sd_bus_process(bus, NULL);

                check(r);
                if (r == 0)
                        check(sd_bus_wait(bus, UINT64_MAX));
        }
}

static double ask_allocate(const char *name) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        const char *job;
        double taken;

        check(new_call("Allocate", &call));
        check(sd_bus_message_append(call, "s", name));
        check(append_request(call));
        taken = ask(call, &reply);
        check(sd_bus_message_read(reply, "oo", NULL, &job));
        wait_for(job);
        return taken;
}

static uint64_t generation(const char *name) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        const char *found;
        uint64_t g = 0;

        check(new_call("ListAllocations", &call));
        (void) ask(call, &reply);
        check(sd_bus_message_enter_container(reply, 'a', "(sstuo)"));
        while (sd_bus_message_read(reply, "(sstuo)", &found, NULL, &g, NULL, NULL) > 0)
                if (streq(found, name))
                        break;
        return g;
}

static void release(const char *name) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        const char *job;

        check(new_call("Release", &call));
        check(sd_bus_message_append(call, "st", name, generation(name)));
        (void) ask(call, &reply);
        check(sd_bus_message_read(reply, "o", &job));
        wait_for(job);
}

/* Measures the least time of a durable answer: a call and its reply, and one small file. */
static double ask_floor(const char *dir) {
        static char page[4096];
        double start = now_us();
        int dir_fd, fd;

        (void) ask_simple("Ping");
        dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fd = openat(dir_fd, ".floor.tmp", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 || write(fd, page, sizeof(page)) != (ssize_t) sizeof(page) || fsync(fd) < 0 ||
            renameat(dir_fd, ".floor.tmp", dir_fd, "floor") < 0 || fsync(dir_fd) < 0)
                check(-errno);
        (void) close(fd);
        (void) close(dir_fd);
        return now_us() - start;
}

/* Asks polkit whether this process may allocate. */
static double ask_polkit(void) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        const char *name;

        check(sd_bus_get_unique_name(bus, &name));
        check(sd_bus_message_new_method_call(bus, &call, "org.freedesktop.PolicyKit1",
                                             "/org/freedesktop/PolicyKit1/Authority",
                                             "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization"));
        check(sd_bus_message_append(call, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s", name,
                                    BUS_NAME ".allocate", 0, 0U, ""));
        return ask(call, &reply);
}

static void allocate(unsigned times, const char *dir, const char *prefix, bool keep, bool checked) {
        char path[4096], name[80];

        check(sd_bus_match_signal(bus, NULL, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, "JobRemoved", on_job_removed,
                                  NULL));
        (void) snprintf(path, sizeof(path), "%s/floor", dir);
        for (unsigned i = 1; i <= times; i++) {
                double least, taken;

                /* Uses a new name each time, as Allocate does. */
                (void) unlink(path);
                (void) usleep(IDLE_USEC);
                least = checked ? ask_polkit() : ask_floor(dir);
                (void) snprintf(name, sizeof(name), "%s%u", prefix, i);
                (void) usleep(IDLE_USEC);
                taken = ask_allocate(name);
                printf("%.1f %.1f\n", least, taken);
                if (!keep)
                        release(name);
        }
}

int main(int argc, char *argv[]) {
        const char *verb = argc > 3 ? argv[1] : "";
        unsigned times = argc > 3 ? (unsigned) strtoul(argv[2], NULL, 10) : 0;

        check(sd_bus_default_system(&bus));
        if (streq(verb, "call")) {
                for (unsigned i = 0; i < times; i++)
                        printf("%.1f\n", ask_simple(argv[3]));
        } else if (streq(verb, "plan")) {
                words = argv + 3;
                for (unsigned i = 0; i < times; i++)
                        printf("%.1f\n", ask_plan());
        } else if (streq(verb, "allocate") && argc > 4) {
                words = argv + 4;
                allocate(times, argv[3], "bench", false, false);
        } else if (streq(verb, "keep") && argc > 5) {
                words = argv + 5;
                allocate(times, argv[3], argv[4], true, false);
        } else if (streq(verb, "checked") && argc > 4) {
                words = argv + 4;
                allocate(times, argv[3], "checked", true, true);
        } else {
                (void) fprintf(stderr, "usage: client call|plan|allocate|keep|checked TIMES ...\n");
                return EXIT_FAILURE;
        }
        sd_bus_flush_close_unref(bus);
        return EXIT_SUCCESS;
}
