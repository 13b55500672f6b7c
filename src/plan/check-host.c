/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of the machine: the kernel, the hypervisor, CPUs and memory. */
#include "check-internal.h"
#include "model/cmdline.h"
#include "util/strings.h"

/* Check: the IOMMU is on, isolates devices, and remaps interrupts. */

void check_iommu(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const char *key = cmdline_iommu_off(facts->cmdline);

        if (inv->xen)
                check_add(report, CHECK_UNKNOWN, NULL,
                          "Xen has the IOMMU: it is on when virt_caps of 'xl info' has hvm_directio. IOMMU groups are "
                          "derived from ACS.");
        else if (!inv->iommu && key)
                check_add(report, CHECK_FAILURE, "Remove it from the kernel command line and reboot.",
                          "The kernel command line has %s=off, so no device has an IOMMU group.", key);
        else if (!inv->iommu)
                check_add(report, CHECK_FAILURE, inventory_iommu_remedy(inv), "No device has an IOMMU group.");
        if (cmdline_has(facts->cmdline, "pcie_acs_override"))
                check_add(report, CHECK_WARNING, "Remove it from the kernel command line and reboot.",
                          "The kernel command line has pcie_acs_override=, so IOMMU groups claim an isolation that the "
                          "hardware may lack.");
}

void check_interrupts(const CheckFacts *facts, CheckReport *report) {
        if (facts->policy->inventory->xen) {
                check_add(report, CHECK_UNKNOWN, NULL, "Whether Xen remaps interrupts is unknown: see 'xl dmesg'.");
                return;
        }
        if (!*facts->cmdline)
                check_add(report, CHECK_UNKNOWN, NULL,
                          "The kernel command line is not known, so interrupt remapping may be off.");
        if (cmdline_says(facts->cmdline, "intremap", "off") || cmdline_has(facts->cmdline, "nointremap"))
                check_add(report, CHECK_FAILURE, "Remove intremap=off or nointremap from it and reboot.",
                          "The kernel command line turns interrupt remapping off, and VFIO refuses devices then.");
        if (facts->unsafe_interrupts)
                check_add(report, CHECK_WARNING,
                          "Turn on interrupt remapping in the firmware, and remove the option from modprobe.d and the "
                          "kernel command line.",
                          "VFIO's allow_unsafe_interrupts is on, so a guest can send any interrupt to the host.");
}

/* Check: the driver for guests (VfioDriver= or, for Xen, pciback) is loaded. check_pools() names the devices of pools
 * that cannot be allocated without the driver. */

void check_vfio(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const char *driver = facts->policy->config->vfio_driver;

        if (!inv->drivers_known)
                check_add(report, CHECK_WARNING, NULL, "The list of PCI drivers cannot be read, so %s may be missing.",
                          driver);
        else if (!inventory_may_have_driver(inv, driver))
                check_add(report, CHECK_FAILURE,
                          streq(driver, PCIBACK_DRIVER)
                                  ? "Run 'systemctl start modprobe@xen-pciback.service', and name xen-pciback in "
                                    "/etc/modules-load.d."
                                  : "Start passthroughd.service, which loads vfio-pci; name another driver in "
                                    "/etc/modules-load.d.",
                          "The driver %s is not loaded.", driver);
}

/* Check: Hypervisor= fits the node, and Linux in dom0 knows all CPUs. */

