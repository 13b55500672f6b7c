/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Facts of PCI functions from config space, and their names from pci.ids, read with libpci. Only pciconf.c includes
 * libpci's headers. Not reentrant: no two calls may run at the same time.
 */

#include "model/inventory.h"
#include "util/sysfs.h"

typedef struct PciConf PciConf;

/* fs is borrowed until pciconf_free(). Returns 0, -ENOMEM, -EIO when libpci reported an error, or -EOPNOTSUPP when this
 * libpci cannot use another sysfs path. */
int pciconf_new(const Sysfs *fs, PciConf **ret);
PciConf *pciconf_free(PciConf *conf);
DEFINE_CLEANUP(PciConf *, pciconf_free)

typedef struct PciConfFacts {
        bool is_bridge; /* header type 1 or 2 */
        PciAcs acs;     /* PCI_ACS_UNKNOWN when capabilities cannot be read, as without privilege */
        uint16_t acs_capabilities,
                acs_enabled; /* registers of the ACS capability; 0 when acs does not follow from them */
        PciAts ats;          /* PCI_ATS_UNKNOWN for a bridge, and when capabilities cannot be read */
} PciConfFacts;

/* Returns -EIO when the first 64 bytes of config space cannot be read. */
int pciconf_read(PciConf *conf, PciAddress address, PciConfFacts *ret);

/* Sets the name of each device that pci.ids has: "NVIDIA Corporation GK110GL [Tesla K20m]". */
int pciconf_name_devices(PciConf *conf, Inventory *inv);
