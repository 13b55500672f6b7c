/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host topology for DescribeTopology: NUMA nodes with their free resources, devices below their bridges, and the
 * distances between GPUs, other accelerators and NICs. */
#include <errno.h>
#include <stdio.h>

#include "json-internal.h"
#include "model/mdev-slots.h"
#include "model/peerpath.h"

/* The devices as a tree, which is walked in preorder. All values are indices of the inventory; -1 is none. */
typedef struct Tree {
        int *above; /* the parent: the bridge above a device, or the PF of a VF */
        int *child; /* the first child */
        int *next;  /* the next sibling */
        int top;    /* the first device on a root bus */
} Tree;

static void tree_done(Tree *t) {
        free(t->above);
}

static bool has_same_parent(const PciDevice *a, const PciDevice *b) {
        size_t n = pci_device_host_length(a);

        return a->parent == b->parent && n == pci_device_host_length(b) && (n == 0 || memcmp(a->path, b->path, n) == 0);
}

/* Returns the index of the device below which dev is shown: for a VF its PF, for a slot of mediated devices its GPU,
 * otherwise the bridge above dev, or -1 on a root bus. If the sysfs paths place a VF and its PF below different
 * bridges, the VF is shown below its own bridge, because damaged data could otherwise make a cycle. */
static int find_above(const Inventory *inv, const PciDevice *dev) {
        const PciDevice *pf = dev->type == PCI_TYPE_VF ? inventory_find(inv, dev->physfn) : NULL;

        return pf && (pf->type == PCI_TYPE_PF || pci_device_is_slot(dev)) && has_same_parent(pf, dev)
                       ? (int) inventory_device_index(inv, pf)
                       : dev->parent;
}

static int tree_init(Tree *t, const Inventory *inv) {
        size_t n = inv->n_devices;
        int *all = malloc((3 * n + 1) * sizeof(*all));

        if (!all)
                return -ENOMEM;
        *t = (Tree) { .above = all, .child = all + n, .next = all + 2 * n, .top = -1 };
        for (size_t i = 0; i < n; i++)
                t->child[i] = -1;
        /* Each device is prepended to the list of its siblings, so the loop runs backwards to get ascending lists. */
        for (size_t i = n; i-- > 0;) {
                int above = find_above(inv, &inv->devices[i]), *list = above >= 0 ? &t->child[above] : &t->top;

                t->above[i] = above;
                t->next[i] = *list;
                *list = (int) i;
        }
        return 0;
}

/* Returns the next device in preorder: the first child, or the next sibling, or the next sibling of an ancestor. -1 at
 * the end of the tree. */
static int tree_next(const Tree *t, int i) {
        if (t->child[i] >= 0)
                return t->child[i];
        while (i >= 0 && t->next[i] < 0)
                i = t->above[i];
        return i >= 0 ? t->next[i] : -1;
}

static json_object *json_root(const PciDevice *top) {
        size_t n = pci_device_host_length(top);

        return n > 0 ? json_object_new_string_len(top->path, (int) n) : NULL;
}

static json_object *json_kernel_names(const PciDevice *dev) {
        _cleanup_free_ char *names = strdup(dev->kernel_names ?: "");
        json_object *o = names ? json_object_new_array() : NULL;
        char *name, *rest = names;

        while (o && (name = strsep(&rest, " ")))
                if (*name)
                        (void) json_object_array_add(o, json_object_new_string(name));
        return o;
}

