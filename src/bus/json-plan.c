/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocations and plans as JSON. */
#include <stdio.h>

#include "guest/coherent.h"
#include "guest/confidential.h"
#include "guest/domxml.h"
#include "guest/iommufd.h"
#include "json-internal.h"

/* Returns the value of one attribute: numbers and booleans as such, all other values as strings. */
static json_object *json_attribute(VfAttribute a, uint64_t value) {
        char text[VF_VALUE_MAX];

        switch (a) {
        case VF_VLAN:
        case VF_QOS:
        case VF_MIN_RATE:
        case VF_MAX_RATE:
                return json_object_new_uint64(value);
        case VF_TRUST:
        case VF_SPOOF_CHECK:
                return json_object_new_boolean(value != 0);
        default:
                return json_object_new_string(vf_value_format(a, value, text));
        }
}

/* Returns an object of the attributes that are set, NULL when none is. Its keys are the names of the attributes, with
 * underscores instead of dashes. */
static json_object *json_attributes(const VfAttributes *v) {
        json_object *o = v->set ? json_object_new_object() : NULL;

        for (VfAttribute a = 0; o && a < _VF_ATTRIBUTE_MAX; a++) {
                _cleanup_free_ char *key = vf_attributes_have(v, a) ? strdup(vf_attribute_to_string(a)) : NULL;

                if (!key)
                        continue;
                for (char *dash = key; (dash = strchr(dash, '-'));)
                        *dash = '_';
                json_object_object_add(o, key, json_attribute(a, v->value[a]));
        }
        return o;
}

static const GuestAddress *find_guest(const GuestAddress *guests, size_t n, PciAddress host) {
        for (size_t i = 0; i < n; i++)
                if (pci_address_equal(guests[i].host, host))
                        return &guests[i];
        return NULL;
}

/* Returns the guest NUMA nodes for the memory of the GPU, as "2-9"; NULL: none. */
static json_object *json_memory_cells(const Allocation *a, unsigned each, const AllocationDevice *d) {
        int first = memory_cells_first(a, each, d);
        _cleanup_free_ char *text = first >= 0 ? string_format("%d-%d", first, first + (int) each - 1) : NULL;

        return json_string_or_null(text);
}

static json_object *json_allocation_devices(const HostView *view, const Allocation *a, bool planned,
                                            bool with_attributes) {
        json_object *array = json_object_new_array();
        _cleanup_free_ GuestAddress *guests = NULL;
        bool missed = view->may_miss_guests && !planned && !allocation_has_guest(a);
        /* A running guest may have started from another document, with other guest NUMA nodes. */
        unsigned each = missed || allocation_has_guest(a) ? 0 : memory_cells_each(view->inventory, view->config, a);
        size_t n_guests = 0;

        /* A guest may run without the daemon's knowledge, with the devices at other addresses than in the present
         * document. */
        if (!missed)
                (void) domxml_guest_addresses(view->inventory, view->config, a, &guests, &n_guests);
        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                const GuestAddress *g = find_guest(guests, n_guests, d->address);
                const PciDevice *dev = inventory_find(view->inventory, d->address);
                json_object *o = json_object_new_object();

                json_object_object_add(o, "slot", json_string_or_null(d->slot));
                json_object_object_add(o, "pool", json_string_or_null(d->pool));
                json_object_object_add(o, "role", json_string_or_null(device_role_to_string(d->role)));
                json_object_object_add(o, "phase", json_string_or_null(device_phase_to_string(d->phase)));
                json_object_object_add(o, "address", json_address(d->address));
                json_object_object_add(o, "guest_address", g ? json_address(g->guest) : NULL);
                json_object_object_add(o, "seen_address", g && g->seen.bus > 0 ? json_address(g->seen) : NULL);
                json_object_object_add(o, "numa_node", json_known_or_null(dev ? dev->numa_node : -1));
                json_object_object_add(o, "cpu_node", json_known_or_null(d->numa_node));
                json_object_object_add(o, "memory_cells", json_memory_cells(a, each, d));
                json_object_object_add(o, "physical_function", d->is_vf ? json_address(d->physfn) : NULL);
                json_object_object_add(o, "vgpu_type", json_string_or_null(d->vgpu_name));
                json_object_object_add(o, "mdev", json_string_or_null(*d->mdev ? d->mdev : NULL));
                json_object_object_add(o, "attributes", with_attributes ? json_attributes(&d->attributes) : NULL);
                (void) json_object_array_add(array, o);
        }
        return array;
}

