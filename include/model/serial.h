/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The PCI Express serial number of a card, which all its functions have. 0: none. */

#include <inttypes.h>

#define PCI_SERIAL_STRING_MAX sizeof("00-00-00-00-00-00-00-00")

/* Formats a serial number as lspci does, the highest byte first: "00-02-c9-03-00-12-34-56". */
const char *pci_serial_format(uint64_t serial, char buf[static PCI_SERIAL_STRING_MAX]);
/*
 * Parses exactly the format of pci_serial_format(). 0, or -EINVAL for other text and for all zeros or all ones, which
 * are no serial numbers.
 */
int pci_serial_parse(const char *s, uint64_t *ret);
/* Returns `serial`, as a card reports it; 0 if it is all ones, by which a card says that it has none. */
uint64_t pci_serial_known(uint64_t serial);