static json_object *json_place(const HostView *view, const Tree *t, const PciDevice *dev, const PciDevice *top) {
        int above = t->above[inventory_device_index(view->inventory, dev)];
        const Pool *pool = policy_pool(view->policy, dev);
        const Allocation *holder = ledger_holder(view->ledger, dev->address);
        json_object *o = json_object_new_object();

        json_object_object_add(o, "address", json_address(dev->address));
        json_object_object_add(o, "root", json_root(top));
        json_object_object_add(o, "above", above >= 0 ? json_address(view->inventory->devices[above].address) : NULL);
        json_object_object_add(o, "kind", json_object_new_string(device_kind(dev)));
        json_object_object_add(o, "type", json_string_or_null(pci_type_to_string(dev->type)));
        json_object_object_add(o, "vendor", json_hex(dev->vendor, 4));
        json_object_object_add(o, "device", json_hex(dev->device, 4));
        json_object_object_add(o, "class", json_hex(dev->class, 6));
        json_object_object_add(o, "name", json_string_or_null(dev->name));
        json_object_object_add(o, "numa_node", json_known_or_null(dev->numa_node));
        json_object_object_add(o, "cpu_node", json_known_or_null(inventory_device_cpu_node(view->inventory, dev)));
        json_object_object_add(o, "module", json_known_or_null(device_module(view, dev->address)));
        json_object_object_add(o, "partition", json_known_or_null(device_partition(view, dev->address)));
        json_object_object_add(o, "driver", json_string_or_null(dev->driver));
        json_object_object_add(o, "kernel_names", json_kernel_names(dev));
        json_object_object_add(o, "link", json_link(dev));
        json_object_object_add(o, "acs_capability", json_acs_bits(dev, dev->acs_capabilities));
        json_object_object_add(o, "acs_control", json_acs_bits(dev, dev->acs_enabled));
        json_object_object_add(o, "ats", json_ats(dev));
        json_object_object_add(o, "pool", json_string_or_null(pool ? pool->name : NULL));
        json_object_object_add(o, "state", json_string_or_null(device_state_to_string(device_state(view, dev, NULL))));
        json_object_object_add(o, "allocation", json_string_or_null(holder ? holder->name : NULL));
        return o;
}

/* Makes the object of an allocated device that is missing from the host. A value that the allocation does not record is
 * null. */
static json_object *json_missing(const Claim *claim) {
        static const char *const unknown[] = {
                "root",   "above",     "kind",   "type",         "class", "name",           "numa_node",   "cpu_node",
                "module", "partition", "driver", "kernel_names", "link",  "acs_capability", "acs_control", "ats",
        };
        const AllocationDevice *d = allocation_find_device(claim->allocation, claim->address);
        json_object *o = json_object_new_object();

        json_object_object_add(o, "address", json_address(claim->address));
        for (size_t i = 0; i < ELEMENTSOF(unknown); i++)
                json_object_object_add(o, unknown[i], NULL);
        json_object_object_add(o, "vendor", d ? json_hex(d->vendor, 4) : NULL);
        json_object_object_add(o, "device", d ? json_hex(d->device, 4) : NULL);
        json_object_object_add(o, "pool", json_string_or_null(d ? d->pool : NULL));
        json_object_object_add(o, "state", json_object_new_string(device_state_to_string(DEVICE_STATE_MISSING)));
        json_object_object_add(o, "allocation", json_string_or_null(claim->allocation->name));
        return o;
}

/* Returns true for a slot that is in no pool and in no allocation, and has no mediated device: such slots are not
 * shown. */
static bool is_idle_slot(const HostView *view, const PciDevice *dev) {
        return pci_device_is_slot(dev) && !policy_pool(view->policy, dev) && dev->vgpu_type == 0 &&
               !ledger_holder(view->ledger, dev->address);
}

static json_object *json_devices(const HostView *view, const Tree *t) {
        json_object *array = json_object_new_array();
        const PciDevice *top = NULL;

        for (int i = t->top; i >= 0; i = tree_next(t, i)) {
                const PciDevice *dev = &view->inventory->devices[i];

                if (t->above[i] < 0)
                        top = dev;
                if (!is_idle_slot(view, dev))
                        (void) json_object_array_add(array, json_place(view, t, dev, top));
        }
        for (size_t i = 0; i < view->ledger->n_claims; i++)
                if (!inventory_find(view->inventory, view->ledger->claims[i].address))
                        (void) json_object_array_add(array, json_missing(&view->ledger->claims[i]));
        return array;
}