static json_object *json_cell(size_t id, const Cell *cell) {
        json_object *o = json_object_new_object();

        json_object_object_add(o, "id", json_object_new_int((int) id));
        json_object_object_add(o, "node", json_object_new_int(cell->node));
        json_object_object_add(o, "memory_node", json_object_new_int(cell_memory_node(cell)));
        json_object_object_add(o, "vcpus", json_cpus(&cell->vcpus));
        json_object_object_add(o, "memory", json_object_new_uint64(cell->memory));
        return o;
}

static void add_placement(json_object *o, const Allocation *a) {
        json_object *pins = json_object_new_array(), *nodes = json_object_new_array(),
                    *memory = json_object_new_object();
        json_object *cells = json_object_new_array();

        for (size_t i = 0; i < a->n_pins; i++) {
                json_object *pin = json_object_new_object();

                json_object_object_add(pin, "vcpu", json_object_new_int64(a->pins[i].vcpu));
                json_object_object_add(pin, "cpu", json_object_new_int64(a->pins[i].cpu));
                (void) json_object_array_add(pins, pin);
        }
        for (size_t i = 0; i < a->n_cells; i++) {
                char node[16];
                json_object *sum;

                (void) snprintf(node, sizeof(node), "%d", cell_memory_node(&a->cells[i]));
                (void) json_object_array_add(nodes, json_object_new_int(a->cells[i].node));
                if (json_object_object_get_ex(memory, node, &sum)) /* earlier cells have added memory */
                        (void) json_object_set_uint64(sum, json_object_get_uint64(sum) + a->cells[i].memory);
                else
                        json_object_object_add(memory, node, json_object_new_uint64(a->cells[i].memory));
                (void) json_object_array_add(cells, json_cell(i, &a->cells[i]));
        }
        json_object_object_add(o, "cpus", json_cpus(&a->cpus));
        json_object_object_add(o, "pins", pins);
        json_object_object_add(o, "numa_nodes", nodes);
        json_object_object_add(o, "memory", memory);
        json_object_object_add(o, "page_size", a->page_size > 0 ? json_object_new_uint64(a->page_size) : NULL);
        json_object_object_add(o, "cells", cells);
}

/* Returns the shared memory regions. "members" is null in a plan. */
static json_object *json_regions(const Allocation *a) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < a->n_regions; i++) {
                const Region *r = &a->regions[i];
                json_object *o = json_object_new_object(), *members = a->shared[i] ? json_object_new_array() : NULL;
                char path[sizeof("/dev/shm/") + REGION_FILE_MAX], file[REGION_FILE_MAX];

                (void) snprintf(path, sizeof(path), "/dev/shm/%s", region_file(r, file));
                json_object_object_add(o, "name", json_object_new_string(r->name));
                json_object_object_add(o, "size", json_object_new_uint64(r->size));
                json_object_object_add(o, "page_size", r->page_size > 0 ? json_object_new_uint64(r->page_size) : NULL);
                json_object_object_add(o, "numa_node", json_object_new_int(r->node));
                json_object_object_add(o, "path", json_object_new_string(path));
                for (size_t j = 0; a->shared[i] && j < a->shared[i]->n_members; j++)
                        (void) json_object_array_add(members, json_string_or_null(a->shared[i]->members[j]->name));
                json_object_object_add(o, "members", members);
                (void) json_object_array_add(array, o);
        }
        return array;
}

json_object *json_services(const Allocation *a) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < a->n_services; i++) {
                json_object *o = json_object_new_object();

                json_object_object_add(o, "pool", json_object_new_string(a->services[i].name));
                json_object_object_add(o, "kind", json_string_or_null(remote_kind_to_string(a->services[i].kind)));
                json_object_object_add(o, "endpoint", json_object_new_string(a->services[i].endpoint));
                json_object_object_add(o, "slots", json_object_new_int64(a->services[i].slots));
                (void) json_object_array_add(array, o);
        }
        return array;
}

/* Returns sentences about what the guest lacks. */
static json_object *json_warnings(const HostView *view, const Allocation *a) {
        json_object *array = json_object_new_array();
        _cleanup_free_ char *text = NULL;
        char *rest, *line;

        if (view->config->hypervisor != HYPERVISOR_XEN)
                (void) domxml_explain_lacks(view->inventory, view->config, a, &text);
        rest = text;
        while (rest && (line = strsep(&rest, "\n")) && *line)
                (void) json_object_array_add(array, json_object_new_string(line));
        return array;
}

