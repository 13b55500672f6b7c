/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a pool has too few free devices. */

#include <stdio.h>

#include "plan-internal.h"
#include "util/strings.h"

/* How many taken devices of a pool are named in the sentence. */
#define REASONS_MAX 3U

/* "0000:82:00.0 is held by 'vm1'." for the first few devices of the pool that are not free. */
static void append_reasons(const HostView *c, const Pool *pool, Refusal *ret) {
        unsigned named = 0;

        for (size_t i = 0; i < c->inventory->n_devices && named < REASONS_MAX; i++) {
                const PciDevice *dev = &c->inventory->devices[i];
                _cleanup_refusal_ Refusal why = { 0 };
                _cleanup_free_ char *longer = NULL;
                bool names_itself;

                if (policy_pool(c->policy, dev) != pool)
                        continue;
                if (ledger_check_device(c->ledger, c->inventory, dev, NULL, &why) == VERDICT_NONE &&
                    policy_check(c->policy, dev, &why) == VERDICT_NONE)
                        continue;
                names_itself = why.message && strncmp(why.message, PCI_ADDRESS_STR(dev->address),
                                                      strlen(PCI_ADDRESS_STR(dev->address))) == 0;
                if (string_replace(&longer, "%s %s%s%s", ret->message,
                                   names_itself ? "" : PCI_ADDRESS_STR(dev->address), names_itself ? "" : ": ",
                                   why.message ?: "") < 0)
                        return;
                free(ret->message);
                ret->message = TAKE_PTR(longer);
                named++;
        }
}

/* Devices of a pool: all, and those that would be free were it not for an allocation. */
static void count_pool(const Planner *p, const Pool *pool, unsigned *ret_all, unsigned *ret_held) {
        const HostView *c = p->context;

        *ret_all = *ret_held = 0;
        for (size_t i = 0; i < c->inventory->n_devices; i++) {
                const PciDevice *dev = &c->inventory->devices[i];
                Verdict v;

                if (policy_pool(c->policy, dev) != pool)
                        continue;
                (*ret_all)++;
                if (p->is_free[i] || policy_verdict(c->policy, dev) != VERDICT_NONE)
                        continue;
                v = ledger_check_device(c->ledger, c->inventory, dev, NULL, NULL);
                *ret_held += v == VERDICT_ALLOCATED || v == VERDICT_PF_ALLOCATED;
        }
}

static bool wants_vfs(const Pool *pool) {
        bool wants = pool->virtual_functions > 0;

        for (size_t i = 0; i < pool->n_matches; i++)
                wants = wants || pool->matches[i].type == PCI_TYPE_VF || pool->matches[i].pf;
        return wants;
}

/* Devices that the Match= lines of a pool match and an earlier pool has; the first such pool in *ret. */
static unsigned count_shadowed(const HostView *c, const Pool *pool, const Pool **ret) {
        unsigned n = 0;

        for (size_t i = 0; i < c->inventory->n_devices; i++) {
                const PciDevice *dev = &c->inventory->devices[i];
                const Pool *has = policy_pool(c->policy, dev);

                if (!has || !match_any(pool->matches, pool->n_matches, dev))
                        continue;
                if (n++ == 0)
                        *ret = has;
        }
        return n;
}

static Verdict refuse_empty_pool(const HostView *c, const Pool *pool, unsigned wanted, Refusal *ret) {
        const Pool *earlier = NULL;
        unsigned shadowed = count_shadowed(c, pool, &earlier);
        const char *remedy = pool->external    ? "Its VFs are made by somebody else (VirtualFunctions=external)."
                             : wants_vfs(pool) ? "VirtualFunctions= creates VFs at start where there are none."
                                               : "Mend the Match= lines of the pool, or ask for another.";

        if (shadowed > 0)
                return refuse(ret, VERDICT_INSUFFICIENT_DEVICES, NULL,
                              "A device is in the first pool that matches it: put the narrower pool first, or ask for "
                              "the other.",
                              "Pool '%s' has 0 of its 0 devices free, %u wanted. Its Match= lines match %u device%s, "
                              "which %s in an earlier pool: '%s'.",
                              pool->name, wanted, shadowed, PLURAL(shadowed), ARE(shadowed), earlier->name);
        return refuse(
                ret, VERDICT_INSUFFICIENT_DEVICES, NULL, remedy,
                "Pool '%s' has 0 of its 0 devices free, %u wanted. No device of this node matches its Match= lines.",
                pool->name, wanted);
}

/* held: devices that an allocation has and that nothing else keeps from being free. */
static const char *advise(const SearchPool *pool, unsigned n_free, unsigned held) {
        if (n_free + held >= pool->wanted)
                return "Release an allocation that has some, or ask for fewer.";
        if (n_free > 0)
                return "Ask for fewer.";
        return held > 0 ? "Release an allocation that has some, and ask for fewer."
                        : "'passthroughctl explain DEVICE' says what keeps a device from being free.";
}

Verdict planner_check_counts(const Planner *p, Refusal *ret) {
        for (size_t i = 0; i < p->request->n_pools; i++) {
                const SearchPool *pool = &p->pools[i];
                unsigned n_free = planner_count(p, i), all, held;

                if (n_free >= pool->wanted)
                        continue;
                count_pool(p, pool->pool, &all, &held);
                if (all == 0)
                        return refuse_empty_pool(p->context, pool->pool, pool->wanted, ret);
                (void) refuse(ret, VERDICT_INSUFFICIENT_DEVICES, NULL, advise(pool, n_free, held),
                              "Pool '%s' has %u of its %u device%s free, %u wanted.", pool->pool->name, n_free, all,
                              PLURAL(all), pool->wanted);
                if (ret && ret->message)
                        append_reasons(p->context, pool->pool, ret);
                return VERDICT_INSUFFICIENT_DEVICES;
        }
        return VERDICT_NONE;
}
