/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Unpacks a .tree file, which may be hostile, into a directory. */

#include "util/sysfs.h"

#define DRIVERS "sys/bus/pci/drivers"

/* dir: a new directory. On failure *ret_problem (caller frees) is a sentence, or NULL. */
int unpack_tree(const char *file, const char *dir, char **ret_problem);

/* Opens a directory with O_PATH, and creates it and its parents if they are missing. path has at most TREE_DEPTH_MAX
 * components. Returns a descriptor or negative errno. */
int unpack_open_dir(const Sysfs *fs, const char *path);
/* Creates the directory parent/name unless it exists. */
int unpack_make_dir(const Sysfs *fs, const char *parent, const char *name);

/* Returns the target of a relative link that lies in the directory "from" and points to the path "to". Both paths start
 * at the root. NULL when out of memory; the caller frees. */
char *relative_path(const char *from, const char *to);

/*
 * Adds what the kernel makes of an item in the directory of a PCI function: of the file "vendor" the entry in
 * sys/bus/pci/devices; of the link "driver" the directory of the driver, and vfio-dev below the function if that is
 * vfio-pci; of the link "iommu_group" the group with its type and reserved_regions. What exists stays. path: the
 * directory, without links in it; nothing is added if it is not that of a function. target: of the link.
 */
int complete_function(const Sysfs *fs, const char *path, const char *name, const char *target);
