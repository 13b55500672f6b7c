/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Snapshots of the D-Bus properties of devices and allocations, and their comparison. To find the signals to send, the
 * daemon compares the current snapshot with the one that it signalled last. A snapshot has one number for each
 * property: the value itself if it is a number or a state, otherwise a digest of the value. Pure. */

#include "plan/plan.h"

/* Properties that can change during the lifetime of a device object. */
typedef enum DeviceProperty {
        DEVICE_PROPERTY_POOL,
        DEVICE_PROPERTY_STATE,
        DEVICE_PROPERTY_REASON,
        DEVICE_PROPERTY_REMEDY,
        DEVICE_PROPERTY_DRIVER,
        DEVICE_PROPERTY_KERNEL_NAMES,
        DEVICE_PROPERTY_LINK_GENERATION,
        DEVICE_PROPERTY_LINK_WIDTH,
        DEVICE_PROPERTY_MAX_LINK_GENERATION,
        DEVICE_PROPERTY_MAX_LINK_WIDTH,
        DEVICE_PROPERTY_IOMMU_GROUP,
        DEVICE_PROPERTY_ALLOCATION,
        _DEVICE_PROPERTY_MAX,
} DeviceProperty;
/* The D-Bus names of the properties. */
extern const char *const device_property_names[_DEVICE_PROPERTY_MAX];

typedef struct DeviceSnapshot {
        PciAddress address;
        uint64_t identity; /* digest of the constant properties. If it changes, another device has the address */
        uint64_t values[_DEVICE_PROPERTY_MAX];
} DeviceSnapshot;

typedef struct DeviceSnapshotList {
        DeviceSnapshot *snapshots; /* ascending by address */
        size_t n;
} DeviceSnapshotList;

DeviceSnapshot device_snapshot(const HostView *view, const PciDevice *dev);
/* Compares two snapshots that have the same identity. Returns a bit (1 << DeviceProperty) for each property that
 * differs. */
unsigned device_snapshot_differences(const DeviceSnapshot *before, const DeviceSnapshot *now);

/* Properties that can change during the lifetime of an allocation object. */
typedef enum AllocationProperty {
        ALLOCATION_PROPERTY_STATE,
        ALLOCATION_PROPERTY_REASON,
        ALLOCATION_PROPERTY_GENERATION,
        ALLOCATION_PROPERTY_DEVICES,
        ALLOCATION_PROPERTY_LEASE_END,
        ALLOCATION_PROPERTY_SHARED_MEMORY,
        ALLOCATION_PROPERTY_DOMAIN,
        _ALLOCATION_PROPERTY_MAX,
} AllocationProperty;
_Static_assert(_ALLOCATION_PROPERTY_MAX == ALLOCATION_SHOWN_MAX, "an allocation has a digest for each");
/* The D-Bus names of the properties. */
extern const char *const allocation_property_names[_ALLOCATION_PROPERTY_MAX];
/* Stores a number for each property, as in a snapshot, in a->status.shown. Returns a bit (1 << AllocationProperty) for
 * each property whose number differs from the one that was stored before. */
unsigned allocation_note_shown(Allocation *a);

/* Takes a snapshot of every device. The caller owns the list. NULL when out of memory. */
DeviceSnapshotList *device_snapshot_list_new(const HostView *view);
DeviceSnapshotList *device_snapshot_list_free(DeviceSnapshotList *l);
DEFINE_CLEANUP(DeviceSnapshotList *, device_snapshot_list_free)
/* Returns the snapshot of the device at the address. NULL when the list has none. */
DeviceSnapshot *device_snapshot_list_find(const DeviceSnapshotList *l, PciAddress address);

typedef struct ChangeHandler {
        void (*removed)(PciAddress address, void *userdata);
        void (*added)(PciAddress address, void *userdata);
        void (*changed)(PciAddress address, unsigned properties, void *userdata);
} ChangeHandler;

/* Calls the handler for each device that only one list has, or whose snapshots differ, in ascending order of addresses.
 * Where the identity at an address differs, calls removed() and then added(). */
void device_snapshot_lists_compare(const DeviceSnapshotList *before, const DeviceSnapshotList *now,
                                   const ChangeHandler *handler, void *userdata);

/* Appends to *array the addresses of the devices whose state can depend on the device at the address: the device
 * itself, the members of its IOMMU group, its PF and its VFs; for a VF or a slot (model/mdev-slots.h) that offers vGPU
 * types, also the other VFs or slots of its GPU. If the inventory lacks the device, appends only the address and,
 * unless physfn is NULL, *physfn, the address of its PF. May append an address twice. Returns 0 or -ENOMEM. */
int changes_append_relatives(const Inventory *inv, PciAddress address, const PciAddress *physfn, PciAddress **array,
                             size_t *n);
