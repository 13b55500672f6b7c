/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How often a request fits, as JSON. */

#include "json-internal.h"

static json_object *json_fit(const RepeatFit *fit) {
        const Allocation *a = fit->allocation;
        json_object *o = json_object_new_object(), *nodes = json_object_new_array(), *devices = json_object_new_array();

        for (size_t i = 0; i < a->n_cells; i++)
                (void) json_object_array_add(nodes, json_object_new_int(a->cells[i].node));
        for (size_t i = 0; i < a->n_devices; i++)
                if (a->devices[i].role == DEVICE_ROLE_ASSIGNED)
                        (void) json_object_array_add(devices, json_address(a->devices[i].address));
        json_object_object_add(o, "numa_nodes", nodes);
        json_object_object_add(o, "cpus", json_cpus(&a->cpus));
        json_object_object_add(o, "devices", devices);
        json_object_object_add(o, "services", json_services(a));
        json_object_object_add(o, "score", json_score(&fit->score, fit->has_pairs));
        return o;
}

json_object *json_repeat(const Repeat *r) {
        json_object *o = json_object_new_object(), *fits = json_object_new_array();

        for (size_t i = 0; i < r->n; i++)
                (void) json_object_array_add(fits, json_fit(&r->fits[i]));
        json_object_object_add(o, "count", json_object_new_int64((int64_t) r->n));
        json_object_object_add(o, "complete", json_object_new_boolean(r->refusal.verdict != VERDICT_LIMIT));
        json_object_object_add(o, "fits", fits);
        json_object_object_add(o, "refusal", json_refusal(&r->refusal));
        return o;
}
