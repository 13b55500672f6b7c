/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl list: prints the devices. Without POOL and --all, prints those in a pool or an allocation, or whose
 * state is not "host". Without --all, equal VFs of one PF share a line. */
#include <errno.h>
#include <stdio.h>

#include "bus/names.h"
#include "document.h"
#include "reply.h"
#include "report.h"
#include "table.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"
#include "words.h"

static const Column columns[] = {
        { "ADDRESS", "address" },
        { "POOL", "pool" },
        { "STATE", "state" },
        { "NODE", "numa_node", .right = true },
        { "GROUP", "iommu_group", .right = true, .wide = true },
        { "DRIVER", "driver", .wide = true },
        { "ALLOCATION", "allocation" },
        { "PCIE", .text = view_link_short, .wide = true },
        { "MODULE", "module", .right = true }, /* this and the next column: only if a listed device has a module */
        { "PARTITION", "partition", .right = true },
        { "KERNEL", .text = view_kernel_names },
        { "NAME", .text = device_product, .cut = true },
};

/* Returns the pool whose devices the user wants; NULL: the user has named no pool. */
static const char *wanted_pool(const Args *args) {
        return args->n_operands > 0 ? args->operands[0] : args->text[OPTION_POOL];
}

/* Returns true when the device is to be shown: with POOL, if it is in that pool; with --all alone, always; otherwise if
 * it is in a pool or an allocation, or has a state other than "host". */
static bool is_wanted(const Args *args, json_object *device) {
        const char *pool = reply_text(device, "pool");

        if (wanted_pool(args))
                return streq_ptr(pool, wanted_pool(args));
        return args_has(args, OPTION_ALL) || pool || reply_text(device, "allocation") ||
               !streq_ptr(reply_text(device, "state"), "host");
}

/* Copies to `chosen` the columns that are printed. Returns their number. */
static size_t choose_columns(const Args *args, json_object *node, Column chosen[static ELEMENTSOF(columns)]) {
        bool has_modules = false;
        size_t n = 0;

        for (size_t i = 0; i < member_length(node, "devices"); i++) {
                json_object *device = member_at(node, "devices", i);

                has_modules = has_modules || (is_wanted(args, device) && reply_text(device, "module"));
        }
        for (size_t i = 0; i < ELEMENTSOF(columns); i++)
                if (has_modules || (!streq_ptr(columns[i].key, "module") && !streq_ptr(columns[i].key, "partition")))
                        chosen[n++] = columns[i];
        return n;
}

static bool is_vf_of(json_object *device, const char *pf) {
        return pf && streq_ptr(reply_text(device, "physical_function"), pf);
}

static bool is_same(json_object *a, json_object *b, const char *key) {
        return json_object_equal(member(a, key), member(b, key));
}

/* Returns true when two VFs of one PF have equal rows, except for address, IOMMU group and kernel names. */
static bool is_equal_vf(json_object *a, json_object *b) {
        static const char *const keys[] = {
                "pool", "state", "numa_node", "driver", "allocation", "link", "module", "partition", "name",
        };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (!is_same(a, b, keys[i]))
                        return false;
        return true;
}

/* Returns the index of the last VF that can share a line with the VF at i: all VFs of the PF from i to this index are
 * equal. Sets *ret_n to the number of these VFs. For a device that is not a VF, returns i and sets *ret_n to 1. */
static size_t find_last_vf(json_object *node, size_t i, size_t *ret_n) {
        json_object *first = member_at(node, "devices", i);
        const char *pf = reply_text(first, "physical_function");
        size_t last = i;

        *ret_n = 1;
        for (size_t j = i + 1; pf && j < member_length(node, "devices"); j++) {
                json_object *device = member_at(node, "devices", j);

                if (!is_vf_of(device, pf))
                        continue;
                if (!is_equal_vf(first, device))
                        break;
                last = j;
                ++*ret_n;
        }
        return last;
}

/* Returns true when the VF at i shares the line of the previous VF of its PF. */
static bool is_folded(json_object *node, size_t i) {
        json_object *device = member_at(node, "devices", i);
        const char *pf = reply_text(device, "physical_function");

        for (size_t j = i; pf && j-- > 0;)
                if (is_vf_of(member_at(node, "devices", j), pf))
                        return is_equal_vf(member_at(node, "devices", j), device);
        return false;
}

