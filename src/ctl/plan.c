/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl plan: prints what allocate would choose, or how many such requests fit. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "page.h"
#include "reply.h"
#include "report.h"
#include "request.h"
#include "table.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"
#include "words.h"

/* Returns the slot of the device with this address in the plan. Returns its address if it has no slot. */
static const char *slot_of(json_object *plan, const char *address) {
        json_object *device = json_find(member(plan, "devices"), "address", address);

        return device ? reply_text(device, "slot") ?: address : address;
}

/* Returns the distance of the NIC to each GPU of its pairs, as "PIX to gpu0"; "-" for other devices. The caller
 * frees. */
static char *pairs_of(json_object *plan, const char *address) {
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < member_length(plan, "pairs"); i++) {
                json_object *pair = member_at(plan, "pairs", i);

                if (streq(reply_cell(pair, "nic"), address) &&
                    string_append(&text, ", ", "%s to %s", reply_cell(pair, "distance"),
                                  slot_of(plan, reply_cell(pair, "gpu"))) < 0)
                        return NULL;
        }
        return text ? TAKE_PTR(text) : strdup("-");
}

static int print_plan_devices(const Args *args, json_object *plan) {
        static const Column columns[] = {
                { "SLOT" }, { "DEVICE" }, { "DOMAIN ADDRESS" }, { "VF OF" }, { "DISTANCE" },
        };
        _cleanup_table_ Table t;

        table_init(&t, columns, ELEMENTSOF(columns));
        for (size_t i = 0; i < member_length(plan, "devices"); i++) {
                json_object *d = member_at(plan, "devices", i);
                const char *address = reply_cell(d, "address"), *role = reply_cell(d, "role");
                _cleanup_free_ char *pairs = pairs_of(plan, address);

                /* Leave out held devices, which the guest does not get. */
                if (!streq(role, "held"))
                        table_add(&t, (const char *[]) { reply_text(d, "slot") ?: role, address,
                                                         reply_cell(d, "guest_address"),
                                                         reply_cell(d, "physical_function"), pairs });
        }
        return table_print(&t, args, NULL);
}

/* Prints a sentence for each device on a node without CPUs: "gpu0 is on node 2, which has no CPUs; node 0 is the
 * nearest". */
static int print_lenders(json_object *plan) {
        bool any = false;

        for (size_t i = 0; i < member_length(plan, "devices"); i++) {
                json_object *device = member_at(plan, "devices", i);
                const char *node = reply_text(device, "numa_node"), *lender = reply_text(device, "cpu_node");

                if (!node || !lender || streq(node, lender) || !reply_text(device, "slot"))
                        continue;
                view_field(any ? "" : "Nodes", "%s is on node %s, which has no CPUs; node %s is the nearest",
                           reply_text(device, "slot"), node, lender);
                any = true;
        }
        return 0;
}

static int print_held(json_object *plan) {
        _cleanup_free_ char *held = view_held(plan, " ");

        if (held)
                view_field("Held with it", "%s", held);
        return 0;
}

static int print_assumptions(json_object *plan) {
        for (size_t i = 0; i < member_length(plan, "assumptions"); i++)
                view_field(i ? "" : "Assumed", "%s", reply_element_cell(plan, "assumptions", i));
        return 0;
}

static int print_warnings(json_object *plan) {
        view_warnings(plan);
        return 0;
}

/* Prints the NVLink partition: "3, of modules 1, 3". */
static int print_partition(json_object *plan) {
        const char *partition = reply_text(plan, "partition");
        _cleanup_free_ char *modules = NULL;

        for (size_t i = 0; partition && i < member_length(plan, "devices"); i++) {
                const char *module = reply_text(member_at(plan, "devices", i), "module");

                if (module && string_append(&modules, ", ", "%s", module) < 0)
                        return -ENOMEM;
        }
        if (partition)
                view_field("Partition", "%s, of modules %s", partition, modules ?: "-");
        return 0;
}

static int print_attributes(json_object *plan) {
        bool any = false;

        for (size_t i = 0; i < member_length(plan, "devices"); i++) {
                json_object *d = member_at(plan, "devices", i);
                _cleanup_free_ char *attributes = view_attributes(d), *text = NULL;

                if (!attributes)
                        continue;
                text = string_format("%s: %s", reply_cell(d, "slot"), attributes);
                if (!text)
                        return -ENOMEM;
                view_field(any ? "" : "Attributes", "%s", text);
                any = true;
        }
        return 0;
}

