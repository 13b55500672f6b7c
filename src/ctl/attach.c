/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl attach and detach: give an allocation further devices or take one from it, follow that job, and print
 * slot and address of the devices. */
#include <errno.h>

#include "document.h"
#include "job.h"
#include "report.h"
#include "request.h"
#include "util/strings.h"
#include "verbs.h"

static bool append_device(json_object *devices, json_object *d) {
        json_object *o = json_object_new_object();

        if (o && document_add(o, "slot", reply_text(d, "slot")) &&
            document_add(o, "address", reply_text(d, "address")) && json_object_array_add(devices, o) == 0)
                return true;
        json_object_put(o);
        return false;
}

/* The devices of an allocation that are in this slot (NULL: in any slot that other does not have). */
static int select_devices(Client *c, json_object *allocation, const char *slot, json_object *other, json_object **ret) {
        _cleanup_json_ json_object *devices = json_object_new_array();
        bool ok = devices;

        for (size_t i = 0; ok && i < member_length(allocation, "devices"); i++) {
                json_object *d = member_at(allocation, "devices", i);
                const char *in = reply_text(d, "slot");

                if (in && (slot ? streq(in, slot) : !json_find(member(other, "devices"), "slot", in)))
                        ok = append_device(devices, d);
        }
        if (!ok)
                return report_errno(c->args, -ENOMEM, "Cannot print");
        *ret = TAKE_PTR(devices);
        return 0;
}

static int list_attached(Client *c, const JobCall *call, const char *name, json_object **ret) {
        _cleanup_json_ json_object *now = NULL;
        int r = watch_allocation(c, name, &now);

        return r < 0 ? r : select_devices(c, now, NULL, call->before, ret);
}

static int list_detached(Client *c, const JobCall *call, const char *name, json_object **ret) {
        return select_devices(c, call->before, c->args->operands[1], NULL, ret);
}

/* As watch_generation(), of an allocation that was read already: the daemon refuses the call if it has changed since.
 */
static uint64_t generation_of(const Args *args, json_object *allocation) {
        return args_has(args, OPTION_GENERATION) ? args->number[OPTION_GENERATION]
                                                 : member_size(allocation, "generation");
}

int verb_attach(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        _cleanup_pool_counts_ PoolCounts pools = { 0 };
        _cleanup_json_ json_object *before = NULL;
        const char *name = args->operands[0];
        JobCall call = { "Attach", "attach", "has new devices", "is getting new devices", list_attached };
        int r = pool_counts_parse(args, 1, &pools);

        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r < 0)
                return r;
        r = watch_allocation(c, name, &before);
        if (r < 0)
                return r;
        r = client_method(c, call.method, &message);
        if (r < 0)
                return r;
        call.before = before;
        r = sd_bus_message_append(message, "st", name, generation_of(args, before));
        if (r < 0)
                return report_errno(args, r, "Cannot build the D-Bus call");
        r = request_append(args, NULL, &pools, message);
        return r < 0 ? r : watch_send(c, &call, name, message);
}

int verb_detach(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_json_ json_object *before = NULL;
        const char *name = args->operands[0];
        JobCall call = { "Detach", "detach", "has given back", "is giving back", list_detached };
        int r = client_new(args, &c);

        if (r < 0)
                return r;
        r = watch_allocation(c, name, &before);
        if (r < 0)
                return r;
        call.before = before;
        return watch_call(c, &call, name, "sts", name, generation_of(args, before), args->operands[1]);
}
