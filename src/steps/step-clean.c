/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps that clean devices with a command before they return to the host. */

#include <errno.h>

#include "steps/step.h"

static const Pool *pool_with_cleaner(const Step *s, const Allocation *a, const Config *config) {
        const AllocationDevice *d = s->kind == STEP_CHECK ? allocation_find_device(a, s->device) : NULL;
        const Pool *pool = d && d->pool ? config_find_pool(config, d->pool) : NULL;

        return pool && pool->cleaner ? pool : NULL;
}

static int add_cleaning(StepList *l, const StepList *from, const Allocation *a, const Config *config) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < from->n; i++) {
                const Pool *pool = pool_with_cleaner(&from->steps[i], a, config);

                if (pool)
                        r = step_list_add(l, STEP_CLEAN, from->steps[i].device, pool->name, pool->cleaner);
        }
        return r;
}

int steps_clean(const Allocation *a, const Config *config, StepList **steps) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        size_t checked = 0;
        int r;

        if (!l)
                return -ENOMEM;
        for (size_t i = 0; i < (*steps)->n; i++)
                if ((*steps)->steps[i].kind == STEP_CHECK)
                        checked = i + 1;
        r = step_list_append(l, *steps, 0, checked);
        if (r == 0)
                r = add_cleaning(l, *steps, a, config);
        if (r == 0)
                r = step_list_append(l, *steps, checked, (*steps)->n);
        if (r < 0)
                return r;
        step_list_replace(steps, TAKE_PTR(l));
        return 0;
}
