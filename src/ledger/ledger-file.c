/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats the ledger file of an allocation. If one value cannot be formatted, there is no text. */

#include "ledger/ledger-file.h"

#include "model/json-text.h"
#include "model/serial.h"

/* put_member() appends a member to the outermost object, put_value() to an object within a list. `key` is a string
 * literal; `type` is the end of the name of a json_text_*() function. Neither can append the first member. */
#define put_member(t, key, type, value) (json_text_literal((t), ",\n  \"" key "\": "), json_text_##type((t), (value)))
#define put_value(t, key, type, value)  (json_text_literal((t), ", \"" key "\": "), json_text_##type((t), (value)))

static void separate(JsonText *t, size_t i) {
        if (i > 0)
                json_text_literal(t, ", ");
}

/* Appends a text as a string, and frees it. NULL: the text could not be made, so the formatting fails. */
static void put_text(JsonText *t, char *text) {
        json_text_string(t, text);
        t->failed |= !text;
        free(text);
}

static void put_attributes(JsonText *t, const VfAttributes *v, unsigned mask) {
        VfAttributes kept = *v;

        vf_attributes_keep(&kept, mask);
        put_text(t, vf_attributes_format(&kept));
}

static void put_device(JsonText *t, const AllocationDevice *d) {
        json_text_literal(t, "\n    { \"address\": ");
        json_text_address(t, d->address);
        put_value(t, "role", string, device_role_to_string(d->role));
        if (d->phase != DEVICE_PHASE_SETTLED)
                put_value(t, "phase", string, device_phase_to_string(d->phase));
        put_value(t, "slot", string, d->slot);
        put_value(t, "pool", string, d->pool);
        put_value(t, "prior_driver", string, d->prior_driver);
        put_value(t, "prior_override", string, d->prior_override);
        if (d->prior_reset)
                put_value(t, "prior_reset", string, d->prior_reset);
        if (d->prior_runtime_pm)
                json_text_literal(t, ", \"prior_runtime_pm\": true");
        if (d->prior_d3cold)
                json_text_literal(t, ", \"prior_d3cold\": true");
        if (d->prior_persistence)
                json_text_literal(t, ", \"prior_persistence\": true");
        if (d->vfio_driver)
                put_value(t, "vfio_driver", string, d->vfio_driver);
        if (d->vgpu_type > 0) {
                put_value(t, "vgpu_type", number, d->vgpu_type);
                put_value(t, "vgpu_name", string, d->vgpu_name);
                put_value(t, "vgpu_total", number, d->vgpu_total);
                if (*d->mdev)
                        put_value(t, "mdev", string, d->mdev);
        }
        put_value(t, "physical_function", string, d->is_vf ? PCI_ADDRESS_STR(d->physfn) : NULL);
        put_value(t, "vendor", number, d->vendor);
        put_value(t, "device", number, d->device);
        put_value(t, "subsystem_vendor", number, d->subsystem_vendor);
        put_value(t, "subsystem_device", number, d->subsystem_device);
        if (d->serial != 0)
                put_value(t, "serial", string, pci_serial_format(d->serial, (char[PCI_SERIAL_STRING_MAX]) { 0 }));
        if (d->vf_index >= 0)
                put_value(t, "vf_index", known, d->vf_index);
        put_value(t, "path", string, d->path);
        if (d->lost)
                json_text_literal(t, ", \"lost\": true");
        put_value(t, "numa_node", known, d->numa_node);
        if (d->guest.known)
                put_value(t, "guest", string, guest_place_format(&d->guest, (char[GUEST_PLACE_TEXT_MAX]) { 0 }));
        if (d->attributes.set) {
                json_text_literal(t, ", \"attributes\": ");
                put_attributes(t, &d->attributes, ~0U);
        }
        if (d->attributes.set & d->generated) {
                json_text_literal(t, ", \"generated\": ");
                put_attributes(t, &d->attributes, d->generated);
        }
        if (d->has_baseline) {
                json_text_literal(t, ", \"baseline\": ");
                put_attributes(t, &d->baseline, ~0U);
        }
        if (d->has_fatal)
                put_value(t, "fatal_errors", number, d->fatal);
        json_text_literal(t, " }");
}

static void put_service(JsonText *t, const AllocationService *s) {
        json_text_literal(t, "\n    { \"name\": ");
        json_text_string(t, s->name);
        put_value(t, "kind", string, remote_kind_to_string(s->kind));
        put_value(t, "variables", string, s->variables);
        put_value(t, "endpoint", string, s->endpoint);
        put_value(t, "slots", number, s->slots);
        json_text_literal(t, " }");
}