/* planned: `a` belongs to a plan, so it has no name, id, generation and owner yet. */
static json_object *json_allocation_or_plan(const HostView *view, const Allocation *a, bool planned,
                                            bool with_attributes) {
        json_object *o = json_object_new_object();

        json_object_object_add(o, "name", planned ? NULL : json_string_or_null(a->name));
        json_object_object_add(o, "id", planned ? NULL : json_object_new_string(a->id));
        json_object_object_add(o, "owner", planned ? NULL : json_object_new_int64(a->owner));
        json_object_object_add(o, "tag", json_string_or_null(a->tag));
        json_object_object_add(o, "consumer", json_string_or_null(a->consumer));
        json_object_object_add(o, "lease_end", a->hold > 0 ? json_object_new_uint64(a->lease_end) : NULL);
        json_object_object_add(
                o, "state",
                json_object_new_string(planned ? "planned" : allocation_state_to_string(allocation_shown_state(a))));
        json_object_object_add(o, "reason", json_string_or_null(a->reason));
        json_object_object_add(o, "domain", json_string_or_null(a->status.domain));
        json_object_object_add(o, "generation", planned ? NULL : json_object_new_uint64(a->generation));
        json_object_object_add(o, "confidential",
                               a->confidential != CONFIDENTIAL_NONE
                                       ? json_string_or_null(confidential_to_string(a->confidential))
                                       : NULL);
        json_object_object_add(o, "topology", json_string_or_null(guest_topology_to_string(a->topology)));
        json_object_object_add(o, "partition", json_known_or_null(a->partition));
        json_object_object_add(o, "devices", json_allocation_devices(view, a, planned, with_attributes));
        add_placement(o, a);
        json_object_object_add(o, "shared_memory", json_regions(a));
        json_object_object_add(o, "services", json_services(a));
        json_object_object_add(o, "warnings", json_warnings(view, a));
        return o;
}

json_object *json_allocation(const HostView *view, const Allocation *a, uint32_t reader) {
        return json_allocation_or_plan(view, a, false, reader == 0 || reader == a->owner);
}

json_object *json_score(const Score *s, bool pairs) {
        json_object *o = json_object_new_object();

        for (ScoreMember m = 0; m < _SCORE_MEMBER_MAX; m++) {
                unsigned value = score_get(s, m);
                json_object *member = m != SCORE_WORST_DISTANCE ? json_object_new_int64(value)
                                      : pairs ? json_string_or_null(distance_to_string((Distance) value))
                                              : NULL;

                json_object_object_add(o, score_member_to_string(m), member);
        }
        return o;
}

static json_object *json_runner_up(const Plan *p) {
        json_object *o = json_object_new_object(), *nodes = json_object_new_array(), *devices = json_object_new_array();
        _cleanup_free_ char *why = score_explain(&p->score, &p->runner_up);
        ScoreMember lost_by = score_difference(&p->score, &p->runner_up);

        for (size_t i = 0; i < p->n_runner_up_devices; i++)
                (void) json_object_array_add(devices, json_address(p->runner_up_devices[i]));
        for (size_t i = 0; i < p->n_runner_up_nodes; i++)
                (void) json_object_array_add(nodes, json_object_new_int(p->runner_up_nodes[i]));
        json_object_object_add(o, "numa_nodes", nodes);
        json_object_object_add(o, "partition", json_known_or_null(p->runner_up_partition));
        json_object_object_add(o, "devices", devices);
        json_object_object_add(o, "score", json_score(&p->runner_up, p->n_pairs > 0));
        json_object_object_add(o, "lost_by", json_string_or_null(score_member_to_string(lost_by)));
        json_object_object_add(o, "reason", json_string_or_null(why));
        return o;
}

static json_object *json_steps(const HostView *view, const Plan *p) {
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;
        json_object *array = json_object_new_array();

        if (steps_prepare(p->allocation, view->inventory, &steps) < 0 ||
            steps_around_services(p->allocation, view->config, steps) < 0 ||
            steps_make_regions(p->allocation, view->config, steps) < 0 ||
            steps_activate(p->allocation, view->config, false, steps) < 0)
                return array;
        for (size_t i = 0; i < steps->n; i++) {
                _cleanup_free_ char *text = step_describe(&steps->steps[i]);

                (void) json_object_array_add(array, json_string_or_null(text));
        }
        return array;
}

