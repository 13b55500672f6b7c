/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state of a scan, for scan.c (reads all devices), scan-update.c (reads some devices) and scan-complete.c (derives
 * facts from several devices). No other file includes this header.
 */

#include "devicedir.h"
#include "host/scan.h"
#include "pciconf.h"

#define SCAN_DEVICES "sys/bus/pci/devices"

typedef struct Scan {
        const Sysfs *fs;
        Inventory *inv;
        PciConf *conf; /* NULL when libpci cannot be initialized */
        int devices_fd;
        const PciAddress *busy;
        size_t n_busy;
        const Inventory *old; /* previous inventory; NULL in the first scan */
        bool update;          /* only the devices in reread are read; the others are copied from old */
        bool locked;          /* with update: driver_override is copied from old for all devices */
        PciAddress *reread;   /* with update: the devices to read, ascending */
        size_t n_reread;
        char *const *paths; /* only devices on these paths, and functions of their slots, are read; NULL: all */
        size_t n_paths;
        size_t *siblings; /* indices in inv: one VF per PF, which other VFs of the PF copy facts from */
        size_t n_siblings;
        size_t *pfs; /* indices in inv: the PFs with VFs that were read */
        size_t n_pfs;
        char *directory; /* directory that holds the last PF and its VFs, as in PciDevice.path with a slash */
        int directory_fd;
} Scan;

/* Frees the members of s, except inv and conf. */
void scan_done(Scan *s);
/* Sets s->conf and *ret, which the caller frees. When libpci cannot be initialized, both are NULL and the inventory
 * gets a note. Returns 0 or -ENOMEM. */
int scan_start_libpci(Scan *s, PciConf **ret);
/* Reads devices. names are entries of SCAN_DEVICES, sorted, with either all functions of a slot or none. */
int scan_names(Scan *s, char *const *names, size_t n);
/* Returns whether an update reads this device instead of copying it from the previous inventory. */
bool scan_is_reread(const Scan *s, PciAddress address);
/* Derives the facts that depend on several devices: IOMMU groups, inherited NUMA nodes, names and notes. */
int scan_complete(const Scan *s);
/* Returns whether VFIO created the IOMMU group in its no-IOMMU mode, for a device without an IOMMU. The group's
 * attribute name is then "vfio-noiommu". */
bool scan_group_is_noiommu(const Sysfs *fs, int number);

/* Names below a PCI function: block devices other than partitions, namespaces of NVMe controllers, and network
 * interfaces at any depth, for example of scalable functions (auxiliary bus), of modems, and on USB, SDIO, FireWire or
 * Thunderbolt. */

/*
 * Appends the disks of each storage controller, and the interfaces below all devices but VFs and GPUs, to kernel_names,
 * unless it has them. devices are ascending by address. Reads nothing when there is no such device. Returns 0 or
 * -ENOMEM.
 */
int subdevices_append_names(const Sysfs *fs, PciDevice *devices, size_t n);
