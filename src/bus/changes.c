/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshots of the properties of devices and allocations, and their comparison. */

#include "bus/changes.h"

#include "model/pcilink.h"
#include "plan/device-state.h"
#include "util/digest.h"

const char *const device_property_names[_DEVICE_PROPERTY_MAX] = {
        [DEVICE_PROPERTY_POOL] = "Pool",
        [DEVICE_PROPERTY_STATE] = "State",
        [DEVICE_PROPERTY_REASON] = "Reason",
        [DEVICE_PROPERTY_REMEDY] = "Remedy",
        [DEVICE_PROPERTY_DRIVER] = "Driver",
        [DEVICE_PROPERTY_KERNEL_NAMES] = "KernelNames",
        [DEVICE_PROPERTY_LINK_GENERATION] = "LinkGeneration",
        [DEVICE_PROPERTY_LINK_WIDTH] = "LinkWidth",
        [DEVICE_PROPERTY_MAX_LINK_GENERATION] = "MaxLinkGeneration",
        [DEVICE_PROPERTY_MAX_LINK_WIDTH] = "MaxLinkWidth",
        [DEVICE_PROPERTY_IOMMU_GROUP] = "IommuGroup",
        [DEVICE_PROPERTY_ALLOCATION] = "Allocation",
};

static uint64_t identity_digest(const PciDevice *dev) {
        uint64_t digest = digest_string(DIGEST_START, dev->name);

        digest = digest_number(digest, dev->class);
        digest = digest_number(digest, dev->numa_node);
        digest = digest_number(digest, dev->type == PCI_TYPE_VF);
        if (dev->type == PCI_TYPE_VF)
                digest = digest_number(digest, (int64_t) pci_address_key(dev->physfn));
        return digest;
}

DeviceSnapshot device_snapshot(const HostView *view, const PciDevice *dev) {
        _cleanup_refusal_ Refusal why = { 0 };
        DeviceState state = device_state(view, dev, &why);
        const Pool *pool = policy_pool(view->policy, dev);
        const Allocation *holder = ledger_holder(view->ledger, dev->address);

        return (DeviceSnapshot){
                .address = dev->address,
                .identity = identity_digest(dev),
                .values = {
                        [DEVICE_PROPERTY_POOL] = digest_string(DIGEST_START, pool ? pool->name : NULL),
                        [DEVICE_PROPERTY_STATE] = state,
                        [DEVICE_PROPERTY_REASON] = digest_string(DIGEST_START, why.message),
                        [DEVICE_PROPERTY_REMEDY] = digest_string(DIGEST_START, why.remedy),
                        [DEVICE_PROPERTY_DRIVER] = digest_string(DIGEST_START, dev->driver),
                        [DEVICE_PROPERTY_KERNEL_NAMES] = digest_string(DIGEST_START, dev->kernel_names),
                        [DEVICE_PROPERTY_LINK_GENERATION] = pci_link_generation(dev->current_speed),
                        [DEVICE_PROPERTY_LINK_WIDTH] = dev->current_width,
                        [DEVICE_PROPERTY_MAX_LINK_GENERATION] = pci_link_generation(dev->link_speed),
                        [DEVICE_PROPERTY_MAX_LINK_WIDTH] = dev->link_width,
                        [DEVICE_PROPERTY_IOMMU_GROUP] = (uint64_t) dev->iommu_group,
                        [DEVICE_PROPERTY_ALLOCATION] = digest_string(DIGEST_START, holder ? holder->name : NULL),
                },
        };
}

unsigned device_snapshot_differences(const DeviceSnapshot *before, const DeviceSnapshot *now) {
        unsigned properties = 0;

        for (unsigned i = 0; i < _DEVICE_PROPERTY_MAX; i++)
                if (before->values[i] != now->values[i])
                        properties |= 1U << i;
        return properties;
}

const char *const allocation_property_names[_ALLOCATION_PROPERTY_MAX] = {
        [ALLOCATION_PROPERTY_STATE] = "State",           [ALLOCATION_PROPERTY_REASON] = "Reason",
        [ALLOCATION_PROPERTY_GENERATION] = "Generation", [ALLOCATION_PROPERTY_DEVICES] = "Devices",
        [ALLOCATION_PROPERTY_LEASE_END] = "LeaseEnd",    [ALLOCATION_PROPERTY_SHARED_MEMORY] = "SharedMemory",
        [ALLOCATION_PROPERTY_DOMAIN] = "Domain",
};

static uint64_t devices_digest(const Allocation *a) {
        uint64_t digest = DIGEST_START;

        for (size_t i = 0; i < a->n_devices; i++) {
                digest = digest_string(digest, a->devices[i].slot);
                digest = digest_number(digest, (int64_t) pci_address_key(a->devices[i].address));
        }
        return digest;
}

