/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "core/eswitch.h"

#include "util/strings.h"

const char *eswitch_mode_to_string(EswitchMode mode) {
        static const char *const names[_ESWITCH_MODE_MAX] = {
                [ESWITCH_LEGACY] = "legacy",
                [ESWITCH_SWITCHDEV] = "switchdev",
                [ESWITCH_SWITCHDEV_INACTIVE] = "switchdev_inactive",
        };

        return names[mode];
}

void eswitch_list_done(EswitchList *l) {
        free(l->eswitches);
        *l = (EswitchList){ 0 };
}

Eswitch *eswitch_list_find(const EswitchList *l, const PciDevice *pf) {
        for (size_t i = 0; i < l->n; i++)
                if (pci_address_equal(l->eswitches[i].pf, pf->address) && l->eswitches[i].instance == pf->instance)
                        return &l->eswitches[i];
        return NULL;
}

Eswitch *eswitch_list_add(EswitchList *l, const PciDevice *pf) {
        Eswitch *known = eswitch_list_find(l, pf);

        if (known)
                return known;
        eswitch_list_remove(l, pf->address);
        if (ARRAY_RESERVE(l->eswitches, l->n) < 0)
                return NULL;
        l->eswitches[l->n] = (Eswitch){ .pf = pf->address, .instance = pf->instance };
        return &l->eswitches[l->n++];
}

void eswitch_list_remove(EswitchList *l, PciAddress pf) {
        for (size_t i = 0; i < l->n; i++)
                if (pci_address_equal(l->eswitches[i].pf, pf)) {
                        l->eswitches[i] = l->eswitches[--l->n];
                        return;
                }
}

EswitchMode eswitch_list_mode(const EswitchList *l, const PciDevice *pf) {
        const Eswitch *known = l && pf->driver && !pf->vfio ? eswitch_list_find(l, pf) : NULL;

        return known ? known->mode : ESWITCH_UNKNOWN;
}
