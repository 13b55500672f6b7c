/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl quarantine: lists the devices in quarantine, or with --clear ends the quarantine of one. */
#include <errno.h>
#include <stdio.h>

#include "document.h"
#include "job.h"
#include "reply.h"
#include "report.h"
#include "table.h"
#include "verbs.h"
#include "view.h"

static const Column columns[] = {
        { "ADDRESS", "address" },
        { "OWNER", .text = view_owner },
        { "ALLOCATION", "allocation" },
        { "REASON", "reason", .wrapped = true },
};

/* The quarantine entries of that device, or with NULL all entries. NULL when out of memory. */
static json_object *select_devices(json_object *node, const char *device) {
        json_object *found = json_object_new_array();

        for (size_t i = 0; found && i < reply_length(node, "quarantine"); i++) {
                json_object *q = reply_element(node, "quarantine", i);

                if (!device || streq_ptr(reply_text(q, "address"), device))
                        (void) json_object_array_add(found, json_object_get(q));
        }
        return found;
}

static int print(const Args *args, json_object *devices, const char *device) {
        char empty[PCI_ADDRESS_STRING_MAX + 32] = "No device is in quarantine.";

        if (device)
                (void) snprintf(empty, sizeof(empty), "%s is not in quarantine.", device);
        return table_print_array(args, columns, ELEMENTSOF(columns), devices, empty);
}

static int list(Client *c, const char *device) {
        _cleanup_json_ json_object *node = NULL, *devices = NULL;
        int r = reply_ask(c, "Describe", NULL, NULL, &node);

        if (r < 0)
                return r;
        devices = select_devices(node, device);
        if (!devices)
                return report_errno(c->args, -ENOMEM, "Cannot print");
        if (args_has(c->args, OPTION_JSON))
                return document_print(c->args, TAKE_PTR(devices));
        return print(c->args, devices, device);
}

static int clear(Client *c, const char *device) {
        static const JobCall call = { "ClearQuarantine", "clear the quarantine of", "is not in quarantine any more.",
                                      "is being taken out of quarantine." };

        return watch_call(c, &call, device, "s", device);
}

int verb_quarantine(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        char address[PCI_ADDRESS_STRING_MAX];
        const char *device = args->n_operands > 0 ? address : NULL;
        int r = 0;

        if (args_has(args, OPTION_CLEAR) && args->n_operands == 0)
                return report_usage(args, "quarantine --clear needs the address of a device");
        if (!args_has(args, OPTION_CLEAR) && args_has(args, OPTION_NO_WAIT))
                return report_usage(args, "quarantine takes --no-wait only with --clear");
        if (device)
                r = reply_device_address(args, args->operands[0], address);
        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r < 0)
                return r;
        return args_has(args, OPTION_CLEAR) ? clear(c, device) : list(c, device);
}
