/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps that clean devices with a command before they return to the host. */

#include <errno.h>

#include "steps/step.h"

static const Pool *pool_with_cleaner(const Step *s, const Allocation *a, const Config *config) {
        const AllocationDevice *d = s->kind == STEP_CHECK ? allocation_find_device(a, s->device) : NULL;
        const Pool *pool = d && d->pool ? config_find_pool(config, d->pool) : NULL;

        return pool && pool->cleaner ? pool : NULL;
}

int steps_clean(const Allocation *a, const Config *config, StepList *steps) {
        size_t n = steps->n, checked = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++) {
                const Pool *pool = pool_with_cleaner(&steps->steps[i], a, config);

                if (steps->steps[i].kind == STEP_CHECK)
                        checked = i + 1;
                if (pool)
                        r = step_list_add(steps, STEP_CLEAN, steps->steps[i].device, pool->name, pool->cleaner);
        }
        step_list_move(steps, n, checked);
        return r;
}
