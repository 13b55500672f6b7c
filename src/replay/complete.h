/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Adds the sysfs entries that a .tree file may omit: "Made by the simulator" in tests/nodes/README.md. */

#include "util/sysfs.h"

typedef struct Completion {
        const Sysfs *fs;
        int root_fd;
        int devices_fd; /* sys/bus/pci/devices; -1 until the first PCI function is found */
        bool no_iommu;  /* the file has "%iommu off" */
        char **vfio;    /* names of the drivers that %driver declares with the word "vfio" */
        size_t n_vfio;
} Completion;

/*
 * Adds to an unpacked tree the entries that the daemon reads: sys/bus/pci/devices, the IOMMU groups with type and
 * reserved_regions, vfio-dev of each function that is bound to a VFIO driver, and the directories of drivers. Never
 * follows a link to create an entry.
 */
int complete_node(Completion *c);

/* Returns the target of a relative link that lies in the directory "from" and points to the path "to". Both paths start
 * at the root. NULL when out of memory; the caller frees. */
char *relative_path(const char *from, const char *to);
