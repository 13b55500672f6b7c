/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl sriov: lists the PFs, or the VFs of one PF; or starts a job that changes the number of VFs, and
 * follows the job. */
#include <errno.h>
#include <stdio.h>

#include "bus/names.h"
#include "document.h"
#include "job.h"
#include "page.h"
#include "reply.h"
#include "report.h"
#include "table.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"
#include "words.h"

#define COUNT_MAX 65535U

static const Column columns[] = { { "ADDRESS", "address" },
                                  { "POOL", "pool" },
                                  { "STATE", "state" },
                                  { "DRIVER", "driver" },
                                  { "ALLOCATION", "allocation" } };

static const Column pf_columns[] = {
        { "ADDRESS" },
        { "POOL" },
        { "STATE" },
        { "VFS", .right = true },
        { "NODE", .right = true },
        { "DRIVER" },
        { "KERNEL" },
        { "NAME", .cut = true },
};

static bool is_pf(json_object *device) {
        return streq_ptr(reply_text(device, "type"), "pf");
}

/* Lists the pools of the PF and of its VFs: "gpu,vgpu". The caller frees; NULL when there is none, or when out of
 * memory. */
static char *list_pools(json_object *node, json_object *pf) {
        const char *address = reply_cell(pf, "address");
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < member_length(node, "pools"); i++) {
                const char *pool = reply_cell(member_at(node, "pools", i), "name");
                bool found = streq_ptr(reply_text(pf, "pool"), pool);

                for (size_t j = 0; !found && j < member_length(node, "devices"); j++) {
                        json_object *d = member_at(node, "devices", j);

                        found = streq_ptr(reply_text(d, "physical_function"), address) &&
                                streq_ptr(reply_text(d, "pool"), pool);
                }
                if (found && string_append(&text, ",", "%s", pool) < 0)
                        return NULL;
        }
        return TAKE_PTR(text);
}

static void add_pf(Table *table, json_object *node, json_object *pf) {
        _cleanup_free_ char *pools = list_pools(node, pf), *names = view_kernel_names(pf);
        _cleanup_free_ char *product = device_product(pf);
        _cleanup_free_ char *vfs =
                string_format("%zu of %s", member_length(pf, "virtual_functions"), reply_cell(pf, "total_vfs"));
        const char *cells[ELEMENTSOF(pf_columns)] = {
                reply_cell(pf, "address"),
                pools ?: "-",
                reply_cell(pf, "state"),
                vfs,
                reply_cell(pf, "numa_node"),
                reply_cell(pf, "driver"),
                names,
                product,
        };

        table_add(table, cells);
}

static int print_pfs(const Args *args, json_object *node) {
        _cleanup_table_ Table table;

        table_init(&table, pf_columns, ELEMENTSOF(pf_columns));
        for (size_t i = 0; i < member_length(node, "devices"); i++)
                if (is_pf(member_at(node, "devices", i)))
                        add_pf(&table, node, member_at(node, "devices", i));
        return table_print(&table, args, "No device of this node can have VFs.");
}

static int list(Client *c) {
        _cleanup_json_ json_object *node = NULL, *pfs = NULL;
        int r = reply_ask(c, "Describe", NULL, NULL, &node);

        if (r < 0)
                return r;
        if (!args_has(c->args, OPTION_JSON))
                return print_pfs(c->args, node);
        pfs = json_object_new_array();
        for (size_t i = 0; pfs && i < member_length(node, "devices"); i++)
                if (is_pf(member_at(node, "devices", i)))
                        (void) json_object_array_add(pfs, json_object_get(member_at(node, "devices", i)));
        return pfs ? document_print(c->args, TAKE_PTR(pfs)) : report_errno(c->args, -ENOMEM, "Cannot print");
}

static int print_vfs(const Args *args, json_object *node, const char *pf) {
        _cleanup_table_ Table table;

        table_init(&table, columns, ELEMENTSOF(columns));
        for (size_t i = 0; i < member_length(node, "devices"); i++) {
                json_object *d = member_at(node, "devices", i);

                if (streq_ptr(reply_text(d, "physical_function"), pf))
                        table_add_object(&table, d);
        }
        return table_print(&table, args, NULL);
}

static int show(Client *c, const char *address) {
        _cleanup_json_ json_object *node = NULL;
        const char *reason;
        json_object *pf;
        int r = reply_ask(c, "Describe", NULL, NULL, &node);

        if (r < 0)
                return r;
        pf = json_find(member(node, "devices"), "address", address);
        /* If the reply lacks this device, ask for it by itself, because the daemon's error says why. */
        if (!pf) {
                r = client_ask(c, "GetDevice", NULL, "s", address);
                return r < 0 ? r
                             : report_failure(c->args, NULL, "'%s' has just appeared; run the command again.", address);
        }
        if (!is_pf(pf))
                return report_failure(c->args, BUS_ERROR_NOT_SUPPORTED, "%s is not a PF, so it cannot have VFs.",
                                      address);
        if (args_has(c->args, OPTION_JSON))
                return document_print(c->args, json_object_get(pf));
        reason = streq_ptr(reply_text(pf, "state"), "contested") ? reply_text(pf, "reason") : NULL;
        page_print(stdout, 0, "%s has %zu of %s VFs.%s%s", address, member_length(pf, "virtual_functions"),
                   reply_cell(pf, "total_vfs"), reason ? " " : "", reason ? reason : "");
        return print_vfs(c->args, node, address);
}

static int change(Client *c, const char *pf, uint64_t count) {
        char done[32], begun[32];

        (void) snprintf(done, sizeof(done), "has %u VF%s.", (unsigned) count, PLURAL(count));
        (void) snprintf(begun, sizeof(begun), "will have %u VF%s.", (unsigned) count, PLURAL(count));
        return watch_call(c, &(JobCall) { "SetVirtualFunctions", "change the VFs of", done, begun }, pf, "su", pf,
                          (uint32_t) count);
}

int verb_sriov(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        char pf[PCI_ADDRESS_STRING_MAX];
        uint64_t count = 0;
        int r = 0;

        if (args->n_operands > 1 && parse_unsigned(args->operands[1], COUNT_MAX, &count) < 0)
                return report_usage(args, "'%s' is not a number of VFs, 0 to %u", args->operands[1], COUNT_MAX);
        if (args->n_operands < 2 && args_has(args, OPTION_NO_WAIT))
                return report_usage(args, "sriov takes --no-wait only with a number of VFs");
        if (args->n_operands > 0)
                r = reply_device_address(args, args->operands[0], pf);
        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r < 0)
                return r;
        if (args->n_operands == 0)
                return list(c);
        return args->n_operands > 1 ? change(c, pf, count) : show(c, pf);
}
