/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One PCI function's sysfs directory while it is being scanned. A single readdir() tells which attributes exist, so
 * that absent ones cost no system call. What is there but cannot be used becomes a sentence in PciDevice.fault.
 */

#include "model/inventory.h"
#include "util/sysfs.h"

/* Sorted by name. */
typedef enum Attribute {
        ATTRIBUTE_BOOT_VGA,
        ATTRIBUTE_CLASS,
        ATTRIBUTE_CONFIG,
        ATTRIBUTE_DEVICE,
        ATTRIBUTE_DRIVER,
        ATTRIBUTE_DRIVER_OVERRIDE,
        ATTRIBUTE_IOMMU_GROUP,
        ATTRIBUTE_MAX_LINK_SPEED,
        ATTRIBUTE_MAX_LINK_WIDTH,
        ATTRIBUTE_NUMA_NODE,
        ATTRIBUTE_PHYSFN,
        ATTRIBUTE_POWER_STATE,
        ATTRIBUTE_RESET_METHOD,
        ATTRIBUTE_RESOURCE,
        ATTRIBUTE_SECONDARY_BUS_NUMBER, /* only bridges have it */
        ATTRIBUTE_SRIOV_TOTALVFS,
        ATTRIBUTE_SRIOV_VF_DEVICE,
        ATTRIBUTE_SUBSYSTEM_DEVICE,
        ATTRIBUTE_SUBSYSTEM_VENDOR,
        ATTRIBUTE_VENDOR,
        ATTRIBUTE_VFIO_DEV,
        _ATTRIBUTE_MAX,
} Attribute;
const char *attribute_to_string(Attribute a);

typedef struct DeviceDir DeviceDir;

/* name: the entry in sys/bus/pci/devices. */
int device_dir_open(const Sysfs *fs, const char *name, DeviceDir **ret);
DeviceDir *device_dir_free(DeviceDir *d);
DEFINE_CLEANUP(DeviceDir *, device_dir_free)

/* The kernel may hold the device's lock for ever: what waits for that lock, driver_override, is then not read. */
void device_dir_set_locked(DeviceDir *d);

/* PciDevice.instance. */
uint64_t device_dir_instance(const DeviceDir *d);

bool device_dir_has(const DeviceDir *d, Attribute a);
/* Its vfio-dev/vfioN has a number: the kernel made /dev/vfio/devices/vfioN. */
bool device_dir_has_vfio_cdev(const DeviceDir *d);
/* The directory listed its ids but they can no longer be read: the device went away since. */
bool device_dir_is_gone(const DeviceDir *d);
/* The N of its virtfnN entries, ascending. */
const unsigned *device_dir_virtfns(const DeviceDir *d, size_t *ret_n);

/*
 * Readers: 1 when *ret was set, 0 when the attribute is absent or not usable (then dev has a fault), -ENOMEM. Text and
 * link names go to a buffer of SYSFS_ATTRIBUTE_MAX bytes.
 */
int device_dir_read_text(const DeviceDir *d, Attribute a, PciDevice *dev, char *ret);
int device_dir_read_hex(const DeviceDir *d, Attribute a, PciDevice *dev, uint64_t max, uint64_t *ret);
int device_dir_read_unsigned(const DeviceDir *d, Attribute a, PciDevice *dev, uint64_t max, uint64_t *ret);
int device_dir_read_link(const DeviceDir *d, Attribute a, PciDevice *dev, char *ret);
int device_dir_read_address(const DeviceDir *d, const char *link, PciDevice *dev, PciAddress *ret);

/* "NAME makes no sense: 'VALUE'", quoting only what is clean and short. */
int device_fault_value(PciDevice *dev, const char *name, const char *value);
