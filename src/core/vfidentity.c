/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attributes of the VFs of an allocation: merged from configuration and request, identities made up. */

#include "core/vfidentity.h"

#include <errno.h>

#include "util/digest.h"
#include "util/strings.h"

#define GUID_PORTS  7ULL /* low bits of a node GUID, which count its ports */
#define LOCAL_OCTET 0x02ULL

/* Every bit of the result hangs on every bit of n (the last step of splitmix64). */
static uint64_t mix(uint64_t n) {
        n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ULL;
        n = (n ^ n >> 27) * 0x94d049bb133111ebULL;
        return n ^ n >> 31;
}

void vf_identity_make(const char *seed, unsigned attempt, VfAttributes *ret) {
        uint64_t digest = digest_number(digest_string(DIGEST_START, seed), attempt);
        uint64_t mac = mix(digest) >> 24, guid = mix(~digest) >> 8 & ~GUID_PORTS;

        *ret = (VfAttributes){ 0 };
        vf_attributes_put(ret, VF_MAC, LOCAL_OCTET << 40 | mac);
        vf_attributes_put(ret, VF_NODE_GUID, LOCAL_OCTET << 56 | guid);
        vf_attributes_put(ret, VF_PORT_GUID, LOCAL_OCTET << 56 | guid | 1);
        vf_attributes_put(ret, VF_SECOND_PORT_GUID, LOCAL_OCTET << 56 | guid | 2);
}

/* What a function of that class is known by: Ethernet by its MAC, InfiniBand by GUIDs; others of network may be both.
 */
static unsigned identity_of_class(uint32_t class) {
        switch (class >> 8) {
        case 0x0200:
                return VF_ATTRIBUTE_BIT(VF_MAC);
        case 0x0207:
        case 0x0c06:
                return VF_GUID_BITS;
        default:
                return class >> 16 == 0x02 ? VF_IDENTITY_BITS : 0;
        }
}

/* Only mlx4 can be told who the second port is. pf is NULL when nobody knows it. */
static unsigned identity_of_vf(uint32_t class, const PciDevice *pf) {
        unsigned second = pf && mlx4_is_pf(pf) ? 0 : VF_ATTRIBUTE_BIT(VF_SECOND_PORT_GUID);

        return identity_of_class(class) & ~second;
}

/* Leaves of made what is missing, and the link policy without which an InfiniBand port stays down. */
static void complete(VfAttributes *made, unsigned missing, const VfAttributes *have) {
        vf_attributes_keep(made, missing);
        if (made->set & VF_GUID_BITS && !vf_attributes_have(have, VF_LINK))
                vf_attributes_put(made, VF_LINK, VF_LINK_AUTO);
}

static int stable_seed(const char *node, const PciDevice *pf, int index, char **ret) {
        return string_replace(ret, "stable %s %s %d", node, pf->path ?: PCI_ADDRESS_STR(pf->address), index);
}

int vf_identity_stable(const char *node, const PciDevice *pf, unsigned index, VfAttributes *ret) {
        _cleanup_free_ char *seed = NULL;
        VfAttributes made;

        if (stable_seed(node, pf, (int) index, &seed) < 0)
                return -ENOMEM;
        vf_identity_make(seed, 0, &made);
        complete(&made, identity_of_vf(pf->class, pf), &(VfAttributes){ 0 });
        *ret = made;
        return 0;
}

/* A MAC or GUID that an allocation has, or a VF whenever no allocation gives it another. */
typedef struct Taken {
        bool guid;
        uint64_t value;
        const Allocation *allocation; /* NULL: vf has it */
        const PciDevice *vf;
} Taken;

typedef struct TakenList {
        Taken *items; /* ascending */
        size_t n;
} TakenList;

static void taken_done(TakenList *l) {
        free(l->items);
}

static int compare_taken(const void *a, const void *b) {
        const Taken *x = a, *y = b;

        if (x->guid != y->guid)
                return x->guid ? 1 : -1;
        return x->value < y->value ? -1 : x->value > y->value;
}

static int add_taken(TakenList *l, const Allocation *a, const PciDevice *vf, const VfAttributes *v) {
        for (VfAttribute i = 0; i < _VF_ATTRIBUTE_MAX; i++) {
                if (!(v->set & VF_IDENTITY_BITS & VF_ATTRIBUTE_BIT(i)))
                        continue;
                if (ARRAY_RESERVE(l->items, l->n) < 0)
                        return -ENOMEM;
                l->items[l->n++] = (Taken){ .guid = i != VF_MAC, .value = v->value[i], .allocation = a, .vf = vf };
        }
        return 0;
}

static int find_taken(const Ledger *ledger, TakenList *l) {
        for (size_t i = 0; i < ledger->n_allocations; i++) {
                const Allocation *a = ledger->allocations[i];

                for (size_t j = 0; j < a->n_devices; j++)
                        if (add_taken(l, a, NULL, &a->devices[j].attributes) < 0)
                                return -ENOMEM;
        }
        if (l->n > 0)
                qsort(l->items, l->n, sizeof(*l->items), compare_taken);
        return 0;
}

