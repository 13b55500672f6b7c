/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl allocations: lists the allocations with their devices, CPUs and memory. */
#include <errno.h>
#include <stdio.h>

#include "reply.h"
#include "report.h"
#include "table.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"

static const Column columns[] = {
        { "NAME" },
        { "STATE" },
        { "GENERATION", .right = true },
        { "OWNER", .right = true },
        { "CPUS" },
        { "NODES" },
        { "MEMORY", .right = true },
        { "DEVICES", .cut = true },
        { "HELD", .cut = true },
};

static const char *or_dash(const char *s) {
        return s && *s ? s : "-";
}

static void add_allocation(Table *table, json_object *a) {
        _cleanup_free_ char *nodes = view_join(a, "numa_nodes", ","), *devices = view_addresses(a, ",");
        _cleanup_free_ char *held = view_held(a, ",");
        uint64_t memory = view_memory_total(a);
        const char *cells[ELEMENTSOF(columns)] = {
                reply_cell(a, "name"),
                reply_cell(a, "state"),
                reply_cell(a, "generation"),
                reply_cell(a, "owner"),
                or_dash(reply_text(a, "cpus")),
                or_dash(nodes),
                memory > 0 ? FORMAT_SIZE(memory) : "-",
                or_dash(devices),
                or_dash(held),
        };

        table_add(table, cells);
}

static int print_table(const Args *args, json_object *node) {
        _cleanup_table_ Table table;

        view_read_only(node);
        table_init(&table, columns, ELEMENTSOF(columns));
        for (size_t i = 0; i < reply_length(node, "allocations"); i++)
                add_allocation(&table, reply_element(node, "allocations", i));
        return table_print(&table, args, "There are no allocations.");
}

int verb_allocations(const Args *args) {
        return reply_show(args, "Describe", NULL, print_table);
}
