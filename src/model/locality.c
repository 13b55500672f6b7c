/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Derives relations between devices: parent bridges, IOMMU groups, PFs and VFs, distances. */
#include <errno.h>
#include <stdio.h>

#include "model/inventory.h"
#include "model/locality.h"
#include "model/mdev-slots.h"
#include "util/strings.h"
#include "util/stringtable.h"

/* The most bridges above a device: there are only 256 bus numbers. */
#define BRIDGES_MAX 256U

static int device_compare(const void *a, const void *b) {
        return pci_address_compare(((const PciDevice *) a)->address, ((const PciDevice *) b)->address);
}

static int cpu_compare(const void *a, const void *b) {
        const Cpu *x = a, *y = b;

        return (x->id > y->id) - (x->id < y->id);
}

static int group_compare(const void *a, const void *b) {
        const IommuGroup *x = a, *y = b;

        return (x->number > y->number) - (x->number < y->number);
}

/* Sets *ret to the address in the second-last part of a path: 0000:80:02.0 of "pci0000:80/0000:80:02.0/0000:82:00.0".
 * Returns false if that part is no address. */
static bool path_parent(const char *path, PciAddress *ret) {
        const char *end = strrchr(path, '/'), *begin = end;
        char name[PCI_ADDRESS_STRING_MAX];

        if (!end)
                return false;
        while (begin > path && begin[-1] != '/')
                begin--;
        if ((size_t) (end - begin) >= sizeof(name))
                return false;
        memcpy(name, begin, (size_t) (end - begin));
        name[end - begin] = '\0';
        return pci_address_parse(name, ret) >= 0;
}

/* Returns whether the name, n bytes long, is that of a host bridge: "pci", domain and bus, "pci0000:80". */
static bool is_host_bridge(const char *name, size_t n) {
        char address[PCI_ADDRESS_STRING_MAX];
        PciAddress a;

        if (n < 3 || n >= sizeof(address) || memcmp(name, "pci", 3) != 0)
                return false;
        (void) snprintf(address, sizeof(address), "%.*s:00.0", (int) n - 3, name + 3);
        return pci_address_parse(address, &a) >= 0;
}

/* Use the last host bridge in the path: that of a VMD domain is itself below a PCI function. */
size_t pci_path_host_length(const char *path) {
        const char *at = path;
        size_t length = 0;

        while (*at) {
                size_t n = strcspn(at, "/");

                if (is_host_bridge(at, n))
                        length = (size_t) (at - path) + n;
                at += n + (at[n] == '/');
        }
        return length;
}

size_t pci_device_host_length(const PciDevice *dev) {
        return dev->path ? pci_path_host_length(dev->path) : 0;
}

static void find_parents(Inventory *inv) {
        for (size_t i = 0; i < inv->n_devices; i++) {
                PciDevice *dev = inv->devices + i;
                const PciDevice *bridge = NULL;
                PciAddress above;

                if (dev->path && path_parent(dev->path, &above))
                        bridge = inventory_find(inv, above);
                dev->parent = bridge && bridge != dev ? (int) inventory_device_index(inv, bridge) : -1;
        }
}

/* Lists the groups with the flag `direct`, ascending. 0 or -ENOMEM. */
static int take_direct_groups(const Inventory *inv, IommuGroup **ret, size_t *ret_n) {
        IommuGroup *direct = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_groups; i++) {
                if (!inv->groups[i].direct)
                        continue;
                if (ARRAY_RESERVE(direct, n) < 0) {
                        free(direct);
                        return -ENOMEM;
                }
                direct[n++] = (IommuGroup) { .number = inv->groups[i].number };
        }
        if (n > 0)
                qsort(direct, n, sizeof(*direct), group_compare);
        *ret = direct;
        *ret_n = n;
        return 0;
}

static int add_member(Inventory *inv, int number, uint32_t index) {
        IommuGroup *group = inv->n_groups > 0 ? inv->groups + inv->n_groups - 1 : NULL;
        int r;

        if (!group || group->number != number) {
                r = ARRAY_RESERVE(inv->groups, inv->n_groups);
                if (r < 0)
                        return r;
                group = inv->groups + inv->n_groups++;
                *group = (IommuGroup) { .number = number };
        }
        r = ARRAY_RESERVE(group->members, group->n_members);
        if (r < 0)
                return r;
        group->members[group->n_members++] = index;
        return 0;
}

