/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Adds the VFs that the kernel would create on a PF. */

#include <errno.h>

#include "model/inventory.h"
#include "util/strings.h"

#define ROUTING_IDS 0x10000U /* functions of a PCI domain: 256 buses, 32 slots, 8 functions */

/* Sets *ret to the address that the VF with this index will have. Returns false if it is beyond the last bus. */
static bool vf_address(const PciDevice *pf, unsigned index, PciAddress *ret) {
        PciAddress a = pf->address;
        uint64_t id =
                (uint64_t) (a.bus << 8 | a.slot << 3 | a.function) + pf->vf_offset + (uint64_t) index * pf->vf_stride;

        *ret = (PciAddress) {
                .domain = a.domain, .bus = (uint8_t) (id >> 8), .slot = id >> 3 & 0x1f, .function = id & 0x7
        };
        return id < ROUTING_IDS;
}

bool inventory_isolates_vfs(const Inventory *inv, const PciDevice *pf) {
        const IommuGroup *group = inventory_find_group(inv, pf->iommu_group);

        for (size_t i = 0; group && i < group->n_members; i++)
                if (!pci_address_same_slot(inv->devices[group->members[i]].address, pf->address))
                        return false;
        return group;
}

/* Makes the path of a VF from that of its PF: both are below the same bridge. 0 or -ENOMEM. */
static int copy_path(const char *pf, PciAddress vf, char **ret) {
        const char *end = pf ? strrchr(pf, '/') : NULL;

        return end ? string_replace(ret, "%.*s/%s", (int) (end - pf), pf, PCI_ADDRESS_STR(vf)) : 0;
}

/* Appends a VF to the inventory. group: number of its IOMMU group. 0 or -ENOMEM. */
static int add_vf(Inventory *inv, size_t pf_index, unsigned index, int group) {
        PciDevice *vf, *pf;
        PciAddress address;

        (void) vf_address(&inv->devices[pf_index], index, &address);
        vf = inventory_add_device(inv, address);
        if (!vf)
                return -ENOMEM;
        pf = &inv->devices[pf_index];
        vf->type = PCI_TYPE_VF;
        vf->expected = true;
        vf->physfn = pf->address;
        vf->vendor = pf->vendor;
        vf->device = pf->vf_device;
        vf->subsystem_vendor = pf->subsystem_vendor;
        vf->subsystem_device = pf->subsystem_device;
        vf->class = pf->class;
        vf->numa_node = pf->numa_node;
        vf->own_node = -1;
        vf->iommu_group = group;
        vf->has_override = pf->has_override;
        vf->acs = PCI_ACS_CLEAN;
        vf->named = true;
        memcpy(vf->bar_size, pf->vf_bar_size, sizeof(pf->vf_bar_size));
        if (string_copy(&vf->name, pf->vf_name) < 0 ||
            string_copy(&vf->reset_methods, "flr") < 0 || /* SR-IOV requires FLR of VFs */
            copy_path(pf->path, address, &vf->path) < 0 || pci_address_append(&pf->linked, &pf->n_linked, address) < 0)
                return -ENOMEM;
        pf->n_virtfns = pf->n_linked;
        return 0;
}

int inventory_expect_vfs(Inventory *inv, PciAddress address, unsigned n) {
        const PciDevice *pf = inventory_find(inv, address);
        size_t index = inventory_device_index(inv, pf);
        bool isolated = inventory_isolates_vfs(inv, pf);
        int group = isolated ? inv->groups[inv->n_groups - 1].number + 1 : pf->iommu_group, r = 0;

        if (pf->vf_offset == 0 || (n > 1 && pf->vf_stride == 0))
                return -ENODATA;
        for (unsigned i = 0; i < n; i++) {
                PciAddress vf;

                if (!vf_address(pf, i, &vf) || inventory_find(inv, vf))
                        return -ERANGE;
        }
        for (unsigned i = 0; r >= 0 && i < n; i++)
                r = add_vf(inv, index, i, isolated ? group + (int) i : group);
        return r < 0 ? r : inventory_finish(inv);
}

char *inventory_describe_expected(const Inventory *inv, const PciDevice *vf) {
        const char *address = PCI_ADDRESS_STR(vf->address), *pf = PCI_ADDRESS_STR(vf->physfn);

        if (vf->iommu_group < 0)
                return string_format("%s does not exist yet: VirtualFunctions= creates it on %s.", address, pf);
        return inventory_isolates_vfs(inv, inventory_find(inv, vf->physfn))
                       ? string_format(
                                 "%s does not exist yet: VirtualFunctions= creates it on %s. It is assumed to get "
                                 "an IOMMU group of its own, because ACS isolates its PF.",
                                 address, pf)
                       : string_format("%s does not exist yet: VirtualFunctions= creates it on %s. It is assumed to "
                                       "join IOMMU group %d of its PF, because ACS does not isolate the PF.",
                                       address, pf, vf->iommu_group);
}