/* Returns how many cores of the NUMA node have at least one CPU in the set. */
static int count_cores(const Inventory *inv, const NumaNode *node, const CpuSet *set) {
        CpuSet seen = { 0 };

        for (size_t i = 0; i < inv->n_cpus; i++)
                if (cpuset_has(&node->cpus, inv->cpus[i].id) && cpuset_has(set, inv->cpus[i].id))
                        cpuset_add(&seen, inv->cpus[i].core);
        return (int) cpuset_count(&seen);
}

static json_object *json_cores(const HostView *view, const NumaNode *node, const CpuSet *set) {
        json_object *o = json_object_new_object();
        CpuSet inside = node->cpus, outside = node->cpus;

        cpuset_subtract(&outside, set);
        cpuset_subtract(&inside, &outside);
        json_object_object_add(o, "cpus", json_cpus(&inside));
        json_object_object_add(o, "cores", json_object_new_int(count_cores(view->inventory, node, &inside)));
        return o;
}

static void add_cpus(json_object *o, const HostView *view, const NumaNode *node) {
        CpuSet free_cpus;

        ledger_cpus_free(view->ledger, view->inventory, view->config, node, &free_cpus);
        json_object_object_add(o, "total", json_cores(view, node, &node->cpus));
        json_object_object_add(o, "free", json_cores(view, node, &free_cpus));
        json_object_object_add(o, "allocated", json_cores(view, node, &view->ledger->cpus));
        json_object_object_add(o, "housekeeping", json_cores(view, node, &view->config->housekeeping));
}

/* Returns the total, free and allocated memory of a node: in bytes of ordinary pages if page_size is 0, otherwise in
 * hugepages of this size. */
static json_object *json_memory(const HostView *view, const NumaNode *node, uint64_t page_size, uint64_t total) {
        uint64_t unit = page_size > 0 ? page_size : 1;
        uint64_t available = ledger_memory_offered(view->ledger, view->inventory, view->config, node, page_size);
        json_object *o = json_object_new_object();

        if (page_size > 0)
                json_object_object_add(o, "size", json_object_new_uint64(page_size));
        json_object_object_add(o, "total", json_object_new_uint64(total));
        json_object_object_add(o, "free", json_object_new_uint64(available / unit));
        json_object_object_add(o, "allocated",
                               json_object_new_uint64(ledger_memory(view->ledger, node->id, page_size) / unit));
        return o;
}

static json_object *json_node(const HostView *view, const NumaNode *node) {
        json_object *o = json_object_new_object(), *cpus = json_object_new_object(), *pages = json_object_new_array(),
                    *distances = json_object_new_object();
        const PciDevice *owner = inventory_memory_owner(view->inventory, node);

        add_cpus(cpus, view, node);
        for (size_t i = 0; i < node->n_pages; i++)
                (void) json_object_array_add(pages, json_memory(view, node, node->pages[i].size, node->pages[i].total));
        for (size_t i = 0; i < view->inventory->n_nodes; i++) {
                char key[16];

                (void) snprintf(key, sizeof(key), "%d", view->inventory->nodes[i].id);
                json_object_object_add(distances, key, json_object_new_int64(node->distance[i]));
        }
        json_object_object_add(o, "id", json_object_new_int(node->id));
        json_object_object_add(o, "package", json_known_or_null(node->package));
        json_object_object_add(o, "cpus", cpus);
        json_object_object_add(o, "cpu_node", json_known_or_null(inventory_cpu_node(view->inventory, node->id)));
        json_object_object_add(o, "memory_node",
                               json_known_or_null(inventory_memory_node(view->inventory, node->id, NULL)));
        json_object_object_add(o, "memory_of", owner ? json_address(owner->address) : NULL);
        json_object_object_add(o, "memory_total", json_object_new_uint64(node->memory));
        json_object_object_add(o, "memory", json_memory(view, node, 0, numa_node_base_memory(node)));
        json_object_object_add(o, "pages", pages);
        json_object_object_add(o, "distances", distances);
        return o;
}

/* Returns the rank of the device in the matrix: NVIDIA GPUs first, in the order of nvidia-smi, then other GPUs, other
 * accelerators and NICs. -1: the device is not in the matrix. */
