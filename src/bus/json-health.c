/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PCIe link and the AER error counters of a device as JSON. */

#include "json-internal.h"
#include "model/pcilink.h"

json_object *json_link(const HealthLink *l) {
        json_object *o;

        if (l->width == 0)
                return NULL;
        o = json_object_new_object();
        json_object_object_add(o, "speed", json_object_new_string(PCI_LINK_SPEED_STR(l->speed)));
        json_object_object_add(o, "max_speed", json_object_new_string(PCI_LINK_SPEED_STR(l->max_speed)));
        json_object_object_add(o, "width", json_object_new_int64(l->width));
        json_object_object_add(o, "max_width", json_object_new_int64(l->max_width));
        return o;
}

json_object *json_errors(const HealthErrors *e) {
        json_object *o;

        if (!e->known)
                return NULL;
        o = json_object_new_object();
        json_object_object_add(o, "fatal", json_object_new_uint64(e->fatal));
        json_object_object_add(o, "nonfatal", json_object_new_uint64(e->nonfatal));
        json_object_object_add(o, "correctable", json_object_new_uint64(e->correctable));
        return o;
}
