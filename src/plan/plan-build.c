/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the allocation of a plan (slots, companions, held group members, pins and cells), and the plan's pairs of
 * devices. */
#include <assert.h>
#include <errno.h>

#include "guest/guestpci.h"
#include "model/cores.h"
#include "plan-internal.h"
#include "plan/vfidentity.h"
#include "util/strings.h"

typedef struct DevicePair {
        uint32_t devices[2]; /* one of each pool, or a GPU and a NIC; inventory indices */
        Distance distance;
} DevicePair;

/* Of the devices in `smaller` that are within `reach` of `device` and have fewer than `share` partners, returns the
 * index of the one with the fewest partners. Returns n if there is none. */
static size_t find_partner(const Locality *l, uint32_t device, const uint32_t *smaller, const unsigned *used, size_t n,
                           unsigned share, Distance reach) {
        size_t best = n;

        for (size_t i = 0; i < n; i++)
                if (used[i] < share && (best == n || used[i] < used[best]) &&
                    place_distance(&l->places[device], &l->places[smaller[i]]) <= reach)
                        best = i;
        return best;
}

/*
 * Pairs two sets of devices as search.h describes: nearest first, each device of the larger side once. pairs has room
 * for REQUEST_DEVICES_MAX. Returns the number of pairs.
 */
static size_t match_devices(const Locality *l, const uint32_t *first, size_t n_first, const uint32_t *second,
                            size_t n_second, DevicePair *pairs) {
        bool swapped = n_first < n_second, paired[REQUEST_DEVICES_MAX] = { false };
        const uint32_t *larger = swapped ? second : first, *smaller = swapped ? first : second;
        size_t n_larger = MAX(n_first, n_second), n_smaller = MIN(n_first, n_second), n = 0;
        unsigned used[REQUEST_DEVICES_MAX] = { 0 };

        assert(n_larger <= REQUEST_DEVICES_MAX);
        if (n_smaller == 0)
                return 0;
        for (Distance d = DISTANCE_PIX; d <= DISTANCE_SYS; d++)
                for (size_t i = 0; i < n_larger; i++) {
                        size_t partner = paired[i]
                                                 ? n_smaller
                                                 : find_partner(l, larger[i], smaller, used, n_smaller,
                                                                (unsigned) ((n_larger + n_smaller - 1) / n_smaller), d);

                        if (partner == n_smaller)
                                continue;
                        paired[i] = true;
                        used[partner]++;
                        pairs[n].devices[swapped] = larger[i];
                        pairs[n].devices[!swapped] = smaller[partner];
                        pairs[n++].distance = d;
                }
        return n;
}

static int pair_compare(const void *a, const void *b) {
        const PlanPair *x = a, *y = b;
        int c = pci_address_compare(x->gpu, y->gpu);

        return c != 0 ? c : pci_address_compare(x->nic, y->nic);
}

size_t search_pairs(const HostView *view, const uint32_t *devices, size_t n, PlanPair *pairs) {
        uint32_t gpus[REQUEST_DEVICES_MAX], nics[REQUEST_DEVICES_MAX];
        DevicePair matched[REQUEST_DEVICES_MAX];
        size_t n_gpus = 0, n_nics = 0, n_pairs;

        assert(n <= REQUEST_DEVICES_MAX);
        for (size_t i = 0; i < n; i++) {
                const PciDevice *dev = &view->inventory->devices[devices[i]];

                if (pci_device_is_accelerator(dev))
                        gpus[n_gpus++] = devices[i];
                else if (pci_device_is_nic(dev))
                        nics[n_nics++] = devices[i];
        }
        n_pairs = match_devices(view->locality, gpus, n_gpus, nics, n_nics, matched);
        for (size_t i = 0; i < n_pairs; i++)
                pairs[i] = (PlanPair) {
                        .gpu = view->inventory->devices[matched[i].devices[0]].address,
                        .nic = view->inventory->devices[matched[i].devices[1]].address,
                        .distance = matched[i].distance,
                };
        qsort(pairs, n_pairs, sizeof(*pairs), pair_compare);
        return n_pairs;
}

