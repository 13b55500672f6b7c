/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Speed and width of a PCI Express link. Speeds are MT/s (2500, 16000), widths are lanes; 0 is unknown in both. */

/* Parses current_link_speed or max_link_speed of sysfs: "16.0 GT/s PCIe", "Unknown". */
unsigned pci_link_parse_speed(const char *text);
/* Parses current_link_width or max_link_width: "16". The kernel writes 0 or 255 when the width is unknown. */
unsigned pci_link_parse_width(const char *text);

/* Returns the generation of PCI Express with this speed: 4 for 16000. 0 when it is unknown. */
unsigned pci_link_generation(unsigned speed);

/* Formats "16.0 GT/s". buf: PCI_LINK_SPEED_MAX bytes. */
#define PCI_LINK_SPEED_MAX 24
const char *pci_link_format_speed(unsigned speed, char buf[static PCI_LINK_SPEED_MAX]);
#define PCI_LINK_SPEED_STR(speed) pci_link_format_speed((speed), (char[PCI_LINK_SPEED_MAX]) { 0 })
