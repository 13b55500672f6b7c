/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the leaves of the search's tree, which are free devices, and its levels below a switch. */

#include "search-tree.h"

#include <errno.h>

#define NONE    UINT32_MAX
#define SEVERAL (UINT32_MAX - 1)

/* VFs of one family that differ only in their addresses. A family is the VFs of one PF. */
typedef struct Kin {
        Leaf *first; /* the VF with the lowest address; NULL: none yet */
        unsigned n;
        uint32_t next; /* inventory index, into VfFamily.kin, of the family's next Kin; 0: none */
} Kin;

/*
 * Facts about the free devices. Arrays are indexed by inventory index, but group_free and group_level by group index.
 */
typedef struct VfFamily {
        const HostView *context;
        const bool *is_free, *is_required;
        uint32_t *family;       /* index of the family: the PF of a VF; any other device is its own family */
        uint32_t *family_group; /* by family: the group of all its free devices; NONE: no group; SEVERAL: they have
                                   several */
        uint32_t *group;        /* group index, or NONE */
        uint32_t *group_free;   /* free devices in the group */
        uint32_t *vfs_free;     /* by family: its free VFs */
        Kin *kin;               /* by family: a list of its Kins */
        Level *group_level;
} VfFamily;

static void vf_family_done(VfFamily *k) {
        free(k->family);
        free(k->family_group);
        free(k->group);
        free(k->group_free);
        free(k->vfs_free);
        free(k->kin);
        free(k->group_level);
}

/* Returns the family of a device. A VF whose PF is not in the inventory is its own family. last: a device looked up
 * before, which may have the same PF. */
static uint32_t find_family(const VfFamily *k, uint32_t device, uint32_t last) {
        const Inventory *inv = k->context->inventory;
        const PciDevice *dev = &inv->devices[device], *other = &inv->devices[last], *pf;

        if (dev->type != PCI_TYPE_VF)
                return device;
        if (other->type == PCI_TYPE_VF && k->family[last] != last && pci_address_equal(dev->physfn, other->physfn))
                return k->family[last];
        pf = inventory_find(inv, dev->physfn);
        return pf ? (uint32_t) inventory_device_index(inv, pf) : device;
}

/*
 * Returns the level where the free devices of a group are together in one place: LEVEL_GROUP if they are of one family,
 * LEVEL_CLUSTER if they are complete families. Returns LEVEL_ALL if they are not below one switch, or if they are of
 * several families, one of which has free devices in other groups.
 */
static Level find_group_level(const VfFamily *k, uint32_t group) {
        const IommuGroup *g = &k->context->inventory->groups[group];
        const Place *places = k->context->locality->places;
        uint32_t first = NONE;
        bool one_family = true, whole_families = true;

        for (size_t i = 0; i < g->n_members; i++) {
                uint32_t device = g->members[i];

                if (!k->is_free[device])
                        continue;
                if (first == NONE)
                        first = device;
                if (place_distance(&places[device], &places[first]) > DISTANCE_PIX)
                        return LEVEL_ALL;
                one_family = one_family && k->family[device] == k->family[first];
                whole_families = whole_families && k->family_group[k->family[device]] == group;
        }
        return one_family ? LEVEL_GROUP : whole_families ? LEVEL_CLUSTER : LEVEL_ALL;
}

static int vf_family_init(VfFamily *k, const HostView *view, const bool *is_free, const bool *is_required) {
        const Inventory *inv = view->inventory;

        *k = (VfFamily) { .context = view, .is_free = is_free, .is_required = is_required };
        k->family = calloc(inv->n_devices + 1, sizeof(*k->family));
        k->family_group = malloc((inv->n_devices + 1) * sizeof(*k->family_group));
        k->group = malloc((inv->n_devices + 1) * sizeof(*k->group));
        k->group_free = calloc(inv->n_groups + 1, sizeof(*k->group_free));
        k->vfs_free = calloc(inv->n_devices + 1, sizeof(*k->vfs_free));
        k->kin = calloc(inv->n_devices + 1, sizeof(*k->kin));
        k->group_level = calloc(inv->n_groups + 1, sizeof(*k->group_level));
        if (!k->family || !k->family_group || !k->group || !k->group_free || !k->vfs_free || !k->kin || !k->group_level)
                return -ENOMEM;
        for (size_t i = 0; i < inv->n_devices; i++)
                k->group[i] = k->family_group[i] = NONE;
        for (uint32_t g = 0; g < inv->n_groups; g++)
                for (size_t i = 0; i < inv->groups[g].n_members; i++)
                        k->group[inv->groups[g].members[i]] = g;
        for (uint32_t i = 0, last = 0; i < inv->n_devices; i++) {
                uint32_t *whole;

                if (!is_free[i])
                        continue;
                k->family[i] = find_family(k, i, last);
                last = i;
                k->vfs_free[k->family[i]] += inv->devices[i].type == PCI_TYPE_VF;
                whole = &k->family_group[k->family[i]];
                *whole = *whole == NONE || *whole == k->group[i] ? k->group[i] : SEVERAL;
                if (k->group[i] != NONE)
                        k->group_free[k->group[i]]++;
        }
        for (uint32_t g = 0; g < inv->n_groups; g++)
                k->group_level[g] = find_group_level(k, g);
        return 0;
}

/*
 * Returns the place of a device. locality_new() has given each VF the place of its PF, unless the address of the VF is
 * below that of the PF. In this case a VF on a root bus gets the place of the PF here, because its family must be in
 * one place. Distances to other cards do not change. VFs of GPUs and other accelerators keep their own place, because
 * distances between them count.
 */
