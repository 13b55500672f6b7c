/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Facts from sysfs into an Inventory. A damaged attribute costs that attribute, a vanishing device costs that device,
 * nothing costs the scan. Never reads sriov_numvfs, which can block for ever, nor config space of a
 * device in D3cold, nor of an endpoint that is known and has the driver it had: that may not come back either.
 */

#include "model/inventory.h"
#include "util/sysfs.h"

/* All but PciDevice.critical (host/critical.h). Fails for want of memory, or when devices cannot be listed. */
int scan_inventory(const Sysfs *fs, Inventory **ret);

/*
 * The same while jobs work on devices. A job that is stuck in unbind, bind or sriov_numvfs holds its device's lock, and
 * those of the VFs it removes; reading driver_override waits for it. So the override of the busy devices is not read:
 * it is what old (NULL the first time) says of the same device.
 */
int scan_inventory_around(const Sysfs *fs, const Inventory *old, const PciAddress *busy, size_t n_busy,
                          Inventory **ret);

/*
 * What scan_inventory_around() would say after only these devices came, went or changed, at the cost of these: they and
 * what hangs together with them (slot, PF, VFs) are read, all else is taken over from old, CPUs and memory too. locked:
 * driver_override as well, because a hot-plug or a driver may hold the locks of these devices. critical is for
 * host/critical.h to find anew.
 */
int scan_update(const Sysfs *fs, const Inventory *old, const PciAddress *devices, size_t n, bool locked,
                const PciAddress *busy, size_t n_busy, Inventory **ret);

/*
 * Reads driver, driver_override and vfio of a device again; locked: a driver may be at it, so the override stays as it
 * was known. -ENOENT when it is gone, -ESTALE when it was plugged in anew or has other VFs or another group than the
 * inventory says, which only a scan can mend. On failure nothing changed.
 */
int scan_refresh(const Sysfs *fs, PciDevice *dev, bool locked);
