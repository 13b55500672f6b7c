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

/* Readers of members return 0; -EBADMSG when the member is absent, of another type or out of range; or -ENOMEM. */

static int get_string(json_object *o, const char *key, bool may_be_null, char **ret) {
        json_object *v;

        if (!json_object_object_get_ex(o, key, &v))
                return -EBADMSG;
        if (!v)
                return may_be_null ? 0 : -EBADMSG;
        if (!json_object_is_type(v, json_type_string))
                return -EBADMSG;
        return string_copy(ret, json_object_get_string(v));
}

/* Reads a string into buf of size bytes. */
static int get_text(json_object *o, const char *key, char *buf, size_t size) {
        _cleanup_free_ char *text = NULL;
        int r = get_string(o, key, false, &text);

        if (r < 0)
                return r;
        if (strlen(text) >= size)
                r = -EBADMSG;
        if (r < 0)
                return r;
        memcpy(buf, text, strlen(text) + 1);
        return r;
}

static int to_number(json_object *v, uint64_t max, uint64_t *ret) {
        if (!v || !json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 0 ||
            json_object_get_uint64(v) > max)
                return -EBADMSG;
        *ret = json_object_get_uint64(v);
        return 0;
}

static int get_number(json_object *o, const char *key, uint64_t max, uint64_t *ret) {
        json_object *v;

        return json_object_object_get_ex(o, key, &v) ? to_number(v, max, ret) : -EBADMSG;
}

/* Reads a flag; false if the member is absent. */
static int get_flag(json_object *o, const char *key, bool *ret) {
        json_object *v;

        if (!json_object_object_get_ex(o, key, &v))
                return 0;
        if (!json_object_is_type(v, json_type_boolean))
                return -EBADMSG;
        *ret = json_object_get_boolean(v);
        return 0;
}

/* Reads a NUMA node; null is unknown. */
static int get_node(json_object *o, int *ret) {
        json_object *v;
        uint64_t node;
        int r;

        if (!json_object_object_get_ex(o, "numa_node", &v))
                return -EBADMSG;
        if (!v)
                return 0;
        r = to_number(v, INT_MAX, &node);
        if (r == 0)
                *ret = (int) node;
        return r;
}

static int get_array(json_object *o, const char *key, size_t max, json_object **ret) {
        json_object *v;

        if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_array) ||
            json_object_array_length(v) > max)
                return -EBADMSG;
        *ret = v;
        return 0;
}

static int get_cpus(json_object *o, const char *key, CpuSet *ret) {
        _cleanup_free_ char *text = NULL;
        int r = get_string(o, key, false, &text);

        if (r == 0 && cpuset_parse(text, ret) < 0)
                r = -EBADMSG;
        return r;
}

static int get_address(json_object *o, const char *key, bool may_be_null, bool *ret_there, PciAddress *ret) {
        _cleanup_free_ char *text = NULL;
        int r = get_string(o, key, may_be_null, &text);

        *ret_there = text;
        if (r == 0 && text && pci_address_parse(text, ret) < 0)
                r = -EBADMSG;
        return r;
}

static int parse_ids(json_object *o, AllocationDevice *d) {
        uint64_t vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
        int r = get_number(o, "vendor", UINT16_MAX, &vendor);

        r = r ?: get_number(o, "device", UINT16_MAX, &device);
        r = r ?: get_number(o, "subsystem_vendor", UINT16_MAX, &subsystem_vendor);
        r = r ?: get_number(o, "subsystem_device", UINT16_MAX, &subsystem_device);
        d->vendor = (uint16_t) vendor;
        d->device = (uint16_t) device;
        d->subsystem_vendor = (uint16_t) subsystem_vendor;
        d->subsystem_device = (uint16_t) subsystem_device;
        return r;
}