void check_xen(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        bool wanted = facts->policy->config->hypervisor == HYPERVISOR_XEN;

        if (wanted != inv->xen)
                check_add(report, CHECK_FAILURE,
                          wanted ? "Boot Xen, or remove Hypervisor=xen and restart the daemon."
                                 : "In dom0, set Hypervisor=xen in section [Daemon] and restart the daemon.",
                          wanted ? "The configuration has Hypervisor=xen, but the node is not dom0 of Xen."
                                 : "The node runs Xen, but the configuration does not have Hypervisor=xen.");
        if (!inv->xen)
                return;
        if (facts->xen_cpus == 0)
                check_add(report, CHECK_WARNING, "Ask for devices alone, or give dom0 all CPUs and pin them.",
                          "How many CPUs the machine has is not known, so CPU pins may name other CPUs than meant.");
        else if (facts->xen_cpus > inv->n_cpus)
                check_add(report, CHECK_WARNING,
                          "Ask for devices alone, or remove dom0_max_vcpus= from Xen's command line.",
                          "dom0 has %zu of %u CPUs, so no guest can be pinned to the others.", inv->n_cpus,
                          facts->xen_cpus);
        check_add(report, CHECK_WARNING, "Ask for devices alone, and let Xen place the guest.",
                  "dom0 sees its own memory and no NUMA nodes: a plan with memory or NUMA nodes does not know those of "
                  "the machine.");
}

/* Check: all facts that decisions need can be read. */

static void check_faults(const Inventory *inv, CheckReport *report) {
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (inv->devices[i].fault) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (first)
                check_add(report, CHECK_WARNING, "'passthroughctl show' says what is wrong with each.",
                          "%s%s: attributes in sysfs cannot be used: %s", PCI_ADDRESS_STR(first->address),
                          AND_MORE(n - 1), first->fault);
}

/* Returns true for a note that check_iommu() reports together with a remedy. */
static bool is_about_iommu(const char *note) {
        return streq(note, NOTE_NO_IOMMU) || strncmp(note, NOTE_ACS_OVERRIDE, strlen(NOTE_ACS_OVERRIDE)) == 0;
}

void check_facts(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;

        if (inv->critical_error)
                check_add(report, CHECK_FAILURE, NULL,
                          "The devices that the host needs are unknown, so no device is allocated: %s",
                          inv->critical_error);
        for (size_t i = 0; i < inv->n_notes; i++)
                if (!is_about_iommu(inv->notes[i]))
                        check_add(report, CHECK_WARNING, NULL, "%s", inv->notes[i]);
        check_faults(inv, report);
}

/* Check: the NUMA node of each accelerator (GPUs are accelerators) and NIC is known, and no device names a node that
 * the machine does not list. */

static void check_unlisted_nodes(const Inventory *inv, CheckReport *report) {
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (pci_device_has_unlisted_node(inv, &inv->devices[i])) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (first)
                check_add(report, CHECK_WARNING, "Update the firmware; its ACPI tables lack this node.",
                          "%s%s: numa_node says node %d, which the machine does not list, so the NUMA node is unknown.",
                          PCI_ADDRESS_STR(first->address), AND_MORE(n - 1), first->own_node);
}

void check_numa(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const PciDevice *first = NULL;
        size_t n = 0;

        if (inv->n_nodes == 0)
                check_add(report, CHECK_UNKNOWN, NULL, "The NUMA nodes are not known.");
        if (inv->n_nodes < 2)
                return;
        check_unlisted_nodes(inv, report);
        for (size_t i = 0; i < inv->n_devices; i++)
                if (inv->devices[i].numa_node < 0 && !pci_device_has_unlisted_node(inv, &inv->devices[i]) &&
                    (pci_device_is_accelerator(&inv->devices[i]) || pci_device_is_nic(&inv->devices[i]))) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (first)
                check_add(report, CHECK_WARNING, "Update the firmware; its ACPI tables lack the proximity domain.",
                          "%s%s: the NUMA node is unknown, so CPUs and memory near the device cannot be chosen.",
                          PCI_ADDRESS_STR(first->address), AND_MORE(n - 1));
}

/* Check: the host does not use the memory of GPUs. */

/* Returns the first NUMA node that has memory and no CPUs, and whose memory belongs to a known GPU (`owned` is true) or
 * to no known GPU (false). NULL: there is none. *ret_more: how many such nodes follow. */
