/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes an allocation from the chosen nodes and devices: slots, companions, held group members, pins and cells. */

#include <errno.h>

#include "guest/guestpci.h"
#include "model/cores.h"
#include "plan-internal.h"
#include "plan/vfidentity.h"
#include "util/strings.h"

/* The VF keeps its driver, and gets a vGPU. */
static int add_vgpu(AllocationDevice *d, const HostView *view, const PciDevice *dev, const Pool *pool) {
        VgpuRoom room;

        ledger_vgpu_room(view->ledger, view->grown, view->inventory, dev, pool->vgpu_type, &room);
        d->vgpu_type = room.type;
        d->vgpu_total = room.total;
        return string_copy(&d->vgpu_name, pool->vgpu_type) < 0 ? -ENOMEM : string_copy(&d->vfio_driver, dev->driver);
}

static AllocationDevice *add_device(Allocation *a, const HostView *view, const PciDevice *dev, DeviceRole role) {
        const Pool *pool = policy_pool(view->policy, dev);
        AllocationDevice *d = allocation_add_device(a, dev->address, role);

        if (!d || allocation_device_identify(d, dev) < 0 || string_copy(&d->prior_driver, dev->driver) < 0 ||
            string_copy(&d->prior_override, dev->driver_override) < 0)
                return NULL;
        if (pool && pool->reset_method != RESET_METHOD_DEFAULT && string_copy(&d->prior_reset, dev->reset_methods) < 0)
                return NULL;
        d->prior_runtime_pm = dev->runtime_pm;
        d->prior_d3cold = dev->d3cold;
        if (view->config->variants && string_copy(&d->vfio_driver, inventory_variant_driver(view->inventory, dev)) < 0)
                return NULL;
        if (role != DEVICE_ROLE_COMPANION && pool && string_copy(&d->pool, pool->name) < 0)
                return NULL;
        if (pool && pool->vgpu_type && add_vgpu(d, view, dev, pool) < 0)
                return NULL;
        return d;
}

static bool is_pick(const HostView *view, const NodeChoice *choice, const PciDevice *dev) {
        for (size_t i = 0; i < choice->picks.n; i++)
                if (&view->inventory->devices[choice->picks.devices[i]] == dev)
                        return true;
        return false;
}

/* Adds the group members of dev that have this role and are not in the allocation yet. */
static int add_members(Allocation *a, const HostView *view, const NodeChoice *choice, const PciDevice *dev,
                       GroupRole role, const char *slot) {
        const IommuGroup *g = inventory_find_group(view->inventory, dev->iommu_group);

        for (size_t i = 0; g && i < g->n_members; i++) {
                const PciDevice *m = &view->inventory->devices[g->members[i]];
                AllocationDevice *d;

                if (m == dev || policy_group_role(view->policy, dev, m) != role || is_pick(view, choice, m) ||
                    allocation_find_device(a, m->address))
                        continue;
                d = add_device(a, view, m, role == GROUP_ROLE_COMPANION ? DEVICE_ROLE_COMPANION : DEVICE_ROLE_HELD);
                if (!d || (slot && string_replace(&d->slot, "%s-%u", slot, m->address.function) < 0))
                        return -ENOMEM;
        }
        return 0;
}

static int add_slot(Allocation *a, const HostView *view, const NodeChoice *choice, const PciDevice *dev,
                    unsigned index) {
        AllocationDevice *d = add_device(a, view, dev, DEVICE_ROLE_ASSIGNED);
        char slot[SLOT_NAME_MAX];

        (void) slot_name(policy_pool(view->policy, dev)->name, index, slot);
        if (!d || string_copy(&d->slot, slot) < 0)
                return -ENOMEM;
        return add_members(a, view, choice, dev, GROUP_ROLE_COMPANION, slot);
}

/*
 * Adds the slots of a pool: first NICs in the order of their GPUs, so that gpu0 and its NIC have the same index, then
 * the other devices by address.
 */
