/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl topology: the NUMA nodes with their free CPUs and memory, and their devices as a tree. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "report.h"
#include "topology.h"
#include "util/strings.h"
#include "verbs.h"

#define INDENT      "  "
#define COUNT_WIDTH 24U

static void draw_cpus(json_object *node, Grid *g) {
        json_object *cpus = reply_member(node, "cpus"), *total = reply_member(cpus, "total");
        uint64_t housekeeping = number_of(reply_member(cpus, "housekeeping"), "cores");
        char kept[COUNT_WIDTH + 16] = "";

        if (housekeeping > 0)
                (void) snprintf(kept, sizeof(kept), ", %" PRIu64 " housekeeping", housekeeping);
        if (number_of(total, "cores") == 0)
                grid_text(g, TINT_NONE, INDENT, "cores     none");
        else
                grid_text(g, TINT_NONE, INDENT,
                          "cores     %" PRIu64 ": %" PRIu64 " free, %" PRIu64 " allocated%s; CPUs %s",
                          number_of(total, "cores"), number_of(reply_member(cpus, "free"), "cores"),
                          number_of(reply_member(cpus, "allocated"), "cores"), kept, reply_cell(total, "cpus"));
}

static void draw_hugepages(json_object *node, Grid *g) {
        for (size_t i = 0; i < reply_length(node, "pages"); i++) {
                json_object *pages = reply_element(node, "pages", i);
                uint64_t total = number_of(pages, "total"), available = number_of(pages, "free"),
                         allocated = number_of(pages, "allocated");
                uint64_t rest = total - MIN(total, available + allocated);
                char others[COUNT_WIDTH + 24] = "";

                if (total == 0)
                        continue;
                if (rest > 0)
                        (void) snprintf(others, sizeof(others), ", %" PRIu64 " used by others", rest);
                grid_text(g, TINT_NONE, INDENT,
                          "hugepages %" PRIu64 " of %s: %" PRIu64 " free, %" PRIu64 " allocated%s", total,
                          FORMAT_SIZE(number_of(pages, "size")), available, allocated, others);
        }
}

static void draw_memory(json_object *node, Grid *g) {
        json_object *memory = reply_member(node, "memory");
        uint64_t total = number_of(node, "memory_total"), ordinary = number_of(memory, "total"),
                 available = number_of(memory, "free"), allocated = number_of(memory, "allocated");
        uint64_t rest = ordinary - MIN(ordinary, available + allocated);
        char hugepages[COUNT_WIDTH + 24] = "";

        if (total == 0) {
                grid_text(g, TINT_NONE, INDENT, "memory    none");
                return;
        }
        if (ordinary < total)
                (void) snprintf(hugepages, sizeof(hugepages), ", %s in hugepages", size_round(total - ordinary).text);
        grid_text(g, TINT_NONE, INDENT, "memory    %s GiB: %s free, %s allocated, %s for the host%s",
                  size_round(total).text, size_round(available).text, size_round(allocated).text, size_round(rest).text,
                  hugepages);
        draw_hugepages(node, g);
}

static void draw_distances(json_object *node, const char *id, Grid *g) {
        _cleanup_free_ char *text = NULL;

        if (node_distances(node, id, &text) < 0)
                g->failed = true;
        if (text)
                grid_text(g, TINT_NONE, INDENT, "distance  %s", text);
}

/* Adds a line with the available devices of each pool in the section. */
static void draw_offers(const Items *items, int64_t section, Grid *g) {
        _cleanup_free_ char *text = NULL;

        if (items_offers(items, section, &text) < 0)
                g->failed = true;
        if (text)
                grid_text(g, TINT_NONE, INDENT, "available %s", text);
}

static void draw_node(json_object *node, const Items *items, Grid *g) {
        char id[COUNT_WIDTH], package[COUNT_WIDTH + 16] = "";
        int64_t n;

        if (reply_number(node, "package", &n))
                (void) snprintf(package, sizeof(package), ", socket %" PRId64, n);
        (void) snprintf(id, sizeof(id), "%" PRIu64, number_of(node, "id"));
        grid_text(g, TINT_BOLD, "", "NUMA node %s%s", id, package);
        draw_cpus(node, g);
        draw_memory(node, g);
        draw_distances(node, id, g);
        draw_offers(items, (int64_t) number_of(node, "id"), g);
}

static void draw_others(Items *items, json_object *node, bool all, Grid *g) {
        int64_t section = INT64_MIN;
        char title[SECTION_TITLE_MAX];

        while (items_next_section(items, node, &section)) {
                if (g->n > 0)
                        grid_text(g, TINT_NONE, "", "%s", "");
                grid_text(g, TINT_BOLD, "", "%s", section_title(section, title));
                draw_offers(items, section, g);
                items_draw(items, section, all, g);
        }
}

static int print_tree(const Args *args, json_object *node) {
        bool all = args_has(args, OPTION_ALL);
        _cleanup_items_ Items items = { 0 };
        _cleanup_grid_ Grid g;
        int r;

        grid_init(&g);
        r = items_init(&items, node);
        for (size_t i = 0; r >= 0 && i < reply_length(node, "nodes"); i++) {
                json_object *o = reply_element(node, "nodes", i);

                if (i > 0)
                        grid_text(&g, TINT_NONE, "", "%s", "");
                draw_node(o, &items, &g);
                items_draw(&items, (int64_t) number_of(o, "id"), all, &g);
        }
        if (r >= 0) {
                draw_others(&items, node, all, &g);
                r = grid_print(&g);
        }
        return r < 0 ? report_errno(args, r, "Cannot print") : 0;
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
