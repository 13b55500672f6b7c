/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a .tree file need not say because it follows: see "Made by the simulator" in tests/nodes/README.md. */

#include "util/sysfs.h"

typedef struct Completion {
        const Sysfs *fs;
        int root_fd;
        int devices_fd; /* sys/bus/pci/devices; -1 at first: a machine without PCI has none */
        bool no_iommu;  /* %iommu off */
        char **vfio;    /* drivers that %driver declares to be vfio */
        size_t n_vfio;
} Completion;

/*
 * Adds to an unpacked tree, as far as a reader of it can tell: sys/bus/pci/devices, groups with type and
 * reserved_regions, vfio-dev of what is on a VFIO driver, the directories of drivers. Nothing is made through a link.
 */
int complete_node(Completion *c);

/* How a link in the directory from names the path to; both are from the root. NULL when out of memory. */
char *relative_path(const char *from, const char *to);
