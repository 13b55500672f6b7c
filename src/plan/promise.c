/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks the configuration against the ledger, and the node against what the ledger promised. */

#include "plan/promise.h"

#include <inttypes.h>

#include "model/mdev-slots.h"
#include "model/vgpu.h"
#include "util/strings.h"

/* Returns the claimed device if it is a PF. NULL: it is no PF, is missing, or was replaced by another card. */
static const PciDevice *claimed_pf(const Policy *p, const Claim *claim) {
        const PciDevice *dev = inventory_find(p->inventory, claim->address);

        return dev && dev->type == PCI_TYPE_PF &&
                               allocation_device_is(allocation_find_device(claim->allocation, claim->address), dev)
                       ? dev
                       : NULL;
}

static Verdict check_claim(const Policy *p, const Claim *claim, Refusal *ret) {
        const char *remedy = "Release the allocation first, or leave the VFs out of the pools.";
        const PciDevice *pf = claimed_pf(p, claim);
        const Pool *pool = pf ? policy_vf_pool(p, pf) : NULL;

        for (size_t i = 0; pf && i < pf->n_vfs; i++) {
                const PciDevice *vf = inventory_find(p->inventory, pf->vfs[i]);
                const Pool *offer = vf && policy_offers(p, vf) ? policy_pool(p, vf) : NULL;

                if (offer)
                        return refuse(
                                ret, VERDICT_INVALID_REQUEST, &pf->address, remedy,
                                "The PF %s is held by '%s', and pool '%s' (%s:%u) offers its VF %s: the same hardware "
                                "would be allocated twice.",
                                PCI_ADDRESS_STR(pf->address), claim->allocation->name, offer->name, offer->place.file,
                                offer->place.line, PCI_ADDRESS_STR(vf->address));
        }
        /* A display may be allocated by force, although a pool wants VFs on it. While it is allocated, the daemon
         * creates none (plan_check_pf_free()), so there is no conflict. */
        if (!pool || pci_device_is_display(pf))
                return VERDICT_NONE;
        return refuse(
                ret, VERDICT_INVALID_REQUEST, &pf->address, remedy,
                "The PF %s is held by '%s', and VirtualFunctions= of pool '%s' (%s:%u) would create VFs on it: the "
                "same hardware would be allocated twice.",
                PCI_ADDRESS_STR(pf->address), claim->allocation->name, pool->name, pool->place.file, pool->place.line);
}

Verdict promise_check_config(const Policy *p, const Ledger *l, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < l->n_claims; i++)
                v = check_claim(p, &l->claims[i], ret);
        return v;
}

bool device_left_pools(const Policy *p, const Allocation *holder, const PciDevice *dev) {
        const AllocationDevice *d = allocation_find_device(holder, dev->address);

        if (!d || !d->pool || !allocation_device_is(d, dev))
                return false;
        /* While block_reason is set, devices that no line excludes have VERDICT_EXCLUDED too: assume no exclusion. */
        return !policy_pool(p, dev) || (!p->config->block_reason && policy_verdict(p, dev) == VERDICT_EXCLUDED);
}

bool allocation_left_pools(const Policy *p, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(p->inventory, a->devices[i].address);

                if (dev && device_left_pools(p, a, dev))
                        return true;
        }
        return false;
}

static Verdict refuse_missing(const AllocationDevice *d, Refusal *ret) {
        return refuse(ret, VERDICT_MISSING, &d->address, "Plug the card in again, or release the allocation.",
                      d->lost ? "The card that had the address %s is no longer on this node."
                              : "%s is no longer on this node.",
                      PCI_ADDRESS_STR(d->address));
}

static Verdict refuse_stranger(const Allocation *a, const AllocationDevice *d, Refusal *ret) {
        _cleanup_free_ char *remedy = NULL;

        (void) string_replace(&remedy, "Run 'passthroughctl accept %s' to accept the new card, or release '%s'.",
                              a->name, a->name);
        return refuse(ret, VERDICT_HARDWARE_CHANGED, &d->address, remedy, "%s is not the card that was allocated.",
                      PCI_ADDRESS_STR(d->address));
}

static Verdict refuse_shared_group(const Allocation *a, const PciDevice *dev, const PciDevice *member,
                                   const Allocation *holder, Refusal *ret) {
        _cleanup_free_ char *remedy = NULL;

        (void) string_replace(&remedy,
                              "Shut down its guest and release '%s' or '%s'; or move one of the cards to a slot with "
                              "its own IOMMU group.",
                              a->name, holder->name);
        return refuse(ret, VERDICT_GROUP_NOT_VIABLE, &dev->address, remedy,
                      "IOMMU group %d contains %s of '%s' and %s of '%s', but only one guest can use a group.",
                      dev->iommu_group, PCI_ADDRESS_STR(dev->address), a->name, PCI_ADDRESS_STR(member->address),
                      holder->name);
}

