/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl allocate: reserves devices, CPUs and memory, then follows the job that prepares the devices. */
#include <errno.h>
#include <stdio.h>

#include "document.h"
#include "job.h"
#include "page.h"
#include "reply.h"
#include "report.h"
#include "request.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"

/* Appends `before` and `text` to the list, unless `text` is NULL or empty. Returns 0 or -ENOMEM. */
static int add_part(char **list, const char *before, const char *text) {
        return text && *text ? string_append(list, ", ", "%s%s", before, text) : 0;
}

/* Prints what the new allocation has: "md-worker-0 is ready: 0000:82:00.0 0000:83:00.1, CPUs 8-15, 20 GiB on node 1,
 * held with it: 0000:0a:00.0". */
static int print_summary(Client *c, const char *name) {
        _cleanup_free_ char *addresses = NULL, *memory = NULL, *held = NULL, *list = NULL;
        _cleanup_json_ json_object *node = NULL;
        json_object *a;
        int r;

        r = reply_ask(c, "Describe", NULL, NULL, &node);
        if (r < 0)
                return r;
        a = json_find(member(node, "allocations"), "name", name);
        if (!a)
                return report_failure(c->args, NULL, "'%s' was prepared, but has been released since.", name);
        addresses = view_addresses(a, " ");
        memory = view_memory(a);
        held = view_held(a, " ");
        if (add_part(&list, "", addresses) < 0 || add_part(&list, "CPUs ", reply_text(a, "cpus")) < 0 ||
            add_part(&list, "", memory) < 0 || add_part(&list, "held with it: ", held) < 0)
                return report_errno(c->args, -ENOMEM, "Cannot print");
        page_print(stdout, 0, "%s is %s%s%s", name, reply_cell(a, "state"), list ? ": " : "", list ?: "");
        return 0;
}

static int print_reserved(const Args *args, const char *name, const char *allocation, const char *job) {
        if (args_has(args, OPTION_JSON))
                return watch_print_json(args, NULL, name, allocation, job, NULL);
        page_print(stdout, 0, "%s is reserved and is being prepared. See 'passthroughctl show %s'.", name, name);
        return 0;
}

static int follow(Client *c, Watch *w, const char *name, sd_bus_message *reply) {
        const char *allocation, *job;
        int r;

        r = sd_bus_message_read(reply, "oo", &allocation, &job);
        if (r < 0)
                return client_bad_reply(c, r);
        if (streq(job, JOB_NONE))
                return args_has(c->args, OPTION_JSON) ? watch_print_json(c->args, NULL, name, allocation, job, NULL)
                                                      : print_summary(c, name);
        if (!w)
                return print_reserved(c->args, name, allocation, job);
        r = watch_wait(w, reply, job);
        if (args_has(c->args, OPTION_JSON))
                return watch_result(w) ? watch_print_json(c->args, w, name, allocation, job, NULL) : r;
        return r == EXIT_SUCCESS ? print_summary(c, name) : r;
}

int verb_allocate(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(cleanup_watch_free) Watch *w = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_request_items_ RequestItems items = { 0 };
        const char *name = args->operands[0];
        int r;

        r = request_items_parse(args, 1, &items);
        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r < 0)
                return r;
        r = args_has(args, OPTION_NO_WAIT) ? 0 : watch_new(c, "allocate", name, &w);
        if (r < 0)
                return r;
        r = client_method(c, "Allocate", &call);
        if (r < 0)
                return r;
        r = request_append(args, name, &items, call);
        if (r < 0)
                return r;
        r = client_call(c, call, &reply);
        if (r == -EINTR && w)
                return watch_interrupted(w);
        return r < 0 ? r : follow(c, w, name, reply);
}

/* passthroughctl attach gives an allocation further devices, and detach takes a device from it. Both follow the job,
 * and then print the slot and the address of the devices. */

static bool append_device(json_object *devices, json_object *d) {
        json_object *o = json_object_new_object();

        if (o && document_add(o, "slot", reply_text(d, "slot")) &&
            document_add(o, "address", reply_text(d, "address")) && json_object_array_add(devices, o) == 0)
                return true;
        json_object_put(o);
        return false;
}

/* Makes an array of the devices that the allocation has in the slot; slot NULL: in all slots that `other`, an
 * allocation or NULL, does not have. The caller frees *ret. Returns 0 or a negative errno, reported. */
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

/* Returns the generation for a call: that of --generation, else that of `allocation`, as it was read before; 0 if
 * `allocation` is NULL. If the daemon's allocation has another generation now, the daemon refuses the call. */
static uint64_t generation_of(const Args *args, json_object *allocation) {
        return args_has(args, OPTION_GENERATION) ? args->number[OPTION_GENERATION]
                                                 : member_size(allocation, "generation");
}

int verb_attach(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        _cleanup_request_items_ RequestItems items = { 0 };
        _cleanup_json_ json_object *before = NULL;
        const char *name = args->operands[0];
        JobCall call = { "Attach", "attach", "has new devices", "is getting new devices", list_attached };
        int r = request_items_parse(args, 1, &items);

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
        r = request_append(args, NULL, &items, message);
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
