/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses a ledger file into an allocation. The text is untrusted; a file with any error yields no allocation.
 */

#include "ledger/ledger-file.h"

#include <errno.h>
#include <limits.h>

#include "config/config.h"
#include "model/json-parse.h"
#include "model/json-value.h"
#include "model/serial.h"
#include "model/vgpu.h"
#include "util/strings.h"

/*
 * The get_*() functions return what the readers of model/json-parse.h return, -ENOMEM, or -EBADMSG, -EINVAL or -ERANGE
 * for an invalid text.
 */

/* Accepts a missing member, whose variable keeps its default. */
static int optional(int r) {
        return r == -ENOENT ? 0 : r;
}

/* Accepts null, which means unknown or none. */
static int nullable(int r) {
        return r == -ENODATA ? 0 : r;
}

static int get_string(json_object *o, const char *key, char **ret) {
        const char *text;
        int r = json_read_text(o, key, &text);

        return r < 0 ? r : string_copy(ret, text);
}

/* Reads a string into buf, which has room for size bytes. */
static int get_text(json_object *o, const char *key, char *buf, size_t size) {
        const char *text;
        int r = json_read_text(o, key, &text);

        if (r < 0)
                return r;
        if (strlen(text) >= size)
                return -ERANGE;
        memcpy(buf, text, strlen(text) + 1);
        return 0;
}

static int get_cpus(json_object *o, const char *key, CpuSet *ret) {
        const char *text;
        int r = json_read_text(o, key, &text);

        return r < 0 ? r : cpuset_parse(text, ret) < 0 ? -EBADMSG : 0;
}

static int get_address(json_object *o, const char *key, PciAddress *ret) {
        const char *text;
        int r = json_read_text(o, key, &text);

        return r < 0 ? r : pci_address_parse(text, ret) < 0 ? -EBADMSG : 0;
}

static int parse_ids(json_object *o, AllocationDevice *d) {
        int r = JSON_READ_INTEGER(o, "vendor", UINT16_MAX, &d->vendor);

        r = r ?: JSON_READ_INTEGER(o, "device", UINT16_MAX, &d->device);
        r = r ?: JSON_READ_INTEGER(o, "subsystem_vendor", UINT16_MAX, &d->subsystem_vendor);
        return r ?: JSON_READ_INTEGER(o, "subsystem_device", UINT16_MAX, &d->subsystem_device);
}

/* Reads attributes. *ret_there is false if the member is null or missing. */
static int get_attributes(json_object *o, const char *key, bool *ret_there, VfAttributes *ret) {
        _cleanup_free_ char *problem = NULL;
        const char *text = NULL;
        int r = nullable(optional(json_read_text(o, key, &text)));

        *ret_there = text;
        if (r == 0 && text)
                r = vf_attributes_parse(text, ret, &problem);
        return r;
}

static int parse_attributes(json_object *o, AllocationDevice *d) {
        VfAttributes generated = { 0 };
        bool there;
        int r = get_attributes(o, "attributes", &there, &d->attributes);

        r = r ?: get_attributes(o, "generated", &there, &generated);
        r = r ?: get_attributes(o, "baseline", &d->has_baseline, &d->baseline);
        if (r == 0 && vf_attributes_differ(&generated, &d->attributes))
                r = -EBADMSG;
        d->generated = generated.set;
        return r;
}

static int parse_fatal(json_object *o, AllocationDevice *d) {
        int r = JSON_READ_INTEGER(o, "fatal_errors", UINT32_MAX, &d->fatal);

        d->has_fatal = r == 0;
        return optional(r);
}

/* Reads a string that may be missing. -ERANGE if longer than max bytes. */
static int get_optional(json_object *o, const char *key, size_t max, char **ret) {
        int r = optional(get_string(o, key, ret));

        return r == 0 && *ret && strlen(*ret) > max ? -ERANGE : r;
}

/* Reads the lease: a reserved allocation has one, an allocation in another state has none. */
static int parse_lease(json_object *o, Allocation *a) {
        int r = JSON_READ_INTEGER(o, "hold", ALLOCATION_HOLD_MAX, &a->hold);

        if (r == -ENOENT)
                return a->state == ALLOCATION_RESERVED ? r : 0;
        r = r ?: json_read_number(o, "lease_end", INT64_MAX, &a->lease_end);
        r = r ?: get_text(o, "lease_boot", a->lease_boot, sizeof(a->lease_boot));
        return r < 0 || (a->hold > 0 && a->state == ALLOCATION_RESERVED) ? r : -EBADMSG;
}

