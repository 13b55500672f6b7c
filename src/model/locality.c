/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Computes the places of devices in the tree NUMA node > host bridge > root port > switch, as numbers. */

#include <errno.h>

#include "model/locality.h"
#include "util/stringtable.h"

#define BRIDGES_MAX 256U

static const char *const distance_table[_DISTANCE_MAX] = {
        [DISTANCE_PIX] = "PIX",   [DISTANCE_PXB] = "PXB", [DISTANCE_PHB] = "PHB",
        [DISTANCE_NODE] = "NODE", [DISTANCE_SYS] = "SYS",
};
DEFINE_STRING_TABLE_TO_STRING(distance, Distance, _DISTANCE_MAX)

static const char *const proximity_table[_PROXIMITY_MAX] = {
        [PROXIMITY_SWITCH] = "switch",
        [PROXIMITY_ROOT_COMPLEX] = "root-complex",
        [PROXIMITY_NODE] = "node",
        [PROXIMITY_ANY] = "any",
};
DEFINE_STRING_TABLE(proximity, Proximity, _PROXIMITY_MAX)

bool proximity_allows(Proximity limit, Distance d) {
        static const Distance furthest[_PROXIMITY_MAX] = {
                [PROXIMITY_SWITCH] = DISTANCE_PXB,
                [PROXIMITY_ROOT_COMPLEX] = DISTANCE_PHB,
                [PROXIMITY_NODE] = DISTANCE_NODE,
                [PROXIMITY_ANY] = DISTANCE_SYS,
        };

        return d <= furthest[limit];
}

/* Bridges and slots share one number space: even numbers are bridges, odd numbers are slots. */
static uint32_t bridge_place(size_t index) {
        return (uint32_t) index * 2;
}

static uint32_t slot_place(size_t index) {
        return (uint32_t) index * 2 + 1;
}

/*
 * Nodes and host bridges share one number space. A host bridge without a known node is its own node, at distance SYS to
 * all others.
 */
static uint32_t known_node_place(int node) {
        return (uint32_t) node * 2;
}

static uint32_t unknown_node_place(uint32_t host) {
        return host * 2 + 1;
}

typedef struct Root {
        const char *path; /* length bytes, without a NUL */
        size_t length;
        uint32_t index;
} Root;

static int root_compare(const void *a, const void *b) {
        const Root *x = a, *y = b;
        int r = memcmp(x->path, y->path, MIN(x->length, y->length));

        if (r != 0)
                return r;
        if (x->length != y->length)
                return x->length > y->length ? 1 : -1;
        return (x->index > y->index) - (x->index < y->index);
}

/*
 * Fills host[i] for every device i on a root bus: the lowest index of a device on a root bus of the same host bridge.
 */
static int find_hosts(const Inventory *inv, uint32_t *host) {
        _cleanup_free_ Root *roots = calloc(inv->n_devices + 1, sizeof(*roots));
        size_t n = 0;

        if (!roots)
                return -ENOMEM;
        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = inv->devices + i;
                size_t length = dev->parent < 0 ? pci_device_host_length(dev) : 0;

                host[i] = (uint32_t) i;
                if (length > 0)
                        roots[n++] = (Root) { dev->path, length, (uint32_t) i };
        }
        qsort(roots, n, sizeof(*roots), root_compare);
        for (size_t i = 1; i < n; i++)
                if (roots[i].length == roots[i - 1].length &&
                    memcmp(roots[i].path, roots[i - 1].path, roots[i].length) == 0)
                        host[roots[i].index] = host[roots[i - 1].index];
        return 0;
}

/* The place of the first device of a slot, up to level PHB. find_nodes() fills in known nodes later. */
static Place place_of(const Inventory *inv, size_t index, const uint32_t *host) {
        size_t nearest = 0, second = 0, first = index;
        unsigned n = 0;
        Place place;

        for (int at = inv->devices[index].parent; at >= 0 && n < BRIDGES_MAX; at = inv->devices[at].parent) {
                if (n == 0)
                        nearest = (size_t) at;
                else if (n == 1)
                        second = (size_t) at;
                first = (size_t) at;
                n++;
        }
        /*
         * Three bridges or more: root port, switch upstream port, switch downstream port. Devices on one switch meet at
         * the upstream port.
         */
        place.level[DISTANCE_PIX] = n == 0 ? slot_place(index) : bridge_place(n <= 2 ? nearest : second);
        place.level[DISTANCE_PXB] = n == 0 ? slot_place(index) : bridge_place(first);
        place.level[DISTANCE_PHB] = host[first];
        place.level[DISTANCE_NODE] = unknown_node_place(host[first]);
        return place;
}

/* A VF is on its PF's card, even if its address is in another slot. PFs come before their VFs in the inventory. */
static const Place *place_of_pf(const Inventory *inv, size_t index, const Place *places) {
        const PciDevice *pf =
                inv->devices[index].type == PCI_TYPE_VF ? inventory_find(inv, inv->devices[index].physfn) : NULL;
        size_t at = pf ? inventory_device_index(inv, pf) : index;

        return at < index ? &places[at] : NULL;
}

static void find_places(const Inventory *inv, const uint32_t *host, Place *places) {
        for (size_t i = 0; i < inv->n_devices; i++) {
                const Place *pf = place_of_pf(inv, i, places);

                if (pf)
                        places[i] = *pf;
                else if (i > 0 && pci_address_same_slot(inv->devices[i].address, inv->devices[i - 1].address))
                        places[i] = places[i - 1];
                else
                        places[i] = place_of(inv, i, host);
        }
}

/* The node of a host bridge is that of its first device with a known node. */
static int find_nodes(const Inventory *inv, Place *places) {
        _cleanup_free_ int *node = malloc((inv->n_devices + 1) * sizeof(*node));

        if (!node)
                return -ENOMEM;
        for (size_t i = 0; i < inv->n_devices; i++)
                node[i] = -1;
        for (size_t i = 0; i < inv->n_devices; i++) {
                int *known = node + places[i].level[DISTANCE_PHB];

                if (*known < 0)
                        *known = inv->devices[i].numa_node;
        }
        for (size_t i = 0; i < inv->n_devices; i++) {
                int known = node[places[i].level[DISTANCE_PHB]];

                if (known >= 0)
                        places[i].level[DISTANCE_NODE] = known_node_place(known);
        }
        return 0;
}

int locality_new(const Inventory *inv, Locality **ret) {
        _cleanup_(cleanup_locality_free) Locality *l = calloc(1, sizeof(*l));
        _cleanup_free_ uint32_t *host = calloc(inv->n_devices + 1, sizeof(*host));
        int r;

        if (!l || !host)
                return -ENOMEM;
        l->places = calloc(inv->n_devices + 1, sizeof(*l->places));
        if (!l->places)
                return -ENOMEM;
        l->n_places = inv->n_devices;
        r = find_hosts(inv, host);
        if (r < 0)
                return r;
        find_places(inv, host, l->places);
        r = find_nodes(inv, l->places);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

Locality *locality_free(Locality *l) {
        if (l)
                free(l->places);
        free(l);
        return NULL;
}

Distance place_distance(const Place *a, const Place *b) {
        for (Distance d = DISTANCE_PIX; d < DISTANCE_SYS; d++)
                if (a->level[d] == b->level[d])
                        return d;
        return DISTANCE_SYS;
}
