/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Who has a device open. Unbinding a VFIO device that a guest holds sleeps in the kernel until the guest lets go (domain.md B14). */

#include "util/sysfs.h"

typedef struct Holder {
        int pid;
        char command[64]; /* proc/PID/comm */
} Holder;

/* A process that has dev/vfio/GROUP open: 1 and *ret, 0 when none has, negative errno when proc/ cannot be read. */
int holders_of_group(const Sysfs *fs, int group, Holder *ret);
