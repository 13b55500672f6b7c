/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: memory of GPUs that the host has online. */

#include "check-internal.h"
#include "util/strings.h"

/* This VFIO driver is for GPUs whose memory the host can use as its own. */
#define COHERENT_DRIVER "nvgrace_gpu_vfio_pci"

/* Memory on a node without CPUs belongs to a device. */
static const NumaNode *find_device_node(const Inventory *inv, size_t *ret_more) {
        const NumaNode *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_nodes; i++)
                if (inv->nodes[i].memory > 0 && cpuset_is_empty(&inv->nodes[i].cpus)) {
                        first = first ?: &inv->nodes[i];
                        n++;
                }
        *ret_more = n > 0 ? n - 1 : 0;
        return first;
}

void check_memory(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const PciDevice *first = NULL;
        const NumaNode *node;
        size_t n = 0, more;

        /* For GPUs with has_memory_node the check of the pools tells more. */
        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];

                if (pci_device_is_gpu(dev) && !dev->has_memory_node && dev->driver && !dev->vfio &&
                    streq_ptr(inventory_variant_driver(inv, dev), COHERENT_DRIVER)) {
                        first = first ?: dev;
                        n++;
                }
        }
        node = first ? find_device_node(inv, &more) : NULL;
        if (node)
                check_add(
                        report, CHECK_WARNING,
                        "Stop what uses the GPUs, for example nvidia-persistenced, before an allocation. "
                        "Or load nvidia with NVreg_CoherentGPUMemoryMode=driver.",
                        "GPU %s%s: the host has memory of GPUs online, on NUMA node %d%s without CPUs. A GPU cannot be "
                        "unbound while the host uses its memory.",
                        PCI_ADDRESS_STR(first->address), AND_MORE(n - 1), node->id, AND_MORE(more));
}
