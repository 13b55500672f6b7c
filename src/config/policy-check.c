/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks whether a device, with its IOMMU group, may be allocated. */

#include "model/mdev-slots.h"
#include "policy-internal.h"
#include "util/strings.h"

/* Returns true when dev is an auxiliary function on the card of the GPU: audio, or the USB controller or UCSI of its
 * USB-C port. */
static bool is_function_of_gpu(const PciDevice *gpu, const PciDevice *dev) {
        static const uint32_t classes[] = { 0x0403, 0x0c03, 0x0c80 };

        if (!pci_device_is_gpu(gpu) || !pci_device_is_companion(gpu, dev))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(classes); i++)
                if (dev->class >> 8 == classes[i])
                        return true;
        return false;
}

/* Returns true when the device is in a pool, or when a pool offers the GPU of which the device is an auxiliary
 * function. */
static bool is_offered(const Policy *p, const PciDevice *dev) {
        const PciDevice *first = p->inventory->devices, *end = first + p->inventory->n_devices, *d = dev;

        /* The functions of a PCI slot are neighbours in the inventory. */
        while (d > first && pci_address_same_slot(d[-1].address, dev->address))
                d--;
        for (; d < end && pci_address_same_slot(d->address, dev->address); d++)
                if (policy_pool(p, d) && (d == dev || (is_function_of_gpu(d, dev) && !policy_is_untouchable(p, d))))
                        return true;
        return false;
}

static bool offers_vgpu(const Policy *p, const PciDevice *dev) {
        const Pool *pool = policy_pool(p, dev);

        return pool && pool->vgpu_type;
}

GroupRole policy_group_role(const Policy *p, const PciDevice *dev, const PciDevice *member) {
        bool harmless = pci_device_driver_is_harmless(member);

        /* A bridge that the host needs does not block the group, because a bridge always keeps its driver. */
        if ((policy_host_needs(member, policy_pool(p, member)) && !member->is_bridge) || policy_is_display(p, member))
                return GROUP_ROLE_BLOCK;
        if (member->is_bridge || pci_device_is_platform(member) || !pci_address_is_assignable(member->address) ||
            policy_is_excluded(p, member))
                return harmless ? GROUP_ROLE_LEAVE : GROUP_ROLE_BLOCK;
        /* vfio-pci refuses a PF with VFs (vfio_pci_core.c). */
        if (pci_device_has_vfs(member))
                return harmless ? GROUP_ROLE_LEAVE : GROUP_ROLE_BLOCK;
        if (!member->has_override)
                return harmless ? GROUP_ROLE_LEAVE : GROUP_ROLE_BLOCK;
        /* A device of a pool with VgpuType= keeps its driver. So no member of its group can be held for it, and it
         * cannot be held for another device. */
        if (offers_vgpu(p, dev) || offers_vgpu(p, member))
                return harmless && !policy_pool(p, member) ? GROUP_ROLE_LEAVE : GROUP_ROLE_BLOCK;
        /* A function of the same card that is in no pool, for example a second port, blocks the group unless its driver
         * is harmless or it is an auxiliary function of the GPU: the host may use it. */
        if (pci_device_is_companion(dev, member) &&
            (policy_pool(p, member) || harmless || is_function_of_gpu(dev, member)))
                return GROUP_ROLE_COMPANION;
        if (is_offered(p, member) || harmless)
                return GROUP_ROLE_HOLD;
        return GROUP_ROLE_BLOCK;
}

#define MEMORY_REMEDY                                                                                                  \
        "Stop what uses the GPU, for example nvidia-persistenced: then its driver takes the memory offline. Or load "  \
        "nvidia with NVreg_CoherentGPUMemoryMode=driver."

/* Refuses dev because of the member `m`, which blocks dev's group. The checks are in the order of
 * policy_group_role(). */
