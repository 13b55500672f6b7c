/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Merges the attributes of VFs from configuration and request, and generates MACs and GUIDs. */

#include "plan/vfidentity.h"

#include <errno.h>

#include "util/digest.h"
#include "util/strings.h"

#define GUID_PORTS  7ULL /* low bits of a node GUID, kept free for its ports */
#define LOCAL_OCTET 0x02ULL

/* Mixes n so that every bit of the result depends on every bit of n: the last step of splitmix64. */
static uint64_t mix(uint64_t n) {
        n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ULL;
        n = (n ^ n >> 27) * 0x94d049bb133111ebULL;
        return n ^ n >> 31;
}

void vf_identity_make(const char *seed, unsigned attempt, VfAttributes *ret) {
        uint64_t digest = digest_number(digest_string(DIGEST_START, seed), attempt);
        uint64_t mac = mix(digest) >> 24, guid = mix(~digest) >> 8 & ~GUID_PORTS;

        *ret = (VfAttributes) { 0 };
        vf_attributes_put(ret, VF_MAC, LOCAL_OCTET << 40 | mac);
        vf_attributes_put(ret, VF_NODE_GUID, LOCAL_OCTET << 56 | guid);
        vf_attributes_put(ret, VF_PORT_GUID, LOCAL_OCTET << 56 | guid | 1);
        vf_attributes_put(ret, VF_SECOND_PORT_GUID, LOCAL_OCTET << 56 | guid | 2);
}

/* Returns which identity a VF of this class has, as attribute bits: MAC for Ethernet, GUIDs for InfiniBand, both for
 * other networks, none for other devices. */
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

/* Returns which identity a VF has, as attribute bits. Only mlx4 can set the GUID of the second port. pf: NULL if
 * unknown. */
static unsigned identity_of_vf(uint32_t class, const PciDevice *pf) {
        unsigned second = pf && pci_device_is_mlx4_pf(pf) ? 0 : VF_ATTRIBUTE_BIT(VF_SECOND_PORT_GUID);

        return identity_of_class(class) & ~second;
}

/* Removes from `made` the attributes that are not missing. If a GUID is missing and `have` has no link policy, adds the
 * policy "auto": an InfiniBand port stays down without a policy. */
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
        complete(&made, identity_of_vf(pf->class, pf), &(VfAttributes) { 0 });
        *ret = made;
        return 0;
}

/* Returns an allocation of a VF that has a MAC between first and last or, if `guid` is set, a GUID; or NULL. */
static const Allocation *held_between(const Ledger *l, bool guid, uint64_t first, uint64_t last) {
        for (size_t i = 0; i < l->n_allocations; i++) {
                const Allocation *a = l->allocations[i];

                for (size_t j = 0; j < a->n_devices; j++)
                        if (vf_attributes_have_identity(&a->devices[j].attributes, guid, first, last))
                                return a;
        }
        return NULL;
}

/* A stable MAC or GUID of a VF, which the VF has while no allocation sets another. */
typedef struct Stable {
        bool guid;
        uint64_t value;
        PciAddress vf;
} Stable;

struct VfIdentities {
        char *node;    /* permanent string, unique to this machine */
        Stable *items; /* sorted by guid and value */
        size_t n;
};

VfIdentities *vf_identities_free(VfIdentities *l) {
        if (!l)
                return NULL;
        free(l->node);
        free(l->items);
        free(l);
        return NULL;
}

static int compare_stable(const void *a, const void *b) {
        const Stable *x = a, *y = b;

        if (x->guid != y->guid)
                return x->guid ? 1 : -1;
        return x->value < y->value ? -1 : x->value > y->value;
}

static int add_stable(VfIdentities *l, PciAddress vf, const VfAttributes *v) {
        for (VfAttribute i = 0; i < _VF_ATTRIBUTE_MAX; i++) {
                if (!(v->set & VF_IDENTITY_BITS & VF_ATTRIBUTE_BIT(i)))
                        continue;
                if (ARRAY_RESERVE(l->items, l->n) < 0)
                        return -ENOMEM;
                l->items[l->n++] = (Stable) { .guid = i != VF_MAC, .value = v->value[i], .vf = vf };
        }
        return 0;
}

static int add_vfs_of(VfIdentities *l, const Inventory *inv, const PciDevice *pf) {
        for (size_t i = 0; i < pf->n_vfs; i++) {
                const PciDevice *vf = inventory_find(inv, pf->vfs[i]);
                VfAttributes v;

                if (vf && vf->vf_index >= 0 &&
                    (vf_identity_stable(l->node, pf, (unsigned) vf->vf_index, &v) < 0 ||
                     add_stable(l, vf->address, &v) < 0))
                        return -ENOMEM;
        }
        return 0;
}

