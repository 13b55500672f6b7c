/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the devices of an allocation are reset. */

#include <errno.h>

#include "steps/step.h"
#include "util/strings.h"

/* A companion follows the assigned device of its card. */
static const Pool *pool_of_card(const Allocation *a, const AllocationDevice *d, const Config *config) {
        while (d > a->devices && d->role == DEVICE_ROLE_COMPANION)
                d--;
        return d->pool ? config_find_pool(config, d->pool) : NULL;
}

static int set_reset(Step *s, const AllocationDevice *d, const Pool *pool, const PciDevice *dev) {
        bool companion = d->role == DEVICE_ROLE_COMPANION;

        s->may_stay = pool && pool->allow_no_reset;
        s->may_lack_method = s->may_stay || companion;
        if (!pool || pool->reset_method == RESET_METHOD_DEFAULT || companion)
                return 0;
        if (string_copy(&s->to, reset_method_to_string(pool->reset_method)) < 0)
                return -ENOMEM;
        return string_copy(&s->from, d->prior_reset ?: (dev ? dev->reset_methods : NULL));
}

int steps_reset(const Allocation *a, const Inventory *inv, const Config *config, StepList *steps) {
        int r = 0;

        for (Step *s = steps->steps; r == 0 && s < steps->steps + steps->n; s++) {
                const AllocationDevice *d = s->kind == STEP_RESET ? allocation_find_device(a, s->device) : NULL;

                if (d)
                        r = set_reset(s, d, pool_of_card(a, d, config), inventory_find(inv, s->device));
        }
        return r;
}