static const Place *find_home(const VfFamily *k, uint32_t device) {
        const PciDevice *dev = &k->context->inventory->devices[device],
                        *pf = &k->context->inventory->devices[k->family[device]];
        const Place *places = k->context->locality->places, *own = &places[device],
                    *family = &places[k->family[device]];

        if (dev->parent >= 0 || pf->parent >= 0 || pci_device_is_accelerator(dev) ||
            place_distance(own, family) > DISTANCE_PHB)
                return own;
        return family;
}

static void leaf_init(Leaf *leaf, const VfFamily *k, uint32_t device) {
        const HostView *view = k->context;
        const PciDevice *dev = &view->inventory->devices[device];
        uint32_t family = k->family[device], group = k->group[device];

        *leaf = (Leaf) { .device = device,
                         .node = (uint8_t) search_node(view->inventory, dev),
                         .group_level = LEVEL_ALL };
        leaf->is_vf = dev->type == PCI_TYPE_VF;
        leaf->spare = leaf->is_vf ? k->vfs_free[family] : 0;
        /* The ledger may have claims on more VFs than a host can have, and COST_VF_LOAD must not overflow. */
        leaf->load = leaf->is_vf ? MIN(ledger_pf_use(view->ledger, dev->physfn), INVENTORY_DEVICES_MAX) : 0;
        /* At LEVEL_GROUP and LEVEL_CLUSTER, even numbers are devices and families, odd numbers are groups. */
        leaf->at[LEVEL_GROUP] = device * 2;
        leaf->at[LEVEL_FAMILY] = family;
        leaf->at[LEVEL_CLUSTER] = family * 2;
        if (group != NONE) {
                leaf->group_free = k->group_free[group];
                leaf->group_level = k->group_level[group];
                if (leaf->group_free <= 1)
                        leaf->group_level = LEVEL_ALL;
                if (leaf->group_level != LEVEL_ALL)
                        leaf->at[leaf->group_level] = group * 2 + 1;
        }
        memcpy(leaf->at + LEVEL_SWITCH, find_home(k, device)->level, sizeof(Place));
}

static int leaf_compare(const void *a, const void *b) {
        const Leaf *x = a, *y = b;

        for (int level = LEVEL_ALL - 1; level >= 0; level--)
                if (x->at[level] != y->at[level])
                        return x->at[level] < y->at[level] ? -1 : 1;
        return x->device < y->device ? -1 : x->device > y->device;
}

/* Returns whether the VF is interchangeable with the VFs of kin. The caller has checked that no other device of its
 * group is free. */
static bool is_like(const VfFamily *k, const Kin *kin, size_t pool, uint32_t device) {
        const PciDevice *devices = k->context->inventory->devices;

        return kin->first->pool == pool && devices[kin->first->device].numa_node == devices[device].numa_node;
}

/* Returns the Kin of a VF; a new Kin has no `first`. Returns NULL if another device of the VF's IOMMU group is free:
 * such a VF is not interchangeable. */
static Kin *find_kin(VfFamily *k, size_t pool, uint32_t device) {
        Kin *kin = &k->kin[k->family[device]];

        if (k->group[device] != NONE && k->group_free[k->group[device]] > 1)
                return NULL;
        while (kin->first && !is_like(k, kin, pool, device)) {
                if (kin->next == 0)
                        kin->next = device;
                kin = &k->kin[kin->next];
        }
        return kin;
}

/* Makes a leaf of the device. Returns false for a VF outside the request's pools, and for a VF whose Kin already has as
 * many leaves as the request wants of the pool. Physical devices outside the pools are leaves, because Score.left_over
 * counts them. */
static bool make_leaf(Leaf *leaf, VfFamily *k, const SearchPool *pools, size_t n_pools, uint32_t device) {
        const PciDevice *dev = &k->context->inventory->devices[device];
        const Pool *pool = policy_pool(k->context->policy, dev);
        size_t p = 0;
        Kin *kin;

        while (p < n_pools && pools[p].pool != pool)
                p++;
        if (dev->type == PCI_TYPE_VF && p == n_pools)
                return false;
        kin = dev->type == PCI_TYPE_VF && !k->is_required[device] ? find_kin(k, p, device) : NULL;
        if (kin && kin->first && kin->n >= pools[p].wanted) {
                kin->first->more++;
                return false;
        }
        leaf_init(leaf, k, device);
        if (kin && kin->first)
                leaf->at[LEVEL_GROUP] = kin->first->at[LEVEL_GROUP];
        else if (kin)
                kin->first = leaf;
        if (kin)
                kin->n++;
        if (p < n_pools) {
                leaf->is_wanted = true;
                leaf->is_fabric = pools[p].pool->fabric;
                leaf->pool = (uint8_t) p;
                leaf->is_required = k->is_required[device];
        }
        return true;
}

int leaves_make(const HostView *view, const SearchPool *pools, size_t n_pools, const bool *is_free,
                const bool *is_required, Leaf **ret, size_t *ret_n) {
        _cleanup_free_ Leaf *leaves = calloc(view->inventory->n_devices + 1, sizeof(*leaves));
        VfFamily family;
        size_t n = 0;
        int r;

        if (!leaves)
                return -ENOMEM;
        r = vf_family_init(&family, view, is_free, is_required);
        for (uint32_t i = 0; r == 0 && i < view->inventory->n_devices; i++)
                if (is_free[i])
                        n += make_leaf(&leaves[n], &family, pools, n_pools, i);
        vf_family_done(&family);
        if (r < 0)
                return r;
        qsort(leaves, n, sizeof(*leaves), leaf_compare);
        *ret = TAKE_PTR(leaves);
        *ret_n = n;
        return 0;
}
