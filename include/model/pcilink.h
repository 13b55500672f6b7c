/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Speed and width of a PCI Express link: speeds are MT/s (2500, 16000), widths are lanes, and 0 is unknown in both. */

/* What sysfs says: "16.0 GT/s PCIe", "Unknown". */
unsigned pci_link_parse_speed(const char *text);
/* "16"; of what cannot be, 0 and 255 are how the kernel says that it does not know. */
unsigned pci_link_parse_width(const char *text);

/* "16.0 GT/s". PCI_LINK_SPEED_MAX bytes are enough. */
#define PCI_LINK_SPEED_MAX 24
const char *pci_link_format_speed(unsigned speed, char buf[static PCI_LINK_SPEED_MAX]);
#define PCI_LINK_SPEED_STR(speed) pci_link_format_speed((speed), (char[PCI_LINK_SPEED_MAX]){ 0 })