static int parse_phase(json_object *o, AllocationDevice *d) {
        const char *phase;
        int r = json_read_text(o, "phase", &phase);

        if (r < 0)
                return optional(r);
        d->phase = device_phase_from_string(phase);
        return (int) d->phase < 0 ? -EBADMSG : 0;
}

/* Reads members that a file may lack, as files of older versions do: the serial number and VF index of the card,
 * whether it is lost, its VFIO variant driver, and some of the properties that a release restores. */
static int parse_identity(json_object *o, AllocationDevice *d) {
        const char *serial = NULL;
        int r = optional(json_read_flag(o, "lost", &d->lost));

        r = r ?: optional(get_string(o, "prior_reset", &d->prior_reset));
        r = r ?: optional(json_read_flag(o, "prior_runtime_pm", &d->prior_runtime_pm));
        r = r ?: optional(json_read_flag(o, "prior_d3cold", &d->prior_d3cold));
        r = r ?: optional(json_read_flag(o, "prior_persistence", &d->prior_persistence));
        r = r ?: optional(get_string(o, "vfio_driver", &d->vfio_driver));
        r = r ?: optional(json_read_text(o, "serial", &serial));
        if (r < 0 || (serial && pci_serial_parse(serial, &d->serial) < 0))
                return r ?: -EBADMSG;
        r = JSON_READ_INTEGER(o, "vf_index", UINT16_MAX, &d->vf_index);
        return r == 0 && !d->is_vf ? -EBADMSG : optional(r);
}

static int parse_guest(json_object *o, AllocationDevice *d) {
        _cleanup_free_ char *place = NULL;
        int r = get_optional(o, "guest", GUEST_PLACE_TEXT_MAX, &place);

        return r < 0 || !place ? r : guest_place_parse(place, &d->guest) < 0 ? -EBADMSG : 0;
}

static int parse_mdev(json_object *o, AllocationDevice *d) {
        int r = get_text(o, "mdev", d->mdev, sizeof(d->mdev));

        return r == 0 && !text_is_uuid(d->mdev) ? -EBADMSG : optional(r);
}

static int parse_vgpu(json_object *o, AllocationDevice *d) {
        int r = JSON_READ_INTEGER(o, "vgpu_type", UINT32_MAX, &d->vgpu_type);

        if (r == -ENOENT)
                return 0;
        r = r ?: get_string(o, "vgpu_name", &d->vgpu_name);
        r = r ?: JSON_READ_INTEGER(o, "vgpu_total", UINT16_MAX, &d->vgpu_total);
        if (r == 0 && (d->vgpu_type == 0 || !d->is_vf || !vgpu_name_is_valid(d->vgpu_name)))
                r = -EBADMSG;
        return r ?: parse_mdev(o, d);
}

static int parse_device(json_object *o, Allocation *a) {
        AllocationDevice *d;
        PciAddress address;
        const char *role;
        int r = get_address(o, "address", &address);

        r = r ?: json_read_text(o, "role", &role);
        if (r < 0)
                return r;
        if ((int) device_role_from_string(role) < 0)
                return -EBADMSG;
        d = allocation_add_device(a, address, device_role_from_string(role));
        if (!d)
                return -ENOMEM;
        r = parse_phase(o, d);
        r = r
                    ?: d->role == DEVICE_ROLE_HELD ? nullable(get_string(o, "slot", &d->slot))
                                                   : get_string(o, "slot", &d->slot);
        r = r ?: nullable(get_string(o, "pool", &d->pool));
        r = r ?: nullable(get_string(o, "prior_driver", &d->prior_driver));
        r = r ?: nullable(get_string(o, "prior_override", &d->prior_override));
        r = r ?: nullable(get_address(o, "physical_function", &d->physfn));
        d->is_vf = member(o, "physical_function");
        r = r ?: nullable(get_string(o, "path", &d->path));
        r = r ?: nullable(JSON_READ_INTEGER(o, "numa_node", INT_MAX, &d->numa_node));
        r = r ?: parse_guest(o, d);
        r = r ?: parse_attributes(o, d);
        r = r ?: parse_fatal(o, d);
        r = r ?: parse_identity(o, d);
        r = r ?: parse_vgpu(o, d);
        /* A slot for a mediated device must have a vGPU, and its GPU as PF. */
        if (r == 0 && address.instance > 0 &&
            (d->vgpu_type == 0 || !pci_address_equal(d->physfn, pci_address_function(address))))
                r = -EBADMSG;
        return r ?: parse_ids(o, d);
}

