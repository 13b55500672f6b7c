/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl nova-config: prints for nova.conf the devices of pools with Scheduler=nova. */
#include <errno.h>
#include <stdio.h>

#include "document.h"
#include "reply.h"
#include "report.h"
#include "util/strings.h"
#include "verbs.h"

static const char *text(json_object *o, const char *key) {
        return member_text(o, key) ?: "";
}

static bool is_one_time_use(json_object *pool) {
        for (size_t i = 0; i < member_length(pool, "traits"); i++)
                if (streq_ptr(json_object_get_string(member_at(pool, "traits", i)), "one-time-use"))
                        return true;
        return false;
}

/* Makes the entry of a device. "managed" is "no", so that libvirt leaves the driver that the daemon has bound. */
static json_object *make_spec(json_object *device, json_object *pool) {
        json_object *o = json_object_new_object();

        if (o && document_add(o, "address", text(device, "address")) &&
            document_add(o, "vendor_id", text(device, "vendor")) &&
            document_add(o, "product_id", text(device, "device")) && document_add(o, "managed", "no") &&
            (!is_one_time_use(pool) || *text(device, "physical_function") || document_add(o, "one_time_use", "true")))
                return o;
        json_object_put(o);
        return NULL;
}

/* Appends to ret the entries of all devices that Nova gets. Sets *ret_report to true if one of them is for one-time
 * use: then Nova must report the devices to Placement. Returns 0, -EBADMSG or -ENOMEM. */
static int make_specs(json_object *node, json_object *ret, bool *ret_report) {
        json_object *devices = member_array(node, "devices"), *pools = member_array(node, "pools");

        if (!devices || !pools)
                return -EBADMSG;
        for (size_t i = 0; i < json_length(devices); i++) {
                json_object *device = json_at(devices, i), *pool = json_find(pools, "name", text(device, "pool"));
                json_object *spec;

                /* Nova gets no device in state "host": the host needs it, or it cannot be allocated now. */
                if (!pool || !streq(text(pool, "scheduler"), "nova") || streq(text(device, "state"), "host"))
                        continue;
                spec = make_spec(device, pool);
                if (!json_append(ret, spec))
                        return -ENOMEM;
                *ret_report = *ret_report || json_object_object_get_ex(spec, "one_time_use", NULL);
        }
        return 0;
}

int verb_nova_config(const Args *args) {
        _cleanup_json_ json_object *node = NULL, *o = json_object_new_object();
        json_object *specs = json_object_new_array();
        bool report = false;
        int r = reply_ask_once(args, "Describe", NULL, NULL, &node);

        if (r < 0) {
                json_object_put(specs);
                return r;
        }
        if (!o || !specs || json_object_object_add(o, "device_spec", specs) < 0)
                return report_errno(args, -ENOMEM, "Cannot print");
        r = make_specs(node, specs, &report);
        if (r < 0)
                return report_errno(args, r, "Cannot print");
        if (json_object_object_add(o, "report_in_placement", json_object_new_boolean(report)) < 0)
                return report_errno(args, -ENOMEM, "Cannot print");
        if (args_has(args, OPTION_JSON))
                return document_print(args, TAKE_PTR(o));
        printf("[pci]\n%s", report ? "report_in_placement = true\n" : "");
        for (size_t i = 0; i < json_length(specs); i++)
                printf("device_spec = %s\n",
                       json_object_to_json_string_ext(json_at(specs, i),
                                                      JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
        return 0;
}