/* Prints the CPUs: "8 on node 0: 1-4,113-116". */
static int print_plan_cpus(json_object *plan) {
        unsigned n = view_count_cpus(plan, "cpus");
        _cleanup_free_ char *list = cpus_shorten(reply_text(plan, "cpus") ?: ""),
                            *nodes = view_join(plan, "numa_nodes", ", "), *text = NULL;

        if (n == 0)
                return 0;
        if (!list || string_append(&text, "", "%u on node%s %s: %s", n, PLURAL(member_length(plan, "numa_nodes")),
                                   nodes ?: "-", list) < 0)
                return -ENOMEM;
        view_field("CPUs", "%s", text);
        return 0;
}

static int print_plan_memory(json_object *plan) {
        _cleanup_free_ char *text = view_memory(plan);
        int64_t page_size;
        int r = 0;

        if (text && JSON_READ_INTEGER(plan, "page_size", INT64_MAX, &page_size) >= 0)
                r = string_append(&text, "", ", pages of %s", FORMAT_SIZE((uint64_t) page_size));
        if (text && r >= 0)
                view_field("Memory", "%s", text);
        return r;
}

/* Prints whether the guest would use iommufd. Prints nothing while libvirt's version is unknown. */
static int print_iommufd(json_object *plan) {
        json_object *o = member_object(plan, "iommufd");
        _cleanup_free_ char *text = NULL;

        if (!o || streq_ptr(reply_text(o, "reason"), "libvirt-unknown"))
                return 0;
        text = string_format("%s. %s", json_object_get_boolean(member(o, "used")) ? "yes" : "no",
                             reply_cell(o, "message"));
        if (!text)
                return -ENOMEM;
        view_field("iommufd", "%s", text);
        return 0;
}

static int print_confidential(json_object *plan) {
        const char *type = reply_text(plan, "confidential");

        if (type)
                view_field("Confidential", "%s", type);
        for (size_t i = 0; i < member_length(plan, "confidential_notes"); i++)
                view_field("", "%s", reply_element_cell(plan, "confidential_notes", i));
        return 0;
}

static int print_limits(json_object *plan) {
        for (size_t i = 0; i < member_length(plan, "limits"); i++) {
                json_object *limit = member_at(plan, "limits", i);
                _cleanup_free_ char *pools = view_join(limit, "pools", ":");

                view_field(i ? "" : "Proximity", "%s=%s: %s at most", pools ?: "-", reply_cell(limit, "limit"),
                           reply_cell(limit, "distance"));
        }
        return 0;
}

/* The words around the value of each member of a score: before, value, after, plural (unless the value is 1), rest. A
 * member with value 0 costs nothing and is not printed. */
static const struct {
        const char *member, *before, *after, *plural, *rest;
} costs[] = {
        { "numa_nodes", "", " NUMA node", "s", "" },
        { "off_node", "", " device", "s", " off these nodes" },
        { "remote", "", " of them on another known node", "", "" },
        { "worst_distance", "NICs at most ", " from their GPUs", "", "" },
        { "total_distance", "GPUs and their NICs ", " apart in all", "", "" },
        { "nic_off_node", "", " NIC", "s", " off these nodes" },
        { "gpu_distance", "GPUs ", " apart in all", "", "" },
        { "node_distance", "nodes ", " apart in all", "", "" },
        { "spoiled", "", " free device", "s", " on these nodes" },
        { "held", "", " device", "s", " held only for the IOMMU group" },
        { "left_over", "", " device", "s", " left free or held on these switches plus these nodes" },
        { "vf_load", "", " pair", "s", " of VFs on one PF" },
        { "vf_left", "", " VF", "s", " left free or held on these PFs" },
        { "broken", "", " GPU", "s", " of the larger NVLink partitions that this breaks, added up" },
};

static int append_cost(char **text, const char *member, const char *value) {
        for (size_t i = 0; i < ELEMENTSOF(costs); i++)
                if (streq(costs[i].member, member))
                        return string_append(text, ", ", "%s%s%s%s%s", costs[i].before, value, costs[i].after,
                                             streq(value, "1") ? "" : costs[i].plural, costs[i].rest);
        return string_append(text, ", ", "%s %s", member, value);
}

