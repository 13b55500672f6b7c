/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads facts of PCI functions from config space with libpci, and their names from pci.ids. Only pciconf.c includes
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
                acs_enabled; /* bits of the ACS registers; both 0 when acs was found without reading these registers */
        PciAts ats;          /* PCI_ATS_UNKNOWN for a bridge, and when capabilities cannot be read */
} PciConfFacts;

/* Returns 0, or -EIO when the first 64 bytes of config space cannot be read or libpci reported an error. */
int pciconf_read(PciConf *conf, PciAddress address, PciConfFacts *ret);

/* As pciids_name_devices(), with the pci.ids that libpci is configured with: sets names such as "NVIDIA Corporation
 * GK110GL [Tesla K20m]". Lets libpci read a compressed pci.ids, instead of returning -EBADMSG; -EIO: libpci reported an
 * error. */
int pciconf_name_devices(PciConf *conf, Inventory *inv);
