/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl metrics: the numbers of the node as OpenMetrics text. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "reply.h"
#include "report.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"

#define PREFIX "passthroughd_"

static void begin(const char *name, const char *type, const char *help) {
        printf("# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

/* Prints one sample. The values in `labels` need no escaping, because they are pool names, states and numbers. */
static void sample(const char *name, const char *labels, uint64_t value) {
        printf(PREFIX "%s%s %" PRIu64 "\n", name, labels, value);
}

/* Adds 1 to the sample with these labels. samples: a map from labels to numbers. Returns false when out of memory. */
static bool count(json_object *samples, const char *labels) {
        json_object *n;

        if (json_object_object_get_ex(samples, labels, &n))
                return json_object_int_inc(n, 1) == 1;
        return json_object_object_add(samples, labels, json_object_new_int(1)) == 0;
}

static void print_counted(const char *name, json_object *samples) {
        json_object_object_foreach(samples, labels, n) {
                sample(name, labels, json_object_get_uint64(n));
        }
}

static const char *or_empty(json_object *o, const char *key) {
        return reply_text(o, key) ?: "";
}

static int print_devices(json_object *node) {
        _cleanup_json_ json_object *samples = json_object_new_object();
        uint64_t unhealthy = 0;

        for (size_t i = 0; samples && i < member_length(node, "devices"); i++) {
                json_object *device = member_at(node, "devices", i);
                _cleanup_free_ char *labels = NULL;

                unhealthy += streq(or_empty(device, "state"), "unhealthy");
                if (!reply_text(device, "pool"))
                        continue;
                if (string_replace(&labels, "{pool=\"%s\",numa_node=\"%s\",state=\"%s\"}", or_empty(device, "pool"),
                                   or_empty(device, "numa_node"), or_empty(device, "state")) < 0 ||
                    !count(samples, labels))
                        return -ENOMEM;
        }
        if (!samples)
                return -ENOMEM;
        begin("devices", "gauge", "Devices by pool, NUMA node (empty: unknown) and state.");
        print_counted("devices", samples);
        begin("unhealthy_devices", "gauge", "Devices in state unhealthy.");
        sample("unhealthy_devices", "", unhealthy);
        begin("quarantined_devices", "gauge", "Devices in quarantine.");
        sample("quarantined_devices", "", member_length(node, "quarantine"));
        return 0;
}

/* Prints how many slots of remote GPUs are in each state. Skips pools without the member "endpoints": they are no
 * services of remote GPUs. */
static void print_slots(json_object *node) {
        static const char *const states[] = { "available", "allocated", "reserved", "out_of_service" };

        begin("slots", "gauge", "Slots of remote GPUs by pool and state.");
        for (size_t i = 0; i < member_length(node, "pools"); i++) {
                json_object *pool = member_at(node, "pools", i);

                if (!member(pool, "endpoints"))
                        continue;
                for (size_t j = 0; j < ELEMENTSOF(states); j++) {
                        char labels[128];

                        (void) snprintf(labels, sizeof(labels), "{pool=\"%s\",state=\"%s\"}", or_empty(pool, "name"),
                                        states[j]);
                        sample("slots", labels, member_size(pool, states[j]));
                }
        }
}

static uint64_t number_of_cpus(json_object *o, const char *key) {
        return view_count_cpus(o, key);
}

/* Prints a sample for each NUMA node. value() reads the number with the key from the object of the node. */
static void print_nodes(json_object *node, const char *name, const char *help,
                        uint64_t (*value)(json_object *o, const char *key), const char *key) {
        begin(name, "gauge", help);
        for (size_t i = 0; i < member_length(node, "nodes"); i++) {
                json_object *n = member_at(node, "nodes", i);
                char labels[64];

                (void) snprintf(labels, sizeof(labels), "{numa_node=\"%s\"}", or_empty(n, "id"));
                sample(name, labels, value(n, key));
        }
}

static void print_pages(json_object *node, const char *name, const char *help, const char *key) {
        begin(name, "gauge", help);
        for (size_t i = 0; i < member_length(node, "nodes"); i++) {
                json_object *n = member_at(node, "nodes", i);

                for (size_t j = 0; j < member_length(n, "pages"); j++) {
                        json_object *pages = member_at(n, "pages", j);
                        char labels[96];

                        (void) snprintf(labels, sizeof(labels), "{numa_node=\"%s\",page_size=\"%s\"}",
                                        or_empty(n, "id"), or_empty(pages, "size"));
                        sample(name, labels, member_size(pages, key));
                }
        }
}

static int print_allocations(json_object *node) {
        _cleanup_json_ json_object *samples = json_object_new_object();

        for (size_t i = 0; samples && i < member_length(node, "allocations"); i++) {
                _cleanup_free_ char *labels = NULL;

                if (string_replace(&labels, "{state=\"%s\"}", or_empty(member_at(node, "allocations", i), "state")) <
                            0 ||
                    !count(samples, labels))
                        return -ENOMEM;
        }
        if (!samples)
                return -ENOMEM;
        begin("allocations", "gauge", "Allocations by state.");
        print_counted("allocations", samples);
        return 0;
}

static int get_property(Client *c, const char *name, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        int r = client_method_of(c, "org.freedesktop.DBus.Properties", "Get", &call);

        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "ss", BUS_MANAGER_INTERFACE, name);
        return r < 0 ? report_errno(c->args, r, "Cannot build the D-Bus call") : client_call(c, call, ret);
}

static int print_jobs(Client *c, sd_bus_message *times) {
        const char *verb, *result;
        uint32_t jobs;
        uint64_t usec;
        int r = sd_bus_message_enter_container(times, 'v', "a(ssut)");

        begin("job_duration_seconds", "summary", "Number and duration of ended jobs, since the daemon started.");
        if (r >= 0)
                r = sd_bus_message_enter_container(times, 'a', "(ssut)");
        while (r >= 0 && (r = sd_bus_message_read(times, "(ssut)", &verb, &result, &jobs, &usec)) > 0) {
                printf(PREFIX "job_duration_seconds_count{verb=\"%s\",result=\"%s\"} %" PRIu32 "\n", verb, result,
                       jobs);
                printf(PREFIX "job_duration_seconds_sum{verb=\"%s\",result=\"%s\"} %" PRIu64 ".%06" PRIu64 "\n", verb,
                       result, usec / 1000000, usec % 1000000);
        }
        return r < 0 ? client_bad_reply(c, r) : 0;
}

static int print_all(Client *c, json_object *node, uint64_t epoch, sd_bus_message *times) {
        int r = print_devices(node);

        if (r >= 0)
                r = print_allocations(node);
        if (r < 0)
                return report_errno(c->args, r, "Cannot print");
        print_slots(node);
        print_nodes(node, "cpus", "Online CPUs by NUMA node.", number_of_cpus, "cpus");
        print_nodes(node, "cpus_free", "CPUs that a further allocation can get.", number_of_cpus, "cpus_free");
        print_nodes(node, "memory_bytes", "Memory by NUMA node.", member_size, "memory");
        print_nodes(node, "memory_free_bytes", "Memory that a further allocation can get in ordinary pages.",
                    member_size, "memory_free");
        print_pages(node, "pages", "Huge pages by NUMA node and bytes of a page.", "total");
        print_pages(node, "pages_free", "Huge pages that a further allocation can get.", "free");
        begin("read_only", "gauge", "1 while the daemon changes nothing.");
        sample("read_only", "", reply_text(node, "read_only") ? 1 : 0);
        begin("epoch", "gauge", "Number that grows with each change.");
        sample("epoch", "", epoch);
        r = print_jobs(c, times);
        if (r < 0)
                return r;
        puts("# EOF");
        return 0;
}

int verb_metrics(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_json_ json_object *node = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *epoch = NULL, *times = NULL;
        uint64_t n;
        int r;

        r = client_new(args, &c);
        if (r < 0)
                return r;
        r = reply_ask(c, "Describe", NULL, NULL, &node);
        if (r < 0)
                return r;
        r = get_property(c, "Epoch", &epoch);
        if (r < 0)
                return r;
        r = get_property(c, "JobTimes", &times);
        if (r < 0)
                return r;
        r = sd_bus_message_read(epoch, "v", "t", &n);
        return r < 0 ? client_bad_reply(c, r) : print_all(c, node, n, times);
}