static int print_cost(json_object *plan) {
        json_object *score = member_object(plan, "score");
        _cleanup_free_ char *text = NULL, *held = string_format("%zu", view_count_held(plan));

        if (!score)
                return 0;
        if (!held)
                return -ENOMEM;
        json_object_object_foreach(score, member, value) {
                const char *s = json_object_get_string(value);

                /* Score.held counts a held device several times in some IOMMU groups (plan/score.h). Print the number
                 * of held devices instead. */
                if (s && !streq(s, "0") && streq(member, "held"))
                        s = held;
                if (s && !streq(s, "0") && text_is_clean(s) && append_cost(&text, member, s) < 0)
                        return -ENOMEM;
        }
        view_field("Cost", "%s", text ?: "nothing");
        return 0;
}

static int print_runner_up(json_object *plan) {
        json_object *second = member_object(plan, "runner_up");
        _cleanup_free_ char *nodes = second ? view_join(second, "numa_nodes", ", ") : NULL, *text = NULL;

        if (!second) {
                view_field("Runner-up", "none: no other choice of as many NUMA nodes fits");
                return 0;
        }
        if (string_append(&text, "", "on NUMA node%s %s. %s", PLURAL(member_length(second, "numa_nodes")), nodes ?: "-",
                          reply_cell(second, "reason")) < 0)
                return -ENOMEM;
        view_field("Runner-up", "%s", text);
        return 0;
}

static json_object *path_of(json_object *plan, size_t pair) {
        return member(member_at(plan, "pairs", pair), "path");
}

/* Prints the settings that would make the paths of the pairs direct. A setting that several pairs need is printed once.
 */
static void print_settings(json_object *plan) {
        bool any = false;

        for (size_t i = 0; i < member_length(plan, "pairs"); i++) {
                const char *setting = reply_text(path_of(plan, i), "setting");
                bool seen = !setting;

                for (size_t j = 0; j < i && !seen; j++)
                        seen = streq_ptr(reply_text(path_of(plan, j), "setting"), setting);
                if (seen)
                        continue;
                view_field(any ? "" : "Settings", "%s", setting);
                any = true;
        }
}

static int print_paths(json_object *plan) {
        for (size_t i = 0; i < member_length(plan, "pairs"); i++) {
                json_object *pair = member_at(plan, "pairs", i);
                _cleanup_free_ char *path = peer_path_text(path_of(plan, i), false), *text = NULL;

                if (!path || string_append(&text, "", "%s-%s: %s", slot_of(plan, reply_cell(pair, "gpu")),
                                           slot_of(plan, reply_cell(pair, "nic")), path) < 0)
                        return -ENOMEM;
                view_field(i ? "" : "Paths", "%s", text);
        }
        print_settings(plan);
        return 0;
}

/* Prints what --paths and --steps would add. */
static int print_more(const Args *args, json_object *plan) {
        size_t steps = member_length(plan, "steps"), redirected = 0;
        _cleanup_free_ char *text = NULL;
        int r = 0;

        for (size_t i = 0; i < member_length(plan, "pairs"); i++)
                redirected += streq_ptr(reply_text(path_of(plan, i), "peer_to_peer"), "redirected");
        if (!args_has(args, OPTION_PATHS) && redirected > 0)
                r = string_append(&text, "", "ACS redirects %zu pair%s (--paths)", redirected, PLURAL(redirected));
        if (r >= 0 && !args_has(args, OPTION_STEPS) && steps > 0)
                r = string_append(&text, ", ", "%zu step%s (--steps)", steps, PLURAL(steps));
        if (text && r >= 0)
                view_field("More", "%s", text);
        return r;
}

/* Prints a plan in few enough lines for one screen: devices with the distance of each pair, CPUs, memory, cost, and the
 * runner-up. The option --paths adds what ACS and ATS do to the paths of the pairs, --steps adds the steps. Returns 0
 * or a negative errno, reported. */
