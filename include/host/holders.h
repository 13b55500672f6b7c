/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Who has a device open. Unbinding a VFIO device that a guest holds sleeps in the kernel until the guest lets go
 * (domain.md B14). */

#include "core/pciaddr.h"
#include "util/sysfs.h"

typedef struct Holder {
        int pid;
        char command[64]; /* proc/PID/comm */
} Holder;

/*
 * A process that has dev/vfio/GROUP open (group -1: the device has none) or, as guests with iommufd do,
 * dev/vfio/devices/vfioX of the device: 1 and *ret, 0 when none has. Negative errno when it cannot be told, because a
 * process may not be looked at.
 */
int holders_of_device(const Sysfs *fs, PciAddress address, int group, Holder *ret);
/* The same for several at the cost of one look at all processes; *ret_held is the index of the one that is held. */
int holders_of_devices(const Sysfs *fs, const PciAddress *devices, const int *groups, size_t n, Holder *ret,
                       size_t *ret_held);