/* Reads attributes. null, or an absent member in a file of an older version, means no attributes. */
static int get_attributes(json_object *o, const char *key, bool *ret_there, VfAttributes *ret) {
        _cleanup_free_ char *text = NULL, *problem = NULL;
        int r = json_object_object_get_ex(o, key, NULL) ? get_string(o, key, true, &text) : 0;

        *ret_there = text;
        if (r == 0 && text)
                r = vf_attributes_parse(text, ret, &problem);
        return r == -EINVAL ? -EBADMSG : r;
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
        uint64_t fatal = 0;
        int r = 0;

        d->has_fatal = json_object_object_get_ex(o, "fatal_errors", NULL);
        if (d->has_fatal)
                r = get_number(o, "fatal_errors", UINT32_MAX, &fatal);
        d->fatal = (unsigned) fatal;
        return r;
}

/* Reads a string that only some files have. */
static int get_optional(json_object *o, const char *key, size_t max, char **ret) {
        int r = json_object_object_get_ex(o, key, NULL) ? get_string(o, key, false, ret) : 0;

        return r == 0 && *ret && strlen(*ret) > max ? -EBADMSG : r;
}

/* Reads the lease: reserved allocations must have one, others must not. */
static int parse_lease(json_object *o, Allocation *a) {
        uint64_t hold = 0;
        int r;

        if (!json_object_object_get_ex(o, "hold", NULL))
                return a->state == ALLOCATION_RESERVED ? -EBADMSG : 0;
        r = get_number(o, "hold", ALLOCATION_HOLD_MAX, &hold);
        r = r ?: get_number(o, "lease_end", INT64_MAX, &a->lease_end);
        r = r ?: get_text(o, "lease_boot", a->lease_boot, sizeof(a->lease_boot));
        if (r < 0)
                return r;
        if (hold == 0 || a->state != ALLOCATION_RESERVED)
                return -EBADMSG;
        a->hold = (uint32_t) hold;
        return 0;
}

static int parse_phase(json_object *o, AllocationDevice *d) {
        _cleanup_free_ char *phase = NULL;
        int r = get_optional(o, "phase", SIZE_MAX, &phase);

        if (r < 0 || !phase)
                return r;
        d->phase = device_phase_from_string(phase);
        return (int) d->phase < 0 ? -EBADMSG : 0;
}

/* Reads members that older versions did not write; all are optional. */
static int parse_identity(json_object *o, AllocationDevice *d) {
        _cleanup_free_ char *serial = NULL;
        uint64_t index;
        int r = get_flag(o, "lost", &d->lost);

        if (r == 0 && json_object_object_get_ex(o, "prior_reset", NULL))
                r = get_string(o, "prior_reset", false, &d->prior_reset);
        r = r ?: get_flag(o, "prior_runtime_pm", &d->prior_runtime_pm);
        r = r ?: get_flag(o, "prior_d3cold", &d->prior_d3cold);
        r = r ?: get_flag(o, "prior_persistence", &d->prior_persistence);
        if (r == 0 && json_object_object_get_ex(o, "vfio_driver", NULL))
                r = get_string(o, "vfio_driver", false, &d->vfio_driver);
        if (r == 0 && json_object_object_get_ex(o, "serial", NULL))
                r = get_string(o, "serial", false, &serial);
        if (r == 0 && serial && pci_serial_parse(serial, &d->serial) < 0)
                r = -EBADMSG;
        if (r < 0 || !json_object_object_get_ex(o, "vf_index", NULL))
                return r;
        r = get_number(o, "vf_index", UINT16_MAX, &index);
        if (r < 0 || !d->is_vf)
                return -EBADMSG;
        d->vf_index = (int) index;
        return 0;
}

static int parse_guest(json_object *o, AllocationDevice *d) {
        _cleanup_free_ char *place = NULL;
        int r = get_optional(o, "guest", GUEST_PLACE_TEXT_MAX, &place);

        return r < 0 || !place ? r : guest_place_parse(place, &d->guest) < 0 ? -EBADMSG : 0;
}