static json_object *json_limit(const PlanLimit *l) {
        json_object *o = json_object_new_object(), *pools = json_object_new_array(), *pairs = json_object_new_array();

        for (size_t i = 0; i < l->n_pairs; i++) {
                json_object *pair = json_object_new_object(), *devices = json_object_new_array();

                for (unsigned side = 0; side < 2; side++)
                        (void) json_object_array_add(devices, json_address(l->pairs[i].devices[side]));
                json_object_object_add(pair, "devices", devices);
                json_object_object_add(pair, "distance", json_string_or_null(distance_to_string(l->pairs[i].distance)));
                (void) json_object_array_add(pairs, pair);
        }
        for (unsigned side = 0; side < 2; side++)
                (void) json_object_array_add(pools, json_object_new_string(l->pools[side]));
        json_object_object_add(o, "pools", pools);
        json_object_object_add(o, "limit", json_string_or_null(proximity_to_string(l->limit)));
        json_object_object_add(o, "distance", json_string_or_null(distance_to_string(l->worst)));
        json_object_object_add(o, "pairs", pairs);
        return o;
}

static json_object *json_limits(const Plan *p) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < p->n_limits; i++)
                (void) json_object_array_add(array, json_limit(&p->limits[i]));
        return array;
}

/* Returns sentences about what the plan assumes of devices that do not exist yet. */
static json_object *json_assumptions(const Inventory *inv, const Allocation *a) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(inv, a->devices[i].address);
                _cleanup_free_ char *text = dev && dev->expected ? inventory_describe_expected(inv, dev) : NULL;

                if (text)
                        (void) json_object_array_add(array, json_object_new_string(text));
        }
        return array;
}

/* Returns whether and why the guest would use iommufd for its devices. NULL when it has no devices. */
static json_object *json_iommufd(const HostView *view, const Allocation *a) {
        IommufdFacts facts = iommufd_facts(view->inventory, view->config, a);
        IommufdReason reason = iommufd_choose(&facts);
        _cleanup_free_ char *why = NULL;
        json_object *o;

        if (reason == IOMMUFD_NO_DEVICE)
                return NULL;
        why = iommufd_explain(&facts, reason);
        o = json_object_new_object();
        json_object_object_add(o, "used", json_object_new_boolean(iommufd_is_used(reason)));
        json_object_object_add(o, "reason", json_string_or_null(iommufd_reason_to_string(reason)));
        json_object_object_add(o, "message", json_string_or_null(why));
        return o;
}

/* Returns sentences for the owner of a confidential guest. */
static json_object *json_notes(const HostView *view, const Allocation *a) {
        ConfidentialFacts facts = confidential_facts(view->inventory, view->config, a, a->confidential);
        const char *texts[CONFIDENTIAL_NOTES_MAX];
        size_t n = confidential_notes(&facts, texts);
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < n; i++)
                (void) json_object_array_add(array, json_object_new_string(texts[i]));
        return array;
}

json_object *json_plan(const HostView *view, const Plan *p) {
        json_object *o = json_allocation_or_plan(view, p->allocation, true, true), *pairs = json_object_new_array(),
                    *devices = member(o, "devices");

        for (size_t i = 0; i < p->allocation->n_devices; i++)
                json_object_object_add(json_at(devices, i), "module",
                                       json_known_or_null(device_module(view, p->allocation->devices[i].address)));

        for (size_t i = 0; i < p->n_pairs; i++) {
                json_object *pair = json_object_new_object();

                json_object_object_add(pair, "gpu", json_address(p->pairs[i].gpu));
                json_object_object_add(pair, "nic", json_address(p->pairs[i].nic));
                json_object_object_add(pair, "distance", json_string_or_null(distance_to_string(p->pairs[i].distance)));
                json_object_object_add(pair, "path",
                                       json_peer_path(view->inventory, inventory_find(view->inventory, p->pairs[i].nic),
                                                      inventory_find(view->inventory, p->pairs[i].gpu)));
                (void) json_object_array_add(pairs, pair);
        }
        json_object_object_add(o, "iommufd", json_iommufd(view, p->allocation));
        json_object_object_add(o, "confidential_notes", json_notes(view, p->allocation));
        json_object_object_add(o, "score", json_score(&p->score, p->n_pairs > 0));
        json_object_object_add(o, "pairs", pairs);
        json_object_object_add(o, "limits", json_limits(p));
        json_object_object_add(o, "runner_up", p->has_runner_up ? json_runner_up(p) : NULL);
        json_object_object_add(o, "steps", json_steps(view, p));
        json_object_object_add(o, "assumptions", json_assumptions(view->inventory, p->allocation));
        return o;
}

/* How often a request fits. */

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
