/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Steps of the executor that plug devices into a guest and take them out. For executor.c and executor-steps.c only. */

#include "guest/guestpci.h"
#include "host/executor.h"

/* The place of a device that STEP_PLUG plugs in. */
typedef struct PlugPlace {
        bool needless;       /* there is no domain */
        GuestFunction place; /* bus 0: libvirt chooses, or the domain has the device already */
        const char *iommufd; /* of the devices that the domain has, as domain_facts_iommufd() tells it */
} PlugPlace;

/* These functions run step i, and report their failure themselves. places: one for each step; STEP_FIND_PORTS sets
 * those of the steps STEP_PLUG. */
int plug_find_ports(const Sysfs *fs, const StepList *steps, size_t i, PlugPlace *places, ReportFunction report,
                    void *userdata);
int plug_device(const StepList *steps, size_t i, const PlugPlace *place, ReportFunction report, void *userdata);
int unplug_device(const StepList *steps, size_t i, ReportFunction report, void *userdata);

/* For the table of executor-steps.c. */
int plug_undo(const Sysfs *fs, const Step *s, const VfAttributes *found);
