/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the world was told of each device, and how that differs from what is so now. A value is kept as its digest: only
 * whether it is another one counts. Pure; who is told, and how, belongs to the caller.
 */

#include "plan/plan.h"

/* What can change while a device stays the same object. */
typedef enum DeviceProperty {
        DEVICE_PROPERTY_POOL,
        DEVICE_PROPERTY_STATE,
        DEVICE_PROPERTY_REASON,
        DEVICE_PROPERTY_DRIVER,
        DEVICE_PROPERTY_IOMMU_GROUP,
        DEVICE_PROPERTY_ALLOCATION,
        _DEVICE_PROPERTY_MAX,
} DeviceProperty;
/* Its name on the bus. */
const char *device_property_to_string(DeviceProperty p);

typedef struct DeviceSnapshot {
        PciAddress address;
        uint64_t identity; /* of what cannot change: another card, or the same at another place, is another object */
        uint64_t values[_DEVICE_PROPERTY_MAX];
} DeviceSnapshot;

typedef struct DeviceSnapshotList {
        DeviceSnapshot *snapshots; /* ascending by address */
        size_t n;
} DeviceSnapshotList;

DeviceSnapshot device_snapshot(const HostView *c, const PciDevice *dev);
/* Bits, 1 << DeviceProperty; 0 when nothing is different. For snapshots of the same identity. */
unsigned device_snapshot_differences(const DeviceSnapshot *before, const DeviceSnapshot *now);

/* Of all devices. NULL when out of memory. */
DeviceSnapshotList *device_snapshot_list_new(const HostView *c);
DeviceSnapshotList *device_snapshot_list_free(DeviceSnapshotList *l);
DEFINE_CLEANUP(DeviceSnapshotList *, device_snapshot_list_free)
/* NULL when the device is not in it. */
DeviceSnapshot *device_snapshot_list_find(const DeviceSnapshotList *l, PciAddress address);

typedef struct ChangeHandler {
        void (*removed)(PciAddress address, void *userdata);
        void (*added)(PciAddress address, void *userdata);
        void (*changed)(PciAddress address, unsigned properties, void *userdata);
} ChangeHandler;

/* By address; a device of another identity is removed, then added. */
void device_snapshot_lists_compare(const DeviceSnapshotList *before, const DeviceSnapshotList *now,
                                   const ChangeHandler *handler, void *userdata);

/*
 * Appends the devices whose standing can change with that of the one at the address: itself, its group, its PF, its
 * VFs. The address may be of a device that is not there (a missing one has no relatives but those it is given: physfn,
 * or NULL). Some may come twice.
 */
int changes_append_relatives(const Inventory *inv, PciAddress address, const PciAddress *physfn, PciAddress **array,
                             size_t *n);