static int matrix_rank(const PciDevice *dev) {
        if (dev->type == PCI_TYPE_VF || dev->is_bridge)
                return -1;
        if (pci_device_is_gpu(dev))
                return dev->vendor != PCI_VENDOR_NVIDIA;
        if (pci_device_is_accelerator(dev))
                return 2;
        return pci_device_is_nic(dev) ? 3 : -1;
}

/* Stores the inventory indices of the devices of the matrix in the order of their ranks. Returns their number, even if
 * members has less room. */
static size_t matrix_members(const Inventory *inv, uint32_t members[static TOPOLOGY_MATRIX_MAX]) {
        size_t n = 0;

        for (int rank = 0; rank <= 3; rank++)
                for (size_t i = 0; i < inv->n_devices; i++) {
                        if (matrix_rank(&inv->devices[i]) != rank)
                                continue;
                        if (n < TOPOLOGY_MATRIX_MAX)
                                members[n] = (uint32_t) i;
                        n++;
                }
        return n;
}

static bool are_joined(const HostView *view, uint32_t a, uint32_t b) {
        const PciDevice *devices = view->inventory->devices;

        return fabric_table_joins(&view->config->fabric, config_module(view->config, &devices[a]),
                                  config_module(view->config, &devices[b]));
}

/* Makes the matrix of distances. Equal distances share one JSON string, by its reference count. */
static json_object *json_distances(const HostView *view, const uint32_t *members, size_t n) {
        json_object *rows = json_object_new_array(), *self = json_object_new_string("X"), *words[_DISTANCE_MAX],
                    *nvlink = json_object_new_string("NVL");
        const Locality *l = view->locality;

        for (Distance d = 0; d < _DISTANCE_MAX; d++)
                words[d] = json_object_new_string(distance_to_string(d));
        for (size_t i = 0; i < n; i++) {
                json_object *row = json_object_new_array_ext((int) n);

                for (size_t j = 0; j < n; j++) {
                        Distance d = place_distance(&l->places[members[i]], &l->places[members[j]]);

                        (void) json_object_array_add(row, json_object_get(i == j ? self
                                                                          : are_joined(view, members[i], members[j])
                                                                                  ? nvlink
                                                                                  : words[d]));
                }
                (void) json_object_array_add(rows, row);
        }
        for (Distance d = 0; d < _DISTANCE_MAX; d++)
                (void) json_object_put(words[d]);
        (void) json_object_put(self);
        (void) json_object_put(nvlink);
        return rows;
}

static json_object *json_near_pair(const HostView *view, const PciDevice *gpu, const PciDevice *peer, Distance d) {
        json_object *o = json_object_new_object();
        bool nic = pci_device_is_nic(peer);

        json_object_object_add(o, "gpu", json_address(gpu->address));
        json_object_object_add(o, "peer", json_address(peer->address));
        json_object_object_add(o, "distance", json_string_or_null(distance_to_string(d)));
        json_object_object_add(o, "path", json_peer_path(view->inventory, nic ? peer : gpu, nic ? gpu : peer));
        return o;
}

/* Lists the pairs of an accelerator with another accelerator or a NIC that are below the same root port, each with its
 * peer-to-peer path: only such a pair can have a path that avoids the root complex. NULL when there are more than
 * TOPOLOGY_PAIRS_MAX pairs. */
static json_object *json_near_pairs(const HostView *view, const uint32_t *members, size_t n) {
        json_object *pairs = json_object_new_array();
        size_t found = 0;

        for (size_t i = 0; i < n; i++)
                for (size_t j = i + 1; j < n; j++) {
                        const PciDevice *a = &view->inventory->devices[members[i]],
                                        *b = &view->inventory->devices[members[j]];
                        Distance d = place_distance(&view->locality->places[members[i]],
                                                    &view->locality->places[members[j]]);

                        /* NICs are last in members: if `a` is a NIC, `b` is one too. */
                        if (d > DISTANCE_PXB || pci_device_is_nic(a))
                                continue;
                        if (found++ == TOPOLOGY_PAIRS_MAX) {
                                (void) json_object_put(pairs);
                                return NULL;
                        }
                        (void) json_object_array_add(pairs, json_near_pair(view, a, b, d));
                }
        return pairs;
}

