/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps that stop services before devices are unbound, and start them afterwards. */

#include <errno.h>

#include "steps/step.h"

bool step_list_has_service(const StepList *l, const char *name) {
        for (size_t i = 0; i < l->n; i++)
                if (step_is_of_service(&l->steps[i]) && streq(l->steps[i].to, name))
                        return true;
        return false;
}

bool step_lists_share_service(const StepList *a, const StepList *b) {
        for (size_t i = 0; i < a->n; i++)
                if (step_is_of_service(&a->steps[i]) && step_list_has_service(b, a->steps[i].to))
                        return true;
        return false;
}

/* The pool of the device that the step unbinds; NULL for other steps and for devices of no pool. */
static const Pool *pool_of(const Step *s, const Allocation *a, const Config *config) {
        const AllocationDevice *d = s->kind == STEP_UNBIND ? allocation_find_device(a, s->device) : NULL;

        return d && d->pool ? config_find_pool(config, d->pool) : NULL;
}

static int stop_services(StepList *l, const StepList *body, const Allocation *a, const Config *config) {
        int r = 0;

        for (size_t i = 0; i < body->n; i++) {
                const Pool *pool = pool_of(&body->steps[i], a, config);

                for (size_t j = 0; r == 0 && pool && j < pool->n_stop_services; j++)
                        if (!step_list_has_service(l, pool->stop_services[j]))
                                r = step_list_add(l, STEP_STOP_SERVICE, body->steps[i].device, NULL,
                                                  pool->stop_services[j]);
        }
        return r;
}

static int look_for_users(StepList *l, const StepList *body, const Allocation *a, const Config *config) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < body->n; i++) {
                const Step *s = &body->steps[i];
                const Pool *pool = pool_of(s, a, config);

                if (!pool || pool->n_stop_services == 0)
                        continue;
                r = step_list_add(l, STEP_CHECK_IDLE, s->device, s->from, NULL);
                if (r == 0)
                        l->steps[l->n - 1].vf = allocation_find_device(a, s->device)->is_vf;
        }
        return r;
}

int steps_around_services(const Allocation *a, const Config *config, StepList **steps) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        size_t n;
        int r = l ? stop_services(l, *steps, a, config) : -ENOMEM;

        if (r < 0 || l->n == 0)
                return r;
        n = l->n;
        r = look_for_users(l, *steps, a, config);
        if (r == 0)
                r = step_list_append(l, *steps, 0, (*steps)->n);
        while (r == 0 && n-- > 0)
                r = step_list_add(l, STEP_START_SERVICE, l->steps[n].device, NULL, l->steps[n].to);
        if (r < 0)
                return r;
        step_list_replace(steps, TAKE_PTR(l));
        return 0;
}
