/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Claims an allocation: checks it against the ledger, and enters it with ledger_enter() (ledger.c). Also computes which
 * memory, CPUs, slots and vGPUs are free. */

#include "ledger/ledger.h"

#include <assert.h>

#include "ledger-internal.h"
#include "model/mdev-slots.h"
#include "model/vgpu.h"
#include "util/strings.h"

static Verdict refuse_held(Refusal *ret, PciAddress address, const Allocation *holder) {
        /* Return early without a sentence: the planner checks all devices, and to format an address takes longer than
         * the check. */
        if (!ret)
                return VERDICT_ALLOCATED;
        return refuse(ret, VERDICT_ALLOCATED, &address, "Release that allocation first.", "%s is held by '%s'.",
                      PCI_ADDRESS_STR(address), holder->name);
}

Verdict ledger_check_kept(const Ledger *l, const DeviceStatusTable *status, PciAddress address, Refusal *ret) {
        const Allocation *q = ledger_find_quarantined(l, address);
        Verdict v = device_status_check(status, address, DEVICE_FOREIGN, ret);

        if (v == VERDICT_NONE)
                v = device_status_check(status, address, DEVICE_ASSIGNED, ret);
        if (v == VERDICT_NONE && q)
                v = refuse(ret, VERDICT_QUARANTINED, &address,
                           "Inspect it, then run 'passthroughctl quarantine --clear DEVICE'.", "%s", q->reason);
        return v != VERDICT_NONE ? v : device_status_check_blocked(status, address, ret);
}

/* Refuses a device that is in quarantine or has a finding that refuses requests. Allocations are not checked. */
static Verdict check_condition(const Ledger *l, const DeviceStatusTable *status, PciAddress address, Refusal *ret) {
        Verdict v;

        /* Return early for the planner, which checks all devices: few have findings. */
        if (l->n_quarantined == 0 && !device_status_find(status, address))
                return VERDICT_NONE;
        v = ledger_check_kept(l, status, address, ret);
        return v != VERDICT_NONE ? v : device_status_check_unhealthy(status, address, ret);
}

/* Refuses a device if a member of its IOMMU group is in another allocation, because a group has only one user
 * (vfio_group_fops_open() in the kernel), or if a member has a finding that refuses requests or is in quarantine. */
static Verdict check_group(const Ledger *l, const DeviceStatusTable *status, const Inventory *inv, const PciDevice *dev,
                           const Allocation *except, Refusal *ret) {
        const IommuGroup *group = inventory_find_group(inv, dev->iommu_group);

        if (group && group->n_members == 1)
                return VERDICT_NONE; /* the only member is dev, which the caller has checked */
        for (size_t i = 0; group && i < group->n_members; i++) {
                const PciDevice *member = &inv->devices[group->members[i]];
                const Allocation *holder = ledger_holder(l, member->address);
                Verdict v;

                if (holder && holder != except)
                        return refuse(ret, VERDICT_ALLOCATED, &dev->address, "Release that allocation first.",
                                      "%s shares IOMMU group %d with %s, which '%s' holds.",
                                      PCI_ADDRESS_STR(dev->address), group->number, PCI_ADDRESS_STR(member->address),
                                      holder->name);
                v = check_condition(l, status, member->address, ret);
                if (v != VERDICT_NONE)
                        return v;
        }
        return VERDICT_NONE;
}

/* Returns the word by which a refusal calls the allocated VFs of the device: "vGPUs" if one of them is a slot for a
 * mediated device, otherwise "VFs". */
static const char *parts_of(const Ledger *l, PciAddress address) {
        for (size_t i = 0; i < l->n_allocations; i++)
                for (size_t j = 0; j < l->allocations[i]->n_devices; j++) {
                        const AllocationDevice *d = &l->allocations[i]->devices[j];

                        if (d->address.instance > 0 && pci_address_equal(d->physfn, address))
                                return "vGPUs";
                }
        return "VFs";
}

