/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of devices: what keeps a device from a guest, now or after its next release. */
#include "check-internal.h"
#include "model/cmdline.h"
#include "plan/device-state.h"
#include "util/strings.h"

/* Check: the IOMMU groups of GPUs without a pool. check_pools() reports the groups of devices in pools. */

static const PciDevice *find_blocker(const Policy *policy, const PciDevice *gpu, const IommuGroup *group) {
        for (size_t i = 0; i < group->n_members; i++) {
                const PciDevice *member = &policy->inventory->devices[group->members[i]];

                if (member != gpu && policy_group_role(policy, gpu, member) == GROUP_ROLE_BLOCK)
                        return member;
        }
        return NULL;
}

static void check_gpu_group(const Policy *policy, const PciDevice *gpu, CheckReport *report) {
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
                        check_gpu_group(facts->policy, &inv->devices[i], report);
}

/* Check: which PFs lack VFs because of the firmware, the driver or the configuration. */

/*
 * Returns true for a ConnectX without the SR-IOV capability: its firmware shows the capability only when SR-IOV is on.
 */
static bool has_sriov_off(const PciDevice *dev) {
        return pci_device_is_connectx(dev) && dev->type == PCI_TYPE_DEVICE;
}

/* Adds a finding with CHECK_OK if no NIC has SR-IOV. */
static void tell_capability(const Inventory *inv, CheckReport *report) {
        for (size_t i = 0; i < inv->n_devices; i++)
                if (pci_device_is_nic(&inv->devices[i]) && inv->devices[i].type != PCI_TYPE_DEVICE)
                        return;
        check_add(report, CHECK_OK, NULL, "No NIC of this node has SR-IOV, so guests can only get whole NICs.");
}

static void check_firmware(const Inventory *inv, CheckReport *report) {
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (has_sriov_off(&inv->devices[i])) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (!first)
                tell_capability(inv, report);
        else
                check_add(report, CHECK_WARNING,
                          "If guests need their VFs: mlxconfig -d ADDRESS set SRIOV_EN=1 NUM_OF_VFS=8, then reboot.",
                          "NIC %s%s: there is no SR-IOV capability, which the firmware can turn on.",
                          PCI_ADDRESS_STR(first->address), AND_MORE(n - 1));
}

/* Returns the number of existing VFs of the PF. The inventory may have expected VFs, which do not exist yet. */
static size_t count_vfs(const Inventory *inv, const PciDevice *pf) {
        return pf->n_vfs > 0 && !inventory_find(inv, pf->vfs[0])->expected ? pf->n_vfs : 0;
}

/* Why a PF lacks VFs. Each reason has a remedy of its own. */
typedef enum Lack {
        LACK_NONE,
        LACK_NUMBER, /* the PF cannot have as many VFs as the pool wants */
        LACK_DRIVER,
        LACK_ALL, /* the PF has no VFs, but the daemon can create them */
        LACK_SOME,
        LACK_LAG,      /* the host's bond has no RoCE LAG because the PF has VFs */
        LACK_EXCLUDED, /* the configuration excludes the PF or its VFs, or Config.block_reason is set */
        _LACK_MAX,
} Lack;

static Lack find_lack(const Policy *policy, const Pool *pool, const PciDevice *pf) {
        size_t n = count_vfs(policy->inventory, pf);

        if (n > 0 && policy_pf_has_roce_lag(policy, pf) && !policy_names_pf(pool, pf))
                return LACK_LAG;
        switch (policy_check_vf_number(policy, pf, pool, NULL)) {
        case VERDICT_NONE:
                return n == 0 ? LACK_ALL : n < pool->virtual_functions ? LACK_SOME : LACK_NONE;
        case VERDICT_PF_ABSENT:
                return n == 0 ? LACK_DRIVER : LACK_NONE;
        case VERDICT_NOT_SUPPORTED:
                return LACK_NUMBER;
        case VERDICT_EXCLUDED:
                return n == 0 ? LACK_EXCLUDED : LACK_NONE;
        default:
                return LACK_NONE;
        }
}

