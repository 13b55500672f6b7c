/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the sysfs directory of one PCI function. One directory listing tells which attributes exist, so an absent
 * attribute costs no system call. Unless noted, an attribute that is unreadable or invalid is described in
 * PciDevice.fault.
 */

#include "model/inventory.h"
#include "util/sysfs.h"

/* Attributes and directories of a PCI function, sorted by name. */
typedef enum Attribute {
        ATTRIBUTE_ACCEL,
        ATTRIBUTE_BOOT_VGA,
        ATTRIBUTE_CLASS,
        ATTRIBUTE_CONFIG,
        ATTRIBUTE_CURRENT_LINK_SPEED,
        ATTRIBUTE_CURRENT_LINK_WIDTH,
        ATTRIBUTE_D3COLD_ALLOWED,
        ATTRIBUTE_DEVICE,
        ATTRIBUTE_DRIVER,
        ATTRIBUTE_DRIVER_OVERRIDE,
        ATTRIBUTE_DRM,
        ATTRIBUTE_INFINIBAND,
        ATTRIBUTE_IOMMU_GROUP,
        ATTRIBUTE_MAX_LINK_SPEED,
        ATTRIBUTE_MAX_LINK_WIDTH,
        ATTRIBUTE_MDEV_SUPPORTED_TYPES,
        ATTRIBUTE_NET,
        ATTRIBUTE_NUMA_NODE,
        ATTRIBUTE_NVIDIA,
        ATTRIBUTE_NVME,
        ATTRIBUTE_PHYSFN,
        ATTRIBUTE_POWER,
        ATTRIBUTE_POWER_STATE,
        ATTRIBUTE_RESET_METHOD,
        ATTRIBUTE_RESOURCE,
        ATTRIBUTE_SECONDARY_BUS_NUMBER, /* only bridges have it */
        ATTRIBUTE_SRIOV,
        ATTRIBUTE_SRIOV_OFFSET,
        ATTRIBUTE_SRIOV_STRIDE,
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

/* Lists the open directory fd of a PCI function. Takes ownership of fd, and closes it on failure, too. Returns 0 or a
 * negative errno. */
int device_dir_new(const Sysfs *fs, int fd, DeviceDir **ret);
/* Opens the directory with this name in sys/bus/pci/devices. 0 or a negative errno. */
int device_dir_open(const Sysfs *fs, const char *name, DeviceDir **ret);
DeviceDir *device_dir_free(DeviceDir *d);
DEFINE_CLEANUP(DeviceDir *, device_dir_free)

/*
 * Excludes attributes whose read may wait for the device lock, which the kernel may hold for ever: driver_override, and
 * the attributes of vGPUs. The mediated devices of a GPU that is no VF are still read.
 */
void device_dir_set_locked(DeviceDir *d);
/* Tells `d` the device `dev` as an earlier scan found it, so that the names of vGPU types that `dev` has are not read
 * again. `dev` must outlive `d`. */
void device_dir_set_known(DeviceDir *d, const PciDevice *dev);

/* Returns the value for PciDevice.instance, or 0 when unknown. */
uint64_t device_dir_instance(const DeviceDir *d);

bool device_dir_has(const DeviceDir *d, Attribute a);
/*
 * Copies to ret the name of the entry vfio-dev/vfioN that has a device number, and hence a node
 * /dev/vfio/devices/vfioN. ret must be "" before the call, and stays "" if there is none or it cannot be read.
 */
void device_dir_read_vfio_cdev(const DeviceDir *d, char ret[static VFIO_CDEV_MAX]);
/* Reads the members that pci_device_copy_vgpu() copies. After device_dir_set_locked(), reads only the mediated devices
 * of a GPU that is no VF, with an empty list of types, because a read of the others may wait for the GPU in its driver.
 * Returns 0 or -ENOMEM. */
int device_dir_read_vgpu(const DeviceDir *d, PciDevice *dev);
/* Reads runtime_pm and d3cold. Each is false if its file is unreadable or missing, as in kernels without power
 * management. Skips VFs and bridges. */
void device_dir_read_power(const DeviceDir *d, PciDevice *dev);
/* Appends the entries of the directory `a` to *names, separated by spaces. Appends nothing if the directory is absent
 * or unreadable. Skips entries with spaces or control characters. Returns 0 or -ENOMEM. */
int device_dir_append_entries(const DeviceDir *d, Attribute a, char **names);
/* Reads PciDevice.bond. 0 or -ENOMEM. */
int device_dir_read_bond(const DeviceDir *d, PciDevice *dev);
/* Returns true when the device was removed after device_dir_open(): its attributes are listed but cannot be read. */
bool device_dir_is_gone(const DeviceDir *d);
/* Returns the numbers N of the entries virtfnN, ascending. d owns the array. */
const unsigned *device_dir_virtfns(const DeviceDir *d, size_t *ret_n);

/* Return 1 when *ret was set; 0 when the attribute is absent or excluded, or unusable and noted in dev->fault; or
 * -ENOMEM. Text and link names need a buffer of SYSFS_ATTRIBUTE_MAX bytes. */
int device_dir_read_text(const DeviceDir *d, Attribute a, PciDevice *dev, char *ret);
int device_dir_read_hex(const DeviceDir *d, Attribute a, PciDevice *dev, uint64_t max, uint64_t *ret);
int device_dir_read_unsigned(const DeviceDir *d, Attribute a, PciDevice *dev, uint64_t max, uint64_t *ret);
int device_dir_read_link(const DeviceDir *d, Attribute a, PciDevice *dev, char *ret);
int device_dir_read_address(const DeviceDir *d, const char *link, PciDevice *dev, PciAddress *ret);

/* Adds the fault "NAME makes no sense: 'VALUE'" to dev. Leaves VALUE out when it is long or has control characters. */
int device_fault_value(PciDevice *dev, const char *name, const char *value);