static Verdict refuse_member(const Policy *p, const PciDevice *dev, const PciDevice *m, Refusal *ret) {
        const char *remedy = "Unbind its driver, or move one of the cards to a slot with a group of its own.", *why;

        if (m->critical && !m->is_bridge)
                return refuse(ret, VERDICT_GROUP_NOT_VIABLE, &m->address,
                              "Move the device to a slot with a group of its own.",
                              "IOMMU group %d also holds %s, which the host needs: %s.", dev->iommu_group,
                              PCI_ADDRESS_STR(m->address), m->critical);
        if (policy_host_needs(m, policy_pool(p, m)) && !m->is_bridge)
                return refuse(ret, VERDICT_GROUP_NOT_VIABLE, &m->address, MEMORY_REMEDY,
                              "IOMMU group %d also holds %s, whose memory the host has online, as NUMA node %d.",
                              dev->iommu_group, PCI_ADDRESS_STR(m->address), m->memory_node);
        if (policy_is_display(p, m))
                why = m->boot_vga ? "the boot VGA" : "which drives the console";
        else if (m->is_bridge)
                why = "a bridge";
        else if (pci_device_is_platform(m))
                why = "a part of the platform";
        else if (!pci_address_is_assignable(m->address))
                why = "which cannot be assigned, because its PCI domain is above ffff";
        else if (policy_is_excluded(p, m))
                why = "which the configuration excludes";
        else if (dev->type == PCI_TYPE_VF && pci_address_equal(m->address, dev->physfn)) {
                why = "its own PF";
                remedy = "Enable ACS on the port above (firmware setting), so that VFs get groups of their own.";
        } else if (pci_device_has_vfs(m))
                why = "a PF that has VFs";
        else if (!m->has_override)
                why = "which has no driver_override in the kernel";
        else if (offers_vgpu(p, dev) || offers_vgpu(p, m))
                why = "which cannot be held beside a vGPU";
        else {
                why = "which no pool offers";
                remedy = pci_device_is_companion(dev, m) ? "Put it into a pool too, or unbind its driver."
                                                         : "Put it into a pool too, unbind its driver, or move one of "
                                                           "the cards to another slot.";
        }
        return refuse(ret, VERDICT_GROUP_NOT_VIABLE, &m->address, remedy,
                      "IOMMU group %d also holds %s, bound to %s, %s.", dev->iommu_group, PCI_ADDRESS_STR(m->address),
                      m->driver ?: "no driver", why);
}

static Verdict check_group(const Policy *p, const PciDevice *dev, Refusal *ret) {
        const IommuGroup *group = inventory_find_group(p->inventory, dev->iommu_group);

        if (!group)
                return VERDICT_NONE;
        if (group->direct)
                return refuse(ret, VERDICT_RESERVED_REGION, &dev->address,
                              "Ask the vendor for firmware that does not reserve memory for this device (RMRR).",
                              "The firmware requires a direct memory mapping for IOMMU group %d, so VFIO refuses it.",
                              group->number);
        for (size_t i = 0; i < group->n_members; i++) {
                const PciDevice *m = &p->inventory->devices[group->members[i]];

                if (m != dev && policy_group_role(p, dev, m) == GROUP_ROLE_BLOCK)
                        return refuse_member(p, dev, m, ret);
        }
        return VERDICT_NONE;
}

#define NOT_ASSIGNABLE_REMEDY "If Intel VMD creates that domain, disable VMD for its slot in the firmware."

bool policy_names_pf(const Pool *pool, const PciDevice *pf) {
        PciAddress address;

        for (size_t i = 0; i < pool->n_matches; i++)
                if (pool->matches[i].pf && pci_address_parse(pool->matches[i].pf, &address) >= 0 &&
                    pci_address_equal(address, pf->address))
                        return true;
        return false;
}

static bool is_bonded_mlx5(const PciDevice *port) {
        return port->bond && port->driver && streq(port->driver, "mlx5_core");
}

bool policy_pf_has_roce_lag(const Policy *p, const PciDevice *pf) {
        const Inventory *inv = p->inventory;
        bool beside = false;

        if (!is_bonded_mlx5(pf))
                return false;
        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *port = &inv->devices[i];

                if (port == pf || !pci_address_same_slot(port->address, pf->address) || !is_bonded_mlx5(port) ||
                    !streq(port->bond, pf->bond))
                        continue;
                if (port->n_virtfns > 0)
                        return false;
                beside = true;
        }
        return beside || (pf->kernel_names && strstr(pf->kernel_names, "mlx5_bond_"));
}