/* Returns the first address and the part of the last one that differs: "0000:83:00.1-4" or "0000:14:00.1-02.0". */
static char *address_range(const char *first, const char *last) {
        size_t begin = 0;

        for (size_t i = 0; first[i] && first[i] == last[i]; i++)
                if (first[i] == ':' || first[i] == '.')
                        begin = i + 1;
        return string_format("%s-%s", first, last + begin);
}

/* Adds the text to the object, and frees the text. Returns false when out of memory. */
static bool add_owned(json_object *o, const char *key, char *text) {
        bool ok = text && document_add(o, key, text);

        free(text);
        return ok;
}

/* Makes one row for n VFs with equal values. The caller frees; NULL when out of memory. */
static json_object *fold(json_object *first, json_object *last, size_t n) {
        _cleanup_json_ json_object *row = json_object_new_object();
        bool ok = row;

        json_object_object_foreach(first, key, value) {
                ok = ok && json_object_object_add(row, key, json_object_get(value)) == 0;
        }
        ok = ok &&
             add_owned(row, "address", address_range(reply_cell(first, "address"), reply_cell(last, "address"))) &&
             add_owned(row, "state", string_format("%zu %s", n, reply_cell(first, "state")));
        if (ok && !is_same(first, last, "iommu_group"))
                ok = document_add(row, "iommu_group", "several");
        if (ok && !is_same(first, last, "kernel_names"))
                ok = document_add(row, "kernel_names", "several");
        return ok ? TAKE_PTR(row) : NULL;
}

static void add_device_row(Table *table, json_object *node, size_t i) {
        _cleanup_json_ json_object *row = NULL;
        size_t n, last = find_last_vf(node, i, &n);

        if (n > 1) {
                row = fold(member_at(node, "devices", i), member_at(node, "devices", last), n);
                table->failed = table->failed || !row;
        }
        table_add_object(table, row ?: member_at(node, "devices", i));
}

static int print_table(const Args *args, json_object *node) {
        Column chosen[ELEMENTSOF(columns)];
        size_t n = choose_columns(args, node, chosen);
        _cleanup_table_ Table table;

        table_init(&table, chosen, n);
        for (size_t i = 0; i < member_length(node, "devices"); i++)
                if (!is_wanted(args, member_at(node, "devices", i)))
                        continue;
                else if (args_has(args, OPTION_ALL))
                        table_add_object(&table, member_at(node, "devices", i));
                else if (!is_folded(node, i))
                        add_device_row(&table, node, i);
        return table_print(&table, args,
                           args_has(args, OPTION_ALL) ? "This node has no PCI devices."
                           : wanted_pool(args)        ? "No device is in this pool."
                                                      : "No device is in a pool. 'passthroughctl suggest' prints a "
                                                        "configuration; 'list --all' shows all devices.");
}

/* Prints the document of the daemon. If the user wants one pool, only the devices of that pool are in it. */
static int print_devices_json(const Args *args, const char *text, json_object *node) {
        json_object *devices;

        if (!wanted_pool(args)) {
                puts(text);
                return 0;
        }
        devices = json_object_new_array();
        if (!devices)
                return report_errno(args, -ENOMEM, "Cannot print");
        for (size_t i = 0; i < member_length(node, "devices"); i++) {
                json_object *device = member_at(node, "devices", i);
                if (is_wanted(args, device))
                        json_object_array_add(devices, json_object_get(device));
        }
        json_object_object_add(node, "devices", devices);
        return document_print(args, json_object_get(node));
}

int verb_list(const Args *args) {
        _cleanup_json_ json_object *node = NULL;
        _cleanup_free_ char *text = NULL;
        const char *pool = wanted_pool(args);
        int r;

        if (args->n_operands > 0 && args_has(args, OPTION_POOL))
                return report_usage(args, "list takes one pool, '%s' or '%s'", pool, args->text[OPTION_POOL]);
        r = reply_ask_once(args, "Describe", NULL, &text, &node);
        if (r < 0)
                return r;
        if (pool && !json_find(member(node, "pools"), "name", pool))
                return report_failure(args, BUS_ERROR_NO_SUCH_POOL, "There is no pool '%s'.", pool);
        if (args_has(args, OPTION_JSON))
                return print_devices_json(args, text, node);
        view_read_only(node);
        /* With --node, the process that replays the node has printed why no device is offered. */
        if (!args_has(args, OPTION_NODE))
                (void) view_not_offered(node);
        return print_table(args, node);
}
