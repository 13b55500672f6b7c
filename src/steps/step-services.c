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

/* The functions below append steps for the first n steps of the list. */

static int stop_services(StepList *l, size_t n, const Allocation *a, const Config *config) {
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                const Pool *pool = pool_of(&l->steps[i], a, config);

                for (size_t j = 0; r == 0 && pool && j < pool->n_stop_services; j++)
                        if (!step_list_has_service(l, pool->stop_services[j]))
                                r = step_list_add(l, STEP_STOP_SERVICE, l->steps[i].device, NULL,
                                                  pool->stop_services[j]);
        }
        return r;
}

static int look_for_users(StepList *l, size_t n, const Allocation *a, const Config *config) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++) {
                const Pool *pool = pool_of(&l->steps[i], a, config);

                if (!pool || pool->n_stop_services == 0)
                        continue;
                r = step_list_add(l, STEP_CHECK_IDLE, l->steps[i].device, l->steps[i].from, NULL);
                if (r == 0)
                        l->steps[l->n - 1].vf = allocation_find_device(a, l->steps[i].device)->is_vf;
        }
        return r;
}

int steps_around_services(const Allocation *a, const Config *config, StepList *steps) {
        size_t n = steps->n, n_stops;
        int r = stop_services(steps, n, a, config);

        n_stops = steps->n - n;
        if (r < 0 || n_stops == 0)
                return r;
        r = look_for_users(steps, n, a, config);
        step_list_move(steps, n, 0);
        while (r == 0 && n_stops-- > 0)
                r = step_list_add(steps, STEP_START_SERVICE, steps->steps[n_stops].device, NULL,
                                  steps->steps[n_stops].to);
        return r;
}