Verdict policy_check_vfs(const Policy *p, const PciDevice *pf, const Pool *pool, Refusal *ret) {
        const char *address = PCI_ADDRESS_STR(pf->address);
        const Match *m = policy_find_vf_exclude(p, pf);

        if (p->config->block_reason)
                return refuse(ret, VERDICT_EXCLUDED, &pf->address, "Correct the configuration, then reload it.",
                              "No VFs are created on %s for pool '%s': %s", address, pool->name,
                              p->config->block_reason);
        if (m)
                return refuse(ret, VERDICT_EXCLUDED, &pf->address, "Remove the line from [Exclude] to have them.",
                              "No VFs are created on %s for pool '%s': the configuration excludes %s (%s:%u).", address,
                              pool->name, policy_is_excluded(p, pf) ? "the PF" : "its VFs", m->place.file,
                              m->place.line);
        if (!pci_address_is_assignable(pf->address))
                return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address, NOT_ASSIGNABLE_REMEDY,
                              "No VFs are created on %s for pool '%s': QEMU can assign devices of PCI domains up to "
                              "ffff only.",
                              address, pool->name);
        /* With RoCE LAG, pf= must name the PF: a pattern that matches it by accident must not take the RDMA device from
         * the host. */
        if (pf->n_virtfns > 0 || policy_names_pf(pool, pf) || !policy_pf_has_roce_lag(p, pf))
                return VERDICT_NONE;
        return refuse(
                ret, VERDICT_HOST_CRITICAL, &pf->address,
                "If the host can do without, name the PF with pf= in a Match= line of the pool; otherwise exclude "
                "it with pf= in [Exclude].",
                "No VFs are created on %s for pool '%s': it is a port of %s, and RoCE LAG ends with the first VF, "
                "so the host would lose the RDMA device of the bond (mlx5_bond_0).",
                PCI_ADDRESS_STR(pf->address), pool->name, QUOTABLE(pf->bond));
}

Verdict policy_check_vf_number(const Policy *p, const PciDevice *pf, const Pool *pool, Refusal *ret) {
        const char *address = PCI_ADDRESS_STR(pf->address);
        Verdict v = policy_check_vfs(p, pf, pool, ret);

        if (v != VERDICT_NONE)
                return v;
        if (pool->virtual_functions > pf->total_vfs)
                return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address,
                              "Lower VirtualFunctions=. ConnectX: or raise NUM_OF_VFS in the firmware configuration.",
                              "Pool '%s' asks for %u VF%s on %s, which can have %u.", pool->name,
                              pool->virtual_functions, PLURAL(pool->virtual_functions), address, pf->total_vfs);
        if (pci_device_driver_is_harmless(pf))
                return refuse(ret, VERDICT_PF_ABSENT, &pf->address, "Bind the PF to its own driver.",
                              "Pool '%s' gets no VFs on %s, which %s%s: only its own driver creates VFs.", pool->name,
                              address, pf->driver ? "is on " : "has no driver", pf->driver ?: "");
        return VERDICT_NONE;
}

/* Refuses a device that is in no pool. If a pool has its PF or its VFs, the remedy must not be to add a Match= line,
 * which would offer the same hardware twice. */
