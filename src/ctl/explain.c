/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl explain: whether a device is available; if not, the reason and the remedy. */
#include <errno.h>
#include <stdio.h>

#include "page.h"
#include "reply.h"
#include "report.h"
#include "table.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"

static const Column columns[] = { { "ADDRESS", "address" }, { "DRIVER", "driver" }, { "ROLE", "role" } };

static void print_verdict(json_object *d) {
        const char *address = reply_cell(d, "address"), *name = reply_text(d, "name");
        const char *reason = reply_text(d, "reason"), *remedy = reply_text(d, "remedy");
        const char *allocation = reply_text(d, "allocation");
        const char *module = reply_text(d, "module"), *partition = reply_text(d, "partition");
        _cleanup_free_ char *device = string_format("%s%s%s%s", address, name ? " (" : "", name ?: "", name ? ")" : "");

        if (streq_ptr(reply_text(d, "state"), "available"))
                page_print(stdout, 0, "%s is available in pool '%s'.", device ?: address, reply_cell(d, "pool"));
        else if (allocation)
                page_print(stdout, 0, "%s is not available: allocation '%s' has it.", device ?: address, allocation);
        else
                page_print(stdout, 0, "%s is not available.", device ?: address);
        if (module)
                page_print(stdout, 0, "It is NVLink module %s%s%s.", module, partition ? ", in partition " : "",
                           partition ?: "");
        if (reason)
                page_wrap(stdout, reason, 0, 0);
        if (remedy)
                page_wrap(stdout, remedy, 0, 0);
}

static int print_group(const Args *args, json_object *d) {
        if (reply_length(d, "group") == 0)
                return 0;
        printf("\nMembers of IOMMU group %s, which is allocated as a whole:\n", reply_cell(d, "iommu_group"));
        return table_print_array(args, columns, ELEMENTSOF(columns), reply_member(d, "group"), NULL);
}

static int print_device(const Args *args, json_object *device) {
        view_read_only(device);
        print_verdict(device);
        return print_group(args, device);
}

int verb_explain(const Args *args) {
        return reply_show_device(args, args->operands[0], print_device);
}
