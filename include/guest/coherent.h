/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * GPUs beside a Grace CPU, on the VFIO driver that gives a guest their memory. NVIDIA's driver in the guest puts that
 * memory online, on a NUMA node that the firmware of the guest reports for the GPU: a node without CPUs and memory,
 * with an entry for the GPU in the SRAT table (generic initiator). The driver takes all such nodes, one for the GPU and
 * one for each of up to seven MIG instances (kernel-open/nvidia/nv-pci.c of NVIDIA's open-gpu-kernel-modules). A
 * document has these nodes as memory cells: the last cells of the guest, a run for each such GPU. Pure.
 *
 * The guest's kernel numbers nodes in the order of the table, which QEMU sorts by names that libvirt makes anew at each
 * start: the node number of a memory cell is not known before the start. The other cells come first, and keep their
 * numbers.
 */

#include "config/config.h"
#include "ledger/allocation.h"

#define MEMORY_CELLS_MAX 8U

/* Returns the number of memory cells of each such GPU. 0: none, because the allocation has no such GPU, libvirt cannot
 * write the cells, or the guest's kernel has too few nodes (GuestNodes=). */
unsigned memory_cells_each(const Inventory *inv, const Config *config, const Allocation *a);
size_t memory_cells_count(const Allocation *a, unsigned each);
/* Returns the first memory cell of the device; -1: it has none. */
int memory_cells_first(const Allocation *a, unsigned each, const AllocationDevice *dev);
/* Returns the host node of a guest cell; for a memory cell, the host node of its GPU. -1: unknown. */
int guest_cell_node(const Inventory *inv, const Allocation *a, unsigned each, size_t cell);

/*
 * libvirt_sizes_virt() returns true when libvirt and QEMU can set the 64-bit window of machine 'virt': <pcihole64>
 * becomes QEMU's highmem-mmio-size. qemu_sizes_virt() returns true when QEMU has this property.
 */
bool libvirt_sizes_virt(const LibvirtFeatures *f);
bool qemu_sizes_virt(const LibvirtFeatures *f);

/*
 * Formats what a guest of the allocation lacks with the drivers, libvirt, QEMU and configuration of this node, as
 * sentences with a newline each. hole64: GuestPci.hole64. smmu: a template asks for an SMMU. The caller frees *ret,
 * which is NULL for none. 0 or -ENOMEM.
 */
int guest_explain_lacks(const Inventory *inv, const Config *config, const Allocation *a, uint64_t hole64, bool smmu,
                        char **ret);
