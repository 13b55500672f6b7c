/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration against ledger. */

#include "core/promise.h"

/* The PF as it was promised; NULL when the claim is of something else, or it is not there. */
static const PciDevice *claimed_pf(const Policy *p, const Claim *claim) {
        const PciDevice *dev = inventory_find(p->inventory, claim->address);

        return dev && dev->type == PCI_TYPE_PF &&
                               allocation_device_is(allocation_find_device(claim->allocation, claim->address), dev)
                       ? dev
                       : NULL;
}

static Verdict check_claim(const Policy *p, const Claim *claim, Refusal *ret) {
        const char *remedy = "Release it first, or leave its VFs out of the pools.";
        const PciDevice *pf = claimed_pf(p, claim);
        const Pool *pool = pf ? policy_vf_pool(p, pf) : NULL;

        for (size_t i = 0; pf && i < pf->n_vfs; i++) {
                const PciDevice *vf = inventory_find(p->inventory, pf->vfs[i]);
                const Pool *offer = vf && policy_offers(p, vf) ? policy_pool(p, vf) : NULL;

                if (offer)
                        return refuse(ret, VERDICT_INVALID_REQUEST, &pf->address, remedy,
                                      "The PF %s is held by '%s', and pool '%s' (%s:%u) offers its own VF %s: the same "
                                      "hardware twice.",
                                      PCI_ADDRESS_STR(pf->address), claim->allocation->name, offer->name,
                                      offer->place.file, offer->place.line, PCI_ADDRESS_STR(vf->address));
        }
        if (!pool)
                return VERDICT_NONE;
        return refuse(
                ret, VERDICT_INVALID_REQUEST, &pf->address, remedy,
                "The PF %s is held by '%s', and VirtualFunctions= of pool '%s' (%s:%u) would create VFs on it: the "
                "same hardware twice.",
                PCI_ADDRESS_STR(pf->address), claim->allocation->name, pool->name, pool->place.file, pool->place.line);
}

Verdict promise_check(const Policy *p, const Ledger *l, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < l->n_claims; i++)
                v = check_claim(p, &l->claims[i], ret);
        return v;
}

bool promise_is_dropped(const Policy *p, const Allocation *holder, const PciDevice *dev) {
        const AllocationDevice *d = allocation_find_device(holder, dev->address);

        if (!d || !d->pool || !allocation_device_is(d, dev))
                return false;
        /* While everything is held back nobody can tell. */
        return !policy_pool(p, dev) || (!p->config->held_back && policy_verdict(p, dev) == VERDICT_EXCLUDED);
}

bool promise_has_dropped(const Policy *p, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(p->inventory, a->devices[i].address);

                if (dev && promise_is_dropped(p, a, dev))
                        return true;
        }
        return false;
}