static bool has_device(const Allocation *a, PciAddress address) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (pci_address_equal(a->devices[i].address, address))
                        return true;
        return false;
}

/* What VFs were made with, and go back to: those of other allocations too, but for VFs that others make. */
static int find_stable(const Allocation *a, const PlanContext *c, const char *node, TakenList *l) {
        for (size_t i = 0; i < c->inventory->n_devices; i++) {
                const PciDevice *vf = &c->inventory->devices[i], *pf;
                VfAttributes v;

                if (vf->type != PCI_TYPE_VF || vf->vf_index < 0 || has_device(a, vf->address))
                        continue;
                pf = inventory_find(c->inventory, vf->physfn);
                if (!pf || policy_external_pool(c->policy, pf))
                        continue;
                if (vf_identity_stable(node, pf, (unsigned) vf->vf_index, &v) < 0 || add_taken(l, NULL, vf, &v) < 0)
                        return -ENOMEM;
        }
        if (l->n > 0)
                qsort(l->items, l->n, sizeof(*l->items), compare_taken);
        return 0;
}

/* One with a value from first to last, or NULL. */
static const Taken *taken_between(const TakenList *l, bool guid, uint64_t first, uint64_t last) {
        const Taken from = { .guid = guid, .value = first };
        size_t low = 0, high = l->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (compare_taken(&l->items[middle], &from) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < l->n && l->items[low].guid == guid && l->items[low].value <= last ? &l->items[low] : NULL;
}

static bool is_free(const TakenList *l, const VfAttributes *made) {
        return !(vf_attributes_have(made, VF_MAC) &&
                 taken_between(l, false, made->value[VF_MAC], made->value[VF_MAC])) &&
               !(made->set & VF_GUID_BITS && taken_between(l, true, made->value[VF_NODE_GUID] & ~GUID_PORTS,
                                                           made->value[VF_NODE_GUID] | GUID_PORTS));
}

/* Whether v has a GUID of the eight that guid and its ports have. */
static bool has_guid_near(const VfAttributes *v, uint64_t guid) {
        for (VfAttribute i = 0; i < _VF_ATTRIBUTE_MAX; i++)
                if (v->set & VF_GUID_BITS & VF_ATTRIBUTE_BIT(i) && (v->value[i] | GUID_PORTS) == (guid | GUID_PORTS))
                        return true;
        return false;
}

/* Nor has another VF of the same allocation one of these. */
static bool is_free_within(const Allocation *a, const VfAttributes *made) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const VfAttributes *v = &a->devices[i].attributes;

                if ((vf_attributes_have(v, VF_MAC) && v->value[VF_MAC] == made->value[VF_MAC]) ||
                    has_guid_near(v, made->value[VF_NODE_GUID]))
                        return false;
        }
        return true;
}

static Verdict refuse_memory(Refusal *ret) {
        return refuse(ret, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
}

/* Those of over, and of v what they leave: priority and protocol are those of the VLAN that they were said with. */
static void merge(VfAttributes *v, const VfAttributes *over) {
        if (vf_attributes_have(over, VF_VLAN))
                vf_attributes_keep(v, ~(VF_ATTRIBUTE_BIT(VF_QOS) | VF_ATTRIBUTE_BIT(VF_PROTOCOL)));
        vf_attributes_merge(v, over);
}

/* What each of them allows may not go together. */
static Verdict check_together(const AllocationDevice *d, Refusal *ret) {
        _cleanup_free_ char *text = vf_attributes_format(&d->attributes), *problem = NULL;
        VfAttributes ignored;
        int r = text ? vf_attributes_parse_wanted(text, &ignored, &problem) : -ENOMEM;

        if (r == -EINVAL)
                return refuse(ret, VERDICT_INVALID_REQUEST, NULL,
                              "Say both in the request, or change VfAttributes= of the pool.",
                              "What '%s' is to have does not go with what its pool gives: %s", d->slot, problem);
        return r < 0 ? refuse_memory(ret) : VERDICT_NONE;
}

static Verdict merge_device(AllocationDevice *d, const PlanContext *c, const Request *r, Refusal *ret) {
        const Pool *pool = d->is_vf ? config_find_pool(c->config, d->pool) : NULL;
        const char *const names[] = { d->pool, d->slot };
        VfAttributes v = pool ? pool->attributes : (VfAttributes){ 0 };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                for (size_t j = 0; j < r->n_attributes; j++) {
                        if (!streq(r->attributes[j].slot, names[i]))
                                continue;
                        if (!d->is_vf)
                                return refuse(ret, VERDICT_NOT_SUPPORTED, &d->address,
                                              "Only VFs have VF attributes: leave them out.",
                                              "'%s' would be %s, which is no VF.", d->slot,
                                              PCI_ADDRESS_STR(d->address));
                        merge(&v, &r->attributes[j].attributes);
                }
        d->attributes = v;
        return check_together(d, ret);
}

static Verdict refuse_taken(const Taken *by, VfAttribute attribute, const AllocationDevice *d, Refusal *ret) {
        char text[VF_VALUE_MAX];

        (void) vf_value_format(attribute, d->attributes.value[attribute], text);
        if (by->vf)
                return refuse(ret, VERDICT_ALLOCATED, &by->vf->address, "Give the slot another.",
                              "The %s %s that is wanted for '%s' is what %s has when nobody gives it another.",
                              vf_attribute_to_string(attribute), text, d->slot, PCI_ADDRESS_STR(by->vf->address));
        return refuse(ret, VERDICT_ALLOCATED, NULL, "Give the slot another, or release that one first.",
                      "The %s %s that is wanted for '%s' is that of a VF that '%s' holds.",
                      vf_attribute_to_string(attribute), text, d->slot, by->allocation->name);
}

static Verdict check_not_taken(const TakenList *taken, const AllocationDevice *d, Refusal *ret) {
        for (VfAttribute i = 0; i < _VF_ATTRIBUTE_MAX; i++) {
                const uint64_t value = d->attributes.value[i];
                const Taken *by;

                if (!(d->attributes.set & VF_IDENTITY_BITS & VF_ATTRIBUTE_BIT(i)))
                        continue;
                by = taken_between(taken, i != VF_MAC, value, value);
                if (by)
                        return refuse_taken(by, i, d, ret);
        }
        return VERDICT_NONE;
}

Verdict vf_identity_merge(Allocation *a, const PlanContext *c, const Request *r, Refusal *ret) {
        _cleanup_(taken_done) TakenList taken = { 0 };
        unsigned identities = 0;
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++)
                if (a->devices[i].role == DEVICE_ROLE_ASSIGNED) {
                        v = merge_device(&a->devices[i], c, r, ret);
                        identities |= a->devices[i].attributes.set & VF_IDENTITY_BITS;
                }
        if (v == VERDICT_NONE && identities && find_taken(c->ledger, &taken) < 0)
                v = refuse_memory(ret);
        for (size_t i = 0; v == VERDICT_NONE && identities && i < a->n_devices; i++)
                v = check_not_taken(&taken, &a->devices[i], ret);
        return v;
}

