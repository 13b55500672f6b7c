/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The mode of a PF's embedded switch (eswitch), as devlink reported it to the probe cache (model/probecache.h). */

#include "model/probecache.h"

/* The kernel's modes in devlink's order, preceded by "unknown": not reported, or the PF has no eswitch. */
typedef enum EswitchMode {
        ESWITCH_UNKNOWN,
        ESWITCH_LEGACY,
        ESWITCH_SWITCHDEV,
        ESWITCH_SWITCHDEV_INACTIVE,
        _ESWITCH_MODE_MAX,
} EswitchMode;
/* devlink's name of the mode; NULL for ESWITCH_UNKNOWN. */
const char *eswitch_mode_to_string(EswitchMode mode);

/*
 * Returns the cached mode. ESWITCH_UNKNOWN also while no host driver is bound to the PF, because the driver sets up the
 * eswitch. l may be NULL.
 */
EswitchMode eswitch_mode_of(const ProbeCache *l, const PciDevice *pf);