/* Computes a digest of the allocations that share regions with `a`. Only they can change: the regions of an allocation
 * stay the same. */
static uint64_t members_digest(const Allocation *a) {
        uint64_t digest = DIGEST_START;

        for (size_t i = 0; i < a->n_regions; i++)
                for (size_t j = 0; a->shared[i] && j < a->shared[i]->n_members; j++)
                        digest = digest_string(digest, a->shared[i]->members[j]->name);
        return digest;
}

unsigned allocation_note_shown(Allocation *a) {
        const uint64_t now[_ALLOCATION_PROPERTY_MAX] = {
                [ALLOCATION_PROPERTY_STATE] = (uint64_t) allocation_shown_state(a),
                [ALLOCATION_PROPERTY_REASON] = digest_string(DIGEST_START, a->reason),
                [ALLOCATION_PROPERTY_GENERATION] = a->generation,
                [ALLOCATION_PROPERTY_DEVICES] = devices_digest(a),
                [ALLOCATION_PROPERTY_LEASE_END] = a->lease_end,
                [ALLOCATION_PROPERTY_SHARED_MEMORY] = members_digest(a),
                [ALLOCATION_PROPERTY_DOMAIN] = digest_string(DIGEST_START, a->status.domain),
        };
        unsigned properties = 0;

        for (unsigned i = 0; i < _ALLOCATION_PROPERTY_MAX; i++)
                if (a->status.shown[i] != now[i])
                        properties |= 1U << i;
        memcpy(a->status.shown, now, sizeof(now));
        return properties;
}

DeviceSnapshotList *device_snapshot_list_new(const HostView *view) {
        _cleanup_(cleanup_device_snapshot_list_free) DeviceSnapshotList *l = calloc(1, sizeof(*l));

        if (!l)
                return NULL;
        l->snapshots = calloc(view->inventory->n_devices + 1, sizeof(*l->snapshots));
        if (!l->snapshots)
                return NULL;
        for (; l->n < view->inventory->n_devices; l->n++)
                l->snapshots[l->n] = device_snapshot(view, &view->inventory->devices[l->n]);
        return TAKE_PTR(l);
}

DeviceSnapshotList *device_snapshot_list_free(DeviceSnapshotList *l) {
        if (!l)
                return NULL;
        free(l->snapshots);
        free(l);
        return NULL;
}

static int snapshot_compare(const void *key, const void *element) {
        return pci_address_compare(*(const PciAddress *) key, ((const DeviceSnapshot *) element)->address);
}

DeviceSnapshot *device_snapshot_list_find(const DeviceSnapshotList *l, PciAddress address) {
        return bsearch(&address, l->snapshots, l->n, sizeof(*l->snapshots), snapshot_compare);
}

void device_snapshot_lists_compare(const DeviceSnapshotList *before, const DeviceSnapshotList *now,
                                   const ChangeHandler *handler, void *userdata) {
        size_t i = 0, j = 0;

        while (i < before->n || j < now->n) {
                const DeviceSnapshot *a = i < before->n ? &before->snapshots[i] : NULL;
                const DeviceSnapshot *b = j < now->n ? &now->snapshots[j] : NULL;
                int order = !a ? 1 : !b ? -1 : pci_address_compare(a->address, b->address);
                bool same = order == 0 && a->identity == b->identity;

                if (same && device_snapshot_differences(a, b) != 0)
                        handler->changed(b->address, device_snapshot_differences(a, b), userdata);
                if (!same && order <= 0)
                        handler->removed(a->address, userdata);
                if (!same && order >= 0)
                        handler->added(b->address, userdata);
                i += order <= 0;
                j += order >= 0;
        }
}

int changes_append_relatives(const Inventory *inv, PciAddress address, const PciAddress *physfn, PciAddress **array,
                             size_t *n) {
        const PciDevice *dev = inventory_find(inv, address);
        const IommuGroup *group = dev ? inventory_find_group(inv, dev->iommu_group) : NULL;
        int r = pci_address_append(array, n, address);

        if (dev && dev->type == PCI_TYPE_VF)
                physfn = &dev->physfn;
        if (r >= 0 && physfn)
                r = pci_address_append(array, n, *physfn);
        for (size_t i = 0; r >= 0 && group && i < group->n_members; i++)
                r = pci_address_append(array, n, inv->devices[group->members[i]].address);
        /* The VFs of dev; or, if dev is a VF or a slot that can be a vGPU, all VFs or slots of its GPU, because each
         * new vGPU changes which types the others can have. */
        dev = inventory_find_vgpu_parent(inv, dev);
        for (size_t i = 0; r >= 0 && dev && i < dev->n_vfs; i++)
                r = pci_address_append(array, n, dev->vfs[i]);
        return r;
}