static int parse_mdev(json_object *o, AllocationDevice *d) {
        int r;

        if (!json_object_object_get_ex(o, "mdev", NULL))
                return 0;
        r = get_text(o, "mdev", d->mdev, sizeof(d->mdev));
        return r < 0 || text_is_uuid(d->mdev) ? r : -EBADMSG;
}

static int parse_vgpu(json_object *o, AllocationDevice *d) {
        uint64_t type = 0, total = 0;
        int r = 0;

        if (!json_object_object_get_ex(o, "vgpu_type", NULL))
                return 0;
        r = get_number(o, "vgpu_type", UINT32_MAX, &type);
        r = r ?: get_string(o, "vgpu_name", false, &d->vgpu_name);
        r = r ?: get_number(o, "vgpu_total", UINT16_MAX, &total);
        if (r == 0 && (type == 0 || !d->is_vf || !vgpu_name_is_valid(d->vgpu_name)))
                r = -EBADMSG;
        d->vgpu_type = (unsigned) type;
        d->vgpu_total = (unsigned) total;
        return r ?: parse_mdev(o, d);
}

static int parse_device(json_object *o, Allocation *a) {
        _cleanup_free_ char *role = NULL;
        AllocationDevice *d;
        PciAddress address;
        bool there;
        int r = get_address(o, "address", false, &there, &address);

        r = r ?: get_string(o, "role", false, &role);
        if (r < 0)
                return r;
        if ((int) device_role_from_string(role) < 0)
                return -EBADMSG;
        d = allocation_add_device(a, address, device_role_from_string(role));
        if (!d)
                return -ENOMEM;
        r = parse_phase(o, d);
        r = r ?: get_string(o, "slot", d->role == DEVICE_ROLE_HELD, &d->slot);
        r = r ?: get_string(o, "pool", true, &d->pool);
        r = r ?: get_string(o, "prior_driver", true, &d->prior_driver);
        r = r ?: get_string(o, "prior_override", true, &d->prior_override);
        r = r ?: get_address(o, "physical_function", true, &d->is_vf, &d->physfn);
        r = r ?: get_string(o, "path", true, &d->path);
        r = r ?: get_node(o, &d->numa_node);
        r = r ?: parse_guest(o, d);
        r = r ?: parse_attributes(o, d);
        r = r ?: parse_fatal(o, d);
        r = r ?: parse_identity(o, d);
        r = r ?: parse_vgpu(o, d);
        /* A slot must belong to its GPU and have a vGPU. */
        if (r == 0 && address.instance > 0 &&
            (d->vgpu_type == 0 || !pci_address_equal(d->physfn, pci_address_function(address))))
                r = -EBADMSG;
        return r ?: parse_ids(o, d);
}

static int parse_pins(json_object *pins, Allocation *a) {
        size_t n = json_object_array_length(pins);
        CpuSet pinned = { 0 };

        a->pins = calloc(n + 1, sizeof(*a->pins));
        if (!a->pins)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                json_object *pin = json_object_array_get_idx(pins, i);
                uint64_t vcpu, cpu;

                if (!json_object_is_type(pin, json_type_array) || json_object_array_length(pin) != 2 ||
                    to_number(json_object_array_get_idx(pin, 0), ALLOCATION_CPUS_MAX - 1, &vcpu) < 0 ||
                    to_number(json_object_array_get_idx(pin, 1), CPUSET_MAX - 1, &cpu) < 0 ||
                    !cpuset_has(&a->cpus, (unsigned) cpu) || cpuset_has(&pinned, (unsigned) cpu) ||
                    (i > 0 && vcpu <= a->pins[i - 1].vcpu))
                        return -EBADMSG;
                cpuset_add(&pinned, (unsigned) cpu);
                a->pins[a->n_pins++] = (Pin) { .vcpu = (unsigned) vcpu, .cpu = (unsigned) cpu };
        }
        return 0;
}

