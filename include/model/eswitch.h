/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What is known of the switch that a PF has for its VFs: its mode, which only devlink tells (model/probecache.h). */

#include "model/probecache.h"

/* The kernel's modes, and before them: not told, or there is no such switch. */
typedef enum EswitchMode {
        ESWITCH_UNKNOWN,
        ESWITCH_LEGACY,
        ESWITCH_SWITCHDEV,
        ESWITCH_SWITCHDEV_INACTIVE,
        _ESWITCH_MODE_MAX,
} EswitchMode;
/* In devlink's words; NULL for ESWITCH_UNKNOWN. */
const char *eswitch_mode_to_string(EswitchMode mode);

/* ESWITCH_UNKNOWN also while no driver of the host has the PF: the switch is set up by its driver. l may be NULL. */
EswitchMode eswitch_mode_of(const ProbeCache *l, const PciDevice *pf);