typedef struct Membership {
        int number;
        uint32_t index;
} Membership;

static int membership_compare(const void *a, const void *b) {
        const Membership *x = a, *y = b;

        if (x->number != y->number)
                return x->number > y->number ? 1 : -1;
        return (x->index > y->index) - (x->index < y->index);
}

static int make_groups(Inventory *inv) {
        _cleanup_free_ IommuGroup *direct = NULL;
        _cleanup_free_ Membership *members = NULL;
        size_t n = 0, n_direct;
        int r;

        r = take_direct_groups(inv, &direct, &n_direct);
        if (r < 0)
                return r;
        for (size_t i = 0; i < inv->n_groups; i++)
                free(inv->groups[i].members);
        free(inv->groups);
        inv->groups = NULL;
        inv->n_groups = 0;
        members = calloc(inv->n_devices + 1, sizeof(*members));
        if (!members)
                return -ENOMEM;
        for (size_t i = 0; i < inv->n_devices; i++)
                if (inv->devices[i].iommu_group >= 0)
                        members[n++] = (Membership) { inv->devices[i].iommu_group, (uint32_t) i };
        qsort(members, n, sizeof(*members), membership_compare);
        for (size_t i = 0; i < n; i++) {
                r = add_member(inv, members[i].number, members[i].index);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < inv->n_groups && n_direct > 0; i++)
                inv->groups[i].direct = bsearch(inv->groups + i, direct, n_direct, sizeof(*direct), group_compare);
        inv->iommu = inv->n_groups > 0;
        return 0;
}

/*
 * Derives the VFs of a PF from its virtfn links. Skips duplicates, absent devices and VFs of another PF. Sets
 * listed[vf] to 1 + the index of the PF.
 */
