/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What only config space and pci.ids know, by libpci, whose headers stay in pciconf.c. Not reentrant: one at a time. */

#include "model/inventory.h"
#include "util/sysfs.h"

typedef struct PciConf PciConf;

int pciconf_new(const Sysfs *fs, PciConf **ret);
PciConf *pciconf_free(PciConf *conf);
DEFINE_CLEANUP(PciConf *, pciconf_free)

typedef struct PciConfFacts {
        bool is_bridge; /* header type 1 or 2 */
        PciAcs acs;     /* PCI_ACS_UNKNOWN when less than the capabilities can be read, as without privilege */
        uint16_t acs_can, acs_does; /* 0 where nothing depends on them */
        PciAts ats;                 /* PCI_ATS_UNKNOWN as acs */
} PciConfFacts;

/* -EIO when not even the header can be read. */
int pciconf_read(PciConf *conf, PciAddress address, PciConfFacts *ret);

/* Sets the name of every device that pci.ids knows, "NVIDIA Corporation GK110GL [Tesla K20m]". */
int pciconf_name_devices(PciConf *conf, Inventory *inv);