static Verdict refuse_host_driver(const Allocation *a, const PciDevice *dev, const PciDevice *member, Refusal *ret) {
        const char *address = PCI_ADDRESS_STR(member->address);
        _cleanup_free_ char *remedy = NULL;

        (void) string_replace(&remedy,
                              "Unplug %s, or unbind its driver: 'echo %s >/sys/bus/pci/devices/%s/driver/unbind'. This "
                              "does not disturb a guest of '%s'.",
                              address, address, address, a->name);
        return refuse(ret, VERDICT_GROUP_NOT_VIABLE, &dev->address, remedy,
                      "IOMMU group %d of %s, held by '%s', also contains %s, which is bound to %s.", dev->iommu_group,
                      PCI_ADDRESS_STR(dev->address), a->name, address, member->driver);
}

/* Checks that no other allocation has a member of dev's IOMMU group, and that no member outside of `a` has a host
 * driver. VFIO gives a group to one user at a time, and only if no member has a host driver (drivers/iommu/iommu.c and
 * drivers/vfio/group.c). */
static Verdict check_group(const HostView *view, const Allocation *a, const PciDevice *dev, Refusal *ret) {
        const IommuGroup *group = inventory_find_group(view->inventory, dev->iommu_group);

        if (!group)
                return refuse(ret, VERDICT_NO_IOMMU, &dev->address, inventory_iommu_remedy(view->inventory),
                              "%s no longer has an IOMMU group: its DMA cannot be confined to a guest.",
                              PCI_ADDRESS_STR(dev->address));
        for (size_t i = 0; i < group->n_members; i++) {
                const PciDevice *member = &view->inventory->devices[group->members[i]];
                const Allocation *holder;

                if (allocation_find_device(a, member->address))
                        continue;
                holder = ledger_holder(view->ledger, member->address);
                if (holder && !streq(holder->name, a->name))
                        return refuse_shared_group(a, dev, member, holder, ret);
                if (!pci_device_driver_is_harmless(member))
                        return refuse_host_driver(a, dev, member, ret);
        }
        return VERDICT_NONE;
}

/* Checks that the vGPU of `d` exists or can be made. A VF that is allocated as a whole must not have a vGPU. */
static Verdict check_vgpu(const Allocation *a, const AllocationDevice *d, const PciDevice *dev, Refusal *ret) {
        if (d->vgpu_type == 0 && dev->vgpu_type == 0)
                return VERDICT_NONE;
        if (d->vgpu_type == 0)
                return refuse(ret, VERDICT_CONTESTED, &d->address,
                              "Release it where it was made, or release the allocation.",
                              "%s is held by '%s' as a whole, but has a vGPU of type %u that another program created.",
                              PCI_ADDRESS_STR(d->address), a->name, dev->vgpu_type);
        if (!dev->vgpu_types || dev->mdev_parent != (*d->mdev != '\0'))
                return refuse(ret, VERDICT_NO_VGPU, &d->address,
                              "See whether NVIDIA's vGPU manager runs on this node. The daemon then creates the vGPU "
                              "again.",
                              "%s of '%s' is bound to %s and has no %s in sysfs.", PCI_ADDRESS_STR(d->address), a->name,
                              dev->driver ?: "no driver",
                              *d->mdev ? "mdev_supported_types" : "nvidia/creatable_vgpu_types");
        if (allocation_device_has_vgpu(d, dev))
                return VERDICT_NONE;
        if (dev->vgpu_type > 0)
                return refuse(ret, VERDICT_CONTESTED, &d->address,
                              "Release it where it was made, or release the allocation.",
                              "%s is held by '%s' with a vGPU of type %u, but has one of type %u that another program "
                              "created.",
                              PCI_ADDRESS_STR(d->address), a->name, d->vgpu_type, dev->vgpu_type);
        if (vgpu_types_find(dev->vgpu_types, d->vgpu_name) == d->vgpu_type)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_NO_VGPU, &d->address,
                      "Remove vGPUs that other programs made on the GPU, or release the allocation.",
                      "The GPU of %s, held by '%s', can have no vGPU of type '%s' now.", PCI_ADDRESS_STR(d->address),
                      a->name, d->vgpu_name);
}

