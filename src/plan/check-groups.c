/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: the IOMMU groups of GPUs that are in no pool yet. check_pools() reports those of devices in pools. */

#include "check-internal.h"

static const PciDevice *find_blocker(const Policy *policy, const PciDevice *gpu, const IommuGroup *group) {
        for (size_t i = 0; i < group->n_members; i++) {
                const PciDevice *member = &policy->inventory->devices[group->members[i]];

                if (member != gpu && policy_group_role(policy, gpu, member) == GROUP_ROLE_BLOCK)
                        return member;
        }
        return NULL;
}

static void check_gpu(const Policy *policy, const PciDevice *gpu, CheckReport *report) {
        const IommuGroup *group = inventory_find_group(policy->inventory, gpu->iommu_group);
        const PciDevice *blocker = group ? find_blocker(policy, gpu, group) : NULL;

        if (group && group->direct)
                check_add(report, CHECK_WARNING, "Look for an option of the firmware that ends the reservation (RMRR).",
                          "GPU %s: the firmware reserves memory for its IOMMU group %d, and VFIO refuses such a group.",
                          PCI_ADDRESS_STR(gpu->address), group->number);
        else if (blocker)
                check_add(report, CHECK_WARNING,
                          "Put the GPU into a slot with an IOMMU group of its own, turn on ACS in the firmware, or "
                          "unbind the driver.",
                          "GPU %s shares IOMMU group %d with %s, which is bound to %s.", PCI_ADDRESS_STR(gpu->address),
                          group->number, PCI_ADDRESS_STR(blocker->address), blocker->driver ?: "no driver");
}

void check_groups(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (pci_device_is_gpu(&inv->devices[i]) && !pci_device_is_display(&inv->devices[i]) &&
                    !policy_pool(facts->policy, &inv->devices[i]))
                        check_gpu(facts->policy, &inv->devices[i], report);
}