static Verdict check_family(const Ledger *l, const DeviceStatusTable *status, bool is_vf, PciAddress address,
                            PciAddress physfn, const Allocation *except, Refusal *ret) {
        const Allocation *holder = is_vf ? ledger_holder(l, physfn) : NULL;

        if (holder && holder != except)
                return refuse(ret, VERDICT_PF_ALLOCATED, &address, "Release that allocation first.",
                              "Its %s %s is held by '%s'.", address.instance > 0 ? "GPU" : "PF",
                              PCI_ADDRESS_STR(physfn), holder->name);
        if (is_vf)
                return check_condition(l, status, physfn, ret);
        if (ledger_pf_use(l, address) > 0)
                return refuse(ret, VERDICT_PF_HAS_VFS, &address, "Release these allocations first.",
                              "%u of its %s %s allocated.", ledger_pf_use(l, address), parts_of(l, address),
                              ARE(ledger_pf_use(l, address)));
        return VERDICT_NONE;
}

/* Refuses a slot while a change of a mediated device of the same GPU hangs in the kernel, because the GPU's mediated
 * devices cannot be read then. */
static Verdict check_neighbours(const DeviceStatusTable *status, const Inventory *inv, const PciDevice *slot,
                                Refusal *ret) {
        const PciDevice *gpu = inventory_find(inv, slot->physfn);
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && gpu && i < gpu->n_vfs; i++)
                v = device_status_check(status, gpu->vfs[i], DEVICE_STUCK, ret);
        return v;
}

Verdict ledger_check_device(const Ledger *l, const DeviceStatusTable *status, const Inventory *inv,
                            const PciDevice *dev, const Allocation *except, Refusal *ret) {
        const Allocation *holder = ledger_holder(l, dev->address);
        bool any = l->n_quarantined > 0 || (status && status->n > 0);
        Verdict v;

        if (holder && holder != except)
                return refuse_held(ret, dev->address, holder);
        v = check_condition(l, status, dev->address, ret);
        for (size_t i = 0; v == VERDICT_NONE && any && i < dev->n_vfs; i++)
                v = check_condition(l, status, dev->vfs[i], ret);
        if (v == VERDICT_NONE && any && pci_device_is_slot(dev))
                v = check_neighbours(status, inv, dev, ret);
        if (v != VERDICT_NONE)
                return v;
        v = check_family(l, status, dev->type == PCI_TYPE_VF, dev->address, dev->physfn, except, ret);
        return v != VERDICT_NONE ? v : check_group(l, status, inv, dev, except, ret);
}

uint64_t ledger_memory_free(const Ledger *l, const Inventory *inv, const Config *config, const NumaNode *node,
                            uint64_t page_size) {
        uint64_t promised = ledger_memory(l, node->id, page_size), idle = ledger_memory_idle(l, node->id, page_size);
        uint64_t have, now = UINT64_MAX;

        if (page_size > 0) {
                const PagePool *pages = numa_node_pages(node, page_size);

                if (!pages)
                        return 0;
                have = pages->total * pages->size;
                now = pages->free * pages->size;
        } else {
                have = numa_node_base_memory(node);
                have -= MIN(have, config->reserve_memory);
                if (node->available_known)
                        now = node->available;
        }
        /*
         * The kernel no longer counts the memory of running guests as free. Idle allocations have yet to take theirs.
         */
        return MIN(have - MIN(have, promised), now - MIN(now, idle));
}

uint64_t ledger_memory_offered(const Ledger *l, const Inventory *inv, const Config *config, const NumaNode *node,
                               uint64_t page_size) {
        return cpuset_is_empty(&node->cpus) ? 0 : ledger_memory_free(l, inv, config, node, page_size);
}

void ledger_cpus_free(const Ledger *l, const Inventory *inv, const Config *config, const NumaNode *node, CpuSet *ret) {
        CpuSet busy = config->housekeeping, free_cpus = node->cpus;

        cpuset_merge(&busy, &l->cpus);
        /* A core is busy if any of its CPUs is: claims are for whole cores. */
        for (size_t i = 0; i < inv->n_cpus; i++)
                if (cpuset_has(&busy, inv->cpus[i].id))
                        cpuset_add(&busy, inv->cpus[i].core);
        for (size_t i = 0; i < inv->n_cpus; i++)
                if (cpuset_has(&busy, inv->cpus[i].core))
                        cpuset_remove(&free_cpus, inv->cpus[i].id);
        *ret = free_cpus;
}