static void tell_lack(const CheckFacts *facts, const Pool *pool, Lack lack, const PciDevice *pf, size_t n,
                      CheckReport *report) {
        bool runs = facts->daemon && !facts->daemon->unreachable;
        const char *address = PCI_ADDRESS_STR(pf->address);
        const char *mlx4 =
                pci_device_is_mlx4_pf(pf) ? "'passthroughctl explain PF' says when mlx4_core creates them." : NULL;
        _cleanup_refusal_ Refusal why = { 0 };

        if (lack == LACK_SOME)
                check_add(report, CHECK_WARNING,
                          mlx4 ?: "'passthroughctl sriov PF NUMBER' changes the number when no VF is in use.",
                          "PF %s%s: there %s %zu VF%s, but pool '%s' asks for %u.", address, AND_MORE(n - 1),
                          ARE(pf->n_vfs), pf->n_vfs, PLURAL(pf->n_vfs), pool->name, pool->virtual_functions);
        else if (lack == LACK_LAG)
                check_add(report, CHECK_WARNING,
                          "If the host can do without, name the PF with pf= in a Match= line of the pool; otherwise "
                          "'passthroughctl sriov PF 0' removes the VFs, and pf= in [Exclude] keeps them away.",
                          "PF %s%s: it is a port of %s, which has no RoCE LAG while the PF has VFs: the host has no "
                          "RDMA device for the bond.",
                          address, AND_MORE(n - 1), QUOTABLE(pf->bond));
        else if (lack == LACK_ALL)
                check_add(report, CHECK_WARNING,
                          mlx4   ? mlx4
                          : runs ? "Run 'passthroughctl reload', and look for errors in the journal of passthroughd."
                                 : "Start passthroughd, and look for errors in its journal.",
                          "PF %s%s: there are no VFs, but pool '%s' asks for %u.", address, AND_MORE(n - 1), pool->name,
                          pool->virtual_functions);
        else if (policy_check_vf_number(facts->policy, pf, pool, &why) == VERDICT_NONE || !why.message)
                report->failed = true;
        /*
         * Only note an excluded PF: the admin wants that. If the pool gets no devices at all, check_configuration()
         * warns.
         */
        else if (lack == LACK_EXCLUDED)
                check_add(report, CHECK_OK, NULL, "PF %s%s: %s", address, AND_MORE(n - 1), why.message);
        else
                check_add(report, CHECK_WARNING, why.remedy, "PF %s%s: %s", address, AND_MORE(n - 1), why.message);
}

/* Adds one finding for all PFs with this lack on which the pool asks for VFs. */
static void check_pool_vfs(const CheckFacts *facts, const Pool *pool, Lack lack, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *pf = &inv->devices[i];

                if (policy_asking_pool(facts->policy, pf) == pool && find_lack(facts->policy, pool, pf) == lack) {
                        first = first ?: pf;
                        n++;
                }
        }
        if (first)
                tell_lack(facts, pool, lack, first, n, report);
}

void check_sriov(const CheckFacts *facts, CheckReport *report) {
        const Config *config = facts->policy->config;

        for (size_t i = 0; i < config->n_pools; i++)
                for (Lack lack = LACK_NONE + 1; lack < _LACK_MAX; lack++)
                        check_pool_vfs(facts, &config->pools[i], lack, report);
        check_firmware(facts->policy->inventory, report);
}

/* Check: other programs, drivers and settings that claim devices. */

static void check_cmdline_ids(const char *cmdline, CheckReport *report) {
        static const char *const keys[] = { "vfio-pci.ids", "pci-stub.ids" };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (cmdline_has(cmdline, keys[i]))
                        check_add(report, CHECK_WARNING,
                                  "Remove it, and set Bind=start in the pools that need the driver from the start.",
                                  "The kernel command line has %s=, which takes every device of a model from the host.",
                                  keys[i]);
}

static void check_nouveau(const Inventory *inv, CheckReport *report) {
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (streq_ptr(inv->devices[i].driver, "nouveau") && !pci_device_is_display(&inv->devices[i])) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (first)
                check_add(report, CHECK_WARNING,
                          "Add modprobe.blacklist=nouveau to the kernel command line, unless the host needs the GPU.",
                          "GPU %s%s: nouveau is bound, which may hang when it is unbound.",
                          PCI_ADDRESS_STR(first->address), AND_MORE(n - 1));
}

/* Reports devices whose driver_override differs from their driver: after an unbind, only the driver in driver_override
 * could bind them. */
