/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a plan satisfies the limits between pools. */

#include <errno.h>

#include "plan-internal.h"
#include "util/strings.h"

static size_t find_devices(const Planner *p, const NodeChoice *choice, size_t pool, uint32_t *ret) {
        const HostView *view = p->context;
        size_t n = 0;

        for (size_t i = 0; i < choice->picks.n; i++)
                if (policy_pool(view->policy, &view->inventory->devices[choice->picks.devices[i]]) ==
                    p->pools[pool].pool)
                        ret[n++] = choice->picks.devices[i];
        return n;
}

static Distance find_worst(const Locality *l, const uint32_t *devices, size_t n) {
        Distance worst = DISTANCE_PIX;

        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < i; j++)
                        worst = MAX(worst, place_distance(&l->places[devices[i]], &l->places[devices[j]]));
        return worst;
}

static void pair_pools(const Planner *p, const NodeChoice *choice, const size_t pools[2], PlanLimit *ret) {
        uint32_t first[REQUEST_DEVICES_MAX], second[REQUEST_DEVICES_MAX];
        size_t n_first = find_devices(p, choice, pools[0], first), n_second;
        SearchPair pairs[REQUEST_DEVICES_MAX];

        if (pools[0] == pools[1]) {
                ret->worst = find_worst(p->context->locality, first, n_first);
                return;
        }
        n_second = find_devices(p, choice, pools[1], second);
        ret->n_pairs = search_match(p->context->locality, first, n_first, second, n_second, pairs);
        for (size_t i = 0; i < ret->n_pairs; i++) {
                for (unsigned side = 0; side < 2; side++)
                        ret->pairs[i].devices[side] = p->context->inventory->devices[pairs[i].devices[side]].address;
                ret->pairs[i].distance = pairs[i].distance;
                ret->worst = MAX(ret->worst, pairs[i].distance);
        }
}

int plan_limits_make(const Planner *p, const NodeChoice *choice, Plan *plan) {
        const Request *r = p->request;

        plan->limits = calloc(r->n_limits + 1, sizeof(*plan->limits));
        if (!plan->limits)
                return -ENOMEM;
        for (; plan->n_limits < r->n_limits; plan->n_limits++) {
                PlanLimit *l = &plan->limits[plan->n_limits];

                l->limit = r->limits[plan->n_limits].limit;
                for (unsigned side = 0; side < 2; side++)
                        if (string_copy(&l->pools[side], r->limits[plan->n_limits].pools[side]) < 0) {
                                free(l->pools[0]);
                                return -ENOMEM;
                        }
                pair_pools(p, choice, p->limits[plan->n_limits], l);
        }
        return 0;
}

void plan_limits_free(Plan *plan) {
        for (size_t i = 0; i < plan->n_limits; i++) {
                free(plan->limits[i].pools[0]);
                free(plan->limits[i].pools[1]);
        }
        free(plan->limits);
}
