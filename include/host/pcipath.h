/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Paths of PCI functions in sysfs, relative to the root (Documentation/ABI/testing/sysfs-bus-pci of the kernel). */

#include "model/pciaddr.h"

#define PCI_PATH_MAX 128
const char *pci_path_format(PciAddress a, const char *attribute, char buf[static PCI_PATH_MAX]);
/* The path of an attribute of the function `a`; with the attribute "", the path of the function's directory. The string
 * lives until the end of the block. */
#define PCI_PATH(a, attribute) pci_path_format((a), (attribute), (char[PCI_PATH_MAX]) { 0 })