static Verdict refuse_outsider(const Policy *p, const PciDevice *dev, Refusal *ret) {
        const PciDevice *vf = policy_find_offered_vf(p, dev), *pf;
        const Pool *pool = vf ? policy_pool(p, vf) : policy_asking_pool(p, dev);
        _cleanup_free_ char *remedy = NULL;
        _cleanup_refusal_ Refusal why = { 0 };

        if (vf && pci_device_is_slot(vf))
                return refuse(ret, VERDICT_NOT_IN_POOL, &dev->address,
                              "Ask for a vGPU from that pool, or remove VgpuType= from it to offer the whole GPU.",
                              "No pool offers it: its vGPUs are in pool '%s', and a GPU is not offered beside its "
                              "vGPUs.",
                              pool->name);
        if (pool && !vf && policy_check_vf_number(p, dev, pool, &why) != VERDICT_NONE)
                return refuse(ret, VERDICT_NOT_IN_POOL, &dev->address, why.remedy, "No pool offers it. %s",
                              why.message ?: "");
        if (pool)
                return refuse(ret, VERDICT_NOT_IN_POOL, &dev->address, "Ask for a VF from that pool instead.",
                              "No pool offers it: %s pool '%s', and a PF is not offered beside its VFs.",
                              vf ? "its VFs are in" : "the daemon creates VFs on it for", pool->name);
        pf = dev->type == PCI_TYPE_VF ? inventory_find(p->inventory, dev->physfn) : NULL;
        if (pci_device_is_slot(dev))
                return refuse(ret, VERDICT_NOT_IN_POOL, &dev->address,
                              "Add a Match= line for its GPU to a [Pool NAME] section with VgpuType=.",
                              "No pool offers it: it is a slot for a vGPU of %s, which is in no pool with VgpuType=.",
                              PCI_ADDRESS_STR(dev->physfn));
        if (pf && policy_offers(p, pf))
                return refuse(ret, VERDICT_NOT_IN_POOL, &dev->address,
                              "To offer VFs, remove the PF from that pool first.",
                              "No pool offers it: its PF %s is in pool '%s', and a VF is not offered beside its PF.",
                              PCI_ADDRESS_STR(pf->address), policy_pool(p, pf)->name);
        if (p->inventory->iommu)
                return refuse(ret, VERDICT_NOT_IN_POOL, &dev->address,
                              "Add a Match= line for it to a [Pool NAME] section.", "No pool offers it.");
        (void) string_replace(&remedy, "%s Then add a Match= line for it to a [Pool NAME] section.",
                              inventory_iommu_remedy(p->inventory));
        return refuse(ret, VERDICT_NOT_IN_POOL, &dev->address, remedy, "No pool offers it, and the IOMMU is off.");
}

/* Refuses a VF whose PF is missing or not bound to a host driver. Also refuses an InfiniBand VF whose PF cannot set
 * GUIDs, unless another program creates the VFs of the PF (VirtualFunctions=external). */
static Verdict check_physfn(const Policy *p, const PciDevice *vf, Refusal *ret) {
        const PciDevice *pf = inventory_find(p->inventory, vf->physfn);
        const char *address = PCI_ADDRESS_STR(vf->physfn);

        if (!pf)
                return refuse(ret, VERDICT_PF_ABSENT, &vf->address, "Reinsert its card, or reboot.",
                              "Its PF %s is no longer on this node, so no driver manages the VF.", address);
        if (pci_device_driver_is_harmless(pf))
                return refuse(ret, VERDICT_PF_ABSENT, &vf->address, "Bind the PF to its own driver.",
                              "Its PF %s %s%s, so no host driver manages its VFs.", address,
                              pf->driver ? "is on " : "has no driver", pf->driver ?: "");
        if (pci_device_needs_guids(pf) && !pf->sets_guids && !policy_external_pool(p, pf))
                return refuse(ret, VERDICT_PF_ABSENT, &vf->address,
                              "Load ib_ipoib: modprobe ib_ipoib; and name it in /etc/modules-load.d.",
                              "Its InfiniBand PF %s has no network interface, which ib_ipoib creates, so nothing can "
                              "set the GUIDs and the link of the VF.",
                              address);
        return VERDICT_NONE;
}

/* Returns true when config->vfio_driver is registered, when the registered drivers are unknown, or, with
 * VfioDriver=auto, when a VFIO variant driver for the device is loaded. inventory_variant_driver() returns only a
 * loaded one. */
static bool has_vfio_driver(const Policy *p, const PciDevice *dev) {
        return inventory_may_have_driver(p->inventory, p->config->vfio_driver) ||
               (p->config->variants && inventory_variant_driver(p->inventory, dev));
}

const char *policy_driver_module(const char *driver) {
        return streq(driver, PCIBACK_DRIVER) ? "xen-pciback" : driver;
}

Verdict policy_refuse_driver(const PciAddress *device, const char *driver, Refusal *ret) {
        _cleanup_free_ char *remedy = NULL;

        (void) string_replace(&remedy, "Load its module: systemctl start modprobe@%s.service.",
                              policy_driver_module(driver));
        return refuse(ret, VERDICT_NO_VFIO_DRIVER, device, remedy, "The kernel has no driver %s to bind %s to.", driver,
                      PCI_ADDRESS_STR(*device));
}