static Verdict check_present(const HostView *view, const Allocation *a, const AllocationDevice *d,
                             const PciDevice **ret_dev, Refusal *ret) {
        const PciDevice *dev = d->lost ? NULL : inventory_find(view->inventory, d->address);
        Verdict v;

        if (!dev)
                return refuse_missing(d, ret);
        if (!allocation_device_is(d, dev))
                return refuse_stranger(a, d, ret);
        *ret_dev = dev;
        /* A mediated device has its own IOMMU group, with no other member. */
        v = pci_device_is_slot(dev) ? VERDICT_NONE : check_group(view, a, dev, ret);
        return v == VERDICT_NONE ? check_vgpu(a, d, dev, ret) : v;
}

/* Checks that the VF of a ready allocation has the promised attributes, by the report of its PF. The guest of a trusted
 * VF may change its MAC. */
static Verdict check_attributes(const HostView *view, const Allocation *a, const AllocationDevice *d, Refusal *ret) {
        const VfAttributes *report = view->vfs && d->is_vf ? vf_report_find(view->vfs, d->address) : NULL;
        VfAttributes promised = d->attributes, now;
        _cleanup_free_ char *wanted = NULL, *found = NULL, *remedy = NULL;
        unsigned differ;

        if (!report || a->state != ALLOCATION_READY)
                return VERDICT_NONE;
        differ = vf_attributes_differ(&promised, report) & report->set;
        if (vf_attributes_have(&promised, VF_TRUST) && promised.value[VF_TRUST])
                differ &= ~VF_ATTRIBUTE_BIT(VF_MAC);
        if (differ == 0)
                return VERDICT_NONE;
        now = *report;
        vf_attributes_keep(&promised, differ);
        vf_attributes_keep(&now, differ);
        wanted = vf_attributes_format(&promised);
        found = vf_attributes_format(&now);
        (void) string_replace(
                &remedy,
                "Give VF %d of %s %s again, for example with 'ip link set dev INTERFACE vf %d'; this does not disturb "
                "its guest. Then find out what changed the VF.",
                d->vf_index, PCI_ADDRESS_STR(d->physfn), wanted ?: "", d->vf_index);
        return refuse(ret, VERDICT_CONTESTED, &d->address, remedy,
                      "The VF %s was promised to '%s' with %s, but its PF %s reports %s.", PCI_ADDRESS_STR(d->address),
                      a->name, wanted ?: "", PCI_ADDRESS_STR(d->physfn), found ?: "");
}

static Verdict refuse_no_driver(const Allocation *a, const AllocationDevice *d, const char *driver, Refusal *ret) {
        _cleanup_free_ char *remedy = NULL;

        (void) string_replace(&remedy,
                              "Load its module: systemctl start modprobe@%s.service. The daemon then binds the device.",
                              policy_driver_module(driver));
        return refuse(ret, VERDICT_NO_VFIO_DRIVER, &d->address, remedy,
                      "The kernel has no driver %s, which %s of '%s' needs.", driver, PCI_ADDRESS_STR(d->address),
                      a->name);
}

Verdict promise_check_device(const HostView *view, const Allocation *a, const AllocationDevice *d, Refusal *ret) {
        const char *driver = allocation_driver(a, d);
        const PciDevice *dev;
        Verdict v;

        if (!allocation_device_is_settled(d))
                return VERDICT_NONE;
        v = check_present(view, a, d, &dev, ret);
        if (v != VERDICT_NONE)
                return v;
        v = device_status_check(view->status, d->address, DEVICE_STUCK, ret);
        if (v != VERDICT_NONE || device_status_get(view->status, d->address, DEVICE_BUSY))
                return v;
        if (a->state == ALLOCATION_READY && d->vgpu_type > 0 && dev->vgpu_type == 0)
                return refuse(ret, VERDICT_NO_VGPU, &d->address, "The daemon creates it again.",
                              "The vGPU of %s, held by '%s', was removed outside the daemon.",
                              PCI_ADDRESS_STR(d->address), a->name);
        if (a->state != ALLOCATION_READY || streq_ptr(dev->driver, driver))
                return check_attributes(view, a, d, ret);
        if (!inventory_may_have_driver(view->inventory, driver))
                return refuse_no_driver(a, d, driver, ret);
        return refuse(ret, VERDICT_CONTESTED, &d->address,
                      pci_device_has_vfs(dev)
                              ? "Release the allocation, which does not change the driver of the PF; or remove the VFs "
                                "of the PF and restart the daemon, which binds the PF again."
                              : "Find out what unbound the device. A restart of the daemon binds it again; a release "
                                "does not change its driver.",
                      "%s is held by '%s', but was unbound from %s outside the daemon; it %s%s.",
                      PCI_ADDRESS_STR(d->address), a->name, driver, dev->driver ? "is bound to " : "has no driver",
                      dev->driver ?: "");
}

Verdict promise_check_hardware(const HostView *view, const Allocation *a, Refusal *ret) {
        const PciDevice *dev;
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++)
                if (allocation_device_is_settled(&a->devices[i]))
                        v = check_present(view, a, &a->devices[i], &dev, ret);
        return v;
}

