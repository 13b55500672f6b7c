/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl topology: prints the NUMA nodes with their free CPUs and memory, and their devices as a tree. */
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

static int print_gauges(json_object *node) {
        _cleanup_free_ char *cpus = cpus_shorten(reply_text(member(member(node, "cpus"), "total"), "cpus") ?: "");
        Gauge gauges[GAUGES_MAX];
        size_t n = node_gauges(node, gauges);

        for (const Gauge *g = gauges; g < gauges + n; g++) {
                _cleanup_free_ char *text = gauge_text(g);

                if (!cpus || !text)
                        return -ENOMEM;
                if (g->total == 0)
                        printf(INDENT "%-9s %s\n", g->key, text);
                else
                        printf(INDENT "%-9s %s: %s%s%s\n", g->key, g->amount, text, g == gauges ? "; CPUs " : "",
                               g == gauges ? cpus : "");
        }
        return 0;
}

static int print_distances(json_object *node, const char *id) {
        _cleanup_free_ char *text = NULL;
        int r = node_distances(node, id, &text);

        if (text)
                print_wrapped("distance", text);
        return r;
}

/* Prints how many devices of each pool in the section are available, and then the tree of its devices. */
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
        r = print_gauges(node);
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
