/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Speed and width of a PCI Express link. Speeds are in MT/s (16000), widths in lanes. 0 is unknown. */

/* Returns the speed in an attribute of sysfs, "16.0 GT/s PCIe". 0: unknown. */
unsigned pci_link_parse_speed(const char *text);
/* Returns the width in an attribute of sysfs, "16". 0: unknown, for which the kernel writes 0 or 255. */
unsigned pci_link_parse_width(const char *text);

/* Returns the PCI Express generation of a speed: 4 for 16000. 0: unknown. */
unsigned pci_link_generation(unsigned speed);

/* Formats a speed, "16.0 GT/s". buf has PCI_LINK_SPEED_MAX bytes. */
#define PCI_LINK_SPEED_MAX 24
const char *pci_link_format_speed(unsigned speed, char buf[static PCI_LINK_SPEED_MAX]);
#define PCI_LINK_SPEED_STR(speed) pci_link_format_speed((speed), (char[PCI_LINK_SPEED_MAX]) { 0 })