static void check_overrides(const Inventory *inv, CheckReport *report) {
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];

                if (dev->driver_override && !streq_ptr(dev->driver, dev->driver_override)) {
                        first = first ?: dev;
                        n++;
                }
        }
        if (first)
                check_add(report, CHECK_WARNING,
                          "If no allocation has the device, remove the setting of driverctl, udev or the admin.",
                          "%s%s: driver_override is %s, but the bound driver is %s.", PCI_ADDRESS_STR(first->address),
                          AND_MORE(n - 1), first->driver_override, first->driver ?: "none");
}

/*
 * Reports devices of pools that driverctl binds as well. It does so at boot and after hot-plug, and undoes allocations
 * by that.
 */
static void check_driverctl(const CheckFacts *facts, CheckReport *report) {
        for (size_t i = 0; i < facts->n_settings; i++) {
                const DriverSetting *s = &facts->settings[i];
                const PciDevice *dev = inventory_find(facts->policy->inventory, s->device);

                if (dev && policy_pool(facts->policy, dev))
                        check_add(report, CHECK_WARNING,
                                  "Run 'driverctl unset-override' for it; passthroughd binds it.",
                                  "%s of pool '%s': driverctl binds it to %s.", PCI_ADDRESS_STR(s->device),
                                  policy_pool(facts->policy, dev)->name, QUOTABLE(s->driver));
        }
}

static void check_network_manager(const CheckFacts *facts, CheckReport *report) {
        PciAddress first;
        size_t n = 0;

        for (size_t i = 0; i < facts->n_managed_vfs; i++) {
                const PciDevice *vf = inventory_find(facts->policy->inventory, facts->managed_vfs[i]);

                if (vf && policy_pool(facts->policy, vf) && n++ == 0)
                        first = vf->address;
        }
        if (n > 0)
                check_add(report, CHECK_WARNING,
                          "Set unmanaged-devices= in NetworkManager.conf, or unbind the driver of the VFs.",
                          "VF %s%s: NetworkManager configures the interface, so the host uses the VF.",
                          PCI_ADDRESS_STR(first), AND_MORE(n - 1));
}

void check_drivers(const CheckFacts *facts, CheckReport *report) {
        check_cmdline_ids(facts->cmdline, report);
        check_nouveau(facts->policy->inventory, report);
        check_overrides(facts->policy->inventory, report);
        check_driverctl(facts, report);
        check_network_manager(facts, report);
        if (!facts->running)
                check_add(report, CHECK_UNKNOWN, NULL,
                          "A recording does not tell what driverctl and NetworkManager do.");
}

/* Check: which devices of pools a release cannot reset. */

/* Adds one finding for all devices of the pool that a release cannot reset. */
static void check_pool_reset(const Policy *policy, const Pool *pool, CheckReport *report) {
        const Inventory *inv = policy->inventory;
        _cleanup_refusal_ Refusal why = { 0 };
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (policy_pool(policy, &inv->devices[i]) == pool &&
                    !device_can_be_reset(policy, &inv->devices[i], n == 0 ? &why : NULL))
                        n++;
        if (n > 0)
                check_add(report, CHECK_WARNING, why.remedy, "Pool '%s': %s%s", pool->name, why.message ?: "",
                          n > 1 ? " Others of the pool too." : "");
}

void check_reset(const CheckFacts *facts, CheckReport *report) {
        const Config *config = facts->policy->config;

        for (size_t i = 0; i < config->n_pools; i++)
                check_pool_reset(facts->policy, &config->pools[i], report);
}

/* Check: which devices on a VFIO driver the kernel may put in D3 while no guest has them. */

/*
 * Returns true when the kernel may put the device in D3. disable_idle_d3 of vfio-pci prevents it; variant drivers have
 * no such option.
 */
static bool may_suspend(const CheckFacts *facts, const PciDevice *dev) {
        return dev->vfio && dev->runtime_pm && !(facts->idle_d3_disabled && streq_ptr(dev->driver, "vfio-pci"));
}

void check_power(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (may_suspend(facts, &inv->devices[i])) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (first)
                check_add(
                        report, CHECK_WARNING,
                        "Write 'on' to the file power/control of the device, and 0 to d3cold_allowed. Or load vfio-pci "
                        "with disable_idle_d3=1.",
                        "%s%s may go to %s while no guest has it, and some devices do not come back from D3.",
                        PCI_ADDRESS_STR(first->address), AND_MORE(n - 1), first->d3cold ? "D3cold" : "D3hot");
}
