/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pairs the devices of a set: GPUs with NICs, and the devices of two pools that a limit is about. */

#include <errno.h>

#include "plan-internal.h"
#include "util/strings.h"

/* The device within reach that has the fewest partners so far; n when there is none. */
static size_t find_partner(const Locality *l, uint32_t device, const uint32_t *smaller, const unsigned *used, size_t n,
                           unsigned share, Distance reach) {
        size_t best = n;

        for (size_t i = 0; i < n; i++)
                if (used[i] < share && (best == n || used[i] < used[best]) &&
                    place_distance(&l->places[device], &l->places[smaller[i]]) <= reach)
                        best = i;
        return best;
}

size_t search_match(const Locality *l, const uint32_t *first, size_t n_first, const uint32_t *second, size_t n_second,
                    SearchPair *pairs) {
        bool swapped = n_first < n_second, paired[REQUEST_DEVICES_MAX] = { false };
        const uint32_t *larger = swapped ? second : first, *smaller = swapped ? first : second;
        size_t n_larger = MAX(n_first, n_second), n_smaller = MIN(n_first, n_second), n = 0;
        unsigned used[REQUEST_DEVICES_MAX] = { 0 };

        if (n_smaller == 0)
                return 0;
        for (Distance d = DISTANCE_PIX; d <= DISTANCE_SYS; d++)
                for (size_t i = 0; i < n_larger; i++) {
                        size_t partner = paired[i]
                                                 ? n_smaller
                                                 : find_partner(l, larger[i], smaller, used, n_smaller,
                                                                (unsigned) ((n_larger + n_smaller - 1) / n_smaller), d);

                        if (partner == n_smaller)
                                continue;
                        paired[i] = true;
                        used[partner]++;
                        pairs[n].devices[swapped] = larger[i];
                        pairs[n].devices[!swapped] = smaller[partner];
                        pairs[n++].distance = d;
                }
        return n;
}

static int pair_compare(const void *a, const void *b) {
        const PlanPair *x = a, *y = b;
        int c = pci_address_compare(x->gpu, y->gpu);

        return c != 0 ? c : pci_address_compare(x->nic, y->nic);
}

size_t search_pairs(const HostView *view, const uint32_t *devices, size_t n, PlanPair *pairs) {
        uint32_t gpus[REQUEST_DEVICES_MAX], nics[REQUEST_DEVICES_MAX];
        SearchPair matched[REQUEST_DEVICES_MAX];
        size_t n_gpus = 0, n_nics = 0, n_pairs;

        for (size_t i = 0; i < n; i++) {
                const PciDevice *dev = &view->inventory->devices[devices[i]];

                if (pci_device_is_accelerator(dev))
                        gpus[n_gpus++] = devices[i];
                else if (pci_device_is_nic(dev))
                        nics[n_nics++] = devices[i];
        }
        n_pairs = search_match(view->locality, gpus, n_gpus, nics, n_nics, matched);
        for (size_t i = 0; i < n_pairs; i++)
                pairs[i] = (PlanPair) {
                        .gpu = view->inventory->devices[matched[i].devices[0]].address,
                        .nic = view->inventory->devices[matched[i].devices[1]].address,
                        .distance = matched[i].distance,
                };
        qsort(pairs, n_pairs, sizeof(*pairs), pair_compare);
        return n_pairs;
}

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
