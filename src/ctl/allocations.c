/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl allocations: lists the allocations with their slots, the number of their CPUs and the size of their
 * memory. */
#include <inttypes.h>
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
        { "GENERATION", .right = true, .wide = true },
        { "OWNER" },
        { "CPUS", .right = true },
        { "NODES" },
        { "MEMORY", .right = true },
        { "SLOTS", .wrapped = true },
        { "HELD", .right = true, .wide = true },
};

static const char *or_dash(const char *s) {
        return s && *s ? s : "-";
}

/* Returns the length of a slot's name without the number at its end. */
static size_t slot_prefix(const char *slot) {
        size_t n = strlen(slot);

        while (n > 0 && slot[n - 1] >= '0' && slot[n - 1] <= '9')
                n--;
        /* In "gpu00", slot 0 of the pool gpu0, only the last 0 is the number. */
        n += strspn(slot + n, "0");
        return n > 0 && !slot[n] && slot[n - 1] == '0' ? n - 1 : n;
}

/* Returns true when the slot `b` has the next number after the slot `a`, as gpu1 has after gpu0. */
static bool slot_follows(const char *a, const char *b) {
        size_t n = slot_prefix(a);
        uint64_t i, j;

        return slot_prefix(b) == n && strncmp(a, b, n) == 0 && parse_unsigned(a + n, UINT32_MAX, &i) >= 0 &&
               parse_unsigned(b + n, UINT32_MAX, &j) >= 0 && j == i + 1;
}

/* Returns the slots of the allocation as "gpu0-1, rdma0". Functions of one card are in one slot, which is listed once.
 * The caller frees; NULL when there are no slots, or when out of memory. */
static char *list_slots(json_object *a) {
        _cleanup_free_ char *text = NULL;
        const char *first = NULL, *last = NULL;
        size_t n = member_length(a, "devices");

        for (size_t i = 0; i <= n; i++) {
                const char *slot = i < n ? reply_text(member_at(a, "devices", i), "slot") : NULL;

                if (i < n && (!slot || streq_ptr(slot, last)))
                        continue;
                if (slot && last && slot_follows(last, slot)) {
                        last = slot;
                        continue;
                }
                if (first && string_append(&text, ", ", "%s%s%s", first, first == last ? "" : "-",
                                           first == last ? "" : last + slot_prefix(last)) < 0)
                        return NULL;
                first = last = slot;
        }
        return TAKE_PTR(text);
}

static void add_allocation(Table *table, json_object *a) {
        _cleanup_free_ char *nodes = view_join(a, "numa_nodes", ","), *slots = list_slots(a), *owner = view_owner(a);
        _cleanup_free_ char *cpus = string_format("%u", view_count_cpus(a, "cpus"));
        _cleanup_free_ char *held = string_format("%zu", view_count_held(a));
        uint64_t memory = view_memory_total(a);
        const char *cells[ELEMENTSOF(columns)] = {
                reply_cell(a, "name"),
                reply_cell(a, "state"),
                reply_cell(a, "generation"),
                owner,
                cpus,
                or_dash(nodes),
                memory > 0 ? FORMAT_SIZE(memory) : "-",
                or_dash(slots),
                held,
        };

        table_add(table, cells);
}

static int print_table(const Args *args, json_object *node) {
        _cleanup_table_ Table table;

        view_read_only(node);
        table_init(&table, columns, ELEMENTSOF(columns));
        for (size_t i = 0; i < member_length(node, "allocations"); i++)
                add_allocation(&table, member_at(node, "allocations", i));
        return table_print(&table, args, "There are no allocations.");
}

int verb_allocations(const Args *args) {
        return reply_show(args, "Describe", NULL, print_table);
}