/* Refuses an allocation that has a device twice, or a VF together with its PF. */
static Verdict check_within(const Allocation *a, const AllocationDevice *d, Refusal *ret) {
        for (const AllocationDevice *other = a->devices; other < allocation_devices_end(a); other++) {
                if (other->lost)
                        continue;
                if (other != d && pci_address_equal(other->address, d->address))
                        return refuse(ret, VERDICT_INVALID_REQUEST, &d->address, NULL, "%s appears twice.",
                                      PCI_ADDRESS_STR(d->address));
                if (other->is_vf && pci_address_equal(other->physfn, d->address))
                        return refuse(ret, VERDICT_PF_HAS_VFS, &d->address, NULL,
                                      "%s and its own %s %s are claimed together.", PCI_ADDRESS_STR(d->address),
                                      other->address.instance > 0 ? "vGPU" : "VF", PCI_ADDRESS_STR(other->address));
        }
        return VERDICT_NONE;
}

/* Refuses `a` if the ledger alone shows that another allocation has its name, a device, the PF or a VF of a device, a
 * CPU, or a region with other properties. Also refuses `a` if the PF of a VF is in quarantine, if the ledger has no
 * room for another allocation or region, or if `a` has a device twice, or a VF together with its PF. */
static Verdict check_promises(const Ledger *l, const Allocation *a, Refusal *ret) {
        if (ledger_find(l, a->name))
                return refuse(ret, VERDICT_NAME_TAKEN, NULL, "Release it first, or choose another name.",
                              "There is already an allocation '%s'.", a->name);
        if (l->n_allocations >= LEDGER_ALLOCATIONS_MAX)
                return refuse(ret, VERDICT_LIMIT, NULL, "Release an allocation first.",
                              "There are already %u allocations, the most there can be.", LEDGER_ALLOCATIONS_MAX);
        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                const Allocation *holder = ledger_holder(l, d->address);
                Verdict v;

                if (d->lost)
                        continue;
                if (holder)
                        return refuse_held(ret, d->address, holder);
                v = check_within(a, d, ret);
                if (v != VERDICT_NONE)
                        return v;
                v = check_family(l, NULL, d->is_vf, d->address, d->physfn, NULL, ret);
                if (v != VERDICT_NONE)
                        return v;
        }
        if (cpuset_intersects(&l->cpus, &a->cpus))
                return refuse(ret, VERDICT_INSUFFICIENT_CPUS, NULL, NULL,
                              "A CPU of '%s' is pinned by another allocation.", a->name);
        return ledger_check_regions(l, a, ret);
}

/* Refuses if the node lacks the memory that the allocation's cells and new regions want in pages of this size. */
static Verdict check_memory(const Ledger *l, const Inventory *inv, const Config *config, const Allocation *a, int id,
                            uint64_t page_size, Refusal *ret) {
        const NumaNode *node = inventory_find_node(inv, id);
        uint64_t wanted = ledger_new_regions(l, a, id, page_size), have;

        if (!node)
                return refuse(ret, VERDICT_INSUFFICIENT_MEMORY, NULL, NULL, "There is no NUMA node %d.", id);
        for (size_t i = 0; i < a->n_cells && page_size == a->page_size; i++)
                if (cell_memory_node(&a->cells[i]) == id && __builtin_add_overflow(wanted, a->cells[i].memory, &wanted))
                        wanted = UINT64_MAX;
        have = ledger_memory_free(l, inv, config, node, page_size);
        if (wanted <= have)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_INSUFFICIENT_MEMORY, NULL, NULL, "NUMA node %d has %s left, %s are wanted.", id,
                      FORMAT_SIZE(have), FORMAT_SIZE_WANTED(wanted));
}

