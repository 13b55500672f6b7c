/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Where sysfs has an attribute of a PCI function (kernel Documentation/ABI/testing/sysfs-bus-pci), below the root. */

#include "model/pciaddr.h"

#define PCI_PATH_MAX 128
const char *pci_path_format(PciAddress a, const char *attribute, char buf[static PCI_PATH_MAX]);
/* attribute "" is the directory. Lives until the end of the enclosing block. */
#define PCI_PATH(a, attribute) pci_path_format((a), (attribute), (char[PCI_PATH_MAX]){ 0 })
