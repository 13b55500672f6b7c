/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads names of PCI functions from the text file pci.ids. The head of that file describes the format. */

#include "model/inventory.h"

/*
 * Sets name and vf_name of each device whose member `named` is false to the names that libpci would give, or as
 * pciids_describe() does when the file lacks the id. Then sets `named`. file: the file that libpci is configured with;
 * if it does not exist, its name without ".gz" is tried. Returns 0; -EBADMSG for a compressed file; -ENOMEM, after
 * which some devices may be named; or another error of reading the file.
 */
int pciids_name_devices(const char *file, Inventory *inv);

/*
 * Sets *ret to a text that describes an id that pci.ids lacks, such as "NVIDIA Corporation 3D controller [10de:2335]".
 * device: the ID of dev or of its VFs. vendor, class: the names of dev's vendor and class, or NULL. *ret is NULL when
 * both are NULL, or when the ids of dev could not be read. Returns 0 or -ENOMEM.
 */
int pciids_describe(const PciDevice *dev, uint16_t device, const char *vendor, const char *class, char **ret);