static int list_vfs(const Inventory *inv, PciDevice *pf, uint32_t *listed) {
        uint32_t mark = (uint32_t) inventory_device_index(inv, pf) + 1;
        bool whole = pf->n_linked == pf->n_virtfns;

        pf->n_vfs = 0;
        for (size_t i = 0; i < pf->n_linked; i++) {
                const PciDevice *vf = inventory_find(inv, pf->linked[i]);
                size_t at = vf ? inventory_device_index(inv, vf) : 0;

                if (!vf || vf == pf || listed[at] == mark)
                        continue;
                if (vf->type == PCI_TYPE_VF && !pci_address_equal(vf->physfn, pf->address))
                        continue;
                listed[at] = mark;
                /* The kernel numbers VFs without gaps, so an unreadable link makes all indices unknown. */
                inv->devices[at].vf_index = whole ? (int) i : -1;
                if (pci_address_append(&pf->vfs, &pf->n_vfs, vf->address) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Adds a VF to the PF that its physfn names, even if the PF's link is damaged: a PF with VFs must not be allocated. */
static int add_unlisted_vfs(Inventory *inv, const uint32_t *listed) {
        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *vf = inv->devices + i, *found;
                PciDevice *pf;

                if (vf->type != PCI_TYPE_VF ||
                    (listed[i] > 0 && pci_address_equal(inv->devices[listed[i] - 1].address, vf->physfn)))
                        continue;
                found = inventory_find(inv, vf->physfn);
                if (!found || found == vf)
                        continue;
                pf = inv->devices + inventory_device_index(inv, found);
                if (pci_address_append(&pf->vfs, &pf->n_vfs, vf->address) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int make_functions(Inventory *inv) {
        _cleanup_free_ uint32_t *listed = calloc(inv->n_devices + 1, sizeof(*listed));
        int r = 0;

        if (!listed)
                return -ENOMEM;
        for (size_t i = 0; i < inv->n_devices; i++)
                inv->devices[i].vf_index = -1;
        for (size_t i = 0; r == 0 && i < inv->n_devices; i++)
                r = list_vfs(inv, inv->devices + i, listed);
        if (r == 0)
                r = add_unlisted_vfs(inv, listed);
        if (r < 0)
                return r;
        for (size_t i = 0; i < inv->n_devices; i++) {
                PciDevice *dev = inv->devices + i;

                if (pci_device_has_slots(dev) && inventory_fill_slots(inv, dev) < 0)
                        return -ENOMEM;
                if (dev->type != PCI_TYPE_VF)
                        dev->type = dev->total_vfs > 0 || pci_device_has_vfs(dev) ? PCI_TYPE_PF : PCI_TYPE_DEVICE;
        }
        return 0;
}

static bool is_sorted(const Inventory *inv) {
        for (size_t i = 1; i < inv->n_devices; i++)
                if (device_compare(&inv->devices[i - 1], &inv->devices[i]) > 0)
                        return false;
        return true;
}

int inventory_finish(Inventory *inv) {
        int r = inventory_add_slots(inv);

        if (r < 0)
                return r;
        /* Sort first, because indices are used below. A scan adds devices in order already. */
        if (!is_sorted(inv))
                qsort(inv->devices, inv->n_devices, sizeof(*inv->devices), device_compare);
        if (inv->n_cpus > 0)
                qsort(inv->cpus, inv->n_cpus, sizeof(*inv->cpus), cpu_compare);
        find_parents(inv);
        r = make_groups(inv);
        if (r < 0)
                return r;
        return make_functions(inv);
}

int inventory_set_group_direct(Inventory *inv, int number) {
        const IommuGroup *found = inventory_find_group(inv, number);
        int r;

        if (found) {
                inv->groups[found - inv->groups].direct = true;
                return 0;
        }
        r = ARRAY_RESERVE(inv->groups, inv->n_groups);
        if (r < 0)
                return r;
        inv->groups[inv->n_groups++] = (IommuGroup) { .number = number, .direct = true };
        return 0;
}

bool inventory_path_is_isolated(const Inventory *inv, const PciDevice *dev, const PciDevice **ret_port) {
        int at = dev->parent;

        for (unsigned i = 0; i < BRIDGES_MAX && at >= 0; i++) {
                const PciDevice *port = inv->devices + at;

                if (port->acs != PCI_ACS_CLEAN && port->acs != PCI_ACS_ISOLATED) {
                        if (ret_port)
                                *ret_port = port;
                        return false;
                }
                at = port->parent;
        }
        return at < 0;
}

/* Numbers the places of devices in the tree NUMA node > host bridge > root port > switch. */

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

/* Returns the number of a bridge. Bridges have even numbers and slots odd ones, so that they differ. */
static uint32_t bridge_place(size_t index) {
        return (uint32_t) index * 2;
}

static uint32_t slot_place(size_t index) {
        return (uint32_t) index * 2 + 1;
}

/* Returns the number of a NUMA node, which is even. A host bridge on an unknown node counts as a node of its own, at
 * distance SYS from all others; unknown_node_place() gives it an odd number. */
static uint32_t known_node_place(int node) {
        return (uint32_t) node * 2;
}

static uint32_t unknown_node_place(uint32_t host) {
        return host * 2 + 1;
}

typedef struct Root {
        const char *path; /* `length` bytes, without a NUL */
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

/* For each device i on a root bus: sets host[i] to the lowest index among the devices on a root bus below the same host
 * bridge. Sets host[i] to i for all other devices, and if the path of i has no host bridge. Returns 0 or -ENOMEM. */
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

/* Computes the place of the first device of a slot. The level DISTANCE_NODE is set to an unknown node; find_nodes()
 * replaces it if the node is known. */
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
        /* Of three bridges or more, the last two are a switch's upstream and downstream port. Devices on one switch
         * have the same upstream port. */
        place.level[DISTANCE_PIX] = n == 0 ? slot_place(index) : bridge_place(n <= 2 ? nearest : second);
        place.level[DISTANCE_PXB] = n == 0 ? slot_place(index) : bridge_place(first);
        place.level[DISTANCE_PHB] = host[first];
        place.level[DISTANCE_NODE] = unknown_node_place(host[first]);
        return place;
}

/* Returns the place of a VF's PF; NULL: the device is no VF, or its PF is missing. A VF is on the PF's card, even if
 * its address is in another slot. The PF comes before its VFs. */
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

/* Gives all devices below a host bridge the node of the first of them whose node is known. 0 or -ENOMEM. */
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