/* Checks a device of a pool with VgpuType=: it must be a VF that can have a vGPU. The vendor's driver keeps the VF, so
 * neither vfio-pci nor driver_override is needed. */
static Verdict check_vgpu(const PciDevice *dev, const Pool *pool, Refusal *ret) {
        _cleanup_free_ char *remedy = NULL;

        if (dev->vgpu_types)
                return VERDICT_NONE;
        if (dev->type == PCI_TYPE_VF)
                (void) string_replace(&remedy, "See whether NVIDIA's vGPU manager runs on this node.");
        else if (!dev->mdev_parent || dev->total_vfs > 0)
                (void) string_replace(&remedy,
                                      "Create VFs: /usr/lib/nvidia/sriov-manage -e %s; and add type=vf to the Match= "
                                      "line of the pool.",
                                      PCI_ADDRESS_STR(dev->address));
        else
                return refuse(ret, VERDICT_NO_VGPU, &dev->address,
                              "See the kernel log, or remove VgpuType= from the pool to offer the whole GPU.",
                              "The types of the mediated devices of %s cannot be read.", PCI_ADDRESS_STR(dev->address));
        if (dev->mdev_parent)
                return refuse(ret, VERDICT_NO_VGPU, &dev->address, remedy,
                              "Pool '%s' offers vGPUs on VFs, but %s is no VF.", pool->name,
                              PCI_ADDRESS_STR(dev->address));
        return refuse(ret, VERDICT_NO_VGPU, &dev->address, remedy,
                      "Pool '%s' offers vGPUs, but %s, bound to %s, has neither nvidia/creatable_vgpu_types nor "
                      "mdev_supported_types in sysfs.",
                      pool->name, PCI_ADDRESS_STR(dev->address), dev->driver ?: "no driver");
}

/* Refuses when Hypervisor= does not match this machine, and with Xen also when the pool has VgpuType= or Fabric=. The
 * device must be in a pool. */
static Verdict check_hypervisor(const Policy *p, const PciDevice *dev, Refusal *ret) {
        const Pool *pool = policy_pool(p, dev);
        bool xen = p->config->hypervisor == HYPERVISOR_XEN;

        if (xen && !p->inventory->xen)
                return refuse(ret, VERDICT_NOT_SUPPORTED, &dev->address,
                              "Boot Xen, or remove Hypervisor=xen from the configuration and restart the daemon.",
                              "The configuration has Hypervisor=xen, but this node is not dom0 of Xen "
                              "(/sys/hypervisor/type, /proc/xen/capabilities).");
        if (!xen && p->inventory->xen)
                return refuse(
                        ret, VERDICT_NOT_SUPPORTED, &dev->address,
                        "In dom0, set Hypervisor=xen in section [Daemon] of the configuration, and restart the daemon.",
                        "This node runs Xen, which has the IOMMU, so a guest of KVM can have no device.");
        if (!xen || (!offers_vgpu(p, dev) && !pool->fabric))
                return VERDICT_NONE;
        return refuse(ret, VERDICT_NOT_SUPPORTED, &dev->address,
                      pool->fabric ? "Remove Fabric= from the pool." : "Remove VgpuType= from the pool.",
                      "Pool '%s' offers %s, which the daemon cannot give to a guest of Xen.", pool->name,
                      pool->fabric ? "NVLink partitions" : "vGPUs");
}

static Verdict refuse_display(const PciDevice *dev, Refusal *ret) {
        const char *remedy = "Use another card for the console, or ask with --force.";

        return dev->boot_vga ? refuse(ret, VERDICT_BOOT_VGA, &dev->address, remedy,
                                      "It is the boot VGA, which the firmware's console uses.")
                             : refuse(ret, VERDICT_BOOT_VGA, &dev->address, remedy, "The host's console uses it: %s.",
                                      dev->console);
}

