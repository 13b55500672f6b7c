/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl list: the devices; by default only those in a pool, in an allocation, or in need of attention. */
#include <errno.h>
#include <stdio.h>

#include "bus/names.h"
#include "device-name.h"
#include "document.h"
#include "reply.h"
#include "report.h"
#include "table.h"
#include "verbs.h"
#include "view.h"

static const Column columns[] = {
        { "ADDRESS", "address" },
        { "POOL", "pool" },
        { "STATE", "state" },
        { "NODE", "numa_node", .right = true },
        { "GROUP", "iommu_group", .right = true },
        { "DRIVER", "driver", .wide = true },
        { "ALLOCATION", "allocation" },
        { "PCIE", .text = view_link_short, .wide = true },
        { "MODULE", "module", .right = true }, /* this and the next column: only on a node with NVSwitches */
        { "PARTITION", "partition", .right = true },
        { "KERNEL", "kernel_names" },
        { "NAME", .text = device_product, .cut = true },
};

/* Without --pool and --all: devices in a pool, in an allocation, or in any state but "host". */
static bool is_wanted(const Args *args, json_object *device) {
        const char *pool = reply_text(device, "pool");

        if (args_has(args, OPTION_POOL))
                return streq_ptr(pool, args->text[OPTION_POOL]);
        return args_has(args, OPTION_ALL) || pool || reply_text(device, "allocation") ||
               !streq_ptr(reply_text(device, "state"), "host");
}

/* Copies the columns to print. Returns their number. */
static size_t choose_columns(const Args *args, json_object *node, Column chosen[static ELEMENTSOF(columns)]) {
        bool has_modules = false;
        size_t n = 0;

        for (size_t i = 0; i < reply_length(node, "devices"); i++) {
                json_object *device = reply_element(node, "devices", i);

                has_modules = has_modules || (is_wanted(args, device) && reply_text(device, "module"));
        }
        for (size_t i = 0; i < ELEMENTSOF(columns); i++)
                if (has_modules || (!streq_ptr(columns[i].key, "module") && !streq_ptr(columns[i].key, "partition")))
                        chosen[n++] = columns[i];
        return n;
}

static int print_table(const Args *args, json_object *node) {
        Column chosen[ELEMENTSOF(columns)];
        size_t n = choose_columns(args, node, chosen);
        _cleanup_table_ Table table;

        table_init(&table, chosen, n);
        for (size_t i = 0; i < reply_length(node, "devices"); i++)
                if (is_wanted(args, reply_element(node, "devices", i)))
                        table_add_object(&table, reply_element(node, "devices", i));
        return table_print(&table, args,
                           args_has(args, OPTION_ALL)    ? "This node has no PCI devices."
                           : args_has(args, OPTION_POOL) ? "No device is in this pool."
                                                         : "No device is in a pool. 'passthroughctl suggest' prints a "
                                                           "configuration; 'list --all' shows all devices.");
}

/* With --pool the daemon's document is printed with only the devices of that pool. */
static int print_json(const Args *args, const char *text, json_object *node) {
        json_object *devices;

        if (!args_has(args, OPTION_POOL)) {
                puts(text);
                return 0;
        }
        devices = json_object_new_array();
        if (!devices)
                return report_errno(args, -ENOMEM, "Cannot print");
        for (size_t i = 0; i < reply_length(node, "devices"); i++) {
                json_object *device = reply_element(node, "devices", i);
                if (is_wanted(args, device))
                        json_object_array_add(devices, json_object_get(device));
        }
        json_object_object_add(node, "devices", devices);
        return document_print(args, json_object_get(node));
}

int verb_list(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_json_ json_object *node = NULL;
        _cleanup_free_ char *text = NULL;
        const char *pool = args->text[OPTION_POOL];
        int r;

        r = client_new(args, &c);
        if (r >= 0)
                r = reply_ask(c, "Describe", NULL, &text, &node);
        if (r < 0)
                return r;
        if (pool && !reply_find(node, "pools", "name", pool))
                return report_failure(args, BUS_ERROR_NO_SUCH_POOL, "There is no pool '%s'.", pool);
        if (args_has(args, OPTION_JSON))
                return print_json(args, text, node);
        view_read_only(node);
        return print_table(args, node);
}
