/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has the health of devices checked before a guest gets them. */

#include <errno.h>

#include "steps/step.h"

static bool is_bound(const StepList *l, PciAddress device) {
        for (size_t i = 0; i < l->n; i++)
                if (l->steps[i].kind == STEP_BIND && pci_address_equal(l->steps[i].device, device))
                        return true;
        return false;
}

int steps_check_health(const Allocation *a, StepList *steps) {
        const size_t first = steps->n;

        steps->checks_health = true;
        for (size_t i = 0; i < a->n_devices; i++) {
                PciAddress device = a->devices[i].address;

                /* The driver of a GPU notices itself that it is dead, when it is to create a mediated device. */
                if (device.instance == 0 && !is_bound(steps, device) &&
                    step_list_add(steps, STEP_CHECK_HEALTH, device, NULL, NULL) < 0)
                        return -ENOMEM;
        }
        step_list_move(steps, first, 0);
        return 0;
}