static void put_lists(JsonText *t, const Allocation *a) {
        json_text_literal(t, ",\n  \"devices\": [");
        for (size_t i = 0; i < a->n_devices; i++) {
                separate(t, i);
                put_device(t, &a->devices[i]);
        }
        json_text_literal(t, "],\n  \"pins\": [");
        for (size_t i = 0; i < a->n_pins; i++) {
                separate(t, i);
                json_text_literal(t, "[");
                json_text_number(t, a->pins[i].vcpu);
                json_text_literal(t, ", ");
                json_text_number(t, a->pins[i].cpu);
                json_text_literal(t, "]");
        }
        json_text_literal(t, "],\n  \"cells\": [");
        for (size_t i = 0; i < a->n_cells; i++) {
                separate(t, i);
                json_text_literal(t, "\n    { \"node\": ");
                json_text_known(t, a->cells[i].node);
                put_value(t, "memory", number, a->cells[i].memory);
                if (a->cells[i].has_memory_node)
                        put_value(t, "memory_node", known, a->cells[i].memory_node);
                json_text_literal(t, ", \"vcpus\": ");
                put_text(t, cpuset_format(&a->cells[i].vcpus));
                json_text_literal(t, " }");
        }
        if (a->n_regions > 0)
                json_text_literal(t, "],\n  \"shared_memory\": [");
        for (size_t i = 0; i < a->n_regions; i++) {
                separate(t, i);
                json_text_literal(t, "\n    { \"name\": ");
                json_text_string(t, a->regions[i].name);
                put_value(t, "size", number, a->regions[i].size);
                put_value(t, "page_size", number, a->regions[i].page_size);
                put_value(t, "node", known, a->regions[i].node);
                json_text_literal(t, " }");
        }
        if (a->n_services > 0)
                json_text_literal(t, "],\n  \"services\": [");
        for (size_t i = 0; i < a->n_services; i++) {
                separate(t, i);
                put_service(t, &a->services[i]);
        }
        json_text_literal(t, "]");
}

/* Returns the oldest version, from 2 on, with all members that `a` needs, so that older daemons can read the file. */
static uint64_t version_of(const Allocation *a) {
        uint64_t version = 2;

        if (a->tag || a->token || a->consumer || a->state == ALLOCATION_RESERVED || a->partition >= 0 ||
            a->n_services > 0)
                version = 3;
        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];

                if (d->vgpu_type > 0 || d->phase != DEVICE_PHASE_SETTLED)
                        version = MAX(version, 3U);
                if (d->address.instance > 0)
                        version = MAX(version, 4U);
                if (d->prior_reset || d->prior_runtime_pm || d->prior_d3cold || d->prior_persistence)
                        version = LEDGER_FILE_VERSION;
        }
        for (size_t i = 0; i < a->n_cells; i++)
                if (a->cells[i].has_memory_node)
                        version = LEDGER_FILE_VERSION;
        if (a->confidential != CONFIDENTIAL_NONE)
                version = LEDGER_FILE_VERSION;
        return version;
}

char *ledger_file_format(const Allocation *a) {
        JsonText t = json_text_new();

        json_text_literal(&t, "{\n  \"version\": ");
        json_text_number(&t, version_of(a));
        put_member(&t, "name", string, a->name);
        put_member(&t, "id", string, a->id);
        put_member(&t, "owner", number, a->owner);
        if (a->tag)
                put_member(&t, "tag", string, a->tag);
        if (a->token)
                put_member(&t, "token", string, a->token);
        if (a->consumer)
                put_member(&t, "consumer", string, a->consumer);
        if (a->state == ALLOCATION_RESERVED) {
                put_member(&t, "hold", number, a->hold);
                put_member(&t, "lease_boot", string, a->lease_boot);
                put_member(&t, "lease_end", number, a->lease_end);
        }
        if (a->release_with_domain)
                json_text_literal(&t, ",\n  \"release_with_domain\": true");
        if (a->had_domain)
                json_text_literal(&t, ",\n  \"had_domain\": true");
        if (a->forced)
                json_text_literal(&t, ",\n  \"forced\": true");
        if (a->confidential != CONFIDENTIAL_NONE)
                put_member(&t, "confidential", string, confidential_to_string(a->confidential));
        if (a->topology != GUEST_TOPOLOGY_FLAT)
                put_member(&t, "topology", string, guest_topology_to_string(a->topology));
        if (a->spare_ports > 0)
                put_member(&t, "spare_ports", number, a->spare_ports);
        if (a->partition >= 0)
                put_member(&t, "partition", number, (uint64_t) a->partition);
        put_member(&t, "generation", number, a->generation);
        put_member(&t, "state", string, allocation_state_to_string(a->state));
        put_member(&t, "reason", string, a->reason);
        put_member(&t, "vfio_driver", string, a->vfio_driver);
        put_member(&t, "page_size", number, a->page_size);
        json_text_literal(&t, ",\n  \"cpus\": ");
        put_text(&t, cpuset_format(&a->cpus));
        put_lists(&t, a);
        json_text_literal(&t, "\n}");
        return json_text_finish(&t);
}
