/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl show: all facts about one device or one allocation. */
#include <stdio.h>

#include "bus/names.h"
#include "document.h"
#include "reply.h"
#include "report.h"
#include "verbs.h"
#include "view.h"

/* While the running domains are unknown, an allocation that is ready may be in use. */
static void view_unknown(json_object *node) {
        json_object *libvirt = member(node, "libvirt");
        char time[DOCUMENT_TIME_MAX];
        int64_t since;

        if (JSON_READ_INTEGER(libvirt, "unknown_since", INT64_MAX, &since) < 0)
                return;
        document_time((uint64_t) since * 1000000, true, time);
        view_field("Domain", "unknown since %s: %s", time, reply_cell(libvirt, "reason"));
}

static int show_allocation(const Args *args, json_object *node, json_object *allocation) {
        if (args_has(args, OPTION_JSON))
                return document_print(args, json_object_get(allocation));
        view_allocation(allocation);
        view_unknown(node);
        return 0;
}

static int print_device(const Args *args, json_object *device) {
        view_device(device);
        return 0;
}

int verb_show(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_json_ json_object *node = NULL;
        json_object *allocation;
        const char *name = args->operands[0];
        int r;

        /* The name of an allocation has no colon; a PCI address has one. */
        if (strchr(name, ':'))
                return reply_show_device(args, name, print_device);
        if (args_has(args, OPTION_NODE))
                return report_failure(args, BUS_ERROR_NO_SUCH_ALLOCATION,
                                      "A recorded node has no allocations, so there is no '%s'. Give the address of a "
                                      "device, such as 0000:82:00.0.",
                                      name);
        r = client_new(args, &c);
        if (r < 0)
                return r;
        r = reply_ask(c, "Describe", NULL, NULL, &node);
        if (r < 0)
                return r;
        allocation = json_find(member(node, "allocations"), "name", name);
        if (allocation)
                return show_allocation(args, node, allocation);
        /* The reply lacks this allocation: ask the daemon for it, to report the daemon's error. */
        r = client_ask(c, "GetAllocation", NULL, "s", name);
        return r < 0 ? r : report_failure(args, NULL, "'%s' has just appeared; run the command again.", name);
}
