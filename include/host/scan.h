/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the devices, CPUs and memory of the machine from sysfs into an Inventory. A damaged attribute is left out and
 * described in PciDevice.fault. A device that disappears during the scan is left out. Neither makes the scan fail.
 *
 * Reads that can block for ever are avoided. A scan never reads sriov_numvfs or the config space of a device in D3cold.
 * It reads the config space of an endpoint again only if the last scan did not read all facts from it, or if the driver
 * of the endpoint has changed since that scan and no job works on the endpoint.
 */

#include "model/inventory.h"
#include "util/sysfs.h"

/* Reads everything except what critical_mark() sets (host/critical.h). Returns 0, -ENOMEM, or a negative errno when the
 * devices cannot be listed. */
int scan_inventory(const Sysfs *fs, Inventory **ret);

/* As scan_inventory(), but reads only the facts that decide the pools of the given devices. Reads these devices, their
 * PFs and the bridges above them, and the other functions in the slots of all of these. Reads no config space, no
 * attribute that may wait for a device lock, and neither CPUs nor memory. */
int scan_identities(const Sysfs *fs, const PciAddress *devices, size_t n, Inventory **ret);

/*
 * As scan_inventory(), while jobs work on the devices in busy. A job that is stuck in a write to unbind, bind or
 * sriov_numvfs holds the lock of its device and of the VFs that it removes, and a read of driver_override waits for
 * that lock; a job that creates a vGPU may make the vendor's driver wait for the GPU. Therefore driver_override and the
 * vGPU of busy devices and their VFs are not read but copied from old, the previous inventory (NULL for the first
 * scan). locked: those of all devices are copied, because a hot-plug or a driver may hold the device locks.
 */
int scan_inventory_except(const Sysfs *fs, const Inventory *old, bool locked, const PciAddress *busy, size_t n_busy,
                          Inventory **ret);

/*
 * As scan_inventory_except(), when only the given devices were added, removed or changed since old was read. Reads
 * these devices and the other functions of their slots, their PFs and their VFs. All other devices, the CPUs and the
 * memory are copied from old. Call critical_mark() on the result, as after scan_inventory(). If old has notes, scans
 * everything as scan_inventory_except() does.
 */
int scan_update(const Sysfs *fs, const Inventory *old, const PciAddress *devices, size_t n, bool locked,
                const PciAddress *busy, size_t n_busy, Inventory **ret);

/*
 * Reads again the facts of a device that depend on its driver: driver, driver_override, vfio, vfio_cdev, kernel_names,
 * bond, power management, reset methods and the vGPU. locked: driver_override and the vGPU are not read, because a
 * driver may hold the device lock. -ENOENT: the device is gone. -ESTALE: the device was replaced, or its VFs, its IOMMU
 * group or its slots for mediated devices changed; a scan is necessary. On failure dev is unchanged, except perhaps on
 * -ENOMEM.
 */
int scan_refresh(const Sysfs *fs, PciDevice *dev, bool locked);
