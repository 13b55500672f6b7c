/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl topology: the NUMA nodes with their free CPUs and memory, and their devices as a tree. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "model/cpuset.h"
#include "page.h"
#include "report.h"
#include "topology.h"
#include "util/strings.h"
#include "verbs.h"
#include "words.h"

#define INDENT      "  "
#define KEY_WIDTH   12U
#define COUNT_WIDTH 24U

static void print_wrapped(const char *key, const char *text) {
        printf(INDENT "%-9s ", key);
        page_wrap(stdout, text, KEY_WIDTH, KEY_WIDTH);
}

static int print_cpus(json_object *node) {
        json_object *cpus = member(node, "cpus"), *total = member(cpus, "total");
        uint64_t housekeeping = member_size(member(cpus, "housekeeping"), "cores");
        _cleanup_free_ char *list = cpus_shorten(reply_text(total, "cpus") ?: "");
        char kept[COUNT_WIDTH + 16] = "";

        if (!list)
                return -ENOMEM;
        if (housekeeping > 0)
                (void) snprintf(kept, sizeof(kept), ", %" PRIu64 " housekeeping", housekeeping);
        if (member_size(total, "cores") == 0)
                printf(INDENT "cores     none\n");
        else
                printf(INDENT "cores     %" PRIu64 ": %" PRIu64 " free, %" PRIu64 " allocated%s; CPUs %s\n",
                       member_size(total, "cores"), member_size(member(cpus, "free"), "cores"),
                       member_size(member(cpus, "allocated"), "cores"), kept, list);
        return 0;
}

static void print_hugepages(json_object *node) {
        for (size_t i = 0; i < member_length(node, "pages"); i++) {
                json_object *pages = member_at(node, "pages", i);
                uint64_t total = member_size(pages, "total"), available = member_size(pages, "free"),
                         allocated = member_size(pages, "allocated");
                uint64_t rest = total - MIN(total, available + allocated);
                char others[COUNT_WIDTH + 24] = "";

                if (total == 0)
                        continue;
                if (rest > 0)
                        (void) snprintf(others, sizeof(others), ", %" PRIu64 " used by others", rest);
                printf(INDENT "hugepages %" PRIu64 " of %s: %" PRIu64 " free, %" PRIu64 " allocated%s\n", total,
                       FORMAT_SIZE(member_size(pages, "size")), available, allocated, others);
        }
}

static void print_memory(json_object *node) {
        json_object *memory = member(node, "memory");
        uint64_t total = member_size(node, "memory_total"), ordinary = member_size(memory, "total"),
                 available = member_size(memory, "free"), allocated = member_size(memory, "allocated");
        uint64_t rest = ordinary - MIN(ordinary, available + allocated);
        bool is_far = member_size(member(member(node, "cpus"), "total"), "cores") == 0;
        char hugepages[COUNT_WIDTH + 24] = "";

        if (total == 0) {
                printf(INDENT "memory    none\n");
                return;
        }
        if (ordinary < total)
                (void) snprintf(hugepages, sizeof(hugepages), ", %s in hugepages", size_round(total - ordinary).text);
        if (is_far)
                printf(INDENT "memory    %s GiB: %s allocated%s\n", size_round(total).text, size_round(allocated).text,
                       hugepages);
        else
                printf(INDENT "memory    %s GiB: %s free, %s allocated, %s for the host%s\n", size_round(total).text,
                       size_round(available).text, size_round(allocated).text, size_round(rest).text, hugepages);
        print_hugepages(node);
}

static int print_distances(json_object *node, const char *id) {
        _cleanup_free_ char *text = NULL;
        int r = node_distances(node, id, &text);

        if (text)
                print_wrapped("distance", text);
        return r;
}

/* Prints the available devices of each pool in the section, and its tree. */
static int print_devices(const Args *args, Items *items, int64_t section) {
        _cleanup_free_ char *text = NULL;

        if (items_offers(items, section, &text) < 0)
                return report_errno(args, -ENOMEM, "Cannot print");
        if (text)
                print_wrapped("available", text);
        return items_print(items, section, args);
}

static int print_node(const Args *args, json_object *node, Items *items) {
        char id[COUNT_WIDTH], package[COUNT_WIDTH + 16] = "";
        _cleanup_free_ char *lends = NULL;
        int64_t n;
        int r;

        if (JSON_READ_INTEGER(node, "package", INT64_MAX, &n) >= 0)
                (void) snprintf(package, sizeof(package), ", socket %" PRId64, n);
        (void) snprintf(id, sizeof(id), "%" PRIu64, member_size(node, "id"));
        printf("NUMA node %s%s\n", id, package);
        r = print_cpus(node);
        print_memory(node);
        if (r >= 0)
                r = print_distances(node, id);
        if (r >= 0)
                r = node_lends(node, &lends);
        if (r < 0)
                return report_errno(args, r, "Cannot print");
        if (lends)
                print_wrapped("guests", lends);
        return print_devices(args, items, (int64_t) member_size(node, "id"));
}

static int print_empty_nodes(const Args *args, const CpuSet *nodes, bool separate) {
        _cleanup_free_ char *list = cpuset_format(nodes);

        if (!list)
                return report_errno(args, -ENOMEM, "Cannot print");
        fputs(separate ? "\n" : "", stdout);
        page_print(stdout, 0, "NUMA node%s %s: no CPUs, no memory, no devices", PLURAL(cpuset_count(nodes)), list);
        return 0;
}

static int print_tree(const Args *args, json_object *node) {
        _cleanup_items_ Items items = { 0 };
        CpuSet empty = { 0 };
        int64_t section = INT64_MIN;
        char title[SECTION_TITLE_MAX];
        size_t n = 0;
        int r = items_init(&items, node);

        if (r < 0)
                return report_errno(args, r, "Cannot print");
        for (size_t i = 0; i < member_length(node, "nodes"); i++) {
                json_object *o = member_at(node, "nodes", i);

                if (node_is_empty(&items, o)) {
                        cpuset_add(&empty, (unsigned) MIN(member_size(o, "id"), CPUSET_MAX - 1));
                        continue;
                }
                fputs(n++ > 0 ? "\n" : "", stdout);
                r = print_node(args, o, &items);
                if (r < 0)
                        return r;
        }
        if (!cpuset_is_empty(&empty)) {
                r = print_empty_nodes(args, &empty, n++ > 0);
                if (r < 0)
                        return r;
        }
        while (items_next_section(&items, node, &section)) {
                printf("%s%s\n", n++ > 0 ? "\n" : "", section_title(section, title));
                r = print_devices(args, &items, section);
                if (r < 0)
                        return r;
        }
        return r;
}

int verb_topology(const Args *args) {
        ReplyPrint print = args_has(args, OPTION_SVG)      ? svg_print
                           : args_has(args, OPTION_MATRIX) ? matrix_print
                                                           : print_tree;

        if (args_has(args, OPTION_SVG) && args_has(args, OPTION_MATRIX))
                return report_usage(args, "--svg includes the matrix: leave out --matrix");
        if (args_has(args, OPTION_SVG) && args_has(args, OPTION_JSON))
                return report_usage(args, "--svg and --json are different formats: give only one of them");
        return reply_show(args, "DescribeTopology", NULL, print);
}