static Verdict check_cpus(const HostView *view, const Allocation *a, Refusal *ret) {
        CpuSet offline = a->cpus;
        _cleanup_free_ char *text = NULL;

        /* No CPUs in the inventory: they could not be read, so nothing is known against the promise. */
        if (view->inventory->n_cpus == 0)
                return VERDICT_NONE;
        for (size_t i = 0; i < view->inventory->n_cpus; i++)
                cpuset_remove(&offline, view->inventory->cpus[i].id);
        if (cpuset_is_empty(&offline))
                return VERDICT_NONE;
        text = cpuset_format(&offline);
        return refuse(ret, VERDICT_INSUFFICIENT_CPUS, NULL,
                      "Bring them online: 'echo 1 >/sys/devices/system/cpu/cpuN/online'. A running guest "
                      "continues; pin its vCPUs again with 'virsh vcpupin'.",
                      "CPUs %s of '%s' are offline.", text ?: "?", a->name);
}

static Verdict refuse_memory(const NumaNode *node, uint64_t page_size, uint64_t have, uint64_t promised, Refusal *ret) {
        if (page_size > 0)
                return refuse(ret, VERDICT_INSUFFICIENT_MEMORY, NULL,
                              "Write the promised number to nr_hugepages of the node in /sys/devices/system/node, or "
                              "reserve the pages on the kernel command line. This does not disturb running guests. "
                              "Then run 'passthroughctl rescan'.",
                              "NUMA node %d has %" PRIu64 " page%s of %s, but %" PRIu64 " %s promised to allocations.",
                              node->id, have / page_size, PLURAL(have / page_size), FORMAT_SIZE(page_size),
                              promised / page_size, ARE(promised / page_size));
        return refuse(ret, VERDICT_INSUFFICIENT_MEMORY, NULL,
                      "Reserve fewer hugepages on the node, or bring its memory online. Then run "
                      "'passthroughctl rescan'.",
                      "NUMA node %d has %s of memory in ordinary pages, but %s are promised to allocations.", node->id,
                      FORMAT_SIZE(have), FORMAT_SIZE_WANTED(promised));
}

static Verdict check_cell(const HostView *view, const Allocation *a, const Cell *cell, Refusal *ret) {
        const NumaNode *node = inventory_find_node(view->inventory, cell_memory_node(cell));
        const PagePool *pages = node && a->page_size > 0 ? numa_node_pages(node, a->page_size) : NULL;
        uint64_t have, promised = ledger_memory(view->ledger, cell_memory_node(cell), a->page_size);

        if (!node)
                return refuse(ret, VERDICT_INSUFFICIENT_MEMORY, NULL,
                              "Bring its memory online again, then run 'passthroughctl rescan'.",
                              "NUMA node %d, on which '%s' has memory, is no longer present.", cell_memory_node(cell),
                              a->name);
        have = a->page_size == 0 ? numa_node_base_memory(node) : pages ? pages->total * pages->size : 0;
        if (a->status.domain || promised <= have)
                return VERDICT_NONE;
        return refuse_memory(node, a->page_size, have, promised, ret);
}

static Verdict check_region(const SharedRegion *s, const Allocation *a, Refusal *ret) {
        char file[REGION_FILE_MAX];

        if (!s || !s->removed)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_INSUFFICIENT_MEMORY, NULL,
                      "Shut down the guests that share it, release their allocations and allocate again. Running "
                      "guests keep the memory that they have mapped.",
                      "The file /dev/shm/%s with the shared memory '%s' of '%s' was removed.",
                      region_file(&s->region, file), s->region.name, a->name);
}

static Verdict check_partition(const Allocation *a, Refusal *ret) {
        if (!a->status.partition_lost)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_CONTESTED, NULL,
                      "If a guest runs with it, shut the guest down: it has no NVLink. The daemon then activates the "
                      "partition again.",
                      "NVLink partition %d of '%s' is not active: %s", a->partition, a->name, a->status.partition_lost);
}

Verdict promise_check_kept(const HostView *view, const Allocation *a, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++)
                v = promise_check_device(view, a, &a->devices[i], ret);
        if (v == VERDICT_NONE)
                v = check_partition(a, ret);
        if (v == VERDICT_NONE)
                v = check_cpus(view, a, ret);
        for (size_t i = 0; v == VERDICT_NONE && i < a->n_cells; i++)
                v = check_cell(view, a, &a->cells[i], ret);
        for (size_t i = 0; v == VERDICT_NONE && i < a->n_regions; i++)
                v = check_region(a->shared[i], a, ret);
        return v;
}
