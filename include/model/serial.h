/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The serial number of a card as PCI Express has it, one for all its functions; 0 is none. */

#include <inttypes.h>

#define PCI_SERIAL_STRING_MAX sizeof("00-00-00-00-00-00-00-00")

/* "00-02-c9-03-00-12-34-56", the most significant byte first, as lspci prints it. */
const char *pci_serial_format(uint64_t serial, char buf[static PCI_SERIAL_STRING_MAX]);
/* That text only. -EINVAL otherwise, and for what no card has: all zeros or all ones. */
int pci_serial_parse(const char *s, uint64_t *ret);
/* Of what a card says; 0 for what a card says that was never given one. */
uint64_t pci_serial_known(uint64_t serial);