Verdict policy_check_uncached(const Policy *p, const PciDevice *dev, Refusal *ret) {
        Verdict v;

        if (dev->is_bridge)
                return refuse(ret, VERDICT_BRIDGE, &dev->address, NULL,
                              "It is a bridge: only endpoints can be given to a guest.");
        if (pci_device_is_platform(dev))
                return refuse(ret, VERDICT_BRIDGE, &dev->address, NULL,
                              "It is part of the platform, not a device for guests.");
        if (!pci_address_is_assignable(dev->address))
                return refuse(ret, VERDICT_NOT_SUPPORTED, &dev->address, NOT_ASSIGNABLE_REMEDY,
                              "It is in PCI domain %x: QEMU can assign devices of domains up to ffff only.",
                              dev->address.domain);
        if (dev->critical)
                return refuse(ret, VERDICT_HOST_CRITICAL, &dev->address, dev->critical_remedy, "The host needs it: %s.",
                              dev->critical);
        if (policy_is_display(p, dev))
                return refuse_display(dev, ret);
        if (policy_is_excluded(p, dev)) {
                const Match *m = policy_find_exclude(p, dev);
                const Pool *pool = policy_asking_pool(p, dev);

                if (pool && dev->n_vfs == 0)
                        return policy_check_vfs(p, dev, pool, ret);
                return refuse(ret, VERDICT_EXCLUDED, &dev->address, "Remove the line from [Exclude] to offer it.",
                              "The configuration excludes it (%s:%u).", m->place.file, m->place.line);
        }
        if (!policy_pool(p, dev))
                return refuse_outsider(p, dev, ret);
        /* Online memory of the device is no reason to refuse if its pool has StopServices=: the job stops these
         * services, and checks again. */
        if (policy_host_needs(dev, policy_pool(p, dev)))
                return refuse(ret, VERDICT_HOST_CRITICAL, &dev->address, MEMORY_REMEDY,
                              "The host has %llu MiB of its memory online, as NUMA node %d.",
                              (unsigned long long) (dev->online_memory >> 20), dev->memory_node);
        if (p->inventory->critical_error)
                return refuse(ret, VERDICT_HOST_CRITICAL, &dev->address,
                              "Make that readable for the daemon, then rescan.",
                              "It is unknown which devices the host needs: %s", p->inventory->critical_error);
        if (p->config->block_reason)
                return refuse(ret, VERDICT_EXCLUDED, &dev->address,
                              p->config->unreadable ? p->config->unreadable_remedy
                                                    : "Fix that line, then reload the configuration.",
                              "%s", p->config->block_reason);
        v = check_hypervisor(p, dev, ret);
        if (v != VERDICT_NONE)
                return v;
        /* A mediated device has an IOMMU group of its own, and the GPU's driver isolates it from the others. */
        if (pci_device_is_slot(dev))
                return VERDICT_NONE;
        if (dev->iommu_group < 0)
                return refuse(ret, VERDICT_NO_IOMMU, &dev->address, inventory_iommu_remedy(p->inventory),
                              p->inventory->iommu
                                      ? "It has no IOMMU group, so its memory access cannot be confined to a guest."
                                      : "This node has no IOMMU groups: the IOMMU is off.");
        if (offers_vgpu(p, dev)) {
                v = check_vgpu(dev, policy_pool(p, dev), ret);
                return v != VERDICT_NONE ? v : check_group(p, dev, ret);
        }
        if (!dev->has_override)
                return refuse(ret, VERDICT_NO_DRIVER_OVERRIDE, &dev->address, "Boot Linux 3.16 or later.",
                              "The kernel has no driver_override for it, so it cannot be bound to %s alone.",
                              p->config->vfio_driver);
        if (!has_vfio_driver(p, dev))
                return policy_refuse_driver(&dev->address, p->config->vfio_driver, ret);
        if (pci_device_has_vfs(dev))
                return refuse(ret, VERDICT_PF_HAS_VFS, &dev->address, "Remove its VFs first, or offer the VFs instead.",
                              "It is a PF with %zu VF%s, and %s takes no PF with VFs.", dev->n_vfs, PLURAL(dev->n_vfs),
                              p->config->vfio_driver);
        if (dev->type == PCI_TYPE_VF) {
                v = check_physfn(p, dev, ret);
                if (v != VERDICT_NONE)
                        return v;
        }
        return check_group(p, dev, ret);
}
