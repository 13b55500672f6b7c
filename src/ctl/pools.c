/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl pools: prints how many devices of each pool, and how much of each NUMA node, a request can get. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "document.h"
#include "page.h"
#include "report.h"
#include "table.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"

static const Column pool_columns[] = {
        { "POOL" },
        { "NODE", "id", .right = true },
        { "TOTAL", "total", .right = true },
        { "AVAILABLE", "available", .right = true },
        { "ALLOCATED", "allocated", .right = true },
        { "RESERVED", "reserved", .right = true },
        { "OUT-OF-SERVICE", "out_of_service", .right = true },
};

static const Column node_columns[] = {
        { "NODE", .right = true },   { "CPUS", .right = true }, { "FREE", .right = true },
        { "MEMORY", .right = true }, { "FREE", .right = true }, { "FREE-PAGES", .cut = true },
};

static void add_counts(Table *table, const char *pool, const char *node, json_object *counts) {
        const char *cells[ELEMENTSOF(pool_columns)] = { pool, node };

        for (size_t i = 2; i < ELEMENTSOF(pool_columns); i++)
                cells[i] = reply_cell(counts, pool_columns[i].key);
        table_add(table, cells);
}

/* Prints a line for each pool, each followed by a line for each NUMA node of the pool's devices. */
static int print_pools(const Args *args, json_object *node) {
        _cleanup_table_ Table table;

        table_init(&table, pool_columns, ELEMENTSOF(pool_columns));
        for (size_t i = 0; i < member_length(node, "pools"); i++) {
                json_object *pool = member_at(node, "pools", i);

                add_counts(&table, reply_cell(pool, "name"), member(pool, "endpoints") ? "remote" : "all", pool);
                for (size_t j = 0; j < member_length(pool, "numa_nodes"); j++) {
                        json_object *part = member_at(pool, "numa_nodes", j);

                        add_counts(&table, reply_cell(pool, "name"), reply_cell(part, "id"), part);
                }
        }
        return table_print(&table, args, "There are no pools. 'passthroughctl suggest' prints a configuration.");
}

/* Prints which endpoints offer no slot, and why. */
static void print_endpoints(json_object *node) {
        for (size_t i = 0; i < member_length(node, "pools"); i++) {
                json_object *pool = member_at(node, "pools", i);

                for (size_t k = 0; k < member_length(pool, "endpoints"); k++) {
                        json_object *endpoint = member_at(pool, "endpoints", k);

                        if (reply_text(endpoint, "reason"))
                                page_print(stdout, 0, "%s: %s", reply_cell(endpoint, "endpoint"),
                                           reply_cell(endpoint, "reason"));
                }
        }
}

static char *count_cpus(json_object *node, const char *key) {
        char *text = NULL;

        (void) string_replace(&text, "%u", view_count_cpus(node, key));
        return text;
}

static char *format_size_of(json_object *node, const char *key) {
        return string_format("%s", FORMAT_SIZE(member_size(node, key)));
}

/* Returns the free hugepages of a NUMA node, "512 of 1024 x 2 MiB". The caller frees; NULL when it has none. */
static char *list_pages(json_object *node) {
        char *text = NULL;

        for (size_t i = 0; i < member_length(node, "pages"); i++) {
                json_object *pages = member_at(node, "pages", i);

                if (member_size(pages, "total") > 0)
                        (void) string_append(&text, text ? ", " : "", "%" PRIu64 " of %" PRIu64 " x %s",
                                             member_size(pages, "free"), member_size(pages, "total"),
                                             FORMAT_SIZE(member_size(pages, "size")));
        }
        return text;
}

static int print_nodes(const Args *args, json_object *node) {
        _cleanup_table_ Table table;

        table_init(&table, node_columns, ELEMENTSOF(node_columns));
        for (size_t i = 0; i < member_length(node, "nodes"); i++) {
                json_object *n = member_at(node, "nodes", i);
                _cleanup_free_ char *cpus = count_cpus(n, "cpus"), *cpus_free = count_cpus(n, "cpus_free");
                _cleanup_free_ char *memory = format_size_of(n, "memory");
                _cleanup_free_ char *memory_free = format_size_of(n, "memory_free"), *pages = list_pages(n);

                if (streq_ptr(cpus, "0") && member(n, "memory") && member_size(n, "memory") == 0)
                        continue;
                table_add(&table,
                          (const char *[]) { reply_cell(n, "id"), cpus, cpus_free, memory, memory_free, pages ?: "-" });
        }
        return table_print(&table, args, "This node has no NUMA nodes.");
}

static int print_tables(const Args *args, json_object *node) {
        int r;

        view_read_only(node);
        r = print_pools(args, node);
        if (r < 0)
                return r;
        print_endpoints(node);
        putchar('\n');
        return print_nodes(args, node);
}

static int print_pools_json(const Args *args, json_object *node) {
        static const char *const keys[] = { "pools", "nodes" };
        _cleanup_json_ json_object *o = json_object_new_object();

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (!o || json_object_object_add(o, keys[i], json_object_get(member(node, keys[i]))) < 0)
                        return report_errno(args, -ENOMEM, "Cannot print");
        return document_print(args, TAKE_PTR(o));
}

int verb_pools(const Args *args) {
        _cleanup_json_ json_object *node = NULL;
        int r = reply_ask_once(args, "Describe", NULL, NULL, &node);

        if (r < 0)
                return r;
        return args_has(args, OPTION_JSON) ? print_pools_json(args, node) : print_tables(args, node);
}