static int parse_pins(json_object *pins, Allocation *a) {
        size_t n = json_length(pins);
        CpuSet pinned = { 0 };

        a->pins = calloc(n + 1, sizeof(*a->pins));
        if (!a->pins)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                json_object *pin = json_at(pins, i);
                uint64_t vcpu, cpu;

                if (json_length(pin) != 2 || json_to_number(json_at(pin, 0), ALLOCATION_CPUS_MAX - 1, &vcpu) < 0 ||
                    json_to_number(json_at(pin, 1), CPUSET_MAX - 1, &cpu) < 0 ||
                    !cpuset_has(&a->cpus, (unsigned) cpu) || cpuset_has(&pinned, (unsigned) cpu) ||
                    (i > 0 && vcpu <= a->pins[i - 1].vcpu))
                        return -EBADMSG;
                cpuset_add(&pinned, (unsigned) cpu);
                a->pins[a->n_pins++] = (Pin) { .vcpu = (unsigned) vcpu, .cpu = (unsigned) cpu };
        }
        return 0;
}

static int parse_cell(json_object *o, Allocation *a) {
        Cell *cell = &a->cells[a->n_cells];
        int r = JSON_READ_INTEGER(o, "node", INT_MAX, &cell->node);

        r = r ?: json_read_number(o, "memory", ALLOCATION_MEMORY_MAX, &cell->memory);
        r = r ?: get_cpus(o, "vcpus", &cell->vcpus);
        if (r < 0)
                return r;
        r = JSON_READ_INTEGER(o, "memory_node", INT_MAX, &cell->memory_node);
        cell->has_memory_node = r == 0;
        a->n_cells++;
        return optional(r);
}

/* Reads the layout of the guest's PCI buses. A file without "topology" means a flat one, a file without "spare_ports"
 * none of these. */
static int parse_guest_pci(json_object *o, Allocation *a) {
        const char *topology = NULL;
        int r = optional(json_read_text(o, "topology", &topology));

        r = r ?: optional(JSON_READ_INTEGER(o, "spare_ports", CONFIG_SPARE_MAX, &a->spare_ports));
        a->topology = topology ? guest_topology_from_string(topology) : GUEST_TOPOLOGY_FLAT;
        return (int) a->topology < 0 ? -EBADMSG : r;
}

/* Reads the kind of confidential guest. The file of an allocation without such a guest lacks the member. */
static int parse_confidential(json_object *o, Allocation *a) {
        const char *type = NULL;
        int r = optional(json_read_text(o, "confidential", &type));

        a->confidential = type ? confidential_from_string(type) : CONFIDENTIAL_NONE;
        return (int) a->confidential < 0 ? -EBADMSG : r;
}

static int parse_region(json_object *o, Allocation *a) {
        const char *name;
        Region region = { 0 };
        int r = json_read_text(o, "name", &name);

        r = r ?: json_read_number(o, "size", REGION_SIZE_MAX, &region.size);
        r = r ?: json_read_number(o, "page_size", REGION_SIZE_MAX, &region.page_size);
        r = r ?: JSON_READ_INTEGER(o, "node", INT_MAX, &region.node);
        if (r < 0)
                return r;
        if (region_name(&region, name, NULL) != VERDICT_NONE || region_check(&region, NULL) != VERDICT_NONE ||
            region_is_among(a->regions, a->n_regions, name))
                return -EBADMSG;
        a->regions[a->n_regions++] = region;
        return 0;
}

static int parse_service(json_object *o, Allocation *a) {
        AllocationService s = { 0 };
        const char *kind;
        int r = get_text(o, "name", s.name, sizeof(s.name));

        r = r ?: json_read_text(o, "kind", &kind);
        r = r ?: get_text(o, "variables", s.variables, sizeof(s.variables));
        r = r ?: get_text(o, "endpoint", s.endpoint, sizeof(s.endpoint));
        r = r ?: JSON_READ_INTEGER(o, "slots", ENDPOINT_SLOTS_MAX, &s.slots);
        if (r < 0)
                return r;
        s.kind = remote_kind_from_string(kind);
        if (!pool_name_is_valid(s.name) || (int) s.kind < 0 || !variables_are_valid(s.variables) ||
            !endpoint_is_valid(s.endpoint) || s.slots == 0)
                return -EBADMSG;
        for (size_t i = 0; i < a->n_services; i++)
                if (streq(a->services[i].endpoint, s.endpoint))
                        return -EBADMSG;
        return allocation_add_service(a, &s);
}