int vf_identities_new(const Inventory *inv, const Policy *policy, const char *node, VfIdentities **ret) {
        _cleanup_(cleanup_vf_identities_free) VfIdentities *l = calloc(1, sizeof(*l));

        if (!l || string_copy(&l->node, node) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *pf = &inv->devices[i];

                if (pf->n_vfs > 0 && !policy_external_pool(policy, pf) && add_vfs_of(l, inv, pf) < 0)
                        return -ENOMEM;
        }
        if (l->n > 0)
                qsort(l->items, l->n, sizeof(*l->items), compare_stable);
        *ret = TAKE_PTR(l);
        return 0;
}

/* Returns a stable MAC (or GUID, if `guid` is set) between first and last of a VF that is not in `a`, or NULL. */
static const Stable *stable_between(const VfIdentities *l, const Allocation *a, bool guid, uint64_t first,
                                    uint64_t last) {
        const Stable from = { .guid = guid, .value = first };
        size_t low = 0, high = l->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (compare_stable(&l->items[middle], &from) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (; low < l->n && l->items[low].guid == guid && l->items[low].value <= last; low++)
                if (!allocation_find_device(a, l->items[low].vf))
                        return &l->items[low];
        return NULL;
}

/* Replaces attributes of v by those of `over`. A VLAN in `over` also removes the former priority and protocol. */
static void merge(VfAttributes *v, const VfAttributes *over) {
        if (vf_attributes_have(over, VF_VLAN))
                vf_attributes_keep(v, ~(VF_ATTRIBUTE_BIT(VF_QOS) | VF_ATTRIBUTE_BIT(VF_PROTOCOL)));
        vf_attributes_merge(v, over);
}

/* Refuses attributes that contradict each other, although each is valid. */
static Verdict check_together(const AllocationDevice *d, Refusal *ret) {
        _cleanup_free_ char *text = vf_attributes_format(&d->attributes), *problem = NULL;
        VfAttributes ignored;
        int r = text ? vf_attributes_parse_wanted(text, &ignored, &problem) : -ENOMEM;

        if (r == -EINVAL)
                return refuse_request(ret, "Give both attributes in the request, or change VfAttributes= of the pool.",
                                      "The attributes of '%s' in the request contradict those of its pool: %s", d->slot,
                                      problem);
        return r < 0 ? refuse_no_memory(ret) : VERDICT_NONE;
}

static Verdict merge_device(AllocationDevice *d, const HostView *view, const Request *r, Refusal *ret) {
        const Pool *pool = d->is_vf ? config_find_pool(view->config, d->pool) : NULL;
        const char *const names[] = { d->pool, d->slot };
        VfAttributes v = pool ? pool->attributes : (VfAttributes) { 0 };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                for (size_t j = 0; j < r->n_attributes; j++) {
                        if (!streq(r->attributes[j].slot, names[i]))
                                continue;
                        if (!d->is_vf)
                                return refuse(ret, VERDICT_NOT_SUPPORTED, &d->address,
                                              "Leave the VF attributes of this slot out.",
                                              "'%s' would be %s, which is not a VF and has no VF attributes.", d->slot,
                                              PCI_ADDRESS_STR(d->address));
                        merge(&v, &r->attributes[j].attributes);
                }
        d->attributes = v;
        return check_together(d, ret);
}

/* Refuses a MAC or GUID of `d` that an allocation in the ledger has, or that is the stable one of a VF outside `a`.
 * If `l` or `stable` is NULL, leaves out the check against it. */
static Verdict check_identity(const Ledger *l, const VfIdentities *stable, const Allocation *a,
                              const AllocationDevice *d, Refusal *ret) {
        for (VfAttribute i = 0; i < _VF_ATTRIBUTE_MAX; i++) {
                const uint64_t value = d->attributes.value[i];
                const Allocation *holder;
                const Stable *owner;
                char text[VF_VALUE_MAX];

                if (!(d->attributes.set & VF_IDENTITY_BITS & VF_ATTRIBUTE_BIT(i)))
                        continue;
                (void) vf_value_format(i, value, text);
                holder = l ? held_between(l, i != VF_MAC, value, value) : NULL;
                if (holder)
                        return refuse(ret, VERDICT_ALLOCATED, NULL,
                                      "Give the slot another value, or release that allocation first.",
                                      "The %s %s requested for '%s' belongs to a VF that '%s' holds.",
                                      vf_attribute_to_string(i), text, d->slot, holder->name);
                owner = stable ? stable_between(stable, a, i != VF_MAC, value, value) : NULL;
                if (owner)
                        return refuse(ret, VERDICT_ALLOCATED, &owner->vf, "Give the slot another value.",
                                      "The %s %s requested for '%s' is the default of the VF %s.",
                                      vf_attribute_to_string(i), text, d->slot, PCI_ADDRESS_STR(owner->vf));
        }
        return VERDICT_NONE;
}

Verdict vf_identity_merge(Allocation *a, const HostView *view, const Request *r, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++)
                if (a->devices[i].role == DEVICE_ROLE_ASSIGNED)
                        v = merge_device(&a->devices[i], view, r, ret);
        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++)
                v = check_identity(view->ledger, NULL, a, &a->devices[i], ret);
        return v;
}

