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
        PciConf *conf; /* NULL: config space and pci.ids are not read */
        int devices_fd;
        const PciAddress *busy;
        size_t n_busy;
        const Inventory *old; /* the last inventory; NULL: there is none */
        bool update;          /* read only the devices in reread, and copy the others from old */
        bool locked;          /* do not read driver_override and vGPUs, but copy them from old, if old has the device */
        PciAddress *reread;   /* with update: the devices to read, ascending */
        size_t n_reread;
        char *const *paths; /* read only devices on these paths and functions of their slots; NULL: all devices */
        size_t n_paths;
        size_t *siblings; /* indices in inv: for each PF, the VF from which its other VFs copy facts */
        size_t n_siblings;
        size_t *pfs; /* indices in inv: PFs that have VFs */
        size_t n_pfs;
        char *directory; /* directory of the last PF and its VFs, as in PciDevice.path, and a slash; NULL: none */
        int directory_fd;
} Scan;

/* Frees what s owns. inv and conf are not freed. */
void scan_done(Scan *s);
/* Sets s->conf and *ret, which the caller frees. When libpci cannot be initialized, both are NULL and the inventory
 * gets a note. Returns 0 or -ENOMEM. */
int scan_start_libpci(Scan *s, PciConf **ret);
/* Reads devices. `names` are entries of SCAN_DEVICES, sorted; they must have all functions of a slot or none of
 * them. Returns 0 or a negative errno. */
int scan_names(Scan *s, char *const *names, size_t n);
/* Returns true when an update reads the device, and does not copy it from the last inventory. */
bool scan_is_reread(const Scan *s, PciAddress address);
/* Adds the facts that depend on several devices. 0 or -ENOMEM. */
int scan_complete(const Scan *s);
/*
 * Returns true when VFIO itself made the group, for a device without IOMMU (no-IOMMU mode): it is named "vfio-noiommu".
 */
bool scan_group_is_noiommu(const Sysfs *fs, int number);

/* Names below a PCI function: block devices other than partitions, namespaces of NVMe controllers, and network
 * interfaces at any depth, for example of scalable functions (auxiliary bus), of modems, and on USB, SDIO, FireWire or
 * Thunderbolt. */

/*
 * Appends the disks of each storage controller, and the interfaces below all devices but VFs and GPUs, to kernel_names,
 * except names that are there already. `devices` are ascending by address. Reads nothing when there is no such device.
 * Returns 0 or -ENOMEM.
 */
int subdevices_append_names(const Sysfs *fs, PciDevice *devices, size_t n);