static size_t find_devices(const Planner *p, const NodeChoice *choice, size_t pool, uint32_t *ret) {
        const HostView *view = p->context;
        size_t n = 0;

        for (size_t i = 0; i < choice->picks.n; i++)
                if (policy_pool(view->policy, &view->inventory->devices[choice->picks.devices[i]]) ==
                    p->pools[pool].pool)
                        ret[n++] = choice->picks.devices[i];
        return n;
}

static Distance find_worst(const Locality *l, const uint32_t *devices, size_t n) {
        Distance worst = DISTANCE_PIX;

        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < i; j++)
                        worst = MAX(worst, place_distance(&l->places[devices[i]], &l->places[devices[j]]));
        return worst;
}

static void pair_pools(const Planner *p, const NodeChoice *choice, const size_t pools[2], PlanLimit *ret) {
        uint32_t first[REQUEST_DEVICES_MAX], second[REQUEST_DEVICES_MAX];
        size_t n_first = find_devices(p, choice, pools[0], first), n_second;
        DevicePair pairs[REQUEST_DEVICES_MAX];

        if (pools[0] == pools[1]) {
                ret->worst = find_worst(p->context->locality, first, n_first);
                return;
        }
        n_second = find_devices(p, choice, pools[1], second);
        ret->n_pairs = match_devices(p->context->locality, first, n_first, second, n_second, pairs);
        for (size_t i = 0; i < ret->n_pairs; i++) {
                for (unsigned side = 0; side < 2; side++)
                        ret->pairs[i].devices[side] = p->context->inventory->devices[pairs[i].devices[side]].address;
                ret->pairs[i].distance = pairs[i].distance;
                ret->worst = MAX(ret->worst, pairs[i].distance);
        }
}

int plan_limits_make(const Planner *p, const NodeChoice *choice, Plan *plan) {
        const Request *r = p->request;

        plan->limits = calloc(r->n_limits + 1, sizeof(*plan->limits));
        if (!plan->limits)
                return -ENOMEM;
        for (; plan->n_limits < r->n_limits; plan->n_limits++) {
                PlanLimit *l = &plan->limits[plan->n_limits];

                l->limit = r->limits[plan->n_limits].limit;
                for (unsigned side = 0; side < 2; side++)
                        if (string_copy(&l->pools[side], r->limits[plan->n_limits].pools[side]) < 0) {
                                free(l->pools[0]);
                                return -ENOMEM;
                        }
                pair_pools(p, choice, p->limits[plan->n_limits], l);
        }
        return 0;
}

void plan_limits_free(Plan *plan) {
        for (size_t i = 0; i < plan->n_limits; i++) {
                free(plan->limits[i].pools[0]);
                free(plan->limits[i].pools[1]);
        }
        free(plan->limits);
}

/* Records the vGPU that dev, a VF or a slot for a mediated device, will have. dev keeps its host driver. 0 or -ENOMEM.
 */
static int add_vgpu(AllocationDevice *d, const HostView *view, const PciDevice *dev, const Pool *pool) {
        VgpuRoom room;

        ledger_vgpu_room(view->ledger, view->grown, view->inventory, dev, pool->vgpu_type, &room);
        d->vgpu_type = room.type;
        d->vgpu_total = room.total;
        return string_copy(&d->vgpu_name, pool->vgpu_type) < 0 ? -ENOMEM : string_copy(&d->vfio_driver, dev->driver);
}

int planner_record_device(AllocationDevice *d, const HostView *view, const PciDevice *dev) {
        const Pool *pool = policy_pool(view->policy, dev);
        const char *reset = pool && pool->reset_method != RESET_METHOD_DEFAULT ? dev->reset_methods : NULL;
        const char *own = view->config->variants ? inventory_variant_driver(view->inventory, dev) : NULL;

        if (string_copy(&d->prior_driver, dev->driver) < 0 ||
            string_copy(&d->prior_override, dev->driver_override) < 0 || string_copy(&d->prior_reset, reset) < 0 ||
            string_copy(&d->vfio_driver, own) < 0)
                return -ENOMEM;
        d->prior_runtime_pm = dev->runtime_pm;
        d->prior_d3cold = dev->d3cold;
        return allocation_device_identify(d, view->inventory, dev);
}

