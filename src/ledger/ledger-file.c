/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats an allocation as the text of its ledger file. */

#include "ledger/ledger-file.h"

#include "model/json-value.h"
#include "model/serial.h"

static void format_attributes(json_object *o, const char *key, const VfAttributes *v, unsigned mask) {
        _cleanup_free_ char *text = NULL;
        VfAttributes kept = *v;

        vf_attributes_keep(&kept, mask);
        text = vf_attributes_format(&kept);
        json_object_object_add(o, key, json_string_or_null(text));
}

static json_object *format_device(const AllocationDevice *d) {
        json_object *o = json_object_new_object();

        json_object_object_add(o, "address", json_address(d->address));
        json_object_object_add(o, "role", json_string_or_null(device_role_to_string(d->role)));
        json_object_object_add(o, "slot", json_string_or_null(d->slot));
        json_object_object_add(o, "pool", json_string_or_null(d->pool));
        json_object_object_add(o, "prior_driver", json_string_or_null(d->prior_driver));
        json_object_object_add(o, "prior_override", json_string_or_null(d->prior_override));
        if (d->vfio_driver)
                json_object_object_add(o, "vfio_driver", json_string_or_null(d->vfio_driver));
        json_object_object_add(o, "physical_function", d->is_vf ? json_address(d->physfn) : NULL);
        json_object_object_add(o, "vendor", json_object_new_int(d->vendor));
        json_object_object_add(o, "device", json_object_new_int(d->device));
        json_object_object_add(o, "subsystem_vendor", json_object_new_int(d->subsystem_vendor));
        json_object_object_add(o, "subsystem_device", json_object_new_int(d->subsystem_device));
        if (d->serial != 0)
                json_object_object_add(
                        o, "serial",
                        json_object_new_string(pci_serial_format(d->serial, (char[PCI_SERIAL_STRING_MAX]){ 0 })));
        if (d->vf_index >= 0)
                json_object_object_add(o, "vf_index", json_object_new_int(d->vf_index));
        json_object_object_add(o, "path", json_string_or_null(d->path));
        if (d->lost)
                json_object_object_add(o, "lost", json_object_new_boolean(true));
        json_object_object_add(o, "numa_node", json_known_or_null(d->numa_node));
        if (d->attributes.set)
                format_attributes(o, "attributes", &d->attributes, ~0U);
        if (d->attributes.set & d->generated)
                format_attributes(o, "generated", &d->attributes, d->generated);
        if (d->has_baseline)
                format_attributes(o, "baseline", &d->baseline, ~0U);
        return o;
}

static json_object *format_regions(const Allocation *a) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < a->n_regions; i++) {
                const Region *r = &a->regions[i];
                json_object *o = json_object_new_object();

                json_object_object_add(o, "name", json_object_new_string(r->name));
                json_object_object_add(o, "size", json_object_new_uint64(r->size));
                json_object_object_add(o, "page_size", json_object_new_uint64(r->page_size));
                json_object_object_add(o, "node", json_object_new_int(r->node));
                (void) json_object_array_add(array, o);
        }
        return array;
}

static json_object *format_devices(const Allocation *a) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < a->n_devices; i++)
                (void) json_object_array_add(array, format_device(&a->devices[i]));
        return array;
}

static json_object *format_pins(const Allocation *a) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < a->n_pins; i++) {
                json_object *pin = json_object_new_array();

                (void) json_object_array_add(pin, json_object_new_int64(a->pins[i].vcpu));
                (void) json_object_array_add(pin, json_object_new_int64(a->pins[i].cpu));
                (void) json_object_array_add(array, pin);
        }
        return array;
}

static json_object *format_cells(const Allocation *a) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < a->n_cells; i++) {
                json_object *cell = json_object_new_object();

                json_object_object_add(cell, "node", json_object_new_int(a->cells[i].node));
                json_object_object_add(cell, "memory", json_object_new_uint64(a->cells[i].memory));
                json_object_object_add(cell, "vcpus", json_cpus(&a->cells[i].vcpus));
                (void) json_object_array_add(array, cell);
        }
        return array;
}

char *ledger_file_format(const Allocation *a) {
        _cleanup_json_ json_object *o = json_object_new_object();

        json_object_object_add(o, "version", json_object_new_int(LEDGER_FILE_VERSION));
        json_object_object_add(o, "name", json_string_or_null(a->name));
        json_object_object_add(o, "id", json_object_new_string(a->id));
        json_object_object_add(o, "owner", json_object_new_int64(a->owner));
        if (a->release_with_domain)
                json_object_object_add(o, "release_with_domain", json_object_new_boolean(true));
        if (a->had_domain)
                json_object_object_add(o, "had_domain", json_object_new_boolean(true));
        if (a->forced)
                json_object_object_add(o, "forced", json_object_new_boolean(true));
        if (a->topology != GUEST_TOPOLOGY_FLAT)
                json_object_object_add(o, "topology", json_string_or_null(guest_topology_to_string(a->topology)));
        if (a->spare_ports > 0)
                json_object_object_add(o, "spare_ports", json_object_new_int64(a->spare_ports));
        json_object_object_add(o, "generation", json_object_new_uint64(a->generation));
        json_object_object_add(o, "state", json_string_or_null(allocation_state_to_string(a->state)));
        json_object_object_add(o, "reason", json_string_or_null(a->reason));
        json_object_object_add(o, "vfio_driver", json_string_or_null(a->vfio_driver));
        json_object_object_add(o, "page_size", json_object_new_uint64(a->page_size));
        json_object_object_add(o, "cpus", json_cpus(&a->cpus));
        json_object_object_add(o, "devices", format_devices(a));
        json_object_object_add(o, "pins", format_pins(a));
        json_object_object_add(o, "cells", format_cells(a));
        if (a->n_regions > 0)
                json_object_object_add(o, "shared_memory", format_regions(a));
        return json_text(o, true);
}
