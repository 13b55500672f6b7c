/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The withdrawn devices: pools offered them until a configuration with broken lines, or with no file, was loaded. */

#include "config/policy.h"

typedef struct WithdrawnDevice {
        PciAddress address;
        char *pool; /* the last pool that offered the device */
} WithdrawnDevice;

/* At most all devices of the inventory. */
typedef struct WithdrawnList {
        WithdrawnDevice *devices;
        size_t n;
} WithdrawnList;

/* Updates the list; call it when a configuration is loaded. before, now: the policies that the old and the new
 * configuration make of the same inventory. A device stays in the list until a pool offers it, or until the
 * configuration has files and no broken line. Returns 0, or -ENOMEM, which leaves the list unchanged. */
int withdrawn_update(WithdrawnList *l, const Policy *before, const Policy *now);
void withdrawn_done(WithdrawnList *l);