static int print_plan(const Args *args, json_object *plan) {
        static int (*const parts[])(json_object *) = { print_held,        print_assumptions, print_partition,
                                                       print_attributes,  print_plan_cpus,   print_lenders,
                                                       print_plan_memory, print_iommufd,     print_confidential,
                                                       print_warnings,    print_limits,      print_cost,
                                                       print_runner_up };
        int r = print_plan_devices(args, plan);

        if (r < 0)
                return r;
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(parts); i++)
                r = parts[i](plan);
        view_regions(plan);
        view_services(plan);
        if (r >= 0 && args_has(args, OPTION_PATHS))
                r = print_paths(plan);
        for (size_t i = 0; r >= 0 && args_has(args, OPTION_STEPS) && i < member_length(plan, "steps"); i++)
                view_field(i ? "" : "Steps", "%zu. %s", i + 1, reply_element_cell(plan, "steps", i));
        if (r >= 0)
                r = print_more(args, plan);
        return r < 0 ? report_errno(args, r, "Cannot print") : 0;
}

/* Returns the slots of services that a fit (one placement of the request) takes: "2 of gpu1:9999, 1 of gpu2:9999". The
 * caller frees; NULL when there are none. */
static char *list_service_slots(json_object *fit) {
        char *text = NULL;

        for (size_t i = 0; i < member_length(fit, "services"); i++) {
                json_object *s = member_at(fit, "services", i);

                (void) string_append(&text, ", ", "%s of %s", reply_cell(s, "slots"), reply_cell(s, "endpoint"));
        }
        return text;
}

#define FIT_INDENT 6 /* columns of "   1. " in front of the text */

/* Prints what one fit takes: "1. node 0: 0000:13:00.0 0000:14:00.1, at most PIX, 2 of gpu1:9999". */
static void print_fit(json_object *fit, size_t number) {
        _cleanup_free_ char *nodes = view_join(fit, "numa_nodes", ","), *devices = view_join(fit, "devices", " ");
        json_object *score = member_object(fit, "score");
        const char *worst = score ? reply_text(score, "worst_distance") : NULL;
        _cleanup_free_ char *slots = list_service_slots(fit);

        page_print(stdout, FIT_INDENT, "%4zu. %s%s%s%s%s%s%s%s", number, nodes ? "node " : "", nodes ?: "",
                   nodes && devices ? ": " : "", devices ?: "", worst ? ", at most " : "", worst ?: "",
                   slots && (nodes || devices) ? ", " : "", slots ?: "");
}

static void print_repeat(json_object *repeat) {
        json_object *refusal = member_object(repeat, "refusal");
        bool all = json_object_get_boolean(member(repeat, "complete"));
        size_t n = member_length(repeat, "fits");
        const char *nearest = refusal ? reply_text(refusal, "nearest") : NULL;

        printf("%s%zu such request%s fit%s.\n", all ? "" : "At least ", n, PLURAL(n), n == 1 ? "s" : "");
        for (size_t i = 0; i < n; i++)
                print_fit(member_at(repeat, "fits", i), i + 1);
        if (refusal)
                page_print(stdout, 0, "%s%s%s%s", all && n > 0 ? "One more does not fit: " : "",
                           reply_cell(refusal, "message"), nearest ? " " : "", nearest ?: "");
}

int verb_plan(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_request_items_ RequestItems items = { 0 };
        _cleanup_json_ json_object *plan = NULL, *node = NULL;
        _cleanup_free_ char *text = NULL;
        int r;

        if (args_has(args, OPTION_REPEAT) && (args_has(args, OPTION_PATHS) || args_has(args, OPTION_STEPS)))
                return report_usage(args, "--repeat prints no single plan: leave out --paths and --steps");
        r = request_items_parse(args, 0, &items);
        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r < 0)
                return r;
        r = client_method(c, "Plan", &call);
        if (r < 0)
                return r;
        r = request_append(args, NULL, &items, call);
        if (r < 0)
                return r;
        r = client_call(c, call, &reply);
        if (r < 0)
                return r;
        r = reply_parse(c, reply, &text, &plan);
        if (r < 0)
                return r;
        if (args_has(args, OPTION_JSON)) {
                puts(text);
                return 0;
        }
        r = reply_ask(c, "Describe", NULL, NULL, &node);
        if (r < 0)
                return r;
        view_read_only(node);
        if (!args_has(args, OPTION_REPEAT))
                return print_plan(args, plan);
        print_repeat(plan);
        return 0;
}
