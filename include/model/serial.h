/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The PCI Express device serial number of a card, shared by all its functions; 0 is none. */

#include <inttypes.h>

#define PCI_SERIAL_STRING_MAX sizeof("00-00-00-00-00-00-00-00")

/* Formats "00-02-c9-03-00-12-34-56", the most significant byte first, as lspci prints it. */
const char *pci_serial_format(uint64_t serial, char buf[static PCI_SERIAL_STRING_MAX]);
/*
 * Parses exactly the format of pci_serial_format(). 0, or -EINVAL for other text and for all zeros or all ones, which
 * are no serial numbers.
 */
int pci_serial_parse(const char *s, uint64_t *ret);
/* Returns serial as read from a card, or 0 for all ones, which a card without a serial number reports. */
uint64_t pci_serial_known(uint64_t serial);
