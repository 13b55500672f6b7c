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

typedef struct Standing {
        PciAddress address;
        uint64_t identity; /* of what cannot change: another card, or the same at another place, is another object */
        uint64_t values[_DEVICE_PROPERTY_MAX];
} Standing;

typedef struct StandingList {
        Standing *standings; /* ascending by address */
        size_t n;
} StandingList;

Standing standing_of(const PlanContext *c, const PciDevice *dev);
/* Bits, 1 << DeviceProperty; 0 when nothing is different. For standings of the same identity. */
unsigned standing_differences(const Standing *before, const Standing *now);

/* Of all devices. NULL when out of memory. */
StandingList *standing_list_new(const PlanContext *c);
StandingList *standing_list_free(StandingList *l);
DEFINE_CLEANUP(StandingList *, standing_list_free)
/* NULL when the device is not in it. */
Standing *standing_list_find(const StandingList *l, PciAddress address);

typedef struct ChangeHandler {
        void (*removed)(PciAddress address, void *userdata);
        void (*added)(PciAddress address, void *userdata);
        void (*changed)(PciAddress address, unsigned properties, void *userdata);
} ChangeHandler;

/* By address; a device of another identity is removed, then added. */
void standing_lists_compare(const StandingList *before, const StandingList *now, const ChangeHandler *handler,
                            void *userdata);

/*
 * Appends the devices whose standing can change with that of the one at the address: itself, its group, its PF, its
 * VFs. The address may be of a device that is not there (a missing one has no relatives but those it is given: physfn,
 * or NULL). Some may come twice.
 */
int changes_append_relatives(const Inventory *inv, PciAddress address, const PciAddress *physfn, PciAddress **array,
                             size_t *n);