static Verdict check_capacity(const Ledger *l, const Inventory *inv, const Config *config, const Allocation *a,
                              Refusal *ret) {
        CpuSet missing = a->cpus;

        for (size_t i = 0; i < a->n_cells; i++) {
                Verdict v = check_memory(l, inv, config, a, cell_memory_node(&a->cells[i]), a->page_size, ret);
                const NumaNode *node = inventory_find_node(inv, a->cells[i].node);
                CpuSet free_cpus = { 0 };

                if (v != VERDICT_NONE)
                        return v;
                if (node) /* if the inventory lacks the node, all its CPUs count as missing */
                        ledger_cpus_free(l, inv, config, node, &free_cpus);
                cpuset_subtract(&missing, &free_cpus);
        }
        for (size_t i = 0; i < a->n_regions; i++) {
                const Region *r = &a->regions[i];
                Verdict v = ledger_find_region(l, r->name)
                                    ? VERDICT_NONE
                                    : check_memory(l, inv, config, a, r->node, r->page_size, ret);

                if (v != VERDICT_NONE)
                        return v;
        }
        if (!cpuset_is_empty(&missing))
                return refuse(ret, VERDICT_INSUFFICIENT_CPUS, NULL, NULL, "CPU %d is not free.",
                              cpuset_next(&missing, 0));
        return VERDICT_NONE;
}

unsigned ledger_slots_free(const Ledger *l, const Config *config, const EndpointStatusTable *status,
                           const char *endpoint) {
        unsigned slots = config_endpoint_slots(config, endpoint);

        if (endpoint_status_state(status, endpoint) == ENDPOINT_STATE_DOWN)
                return 0;
        return slots - MIN(slots, ledger_slots(l, endpoint));
}

/* Refuses more slots than the endpoint has left. The planner has checked that the endpoint is in service. */
static Verdict check_slots(const Ledger *l, const Config *config, const Allocation *a, Refusal *ret) {
        for (size_t i = 0; i < a->n_services; i++) {
                const AllocationService *s = &a->services[i];
                unsigned n_free = ledger_slots_free(l, config, NULL, s->endpoint);

                if (s->slots > n_free)
                        return refuse(ret, VERDICT_INSUFFICIENT_SLOTS, NULL, NULL,
                                      "%s has %u slot%s left, %u %s wanted.", s->endpoint, n_free, PLURAL(n_free),
                                      s->slots, ARE(s->slots));
        }
        return VERDICT_NONE;
}

Verdict ledger_claim(Ledger *l, const Inventory *inv, const Config *config, Allocation *a, Refusal *ret) {
        Verdict v;

        if (l->read_only)
                return refuse(ret, VERDICT_READ_ONLY, NULL, NULL, "%s", l->read_only);
        v = check_promises(l, a, ret);
        if (v != VERDICT_NONE)
                return v;
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(inv, a->devices[i].address);

                if (!dev)
                        return refuse(ret, VERDICT_NO_SUCH_DEVICE, &a->devices[i].address, NULL,
                                      "%s is not on this node.", PCI_ADDRESS_STR(a->devices[i].address));
                v = ledger_check_device(l, NULL, inv, dev, NULL, ret);
                if (v != VERDICT_NONE)
                        return v;
        }
        v = ledger_check_vgpus(l, inv, a, ret);
        if (v == VERDICT_NONE)
                v = check_capacity(l, inv, config, a, ret);
        if (v == VERDICT_NONE)
                v = check_slots(l, config, a, ret);
        if (v != VERDICT_NONE)
                return v;
        if (ledger_enter(l, a) < 0)
                return refuse_no_memory(ret);
        return VERDICT_NONE;
}

Verdict ledger_adopt(Ledger *l, Allocation *a, Refusal *ret) {
        Verdict v = check_promises(l, a, ret);

        if (v != VERDICT_NONE)
                return v;
        if (ledger_enter(l, a) < 0)
                return refuse_no_memory(ret);
        return VERDICT_NONE;
}

Ledger *ledger_copy(const Ledger *l) {
        _cleanup_(cleanup_ledger_free) Ledger *copy = ledger_new();

        for (size_t i = 0; copy && i < l->n_allocations; i++) {
                _cleanup_(cleanup_allocation_free) Allocation *a = allocation_copy(l->allocations[i]);

                if (!a || ledger_adopt(copy, a, NULL) != VERDICT_NONE)
                        return NULL;
                a = NULL;
        }
        for (size_t i = 0; copy && i < l->n_quarantined; i++) {
                _cleanup_(cleanup_allocation_free) Allocation *a = allocation_copy(l->quarantined[i]);

                if (!a || ledger_quarantine(copy, a) < 0)
                        return NULL;
                a = NULL;
        }
        return TAKE_PTR(copy);
}