static int parse_cells(json_object *cells, Allocation *a) {
        for (size_t i = 0; i < json_object_array_length(cells); i++) {
                json_object *o = json_object_array_get_idx(cells, i);
                Cell *cell = &a->cells[i];
                uint64_t node, memory_node = 0;
                int r = get_number(o, "node", INT_MAX, &node);

                r = r ?: get_number(o, "memory", ALLOCATION_MEMORY_MAX, &cell->memory);
                r = r ?: get_cpus(o, "vcpus", &cell->vcpus);
                if (r < 0)
                        return r;
                cell->has_memory_node = json_object_object_get_ex(o, "memory_node", NULL);
                if (cell->has_memory_node)
                        r = get_number(o, "memory_node", INT_MAX, &memory_node);
                if (r < 0)
                        return r;
                cell->node = (int) node;
                cell->memory_node = (int) memory_node;
                a->n_cells++;
        }
        return 0;
}

/* Reads optional members that older versions did not write. The default is a flat topology without spare ports. */
static int parse_guest_pci(json_object *o, Allocation *a) {
        _cleanup_free_ char *topology = NULL;
        uint64_t spare_ports = 0;
        int r = 0;

        if (json_object_object_get_ex(o, "topology", NULL))
                r = get_string(o, "topology", false, &topology);
        if (r == 0 && json_object_object_get_ex(o, "spare_ports", NULL))
                r = get_number(o, "spare_ports", CONFIG_SPARE_MAX, &spare_ports);
        if (r < 0)
                return r;
        a->topology = topology ? guest_topology_from_string(topology) : GUEST_TOPOLOGY_FLAT;
        a->spare_ports = (unsigned) spare_ports;
        return (int) a->topology < 0 ? -EBADMSG : 0;
}

/* Reads the NVLink partition; an allocation without one has no such member. */
static int parse_partition(json_object *o, Allocation *a) {
        uint64_t partition;
        int r = json_object_object_get_ex(o, "partition", NULL) ? get_number(o, "partition", FABRIC_ID_MAX, &partition)
                                                                : 1;

        if (r == 0)
                a->partition = (int) partition;
        return r < 0 ? r : 0;
}

static int parse_region(json_object *o, Allocation *a) {
        _cleanup_free_ char *name = NULL;
        Region region = { 0 };
        uint64_t node = 0;
        int r = get_string(o, "name", false, &name);

        r = r ?: get_number(o, "size", REGION_SIZE_MAX, &region.size);
        r = r ?: get_number(o, "page_size", REGION_SIZE_MAX, &region.page_size);
        r = r ?: get_number(o, "node", INT_MAX, &node);
        if (r < 0)
                return r;
        if (region_name(&region, name, NULL) != VERDICT_NONE || region_check(&region, NULL) != VERDICT_NONE ||
            region_is_among(a->regions, a->n_regions, name))
                return -EBADMSG;
        region.node = (int) node;
        a->regions[a->n_regions++] = region;
        return 0;
}

/* Parses each of at most max elements of the member. An allocation without such elements has no such member. */
static int parse_list(json_object *o, const char *key, size_t max, int (*parse)(json_object *element, Allocation *a),
                      Allocation *a) {
        json_object *list = NULL;
        int r = json_object_object_get_ex(o, key, NULL) ? get_array(o, key, max, &list) : 0;

        for (size_t i = 0; r == 0 && list && i < json_object_array_length(list); i++)
                r = parse(json_object_array_get_idx(list, i), a);
        return r;
}

