/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats sysfs paths of PCI functions. */

#include "host/pcipath.h"

#include <stdio.h>

const char *pci_path_format(PciAddress a, const char *attribute, char buf[static PCI_PATH_MAX]) {
        (void) snprintf(buf, PCI_PATH_MAX, "sys/bus/pci/devices/%s/%s", PCI_ADDRESS_STR(a), attribute);
        return buf;
}