static const NumaNode *find_device_node(const Inventory *inv, bool owned, size_t *ret_more) {
        const NumaNode *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_nodes; i++) {
                const NumaNode *node = &inv->nodes[i];

                if (node->memory == 0 || !cpuset_is_empty(&node->cpus) ||
                    (inventory_memory_owner(inv, node) != NULL) != owned)
                        continue;
                first = first ?: node;
                n++;
        }
        *ret_more = n > 0 ? n - 1 : 0;
        return first;
}

/* Notes NUMA nodes without CPUs whose memory is not that of a GPU (CXL, MCDRAM, HBM): requests may name them for
 * memory. */
static void tell_far_memory(const Inventory *inv, CheckReport *report) {
        const NumaNode *first = NULL;
        uint64_t memory = 0;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_nodes; i++) {
                const NumaNode *node = &inv->nodes[i];

                if (node->memory == 0 || !cpuset_is_empty(&node->cpus) || inventory_memory_owner(inv, node))
                        continue;
                first = first ?: node;
                memory += node->memory;
                n++;
        }
        if (first)
                check_add(report, CHECK_OK, NULL,
                          "NUMA node %d%s without CPUs: %s of memory, which guests get only by --memory-from.",
                          first->id, AND_MORE(n - 1), FORMAT_SIZE(memory));
}

/* Adds one finding for all coherent GPUs of pools that guests get without their memory, because their VFIO driver is
 * not COHERENT_DRIVER. */
static void tell_lost_memory(const Policy *policy, CheckReport *report) {
        _cleanup_free_ char *first = NULL;
        const char *remedy = NULL;
        size_t n = 0;

        for (size_t i = 0; i < policy->inventory->n_devices; i++) {
                const PciDevice *dev = &policy->inventory->devices[i];
                const char *driver = config_driver(policy->config, policy->inventory, dev), *r;
                _cleanup_free_ char *text = NULL;

                if (!policy_pool(policy, dev) || policy_pool(policy, dev)->vgpu_type)
                        continue;
                report->failed |= inventory_explain_lost_memory(policy->inventory, dev, driver, &text, &r) < 0;
                if (text && n++ == 0) {
                        first = TAKE_PTR(text);
                        remedy = r;
                }
        }
        if (first)
                check_add(report, CHECK_WARNING, remedy, "%s%s", first, n > 1 ? " Others of the pools too." : "");
}

void check_memory(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const PciDevice *first = NULL;
        const NumaNode *node;
        size_t n = 0, more;

        /* Skip GPUs with has_memory_node: policy_host_needs() decides about them. If their memory is online, the policy
         * refuses them, and check_pools() reports those in pools. It accepts GPUs of pools with StopServices=, because
         * the job first stops the services that use the memory. */
        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];

                if (pci_device_is_gpu(dev) && !dev->has_memory_node && dev->driver && !dev->vfio &&
                    inventory_is_coherent(inv, dev)) {
                        first = first ?: dev;
                        n++;
                }
        }
        tell_far_memory(inv, report);
        tell_lost_memory(facts->policy, report);
        if (!first)
                return;
        /* If no NUMA node without CPUs is known to be the memory of a GPU, any of these nodes may be. */
        node = find_device_node(inv, true, &more) ?: find_device_node(inv, false, &more);
        if (node)
                check_add(
                        report, CHECK_WARNING,
                        "Stop what uses the GPUs, for example nvidia-persistenced, before an allocation. "
                        "Or load nvidia with NVreg_CoherentGPUMemoryMode=driver.",
                        "GPU %s%s: the host has memory of GPUs online, on NUMA node %d%s without CPUs. A GPU cannot be "
                        "unbound while the host uses its memory.",
                        PCI_ADDRESS_STR(first->address), AND_MORE(n - 1), node->id, AND_MORE(more));
}

/* Check: housekeeping CPUs are set and fit isolcpus=. Also notes the kinds of cores. */

