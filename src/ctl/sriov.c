/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl sriov: shows the VFs of a PF, or starts a job that changes their number and follows that job. */
#include <errno.h>
#include <stdio.h>

#include "bus/names.h"
#include "document.h"
#include "job.h"
#include "reply.h"
#include "report.h"
#include "table.h"
#include "util/strings.h"
#include "verbs.h"

#define COUNT_MAX 65535U

static const Column columns[] = { { "ADDRESS", "address" },
                                  { "POOL", "pool" },
                                  { "STATE", "state" },
                                  { "DRIVER", "driver" },
                                  { "ALLOCATION", "allocation" } };

static int print_vfs(const Args *args, json_object *node, const char *pf) {
        _cleanup_table_ Table table;

        table_init(&table, columns, ELEMENTSOF(columns));
        for (size_t i = 0; i < reply_length(node, "devices"); i++) {
                json_object *d = reply_element(node, "devices", i);

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
        pf = reply_find(node, "devices", "address", address);
        /* The reply lacks this device: ask the daemon for it, to report the daemon's error. */
        if (!pf) {
                r = client_ask(c, "GetDevice", NULL, "s", address);
                return r < 0 ? r
                             : report_failure(c->args, NULL, "'%s' has just appeared; run the command again.", address);
        }
        if (!streq_ptr(reply_text(pf, "type"), "pf"))
                return report_failure(c->args, BUS_ERROR_NOT_SUPPORTED, "%s is not a PF, so it cannot have VFs.",
                                      address);
        if (args_has(c->args, OPTION_JSON))
                return document_print(c->args, json_object_get(pf));
        reason = streq_ptr(reply_text(pf, "state"), "contested") ? reply_text(pf, "reason") : NULL;
        printf("%s has %zu of %s VFs.%s%s\n", address, reply_length(pf, "virtual_functions"),
               reply_cell(pf, "total_vfs"), reason ? " " : "", reason ? reason : "");
        return print_vfs(c->args, node, address);
}

static int change(Client *c, const char *pf, uint64_t count) {
        char done[32], begun[32];

        (void) snprintf(done, sizeof(done), "has %u VF%s.", (unsigned) count, PLURAL(count));
        (void) snprintf(begun, sizeof(begun), "will have %u VF%s.", (unsigned) count, PLURAL(count));
        return watch_call(c, &(JobCall){ "SetVirtualFunctions", "change the VFs of", done, begun }, pf, "su", pf,
                          (uint32_t) count);
}

int verb_sriov(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        char pf[PCI_ADDRESS_STRING_MAX];
        uint64_t count = 0;
        int r;

        if (args->n_operands > 1 && parse_unsigned(args->operands[1], COUNT_MAX, &count) < 0)
                return report_usage(args, "'%s' is not a number of VFs, 0 to %u", args->operands[1], COUNT_MAX);
        if (args->n_operands < 2 && args_has(args, OPTION_NO_WAIT))
                return report_usage(args, "sriov takes --no-wait only with a number of VFs");
        r = reply_device_address(args, args->operands[0], pf);
        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r < 0)
                return r;
        return args->n_operands > 1 ? change(c, pf, count) : show(c, pf);
}
