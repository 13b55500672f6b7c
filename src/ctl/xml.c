/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl xml: prints the libvirt domain of an allocation, alone or filled into a template; or the <hostdev> of
 * one device, the configuration for xl, or the topology file for NCCL in the guest. On a recorded node, which has no
 * allocations, a request is allocated first. */

#include <errno.h>
#include <stdio.h>

#include "document.h"
#include "domain.h"
#include "report.h"
#include "request.h"
#include "verbs.h"

/* xml takes a request only for a recorded node; elsewhere it prints an existing allocation. */
static int check_request(const Args *args) {
        uint64_t request = args->given & OPTIONS_REQUEST;

        if (args_has(args, OPTION_NODE) || (args->n_operands == 1 && !request))
                return 0;
        return report_usage(args,
                            "xml takes %s only with --node; without --node it prints the domain of an allocation "
                            "that 'passthroughctl allocate' made",
                            args->n_operands > 1 ? args->operands[1] : option_name((Option) __builtin_ctzll(request)));
}

/* Allocates on a recorded node; no hardware is involved. */
static int allocate(Client *c, const char *name, const PoolCounts *pools) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        int r;

        r = client_method(c, "Allocate", &call);
        if (r >= 0)
                r = request_append(c->args, name, pools, call);
        return r < 0 ? r : client_call(c, call, NULL);
}

static int print_json(const Args *args, const char *name, const char *xml) {
        json_object *o = json_object_new_object();

        if (!o || !document_add(o, "name", name) || !document_add(o, "xml", xml)) {
                json_object_put(o);
                return report_errno(args, -ENOMEM, "Cannot print");
        }
        return document_print(args, o);
}

int verb_xml(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_pool_counts_ PoolCounts pools = { 0 };
        _cleanup_free_ char *template = NULL, *xml = NULL;
        const char *name = args->operands[0];
        int r;

        if (args_has(args, OPTION_NCCL) && args_has(args, OPTION_DEVICE))
                return report_usage(args, "--nccl and --device are different documents: give only one of them");
        if (args_has(args, OPTION_NCCL) && args_has(args, OPTION_FORMAT))
                return report_usage(args, "--nccl and --format are different documents: give only one of them");
        r = check_request(args);
        if (r == 0)
                r = pool_counts_parse(args, 1, &pools);
        if (r != 0)
                return r;
        r = domain_read_template(args, &template);
        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r >= 0 && args_has(args, OPTION_NODE))
                r = allocate(c, name, &pools);
        if (r >= 0)
                r = domain_request(c, name, template, &xml);
        if (r < 0)
                return r;
        if (args_has(args, OPTION_JSON))
                return print_json(args, name, xml);
        printf("%s%s", xml, *xml && xml[strlen(xml) - 1] == '\n' ? "" : "\n");
        return 0;
}