static int add_pool(Allocation *a, const Planner *p, const NodeChoice *choice, const Pool *pool, const PlanPair *pairs,
                    size_t n_pairs) {
        const HostView *view = p->context;
        unsigned index = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < n_pairs; i++) {
                const PciDevice *nic = inventory_find(view->inventory, pairs[i].nic);

                if (policy_pool(view->policy, nic) == pool && !allocation_find_device(a, nic->address))
                        r = add_slot(a, view, choice, nic, index++);
        }
        for (size_t i = 0; r == 0 && i < choice->picks.n; i++) {
                const PciDevice *dev = &view->inventory->devices[choice->picks.devices[i]];

                if (policy_pool(view->policy, dev) == pool && !allocation_find_device(a, dev->address))
                        r = add_slot(a, view, choice, dev, index++);
        }
        return r;
}

static int add_devices(Allocation *a, const Planner *p, const NodeChoice *choice) {
        PlanPair pairs[REQUEST_DEVICES_MAX];
        size_t n_pairs = search_pairs(p->context, choice->picks.devices, choice->picks.n, pairs);
        int r = 0;

        for (size_t i = 0; r == 0 && i < p->request->n_pools; i++)
                r = add_pool(a, p, choice, p->pools[i].pool, pairs, n_pairs);
        for (size_t i = 0; r == 0 && i < choice->picks.n; i++)
                r = add_members(a, p->context, choice, &p->context->inventory->devices[choice->picks.devices[i]],
                                GROUP_ROLE_HOLD, NULL);
        return r;
}

/* A guest cell for each node, in the order of the nodes. */
static int add_cells(Allocation *a, const Planner *p, const NodeChoice *choice) {
        const Inventory *inv = p->context->inventory;

        a->pins = calloc(p->request->cpus, sizeof(*a->pins));
        if (!a->pins)
                return -ENOMEM;
        for (size_t i = 0; i < choice->n_nodes; i++) {
                Cell *cell = &a->cells[a->n_cells++];
                unsigned n = cores_pick(inv, &p->free_cpus[choice->nodes[i]], choice->cpus[i], &a->cpus,
                                        &a->pins[a->n_pins]);

                *cell = (Cell) { .node = inv->nodes[choice->nodes[i]].id, .memory = choice->memory[i] };
                for (; n > 0; n--, a->n_pins++) {
                        a->pins[a->n_pins].vcpu = (unsigned) a->n_pins;
                        cpuset_add(&cell->vcpus, (unsigned) a->n_pins);
                }
        }
        return 0;
}

Verdict planner_build(const Planner *p, const NodeChoice *choice, Allocation **ret, Refusal *ret_refusal) {
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new(NULL);
        int r = a ? string_copy(&a->vfio_driver, p->context->config->vfio_driver) : -ENOMEM;
        Verdict v;

        if (r == 0)
                r = add_devices(a, p, choice);

        if (r == 0 && p->request->cpus > 0)
                r = add_cells(a, p, choice);
        if (r < 0)
                return refuse_no_memory(ret_refusal);
        planner_add_regions(p, choice, a);
        a->partition = choice->partition ? (int) choice->partition->id : -1;
        a->page_size = p->request->page_size;
        a->forced = p->request->force;
        a->release_with_domain = p->request->release_with_domain;
        a->hold = p->request->hold;
        a->spare_ports = p->context->config->spare_ports;
        if (string_copy(&a->tag, p->request->tag) < 0 || string_copy(&a->token, p->request->token) < 0 ||
            string_copy(&a->consumer, p->request->consumer) < 0)
                return refuse_no_memory(ret_refusal);
        v = guest_topology_choose(p->context->inventory, p->request->topology, a, ret_refusal);
        if (v != VERDICT_NONE)
                return v;
        v = vf_identity_merge(a, p->context, p->request, ret_refusal);
        if (v != VERDICT_NONE)
                return v;
        *ret = TAKE_PTR(a);
        return VERDICT_NONE;
}

int plan_single(const HostView *view, const PciDevice *dev, Allocation **ret) {
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new(NULL);
        NodeChoice only = { .picks = { .n = 1,
                                       .devices = { (uint32_t) inventory_device_index(view->inventory, dev) } } };
        int r = a ? string_copy(&a->vfio_driver, view->config->vfio_driver) : -ENOMEM;

        if (r == 0)
                r = add_slot(a, view, &only, dev, 0);
        if (r == 0)
                r = add_members(a, view, &only, dev, GROUP_ROLE_HOLD, NULL);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(a);
        return 0;
}
