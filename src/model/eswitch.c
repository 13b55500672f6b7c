/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/eswitch.h"

const char *eswitch_mode_to_string(EswitchMode mode) {
        static const char *const names[_ESWITCH_MODE_MAX] = {
                [ESWITCH_LEGACY] = "legacy",
                [ESWITCH_SWITCHDEV] = "switchdev",
                [ESWITCH_SWITCHDEV_INACTIVE] = "switchdev_inactive",
        };

        return names[mode];
}

EswitchMode eswitch_mode_of(const ProbeCache *l, const PciDevice *pf) {
        const ProbeAnswer *known = l && pf->driver && !pf->vfio ? probe_cache_find(l, pf) : NULL;

        return known && known->value < _ESWITCH_MODE_MAX ? (EswitchMode) known->value : ESWITCH_UNKNOWN;
}