static int parse_head(json_object *o, Allocation *a) {
        const char *state;
        int r = get_string(o, "name", &a->name);

        r = r ?: get_text(o, "id", a->id, sizeof(a->id));
        r = r ?: json_read_text(o, "state", &state);
        r = r ?: nullable(get_string(o, "reason", &a->reason));
        r = r ?: get_string(o, "vfio_driver", &a->vfio_driver);
        r = r ?: JSON_READ_INTEGER(o, "owner", UINT32_MAX, &a->owner);
        r = r ?: optional(json_read_flag(o, "release_with_domain", &a->release_with_domain));
        r = r ?: optional(json_read_flag(o, "had_domain", &a->had_domain));
        r = r ?: optional(json_read_flag(o, "forced", &a->forced));
        r = r ?: get_optional(o, "tag", ALLOCATION_TAG_MAX, &a->tag);
        r = r ?: get_optional(o, "token", ALLOCATION_TOKEN_MAX, &a->token);
        r = r ?: get_optional(o, "consumer", ALLOCATION_CONSUMER, &a->consumer);
        r = r ?: json_read_number(o, "generation", INT64_MAX, &a->generation);
        r = r ?: parse_guest_pci(o, a);
        r = r ?: parse_confidential(o, a);
        r = r ?: optional(JSON_READ_INTEGER(o, "partition", FABRIC_ID_MAX, &a->partition));
        r = r ?: json_read_number(o, "page_size", ALLOCATION_MEMORY_MAX, &a->page_size);
        r = r ?: get_cpus(o, "cpus", &a->cpus);
        if (r < 0)
                return r;
        a->state = allocation_state_from_string(state);
        if (!allocation_name_is_valid(a->name) || strlen(a->id) + 1 != sizeof(a->id) || (int) a->state < 0)
                return -EBADMSG;
        return parse_lease(o, a);
}

static int parse_each(json_object *list, int (*parse)(json_object *element, Allocation *a), Allocation *a) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < json_length(list); i++)
                r = parse(json_at(list, i), a);
        return r;
}

/* Reads all members. The file of an allocation without shared memory or services has no list of them. */
static int parse_allocation(json_object *o, Allocation *a) {
        json_object *devices, *pins, *cells, *regions = NULL, *services = NULL;
        int r = parse_head(o, a);

        r = r ?: json_read_array(o, "devices", INVENTORY_DEVICES_MAX, &devices);
        r = r ?: json_read_array(o, "pins", ALLOCATION_CPUS_MAX, &pins);
        r = r ?: json_read_array(o, "cells", ALLOCATION_CELLS_MAX, &cells);
        r = r ?: optional(json_read_array(o, "shared_memory", ALLOCATION_REGIONS_MAX, &regions));
        r = r ?: optional(json_read_array(o, "services", ALLOCATION_SERVICES_MAX, &services));
        r = r ?: parse_each(devices, parse_device, a);
        r = r ?: parse_pins(pins, a);
        r = r ?: parse_each(cells, parse_cell, a);
        r = r ?: parse_each(regions, parse_region, a);
        return r ?: parse_each(services, parse_service, a);
}

LedgerFileResult ledger_file_parse(const char *text, size_t size, Allocation **ret, char **ret_message) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new(NULL);
        uint64_t version;

        if (size > LEDGER_FILE_MAX || json_parse(text, size, &o) < 0 ||
            json_read_number(o, "version", INT_MAX, &version) < 0) {
                (void) string_replace(ret_message,
                                      "it is not a complete JSON object with a version; it may be truncated");
                return LEDGER_FILE_BROKEN;
        }
        if (version < 1 || version > LEDGER_FILE_VERSION) {
                (void) string_replace(ret_message, "it has version %d; this program supports version 1 to %d",
                                      (int) version, LEDGER_FILE_VERSION);
                return LEDGER_FILE_UNKNOWN_VERSION;
        }
        if (!a || parse_allocation(o, a) < 0) {
                (void) string_replace(ret_message, "a member is missing, of the wrong type or out of range");
                return LEDGER_FILE_BROKEN;
        }
        *ret = TAKE_PTR(a);
        return LEDGER_FILE_OK;
}