/* Returns the identity that `d` needs and lacks, as attribute bits. */
static unsigned missing_identity(const HostView *view, const AllocationDevice *d) {
        const PciDevice *dev = inventory_find(view->inventory, d->address),
                        *pf = inventory_find(view->inventory, d->physfn);

        if (d->role != DEVICE_ROLE_ASSIGNED || !d->is_vf || !dev || dev->vf_index < 0 ||
            (pf && policy_external_pool(view->policy, pf)))
                return 0;
        return identity_of_vf(dev->class, pf) & ~d->attributes.set;
}

static int make_seed(const Allocation *a, const AllocationDevice *d, const HostView *view, const char *node,
                     char **ret) {
        const Pool *pool = config_find_pool(view->config, d->pool);
        const PciDevice *dev = inventory_find(view->inventory, d->address),
                        *pf = inventory_find(view->inventory, d->physfn);

        if (!pool || pool->identity == VF_IDENTITY_FRESH)
                return string_replace(ret, "fresh %s %s", a->id, d->slot);
        if (!pf || !dev)
                return string_replace(ret, "stable %s %s", node, d->path ?: PCI_ADDRESS_STR(d->address));
        return stable_seed(node, pf, dev->vf_index, ret);
}

/*
 * Returns whether a MAC (or GUID, if `guid` is set) between first and last is in use: by `a`, by another allocation, or
 * as the stable one of a VF outside `a`.
 */
static bool is_taken(const Allocation *a, const HostView *view, const VfIdentities *l, bool guid, uint64_t first,
                     uint64_t last) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (vf_attributes_have_identity(&a->devices[i].attributes, guid, first, last))
                        return true;
        return held_between(view->ledger, guid, first, last) || stable_between(l, a, guid, first, last);
}

/* Returns whether a generated identity is unused. For a node GUID, the GUIDs of its ports must be unused, too. */
static bool is_free(const VfAttributes *made, const Allocation *a, const HostView *view, const VfIdentities *l) {
        uint64_t mac = made->value[VF_MAC], guid = made->value[VF_NODE_GUID];

        return !is_taken(a, view, l, false, mac, mac) &&
               !is_taken(a, view, l, true, guid & ~GUID_PORTS, guid | GUID_PORTS);
}

static int assign(Allocation *a, AllocationDevice *d, unsigned missing, const HostView *view, const VfIdentities *l) {
        const PciDevice *pf = inventory_find(view->inventory, d->physfn);
        _cleanup_free_ char *seed = NULL;
        VfAttributes made;
        unsigned attempt = 0;

        if (make_seed(a, d, view, l->node, &seed) < 0)
                return -ENOMEM;
        do
                vf_identity_make(seed, attempt++, &made);
        while (!is_free(&made, a, view, l));
        complete(&made, missing, &d->attributes);
        vf_attributes_merge(&d->attributes, &made);
        /* An InfiniBand VF has no link without GUIDs, so a PF must support them, as if they were requested. It need not
         * support attributes in `generated`. */
        d->generated = pf && pci_device_needs_guids(pf) ? 0 : made.set;
        return 0;
}

Verdict vf_identity_assign(Allocation *a, const HostView *view, const VfIdentities *l, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++)
                v = check_identity(NULL, l, a, &a->devices[i], ret);
        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++) {
                unsigned missing = missing_identity(view, &a->devices[i]);

                if (missing && assign(a, &a->devices[i], missing, view, l) < 0)
                        v = refuse_no_memory(ret);
        }
        return v;
}