/* The vGPUs of one GPU, on its VFs or in its slots for mediated devices. */
typedef struct Fill {
        unsigned present; /* vGPUs that exist */
        unsigned pending; /* allocated vGPUs that do not exist yet: no job has made them, or a lease reserves them */
        bool others;      /* an existing or pending vGPU is not of the requested type */
        bool others_pending;
        unsigned total; /* the largest vgpu_total of the allocated vGPUs of this type; 0 unknown */
} Fill;

static const AllocationDevice *find_promise(const Ledger *l, const Allocation *grown, const PciDevice *vf) {
        const Allocation *holder = ledger_holder(l, vf->address) ?: grown;

        return holder ? allocation_find_device(holder, vf->address) : NULL;
}

/* Counts the vGPU of a VF. `d`: the VF in its allocation; NULL if no allocation has the VF. */
static void add(Fill *f, const AllocationDevice *d, const PciDevice *vf, const char *name, unsigned type) {
        bool promised = d && d->vgpu_type > 0, present = vf->vgpu_type > 0;

        if (!present && !promised)
                return;
        f->present += present;
        f->pending += !present;
        if (present ? vf->vgpu_type != type : !streq(d->vgpu_name, name)) {
                f->others = true;
                f->others_pending |= !present;
        } else if (promised)
                f->total = MAX(f->total, d->vgpu_total);
}

/* Returns how many more mediated devices of the type the GPU can have beside the pending ones. 0 if a pending one has
 * another type. */
static unsigned slots_further(const PciDevice *slot, const char *name, const Fill *f) {
        unsigned available = f->others_pending ? 0 : vgpu_types_available(slot->vgpu_types, name);

        return available - MIN(available, f->pending);
}

/* By default all vGPUs of a GPU have one size: then the total for the type is exact. With mixed or unknown sizes only
 * the driver knows how many fit: at least one, while it lists the type. */
void ledger_vgpu_room(const Ledger *l, const Allocation *grown, const Inventory *inv, const PciDevice *vf,
                      const char *name, VgpuRoom *ret) {
        const PciDevice *pf = inventory_find(inv, vf->physfn);
        Fill f = { 0 };
        unsigned total;

        *ret = (VgpuRoom) { .type = vgpu_types_find(vf->vgpu_types, name) };
        for (size_t i = 0; pf && i < pf->n_vfs; i++) {
                const PciDevice *sibling = inventory_find(inv, pf->vfs[i]);

                if (sibling)
                        add(&f, find_promise(l, grown, sibling), sibling, name, ret->type);
        }
        if (pci_device_is_slot(vf))
                ret->further = slots_further(vf, name, &f);
        if (pci_device_is_slot(vf) || ret->type == 0 || (f.others && f.pending > 0))
                return;
        if (f.present == 0)
                f.total = vgpu_types_capacity(vf->vgpu_types, name);
        ret->total = f.others ? 0 : f.total;
        total = ret->total > 0 ? ret->total : f.present + 1;
        ret->further = total - MIN(total, f.present + f.pending);
}

Verdict ledger_check_vgpus(const Ledger *l, const Inventory *inv, const Allocation *a, Refusal *ret) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                const PciDevice *vf = inventory_find(inv, d->address);
                bool mixed = false;
                unsigned wanted = 0;
                VgpuRoom room;

                if (d->vgpu_type == 0)
                        continue;
                assert(vf && ledger_holder(l, d->address) != a);
                for (const AllocationDevice *e = a->devices; e < allocation_devices_end(a); e++)
                        if (e->vgpu_type > 0 && pci_address_equal(e->physfn, d->physfn)) {
                                mixed = mixed || e->vgpu_type != d->vgpu_type;
                                wanted++;
                        }
                ledger_vgpu_room(l, NULL, inv, vf, d->vgpu_name, &room);
                if (room.type != d->vgpu_type || mixed || wanted > room.further)
                        return refuse(ret, VERDICT_NO_VGPU, &d->address, NULL,
                                      "The GPU %s has room for %u more vGPU%s of type '%s', %u %s wanted.",
                                      PCI_ADDRESS_STR(d->physfn), room.further, PLURAL(room.further), d->vgpu_name,
                                      wanted, ARE(wanted));
        }
        return VERDICT_NONE;
}
