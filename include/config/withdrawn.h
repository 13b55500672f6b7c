/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Withdrawn devices: a pool offered them before a configuration with broken lines, or with no file, was loaded, and no
 * pool offers them now. */

#include "config/policy.h"

typedef struct WithdrawnDevice {
        PciAddress address;
        char *pool; /* the last pool that offered the device */
} WithdrawnDevice;

/* Has at most one entry for each device of the inventory. */
typedef struct WithdrawnList {
        WithdrawnDevice *devices;
        size_t n;
} WithdrawnList;

/* Updates the list; call it when a configuration is loaded. `before` and `now` are the policies that the old and the
 * new configuration make of the same inventory. A device stays in the list until an update in which a pool offers it,
 * the inventory lacks it, or the new configuration has files and no problems. Returns 0, or -ENOMEM, which leaves the
 * list unchanged. */
int withdrawn_update(WithdrawnList *l, const Policy *before, const Policy *now);
void withdrawn_done(WithdrawnList *l);
