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
        const Inventory *old; /* the previous inventory; NULL for the first scan */
        bool update;          /* only the devices in reread are read; the others are copied from old */
        bool locked;          /* with update: driver_override is copied from old for all devices */
        PciAddress *reread;   /* with update: the devices to read, ascending */
        size_t n_reread;
        char *const
                *paths; /* only devices on these paths, and the other functions of their slots, are read; NULL: all */
        size_t n_paths;
        size_t *siblings; /* indices in inv: one VF per PF, from which facts of the PF's other VFs are derived */
        size_t n_siblings;
        size_t *pfs; /* indices in inv: the PFs with VFs that were read */
        size_t n_pfs;
        char *directory; /* holds the directories of the last PF and its VFs, as in PciDevice.path with a slash */
        int directory_fd;
} Scan;

/* Frees what s has gathered, except inv and conf. */
void scan_done(Scan *s);
/* Sets s->conf and *ret, which the caller frees. When libpci cannot be initialized, both are NULL and the inventory
 * gets a note. Returns 0 or -ENOMEM. */
int scan_start_libpci(Scan *s, PciConf **ret);
/* Reads devices. names are entries of SCAN_DEVICES, sorted, with either all functions of a slot or none. */
int scan_names(Scan *s, char *const *names, size_t n);
/* Tells whether an update reads this device, rather than copying it from the previous inventory. */
bool scan_is_reread(const Scan *s, PciAddress address);
/* Derives the facts that depend on several devices: IOMMU groups, inherited NUMA nodes, names and notes. */
int scan_complete(const Scan *s);
/* Tells whether the IOMMU group was created by VFIO in its no-IOMMU mode, for a device without an IOMMU: its attribute
 * name is then "vfio-noiommu". */
bool scan_group_is_noiommu(const Sysfs *fs, int number);

/* The names of what is below a PCI function: block devices that are no partition, namespaces of NVMe controllers, and
 * network interfaces at any depth, as of scalable functions (auxiliary bus), of modems, and on USB, SDIO, FireWire or
 * Thunderbolt. */

/*
 * Appends the disks of each storage controller, and the interfaces below all devices but VFs and GPUs, to
 * kernel_names, which may have them already. devices are ascending by address. Reads nothing when no device is of such
 * a kind. Returns 0 or -ENOMEM.
 */
int subdevices_append_names(const Sysfs *fs, PciDevice *devices, size_t n);
