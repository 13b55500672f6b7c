/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps that plug devices into a running guest, and take them from it. */

#include <errno.h>

#include "steps/step.h"

static int add_hostdevs(StepList *steps, StepKind kind, const char *uuid, const PciAddress *devices,
                        char *const *hostdevs, size_t n) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++)
                r = step_list_add(steps, kind, devices[i], uuid, hostdevs[i]);
        return r;
}

int steps_plug(const Allocation *a, const char *uuid, const PciAddress *devices, char *const *hostdevs, size_t n,
               StepList *steps) {
        const size_t first = steps->n;
        int r;

        if (n == 0)
                return 0;
        steps->guest = allocation_with_all(a);
        r = steps->guest ? step_list_add(steps, STEP_FIND_PORTS, devices[0], uuid, NULL) : -ENOMEM;
        if (r < 0)
                return r;
        step_list_move(steps, first, 0);
        return add_hostdevs(steps, STEP_PLUG, uuid, devices, hostdevs, n);
}

int steps_unplug(const Allocation *part, const char *uuid, const PciAddress *devices, char *const *hostdevs, size_t n,
                 StepList *steps) {
        const size_t first = steps->n;
        int r = add_hostdevs(steps, STEP_UNPLUG, uuid, devices, hostdevs, n);

        if (r == 0 && n > 0)
                r = steps_check_unused(part, steps);
        step_list_move(steps, first, 0);
        return r;
}