static AllocationDevice *add_planned_device(Allocation *a, const HostView *view, const PciDevice *dev,
                                            DeviceRole role) {
        const Pool *pool = policy_pool(view->policy, dev);
        AllocationDevice *d = allocation_add_device(a, dev->address, role);

        if (!d || planner_record_device(d, view, dev) < 0)
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

/*
 * Adds the members of dev's IOMMU group that have this role, unless the choice or the allocation has them already. 0 or
 * -ENOMEM.
 */
static int add_members(Allocation *a, const HostView *view, const NodeChoice *choice, const PciDevice *dev,
                       GroupRole role, const char *slot) {
        const IommuGroup *g = inventory_find_group(view->inventory, dev->iommu_group);

        for (size_t i = 0; g && i < g->n_members; i++) {
                const PciDevice *m = &view->inventory->devices[g->members[i]];
                AllocationDevice *d;

                if (m == dev || policy_group_role(view->policy, dev, m) != role || is_pick(view, choice, m) ||
                    allocation_find_device(a, m->address))
                        continue;
                d = add_planned_device(a, view, m,
                                       role == GROUP_ROLE_COMPANION ? DEVICE_ROLE_COMPANION : DEVICE_ROLE_HELD);
                if (!d || (slot && string_replace(&d->slot, "%s-%u", slot, m->address.function) < 0))
                        return -ENOMEM;
        }
        return 0;
}

static int add_slot(Allocation *a, const HostView *view, const NodeChoice *choice, const PciDevice *dev,
                    unsigned index) {
        AllocationDevice *d = add_planned_device(a, view, dev, DEVICE_ROLE_ASSIGNED);
        char slot[SLOT_NAME_MAX];

        (void) slot_name(policy_pool(view->policy, dev)->name, index, slot);
        if (!d || string_copy(&d->slot, slot) < 0)
                return -ENOMEM;
        return add_members(a, view, choice, dev, GROUP_ROLE_COMPANION, slot);
}

/* Adds the devices of a pool with their slots. NICs come in the order of their GPUs, so that gpu0 and its NIC have the
 * same index if each GPU has its own NIC. Other devices come by address. */
static int add_pool_slots(Allocation *a, const Planner *p, const NodeChoice *choice, const Pool *pool,
                          const PlanPair *pairs, size_t n_pairs) {
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
                r = add_pool_slots(a, p, choice, p->pools[i].pool, pairs, n_pairs);
        for (size_t i = 0; r == 0 && i < choice->picks.n; i++)
                r = add_members(a, p->context, choice, &p->context->inventory->devices[choice->picks.devices[i]],
                                GROUP_ROLE_HOLD, NULL);
        return r;
}

/* Adds a guest cell for each node of the choice. 0 or -ENOMEM. */
static int add_cells(Allocation *a, const Planner *p, const NodeChoice *choice) {
        const Inventory *inv = p->context->inventory;

        assert(choice->n_nodes > 0 && choice->n_nodes <= ELEMENTSOF(a->cells));
        a->pins = calloc(p->request->cpus, sizeof(*a->pins));
        if (!a->pins)
                return -ENOMEM;
        for (size_t i = 0; i < choice->n_nodes; i++) {
                Cell *cell = &a->cells[a->n_cells++];
                unsigned n = cores_pick(inv, &p->free_cpus[choice->nodes[i]], choice->cpus[i], &a->cpus,
                                        &a->pins[a->n_pins]);

                *cell = (Cell) { .node = inv->nodes[choice->nodes[i]].id, .memory = choice->memory[i] };
                cell->memory_node = inv->nodes[p->memory_node[choice->nodes[i]]].id;
                cell->has_memory_node = cell->memory_node != cell->node;
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
        a->confidential = p->request->confidential;
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
