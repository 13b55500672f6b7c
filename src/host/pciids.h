/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Names of PCI functions from the text file pci.ids (format: its own head). */

#include "model/inventory.h"

/*
 * Sets the name and the vf_name of each device that is not named yet, as libpci would; an id that the file does not
 * have gets NULL. file: as libpci is configured with; without its suffix ".gz" when there is none of that name.
 * -EBADMSG: the file is compressed. -ENOMEM: some devices may be named. Otherwise an error of reading the file.
 */
int pciids_name_devices(const char *file, Inventory *inv);
