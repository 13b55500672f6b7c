/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A scan at work, shared by scan.c, which reads all, scan-update.c, which reads some, and scan-complete.c; nobody else
 * includes it. */

#include "host/scan.h"
#include "pciconf.h"

#define SCAN_DEVICES "sys/bus/pci/devices"

typedef struct Scan {
        const Sysfs *fs;
        Inventory *inv;
        PciConf *conf; /* NULL when libpci could not start */
        int devices_fd;
        const PciAddress *busy;
        size_t n_busy;
        const Inventory *old; /* NULL the first time */
        bool update;          /* what is not read anew is taken over from there */
        bool locked;          /* of an update: overrides are taken over, too */
        PciAddress *reread;   /* of an update: what is read anew, ascending */
        size_t n_reread;
        size_t *siblings; /* indices in inv: of each PF the VF whose identity and parent directory the others share */
        size_t n_siblings;
} Scan;

/* ret: for the caller to free. Without libpci the inventory gets a note. */
int scan_start_libpci(Scan *s, PciConf **ret);
/* names: entries of SCAN_DEVICES, sorted; all functions of a slot or none. */
int scan_names(Scan *s, char *const *names, size_t n);
bool scan_is_reread(const Scan *s, PciAddress address);
/* What only all devices together tell. */
int scan_complete(const Scan *s);
/* The kernel makes such groups for devices that no IOMMU confines. */
bool scan_group_is_noiommu(const Sysfs *fs, int number);