static void tell_kinds(const Inventory *inv, CheckReport *report) {
        unsigned n[_CORE_KIND_MAX] = { 0 };

        for (size_t i = 0; i < inv->n_cpus; i++)
                n[inv->cpus[i].kind]++;
        if (n[CORE_PERFORMANCE] < inv->n_cpus)
                check_add(report, CHECK_OK, NULL,
                          "CPUs are hybrid: %u are on performance, %u on efficient and %u on low-power cores. A guest "
                          "has cores of one kind, of the fastest that has enough free ones, and of several kinds only "
                          "when none has.",
                          n[CORE_PERFORMANCE], n[CORE_EFFICIENT], n[CORE_LOW_POWER]);
}

void check_cpus(const CheckFacts *facts, CheckReport *report) {
        const CpuSet *housekeeping = &facts->policy->config->housekeeping;
        CpuSet isolated = { 0 };

        report->failed |= cmdline_isolated(facts->cmdline, &isolated) < 0;
        if (cpuset_is_empty(housekeeping))
                check_add(report, CHECK_WARNING, "Set HousekeepingCpus= to a core or two of each NUMA node.",
                          "No CPUs are kept for the host, so a guest can take all of them.");
        if (cpuset_intersects(housekeeping, &isolated))
                check_add(report, CHECK_WARNING, "Take the CPUs from isolcpus= or from HousekeepingCpus=.",
                          "The kernel command line isolates CPUs (isolcpus=) that HousekeepingCpus= keeps for the "
                          "host.");
        tell_kinds(facts->policy->inventory, report);
}

/* Check: hugepages on the NUMA nodes that have CPUs and memory. */

static bool has_pages(const NumaNode *node) {
        for (size_t i = 0; i < node->n_pages; i++)
                if (node->pages[i].total > 0)
                        return true;
        return false;
}

void check_hugepages(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const NumaNode *first = NULL;
        size_t n = 0, others = 0; /* n: nodes without hugepages; others: nodes with hugepages */

        for (size_t i = 0; i < inv->n_nodes; i++) {
                const NumaNode *node = &inv->nodes[i];

                if (node->memory == 0 || cpuset_is_empty(&node->cpus))
                        continue;
                if (has_pages(node)) {
                        others++;
                        continue;
                }
                first = first ?: node;
                n++;
        }
        if (inv->xen)
                check_add(report, CHECK_UNKNOWN, NULL, "Guests of Xen do not use the hugepages of dom0.");
        else if (n + others == 0)
                check_add(report, CHECK_UNKNOWN, NULL, "The memory of the NUMA nodes is not known.");
        else if (n > 0 && others > 0)
                check_add(report, CHECK_WARNING, "Reserve as many on each node: nodeN/hugepages in sysfs.",
                          "NUMA node %d%s: no hugepages, but other nodes have some.", first->id, AND_MORE(n - 1));
        else if (n > 0)
                check_add(report, CHECK_WARNING,
                          cmdline_has(facts->cmdline, "hugepages")
                                  ? "The kernel command line asks for some, but the kernel had no room: ask for fewer."
                                  : "Add hugepagesz=1G and hugepages=NUMBER to the kernel command line; guests start "
                                    "faster.",
                          "No hugepages are reserved, so the memory of guests uses ordinary pages.");
}

/* Check: a guest may lock enough memory. VFIO locks all memory of a guest that has a device. */

void check_memory_lock(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        uint64_t memory = 0;

        for (size_t i = 0; i < inv->n_nodes; i++)
                memory += inv->nodes[i].memory;
        if (inv->xen)
                check_add(report, CHECK_UNKNOWN, NULL, "A guest of Xen locks no memory of dom0.");
        else if (facts->memory_lock == 0)
                check_add(report, CHECK_UNKNOWN, NULL,
                          facts->running ? "The limit is not known, because no daemon of libvirt runs."
                                         : "A recording does not tell how much memory QEMU may lock.");
        else if (facts->memory_lock < memory)
                check_add(report, CHECK_WARNING,
                          "Set LimitMEMLOCK=infinity for virtqemud.service or libvirtd.service, and restart it.",
                          "The daemon of libvirt may lock %s, and may not raise this limit for a larger guest.",
                          FORMAT_SIZE(facts->memory_lock));
}