static json_object *json_matrix(const HostView *view) {
        json_object *o, *devices;
        uint32_t members[TOPOLOGY_MATRIX_MAX];
        size_t n = matrix_members(view->inventory, members);

        if (n > TOPOLOGY_MATRIX_MAX)
                return NULL;
        o = json_object_new_object();
        devices = json_object_new_array();
        for (size_t i = 0; i < n; i++)
                (void) json_object_array_add(devices, json_address(view->inventory->devices[members[i]].address));
        json_object_object_add(o, "devices", devices);
        json_object_object_add(o, "distances", json_distances(view, members, n));
        json_object_object_add(o, "pairs", json_near_pairs(view, members, n));
        return o;
}

json_object *json_topology(const HostView *view) {
        _cleanup_(tree_done) Tree tree = { 0 };
        json_object *o, *nodes;

        if (tree_init(&tree, view->inventory) < 0)
                return NULL;
        o = json_object_new_object();
        nodes = json_object_new_array();
        for (size_t i = 0; i < view->inventory->n_nodes; i++)
                (void) json_object_array_add(nodes, json_node(view, &view->inventory->nodes[i]));
        json_object_object_add(o, "nodes", nodes);
        json_object_object_add(o, "devices", json_devices(view, &tree));
        json_object_object_add(o, "matrix", json_matrix(view));
        return o;
}

/* What ACS and ATS do on the path between two functions. Unknown values are null. */

json_object *json_acs_bits(const PciDevice *dev, uint16_t bits) {
        json_object *array;

        if (dev->acs == PCI_ACS_UNKNOWN || dev->acs == PCI_ACS_CLEAN)
                return NULL;
        array = json_object_new_array();
        for (PciAcsBit b = 0; b < _PCI_ACS_BIT_MAX; b++)
                if (bits & PCI_ACS_BIT(b))
                        (void) json_object_array_add(array, json_object_new_string(pci_acs_bit_to_string(b)));
        return array;
}

static json_object *json_port(const PciDevice *port) {
        json_object *o = json_object_new_object(), *redirects = NULL;

        if (port->acs != PCI_ACS_UNKNOWN)
                redirects = json_object_new_boolean(peer_port_redirects(port));
        json_object_object_add(o, "address", json_address(port->address));
        json_object_object_add(o, "acs_capability", json_acs_bits(port, port->acs_capabilities));
        json_object_object_add(o, "acs_control", json_acs_bits(port, port->acs_enabled));
        json_object_object_add(o, "redirects", redirects);
        return o;
}

json_object *json_ats(const PciDevice *dev) {
        return dev->ats != PCI_ATS_UNKNOWN ? json_object_new_string(pci_ats_to_string(dev->ats)) : NULL;
}

static void add_ats(json_object *o, const Inventory *inv, const PciDevice *dev) {
        const PciDevice *f = peer_ats_function(inv, dev);

        json_object_object_add(o, PCI_ADDRESS_STR(f->address), json_ats(f));
}

static json_object *json_access(PeerAccess access) {
        return access != PEER_ACCESS_UNKNOWN ? json_object_new_string(peer_access_to_string(access)) : NULL;
}

json_object *json_peer_path(const Inventory *inv, const PciDevice *initiator, const PciDevice *target) {
        json_object *o = json_object_new_object(), *ports = json_object_new_array(), *ats = json_object_new_object();
        _cleanup_free_ char *setting = NULL;
        PeerPath path;

        peer_path_find(inv, initiator, target, &path);
        (void) peer_path_setting(inv, &path, initiator, &setting);
        for (size_t i = 0; i < path.n_ports; i++)
                (void) json_object_array_add(ports, json_port(&inv->devices[path.ports[i]]));
        add_ats(ats, inv, initiator);
        add_ats(ats, inv, target);
        json_object_object_add(o, "peer_to_peer", json_access(path.access));
        json_object_object_add(o, "ports", ports);
        json_object_object_add(o, "ats", ats);
        json_object_object_add(o, "setting", json_string_or_null(setting));
        return o;
}
