/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Names of PCI functions from the text file pci.ids (format: its own head). */

#include "model/inventory.h"

/*
 * Sets the name and the vf_name of each device that is not named yet, as libpci would, or as pciids_describe() when the
 * file does not have the id. file: as libpci is configured with; without its suffix ".gz" when there is none of that
 * name. -EBADMSG: the file is compressed. -ENOMEM: some devices may be named. Otherwise an error of reading the file.
 */
int pciids_name_devices(const char *file, Inventory *inv);

/*
 * Sets *ret to words for an id that pci.ids does not have, "NVIDIA Corporation 3D controller [10de:2335]". device: of
 * dev or of its VFs. vendor, class: the names of the vendor and the class of dev; NULL when pci.ids lacks them. *ret is
 * NULL when it lacks both, or when the ids of dev could not be read. 0 or -ENOMEM.
 */
int pciids_describe(const PciDevice *dev, uint16_t device, const char *vendor, const char *class, char **ret);
