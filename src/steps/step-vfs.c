/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps that change the number of VFs. */

#include <errno.h>
#include <stdio.h>

#include "steps/step.h"

/* Buffer size for the 16 bit number in sriov_numvfs. */
#define COUNT_MAX 16

/* A removed VF loses its driver and override. Explicit steps let the undo restore both. */
static int strip_vf(StepList *l, const PciDevice *vf) {
        int r = 0;

        if (vf->driver)
                r = step_list_add(l, STEP_UNBIND, vf->address, vf->driver, NULL);
        if (r == 0 && vf->driver_override)
                r = step_list_add(l, STEP_OVERRIDE, vf->address, vf->driver_override, NULL);
        return r;
}

/* Saves MACs and GUIDs of the VFs: not every driver restores them when VFs are created again. */
static int note_vfs(StepList *l, const PciDevice *pf) {
        int r = 0;

        for (size_t i = 0; pci_device_is_nic(pf) && i < pf->n_virtfns; i++) {
                r = step_list_add(l, STEP_SAVE_VF_STATE, pf->address, NULL, NULL);
                if (r < 0)
                        return r;
                l->steps[l->n - 1].vf = (unsigned) i;
        }
        return r;
}

static int remove_vfs(StepList *l, const Inventory *inv, const PciDevice *pf) {
        char from[COUNT_MAX];
        int r = 0;

        for (size_t i = 0; r == 0 && i < pf->n_vfs; i++) {
                const PciDevice *vf = inventory_find(inv, pf->vfs[i]);

                r = vf ? strip_vf(l, vf) : 0;
        }
        if (r == 0)
                r = note_vfs(l, pf);
        (void) snprintf(from, sizeof(from), "%zu", pf->n_virtfns);
        return r < 0 ? r : step_list_add(l, STEP_REMOVE_VFS, pf->address, from, "0");
}

static int change_number(StepList *l, const Inventory *inv, const PciDevice *pf, unsigned count) {
        char to[COUNT_MAX];
        int r;

        /* 1. Before VFs are created, also by an undo: autoprobe does not affect existing VFs (domain.md C7). */
        r = step_list_add(l, STEP_AUTOPROBE, pf->address, "1", "0");
        /* 2. The kernel cannot change one number directly into another, only through 0 (C2). */
        if (r == 0 && pf->n_virtfns > 0)
                r = remove_vfs(l, inv, pf);
        /* 3. Create the VFs. */
        (void) snprintf(to, sizeof(to), "%u", count);
        return r < 0 || count == 0 ? r : step_list_add(l, STEP_NUMVFS, pf->address, "0", to);
}

int steps_set_vfs(const Inventory *inv, const PciDevice *pf, unsigned count, const VfAttributes *attributes,
                  StepList **ret) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        int r = l ? 0 : -ENOMEM;

        if (r == 0 && pf->n_virtfns != count)
                r = change_number(l, inv, pf, count);
        for (unsigned i = 0; r == 0 && attributes && i < count; i++)
                r = step_list_add_attributes(l, STEP_TRY_ATTRIBUTES, pf->address, i, &attributes[i]);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}