/* What d lacks, if it may be made up at all. */
static unsigned missing_identity(const PlanContext *c, const AllocationDevice *d) {
        const PciDevice *dev = inventory_find(c->inventory, d->address), *pf = inventory_find(c->inventory, d->physfn);

        if (d->role != DEVICE_ROLE_ASSIGNED || !d->is_vf || !dev || dev->vf_index < 0 ||
            (pf && policy_external_pool(c->policy, pf)))
                return 0;
        return identity_of_vf(dev->class, pf) & ~d->attributes.set;
}

static int make_seed(const Allocation *a, const AllocationDevice *d, const PlanContext *c, const char *node,
                     char **ret) {
        const Pool *pool = config_find_pool(c->config, d->pool);
        const PciDevice *dev = inventory_find(c->inventory, d->address), *pf = inventory_find(c->inventory, d->physfn);

        if (!pool || pool->identity == VF_IDENTITY_FRESH)
                return string_replace(ret, "fresh %s %s", a->id, d->slot);
        if (!pf || !dev)
                return string_replace(ret, "stable %s %s", node, d->path ?: PCI_ADDRESS_STR(d->address));
        return stable_seed(node, pf, dev->vf_index, ret);
}

static int assign(Allocation *a, AllocationDevice *d, unsigned missing, const PlanContext *c, const char *node,
                  const TakenList *taken, const TakenList *stable) {
        _cleanup_free_ char *seed = NULL;
        VfAttributes made;
        unsigned attempt = 0;

        if (make_seed(a, d, c, node, &seed) < 0)
                return -ENOMEM;
        do
                vf_identity_make(seed, attempt++, &made);
        while (!is_free(taken, &made) || !is_free(stable, &made) || !is_free_within(a, &made));
        complete(&made, missing, &d->attributes);
        vf_attributes_merge(&d->attributes, &made);
        d->generated = made.set;
        return 0;
}

static bool needs_identity(const Allocation *a, const PlanContext *c) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (a->devices[i].attributes.set & VF_IDENTITY_BITS || missing_identity(c, &a->devices[i]))
                        return true;
        return false;
}

Verdict vf_identity_assign(Allocation *a, const PlanContext *c, const char *node, Refusal *ret) {
        _cleanup_(taken_done) TakenList taken = { 0 }, stable = { 0 };
        Verdict v = VERDICT_NONE;

        if (!needs_identity(a, c))
                return VERDICT_NONE;
        if (find_taken(c->ledger, &taken) < 0 || find_stable(a, c, node, &stable) < 0)
                return refuse_memory(ret);
        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++)
                v = check_not_taken(&stable, &a->devices[i], ret);
        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++) {
                unsigned missing = missing_identity(c, &a->devices[i]);

                if (missing && assign(a, &a->devices[i], missing, c, node, &taken, &stable) < 0)
                        v = refuse_memory(ret);
        }
        return v;
}
