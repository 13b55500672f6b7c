/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What is known of the switch that a PF has for its VFs: its mode, which only devlink tells. That can take minutes, so
 * it is kept beside the inventory, whose facts are read at one moment.
 */

#include "core/inventory.h"

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

typedef struct Eswitch {
        PciAddress pf;
        uint64_t instance; /* PciDevice.instance: a card that was plugged in later is another one */
        EswitchMode mode;
        bool asked; /* no more is to be asked */
} Eswitch;

typedef struct EswitchList {
        Eswitch *eswitches;
        size_t n;
} EswitchList;

void eswitch_list_done(EswitchList *l);
/* The one of this very PF, or NULL. Good until the list grows. */
Eswitch *eswitch_list_find(const EswitchList *l, const PciDevice *pf);
/* Takes it in when it is new: unknown, not asked. NULL: out of memory. */
Eswitch *eswitch_list_add(EswitchList *l, const PciDevice *pf);
/* Forgets what is known of whatever is at that address. */
void eswitch_list_remove(EswitchList *l, PciAddress pf);
/* ESWITCH_UNKNOWN also while no driver of the host has the PF: the switch is set up by its driver. l may be NULL. */
EswitchMode eswitch_list_mode(const EswitchList *l, const PciDevice *pf);