static int parse_service(json_object *o, Allocation *a) {
        _cleanup_free_ char *kind = NULL;
        AllocationService s = { 0 };
        uint64_t slots = 0;
        int r = get_text(o, "name", s.name, sizeof(s.name));

        r = r ?: get_string(o, "kind", false, &kind);
        r = r ?: get_text(o, "variables", s.variables, sizeof(s.variables));
        r = r ?: get_text(o, "endpoint", s.endpoint, sizeof(s.endpoint));
        r = r ?: get_number(o, "slots", ENDPOINT_SLOTS_MAX, &slots);
        if (r < 0)
                return r;
        s.kind = remote_kind_from_string(kind);
        s.slots = (unsigned) slots;
        if (!pool_name_is_valid(s.name) || (int) s.kind < 0 || !variables_are_valid(s.variables) ||
            !endpoint_is_valid(s.endpoint) || s.slots == 0)
                return -EBADMSG;
        for (size_t i = 0; i < a->n_services; i++)
                if (streq(a->services[i].endpoint, s.endpoint))
                        return -EBADMSG;
        return allocation_add_service(a, &s);
}

static int parse_head(json_object *o, Allocation *a) {
        _cleanup_free_ char *state = NULL;
        uint64_t owner = 0;
        int r = get_string(o, "name", false, &a->name);

        r = r ?: get_text(o, "id", a->id, sizeof(a->id));
        r = r ?: get_string(o, "state", false, &state);
        r = r ?: get_string(o, "reason", true, &a->reason);
        r = r ?: get_string(o, "vfio_driver", false, &a->vfio_driver);
        r = r ?: get_number(o, "owner", UINT32_MAX, &owner);
        r = r ?: get_flag(o, "release_with_domain", &a->release_with_domain);
        r = r ?: get_flag(o, "had_domain", &a->had_domain);
        r = r ?: get_flag(o, "forced", &a->forced);
        r = r ?: get_optional(o, "tag", ALLOCATION_TAG_MAX, &a->tag);
        r = r ?: get_optional(o, "token", ALLOCATION_TOKEN_MAX, &a->token);
        r = r ?: get_optional(o, "consumer", ALLOCATION_CONSUMER, &a->consumer);
        r = r ?: get_number(o, "generation", INT64_MAX, &a->generation);
        r = r ?: parse_guest_pci(o, a);
        r = r ?: parse_partition(o, a);
        r = r ?: get_number(o, "page_size", ALLOCATION_MEMORY_MAX, &a->page_size);
        r = r ?: get_cpus(o, "cpus", &a->cpus);
        if (r < 0)
                return r;
        if (!allocation_name_is_valid(a->name) || strlen(a->id) + 1 != sizeof(a->id) ||
            (int) allocation_state_from_string(state) < 0)
                return -EBADMSG;
        a->state = allocation_state_from_string(state);
        a->owner = (uint32_t) owner;
        return parse_lease(o, a);
}

static int parse_allocation(json_object *o, Allocation *a) {
        json_object *devices = NULL, *pins = NULL, *cells = NULL;
        int r = parse_head(o, a);

        r = r ?: get_array(o, "devices", INVENTORY_DEVICES_MAX, &devices);
        r = r ?: get_array(o, "pins", ALLOCATION_CPUS_MAX, &pins);
        r = r ?: get_array(o, "cells", ALLOCATION_CELLS_MAX, &cells);
        for (size_t i = 0; r == 0 && i < json_object_array_length(devices); i++)
                r = parse_device(json_object_array_get_idx(devices, i), a);
        r = r ?: parse_pins(pins, a);
        r = r ?: parse_cells(cells, a);
        r = r ?: parse_list(o, "shared_memory", ALLOCATION_REGIONS_MAX, parse_region, a);
        return r ?: parse_list(o, "services", ALLOCATION_SERVICES_MAX, parse_service, a);
}

LedgerFileResult ledger_file_parse(const char *text, size_t size, Allocation **ret, char **ret_message) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new(NULL);
        uint64_t version;

        if (size > LEDGER_FILE_MAX || json_parse(text, size, &o) < 0 ||
            get_number(o, "version", INT_MAX, &version) < 0) {
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
