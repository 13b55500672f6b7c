/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The planner against exhaustive search, as include/plan/plan.h words the objective: every set of NUMA nodes, every set
 * of devices, every pairing. Random small nodes; the smallest one on which the two differ is shown. Shares no code with
 * the planner; distances are read off the paths of devices, not off a Locality.
 *
 * PLAN_EXACT_CASES= and PLAN_EXACT_SEED= for longer and other runs, UNIT_TEST= for one of the tests.
 */

#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"
#include "plan/plan-internal.h"

#define CASES          3000U
#define FAR_CASES      10000U
#define DEVICES_MAX    9U /* of a random tree */
#define CHIPLETS       8U /* NUMA nodes, half of them in each package */
#define CANDIDATES_MAX (CHIPLETS * 3)
#define HUGEPAGE       (GIB / 2)
#define DISTANCES      64U
#define MODELS         3U /* of each kind of device, where there are many pools */

/* What a random node may have besides ordinary devices. */
typedef enum Feature {
        FEATURE_PLAIN,
        FEATURE_SHARED_GROUPS, /* IOMMU groups of several devices */
        FEATURE_MIXED_POOL,    /* VFs and whole devices in one pool */
        FEATURE_SCATTERED_VFS, /* VFs of one PF on a root bus, each in a slot of its own */
        FEATURE_OTHER_POOLS,   /* free devices that the request does not ask for */
        FEATURE_DEVICES_ONLY,  /* requests without CPUs */
        FEATURE_TWO_VF_POOLS,  /* VFs of one PF in two pools */
        FEATURE_MANY_POOLS,    /* a few devices in each of up to eight pools */
        FEATURE_NAMED,         /* the request names devices, nodes and CPUs; the node is of one of the kinds above */
        FEATURE_CHIPLETS,      /* eight NUMA nodes, each with one switch above a GPU and a PF */
        FEATURE_FABRIC,        /* an HGX machine: eight GPUs with NVLink, each below a switch with a NIC */
        FEATURE_UNEVEN,        /* six NUMA nodes with different numbers of CPUs and pages, and with IOMMU groups */
        FEATURE_FAR, /* as uneven, but most nodes have no CPUs or no memory, and the request may name memory */
} Feature;

static uint64_t seed;

static unsigned below(unsigned n) {
        uint64_t z = seed += 0x9e3779b97f4a7c15;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return (unsigned) ((z ^ z >> 31) % n);
}

/* --- the random node --- */

typedef struct Generator {
        TestNode *node;
        Feature feature;
        unsigned bus, group, devices;
        bool gpus, nics, vfs, disks; /* kinds of devices in the node */
} Generator;

static int next_group(Generator *g) {
        if (g->feature == FEATURE_SHARED_GROUPS && g->group > 0 && below(2))
                return (int) (g->group - (g->group > 1 && below(3) == 0));
        return (int) ++g->group;
}

static void add_vfs(Generator *g, const char *above, unsigned bus, unsigned slot, const char *pf, int numa) {
        unsigned n = 1 + below(3) + (g->feature == FEATURE_TWO_VF_POOLS || g->feature == FEATURE_SHARED_GROUPS);

        for (unsigned i = n; i > 0 && g->devices < DEVICES_MAX; i--, g->devices++) {
                char path[160];
                bool scattered = g->feature == FEATURE_SCATTERED_VFS;

                (void) snprintf(path, sizeof(path), "%s/0000:%02x:%02x.%u", above, bus, scattered ? 4 * slot + i : slot,
                                scattered ? 0U : i);
                node_vf(g->node, path, pf, numa, next_group(g));
        }
}

/* An endpoint, or a PF with VFs, below the directory above on bus. */
static void add_endpoint(Generator *g, const char *above, unsigned bus, unsigned slot, int numa) {
        char path[160], address[16];
        bool many_vfs = g->feature == FEATURE_SCATTERED_VFS || g->feature == FEATURE_TWO_VF_POOLS;
        unsigned kind = many_vfs && below(2) ? 3 : below(4);

        (void) snprintf(address, sizeof(address), "0000:%02x:%02x.0", bus, slot);
        (void) snprintf(path, sizeof(path), "%s/%s", above, address);
        if (g->devices >= DEVICES_MAX)
                return;
        if (kind == 0 && g->gpus)
                node_gpu(g->node, path, numa, next_group(g));
        else if (kind == 1 && g->nics)
                node_nic(g->node, path, numa, next_group(g));
        else if (kind == 2 && g->disks)
                node_device(g->node, path, 0x010802, numa, next_group(g));
        else if (kind == 3 && g->vfs) {
                node_nic(g->node, path, numa, (int) ++g->group)->total_vfs = 8;
                add_vfs(g, above, bus, slot, address, numa);
                return;
        } else
                return;
        g->devices++;
}

static void add_root_port(Generator *g, const char *host, unsigned root_bus, unsigned slot, int numa) {
        char port[64], up[96], down[128];
        unsigned shape = below(4);

        (void) snprintf(port, sizeof(port), "%s/0000:%02x:%02x.0", host, root_bus, slot);
        if (shape == 0 || g->feature == FEATURE_SCATTERED_VFS) {
                add_endpoint(g, host, root_bus, slot, numa);
                return;
        }
        node_bridge(g->node, port, numa, (int) ++g->group);
        if (shape == 1) {
                add_endpoint(g, port, g->bus, 0, numa);
                add_endpoint(g, port, g->bus++, 1, numa);
                return;
        }
        (void) snprintf(up, sizeof(up), "%s/0000:%02x:00.0", port, g->bus++);
        node_bridge(g->node, up, numa, (int) ++g->group);
        for (unsigned i = 0, bus = g->bus++; i < 2 + below(2); i++) {
                (void) snprintf(down, sizeof(down), "%s/0000:%02x:%02x.0", up, bus, i);
                node_bridge(g->node, down, numa, (int) ++g->group);
                add_endpoint(g, down, g->bus++, 0, numa);
                if (shape == 3) { /* a second switch below the first */
                        char up2[160];

                        (void) snprintf(up2, sizeof(up2), "%s/0000:%02x:00.0", down, g->bus++);
                        node_bridge(g->node, up2, numa, (int) ++g->group);
                        add_endpoint(g, up2, g->bus, 0, numa);
                        add_endpoint(g, up2, g->bus++, 1, numa);
                }
        }
}

static void add_numa(Generator *g, unsigned n, unsigned threads) {
        static const int sparse[] = { 0, 1, 4 };

        for (unsigned i = 0, pages; i < n; i++) {
                NumaNode *node = node_numa(g->node, sparse[i], i * 8, below(6) ? 4 : 0, threads,
                                           below(6) ? (2 + below(6)) * GIB : 0);

                pages = (unsigned) (node->memory / HUGEPAGE / 3);
                node_hugepages(node, HUGEPAGE, pages, below(3) ? pages : below(pages + 1));
                if (node->package >= 0 && below(2))
                        node->package = 0;
                for (unsigned j = 0; j < i; j++)
                        node->distance[j] = g->node->inventory->nodes[j].distance[i] = 12 + below(3) * 10;
        }
}

/* Allocates a device, or a core and memory, to another allocation. */
static void occupy(TestNode *t, unsigned i) {
        char name[16];
        Allocation *a;
        bool device = t->inventory->n_devices > 0 && below(2);

        (void) snprintf(name, sizeof(name), "other%u", i);
        a = allocation_new(name);
        assert_non_null(a);
        if (device) {
                const PciDevice *dev = &t->inventory->devices[below((unsigned) t->inventory->n_devices)];
                AllocationDevice *d = allocation_add_device(a, dev->address, DEVICE_ROLE_ASSIGNED);

                d->is_vf = dev->type == PCI_TYPE_VF;
                d->physfn = dev->physfn;
                if (policy_verdict(t->policy, dev) != VERDICT_NONE)
                        device = false; /* nothing useful to claim: dropped below */
        } else if (t->inventory->n_cpus > 0) {
                const Cpu *cpu = &t->inventory->cpus[below((unsigned) t->inventory->n_cpus)];

                for (size_t c = 0; c < t->inventory->n_cpus; c++)
                        if (t->inventory->cpus[c].core == cpu->core)
                                cpuset_add(&a->cpus, t->inventory->cpus[c].id);
                a->cells[a->n_cells++] = (Cell) { .node = cpu->node, .memory = GIB };
        }
        if ((!device && a->n_cells == 0) || ledger_claim(t->ledger, t->inventory, t->config, a, NULL) != VERDICT_NONE)
                allocation_free(a);
}

static const char *choose_pools(Generator *g) {
        static const char *const plain[] = { "gpu",     "nic",      "vf",   "gpu nic",     "gpu vf",    "vf gpu",
                                             "nic gpu", "gpu disk", "disk", "gpu vf disk", "gpu nic vf" };
        static const char *const two[] = { "odd", "odd vf", "gpu odd vf" };
        const char *names = plain[below(ELEMENTSOF(plain))];

        if (g->feature == FEATURE_MIXED_POOL)
                names = below(2) ? "mixed" : "gpu mixed";
        if (g->feature == FEATURE_SCATTERED_VFS)
                names = below(2) ? "vf" : "gpu vf";
        if (g->feature == FEATURE_TWO_VF_POOLS)
                names = two[below(ELEMENTSOF(two))];
        g->gpus = strstr(names, "gpu");
        g->nics = strstr(names, "nic") || strstr(names, "mixed");
        g->vfs = strstr(names, "vf") || strstr(names, "mixed");
        g->disks = strstr(names, "disk");
        if (g->feature == FEATURE_OTHER_POOLS)
                g->gpus = g->nics = g->disks = true;
        if (g->feature == FEATURE_MANY_POOLS)
                g->gpus = g->nics = g->vfs = g->disks = true;
        return names;
}

/* Asks for most of the pools that have devices. */
static void ask_many_pools(const TestNode *t, Request *r) {
        for (size_t i = 0; i < t->config->n_pools; i++) {
                unsigned n = node_available(t, t->config->pools[i].name);

                if (n > 0 && below(4) && r->n_pools < REQUEST_POOLS_MAX)
                        assert_int_equal(request_add_pool(r, t->config->pools[i].name, 1 + below(n)), 0);
        }
        if (r->n_pools == 0)
                assert_int_equal(request_add_pool(r, t->config->pools[0].name, 1), 0);
}

static void make_request(const Generator *g, const char *names, unsigned threads, Request *r) {
        char copy[32], *at = NULL;
        bool many = g->feature == FEATURE_MANY_POOLS;

        request_init(r);
        (void) snprintf(copy, sizeof(copy), "%s", names);
        for (char *name = strtok_r(copy, " ", &at); name && !many; name = strtok_r(NULL, " ", &at))
                assert_int_equal(request_add_pool(r, name, 1 + below(1 + below(4))), 0);
        if (many)
                ask_many_pools(g->node, r);
        /* At least a core for each node. */
        r->cpus = g->feature == FEATURE_DEVICES_ONLY
                          ? 0
                          : threads * (unsigned) (g->node->inventory->n_nodes - 1) + 1 + below(4);
        r->memory = r->cpus > 0 ? (1 + below(8)) * (GIB / 2) : 0;
        r->page_size = below(8) || r->cpus == 0 ? 0 : HUGEPAGE;
        r->cells = below(4) || r->cpus == 0 ? 0 : 1 + below(MIN(3U, r->cpus));
        r->cells = MIN(r->cells, (unsigned) (r->memory / HUGEPAGE));
        r->numa = (NumaPolicy) below(_NUMA_POLICY_MAX);
        r->cells = r->numa == NUMA_POLICY_SINGLE ? MIN(r->cells, 1U) : r->cells;
        r->proximity = below(3) ? PROXIMITY_ANY : (Proximity) below(_PROXIMITY_MAX);
        for (size_t i = 0; i < r->n_pools; i++)
                for (size_t j = 0; j <= i; j++)
                        if (below(many ? 40 : 6) == 0)
                                assert_int_equal(request_add_limit(r, r->pools[i].pool, r->pools[j].pool,
                                                                   (Proximity) below(_PROXIMITY_MAX)),
                                                 0);
}

/* Writes a pool with its Match= lines and sometimes further settings. */
static void write_pool(FILE *f, const char *name, const char *matches) {
        static const char *const policies[] = { "preferred", "legacy", "socket", "required", "single" };

        (void) fprintf(f, "[Pool %s]\n%s\n", name, matches);
        if (below(3) == 0)
                (void) fprintf(f, "NumaPolicy=%s\n", policies[below(ELEMENTSOF(policies))]);
        if (below(2))
                (void) fprintf(f, "VfPlacement=%s\n", below(3) ? "pack" : "spread");
}

static void write_many_pools(FILE *f) {
        static const char *const kinds[][2] = { { "gpu", "class=03 id=10de" },
                                                { "nic", "class=02 type=device id=15b3" },
                                                { "vf", "class=02 type=vf id=15b3" },
                                                { "disk", "class=0108 id=10de" } };

        for (unsigned i = 0; i < ELEMENTSOF(kinds); i++)
                for (unsigned id = 0; id < MODELS; id++) {
                        char name[16], match[64];

                        (void) snprintf(name, sizeof(name), "%s%u", kinds[i][0], id);
                        (void) snprintf(match, sizeof(match), "Match=%s:%04x", kinds[i][1], id);
                        write_pool(f, name, match);
                }
}

static char *make_config(Feature feature) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        if (feature == FEATURE_MANY_POOLS)
                write_many_pools(f);
        else
                write_pool(f, "gpu", "Match=class=03");
        if (feature == FEATURE_MIXED_POOL)
                write_pool(f, "mixed", "Match=class=02 type=vf\nMatch=class=02 type=device");
        else if (feature != FEATURE_MANY_POOLS) {
                write_pool(f, "nic", "Match=class=02 type=device");
                if (feature == FEATURE_TWO_VF_POOLS)
                        write_pool(f, "odd", "Match=class=02 type=vf address=*.[1357]");
                write_pool(f, "vf", "Match=class=02 type=vf");
                write_pool(f, "disk", "Match=class=0108");
        }
        assert_int_equal(fclose(f), 0);
        return text;
}

/* A NUMA node with a GPU and a PF with VFs, both below one switch. */
static void add_chiplet(TestNode *t, unsigned id, unsigned vfs) {
        unsigned bus = 0x10 * id;
        int numa = (int) id, group = (int) bus;
        char port[32], up[64], path[128], pf[16];
        NumaNode *node = node_numa(t, numa, id * 4, 4, 2, 4 * GIB);

        node_hugepages(node, HUGEPAGE, 2, 2);
        node->package = id < CHIPLETS / 2 ? 0 : 1;
        for (unsigned i = 0; i < id; i++)
                node->distance[i] = t->inventory->nodes[i].distance[id] =
                        t->inventory->nodes[i].package == node->package ? 12 : 32;
        (void) snprintf(port, sizeof(port), "pci0000:%02x/0000:%02x:01.0", bus, bus);
        (void) snprintf(up, sizeof(up), "%s/0000:%02x:00.0", port, bus + 1);
        (void) snprintf(pf, sizeof(pf), "0000:%02x:00.0", bus + 4);
        node_bridge(t, port, numa, ++group);
        node_bridge(t, up, numa, ++group);
        for (unsigned slot = 0; slot < 2; slot++) {
                (void) snprintf(path, sizeof(path), "%s/0000:%02x:%02x.0", up, bus + 2, slot);
                node_bridge(t, path, numa, ++group);
        }
        (void) snprintf(path, sizeof(path), "%s/0000:%02x:00.0/0000:%02x:00.0", up, bus + 2, bus + 3);
        node_gpu(t, path, numa, ++group);
        for (unsigned i = 0; i <= vfs; i++) {
                (void) snprintf(path, sizeof(path), "%s/0000:%02x:01.0/0000:%02x:00.%u", up, bus + 2, bus + 4, i);
                if (i > 0)
                        node_vf(t, path, pf, numa, ++group);
                else
                        node_nic(t, path, numa, ++group)->total_vfs = 8;
        }
}

#define CHIPLETS_CONFIG "[Pool gpu]\nMatch=class=03\n[Pool vf]\nMatch=class=02 type=vf\n"

/* Needs few of the nodes. Many of the devices there are allocated. */
static TestNode *make_chiplets(Request *r) {
        Generator g = { .node = node_new(), .feature = FEATURE_CHIPLETS };

        for (unsigned i = 0; i < CHIPLETS; i++)
                add_chiplet(g.node, i, below(3));
        node_ready(g.node, CHIPLETS_CONFIG);
        for (unsigned i = 20 + below(40); i > 0; i--)
                occupy(g.node, i);
        make_request(&g, "gpu vf", 2, r);
        r->cpus = 1 + below(8);
        r->cells = MIN(r->cells, r->cpus);
        for (size_t i = 0; i < r->n_pools; i++)
                r->pools[i].count = MIN(r->pools[i].count, 2U);
        return g.node;
}

/* Names some free cores of which no thread is allocated. */
static void name_cpus(const TestNode *t, Request *r) {
        for (size_t i = 0; i < t->inventory->n_nodes; i++) {
                CpuSet cpus;

                ledger_cpus_free(t->ledger, t->inventory, t->config, &t->inventory->nodes[i], &cpus);
                for (size_t j = 0; j < t->inventory->n_cpus; j++) {
                        const Cpu *cpu = &t->inventory->cpus[j];
                        bool is_first = cpu->core == cpu->id;

                        if (cpuset_has(&cpus, cpu->id) &&
                            (is_first ? below(4) > 0 : cpuset_has(&r->cpus_from, cpu->core)))
                                cpuset_add(&r->cpus_from, cpu->id);
                }
        }
}

static void name_some(const TestNode *t, Request *r) {
        unsigned named[REQUEST_POOLS_MAX] = { 0 };
        size_t pool;

        for (size_t i = 0; i < t->inventory->n_devices; i++) {
                const PciDevice *dev = &t->inventory->devices[i];
                const Pool *of = policy_pool(t->policy, dev);

                if (of && request_find_pool(r, of->name, &pool) && named[pool] < r->pools[pool].count &&
                    below(3) == 0) {
                        assert_int_equal(request_add_device(r, of->name, dev->address), 0);
                        named[pool]++;
                }
        }
        for (size_t i = 0; i < t->inventory->n_nodes; i++)
                if (below(4) == 0)
                        assert_int_equal(request_add_host_node(r, t->inventory->nodes[i].id), 0);
        if (r->n_host_nodes > 0)
                r->cells = 0;
        if (r->cpus > 0 && below(3) == 0)
                name_cpus(t, r);
}

/* A switch with a GPU and a NIC. Some switches have two of each; the second ones belong to the next number. */
static void add_fabric_switch(TestNode *t, unsigned id, unsigned each, int numa) {
        unsigned bus = 0x10 * id;
        int group = (int) bus;
        char port[32], up[64], path[128];

        (void) snprintf(port, sizeof(port), "pci0000:%02x/0000:%02x:01.0", bus, bus);
        (void) snprintf(up, sizeof(up), "%s/0000:%02x:00.0", port, bus + 1);
        node_bridge(t, port, numa, ++group);
        node_bridge(t, up, numa, ++group);
        for (unsigned slot = 0; slot < 2 * each; slot++) {
                (void) snprintf(path, sizeof(path), "%s/0000:%02x:%02x.0", up, bus + 2, slot);
                node_bridge(t, path, numa, ++group);
                (void) snprintf(path, sizeof(path), "%s/0000:%02x:%02x.0/0000:%02x:00.0", up, bus + 2, slot,
                                bus + 3 + slot);
                if (slot < each)
                        node_gpu(t, path, numa, ++group)->device = below(2);
                else
                        node_nic(t, path, numa, ++group);
        }
}

/* Module ids in random order. Sometimes a GPU has none, or the GPUs are in two pools. */
static char *make_fabric_config(const TestNode *t, unsigned *ret_pools) {
        static const char *const machines[] = { "hgx-h100", "hgx-h100", "hgx-b200", "hgx-a100" };
        unsigned ids[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, n = 0;
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        (void) fprintf(f, "[Fabric]\nPartitions=%s\n", machines[below(ELEMENTSOF(machines))]);
        for (unsigned i = 8; i > 1; i--) {
                unsigned j = below(i), id = ids[j];

                ids[j] = ids[i - 1];
                ids[i - 1] = id;
        }
        for (size_t i = 0; i < t->inventory->n_devices; i++)
                if (pci_device_is_gpu(&t->inventory->devices[i]) && ++n && below(20))
                        (void) fprintf(f, "Module=%s=%u\n", PCI_ADDRESS_STR(t->inventory->devices[i].address),
                                       ids[n - 1]);
        *ret_pools = below(4) ? 1 : 2;
        write_pool(f, "gpu",
                   *ret_pools == 1 ? "Match=class=03\nFabric=yes" : "Match=class=03 id=10de:0000\nFabric=yes");
        if (*ret_pools == 2)
                write_pool(f, "odd", "Match=class=03\nFabric=yes");
        write_pool(f, "nic", "Match=class=02");
        assert_int_equal(fclose(f), 0);
        return text;
}

static TestNode *make_fabric(Request *r) {
        static const unsigned sizes[] = { 1, 2, 2, 2, 4, 4, 4, 8, 3 };
        Generator g = { .node = node_new(), .feature = FEATURE_FABRIC };
        unsigned n_nodes = 1 + below(3), each = 1 + below(2), pools, gpus, nics;
        static const int ids[] = { 0, 1, 4 };
        _cleanup_free_ char *config = NULL;

        add_numa(&g, n_nodes, 1 + below(2));
        for (unsigned i = 0; i < 8 / each; i++)
                add_fabric_switch(g.node, i, each, below(20) ? ids[i * n_nodes / (8 / each)] : -1);
        assert_int_equal(inventory_finish(g.node->inventory), 0);
        config = make_fabric_config(g.node, &pools);
        node_ready(g.node, config);
        for (unsigned i = below(12); i > 0; i--)
                occupy(g.node, i);
        make_request(&g, "gpu", 1, r);
        gpus = sizes[below(ELEMENTSOF(sizes))];
        r->no_fabric = gpus <= 2 && below(6) == 0;
        r->pools[0].count = pools == 2 && gpus > 1 ? 1 + below(gpus - 1) : gpus;
        if (r->pools[0].count < gpus)
                assert_int_equal(request_add_pool(r, "odd", gpus - r->pools[0].count), 0);
        nics = below(MIN(gpus, 4U) + 1);
        if (nics > 0)
                assert_int_equal(request_add_pool(r, "nic", nics), 0);
        if (below(8) == 0)
                name_some(g.node, r);
        return g.node;
}

static TestNode *make_case(Feature feature, Request *r) {
        bool is_named = feature == FEATURE_NAMED;
        Generator g = { .node = node_new(), .feature = is_named ? (Feature) below(FEATURE_NAMED) : feature, .bus = 1 };
        unsigned n_nodes = 1 + below(3), threads = 1 + below(2);
        const char *names = choose_pools(&g);
        _cleanup_free_ char *config = NULL;
        static const int ids[] = { 0, 1, 4, -1 };

        add_numa(&g, n_nodes, threads);
        for (unsigned h = 0, hosts = 1 + below(3); h < hosts; h++) {
                char host[16];
                unsigned which = below(n_nodes + 1);
                int numa = which == n_nodes ? -1 : ids[which];

                g.bus = 0x40 * h + 1;
                (void) snprintf(host, sizeof(host), "pci0000:%02x", 0x40 * h);
                for (unsigned p = 0, ports = 1 + below(3); p < ports; p++)
                        add_root_port(&g, host, 0x40 * h, p + 1, numa);
        }
        for (size_t i = 0; g.feature == FEATURE_MANY_POOLS && i < g.node->inventory->n_devices; i++)
                g.node->inventory->devices[i].device = (uint16_t) below(MODELS);
        config = make_config(g.feature);
        node_ready(g.node, config);
        for (unsigned i = below(4); i > 0; i--)
                occupy(g.node, i);
        make_request(&g, names, threads, r);
        if (is_named)
                name_some(g.node, r);
        return g.node;
}

/* Names nodes with memory, sometimes some of them, mostly ones without CPUs. */
static void name_memory(const TestNode *t, Request *r) {
        for (size_t i = 0; i < t->inventory->n_nodes; i++) {
                const NumaNode *node = &t->inventory->nodes[i];

                if (node->memory > 0 && !inventory_memory_owner(t->inventory, node) &&
                    below(cpuset_is_empty(&node->cpus) ? 2 : 6) == 0)
                        cpuset_add(&r->memory_from, (unsigned) node->id);
        }
}

/* Six nodes, of which some have no CPUs, no memory, or a core that lost a thread. */
static TestNode *make_uneven(Feature feature, Request *r) {
        static const int ids[] = { 0, 1, 4, 5, 8, 9 };
        Generator g = { .node = node_new(), .feature = FEATURE_SHARED_GROUPS, .bus = 1 };
        Inventory *inv = g.node->inventory;
        unsigned threads = 1 + below(2);
        const char *kinds = choose_pools(&g), *names = below(4) ? kinds : "";
        _cleanup_free_ char *config = make_config(g.feature);

        for (unsigned i = 0; i < ELEMENTSOF(ids); i++) {
                bool cpus = feature == FEATURE_UNEVEN || below(5) < 3, memory = feature == FEATURE_UNEVEN || below(3);
                NumaNode *node = node_numa(g.node, ids[i], i * 8, cpus ? below(9) / threads * threads : 0, threads,
                                           memory ? below(6) * GIB : 0);
                unsigned pages = (unsigned) (node->memory / HUGEPAGE / 2);

                node_hugepages(node, HUGEPAGE, pages, below(3) ? pages : below(pages + 1));
                if (threads > 1 && !cpuset_is_empty(&node->cpus) && below(6) == 0)
                        cpuset_remove(&node->cpus, inv->cpus[--inv->n_cpus].id);
                node->package = node->package >= 0 ? (int) (i / 2) : -1;
                for (unsigned j = 0; j < i; j++)
                        node->distance[j] = inv->nodes[j].distance[i] = 12 + below(3) * 10;
                if (feature == FEATURE_FAR && i > 0 && below(6) == 0)
                        node->distance[below(i)] = 0;
        }
        for (unsigned h = 0; h < 3; h++) {
                int numa = feature == FEATURE_FAR && below(8) == 0 ? -1 : ids[below(ELEMENTSOF(ids))];
                char host[16];

                (void) snprintf(host, sizeof(host), "pci0000:%02x", 0x40 * h);
                g.bus = 0x40 * h + 1;
                add_root_port(&g, host, 0x40 * h, 1, numa);
                add_root_port(&g, host, 0x40 * h, 2, numa);
        }
        node_ready(g.node, config);
        for (unsigned i = below(4); i > 0; i--)
                occupy(g.node, i);
        make_request(&g, names, threads, r);
        for (size_t i = 0; i < r->n_pools; i++)
                r->pools[i].count = MAX(1U, MIN(r->pools[i].count, node_available(g.node, r->pools[i].pool)));
        r->cpus = 1 + below(below(2) ? 8 : 20);
        r->page_size = below(2) ? HUGEPAGE : 0;
        r->memory = (1 + below(below(2) ? 4 : 10)) * HUGEPAGE;
        r->numa = below(2) ? NUMA_POLICY_PREFERRED : r->numa;
        r->cells = below(2) ? 0 : 1 + below(4);
        r->numa = r->cells > 1 && r->numa == NUMA_POLICY_SINGLE ? NUMA_POLICY_REQUIRED : r->numa;
        r->cells = MIN(r->cells, MIN(r->cpus, (unsigned) (r->memory / HUGEPAGE)));
        if (below(3) == 0)
                r->regions[r->n_regions++] =
                        (Region) { .name = "mpi", .size = HUGEPAGE << below(2), .page_size = below(2) ? HUGEPAGE : 0 };
        if (feature == FEATURE_FAR && below(3) == 0)
                name_memory(g.node, r);
        if (feature == FEATURE_FAR && below(4) == 0 && r->n_pools > 0 && r->n_regions == 0) {
                r->cpus = r->cells = 0;
                r->memory = r->page_size = 0;
                r->memory_from = (CpuSet) { 0 };
        }
        for (size_t i = 0; below(4) == 0 && i < inv->n_nodes; i++)
                if (r->cells == 0 && r->numa != NUMA_POLICY_SINGLE && r->n_host_nodes < 3 && below(2))
                        assert_int_equal(request_add_host_node(r, inv->nodes[i].id), 0);
        return g.node;
}

/* --- the oracle --- */

/* The guest's shares on the nodes of the set, in their order. */
typedef struct Shares {
        unsigned cpus[CHIPLETS];
        uint64_t memory[CHIPLETS];
        int memory_nodes[CHIPLETS];
        int region; /* node of the shared memory */
} Shares;

typedef struct Choice {
        bool found;
        Score score;
        uint32_t devices[CANDIDATES_MAX];
        size_t n;
        unsigned nodes; /* bit i: inventory->nodes[i] */
        Shares shares;
        int partition;
} Choice;

typedef struct Oracle {
        TestNode *node;
        const Request *request;
        uint32_t candidates[CANDIDATES_MAX]; /* ascending */
        size_t pool[CANDIDATES_MAX];         /* its pool in the request */
        size_t n_candidates;
        Choice own;          /* best of the present set of nodes */
        Choice best, second; /* best of all sets */
} Oracle;

static bool is_free(const TestNode *t, const PciDevice *dev) {
        return policy_verdict(t->policy, dev) == VERDICT_NONE &&
               ledger_check_device(t->ledger, &t->status, t->inventory, dev, NULL, NULL) == VERDICT_NONE;
}

static const PciDevice *device_at(const Oracle *o, uint32_t index) {
        return &o->node->inventory->devices[index];
}

/* Returns the card of a device: of a VF, its PF; of a function, the first function of its slot. */
static const PciDevice *card_of(const Oracle *o, const PciDevice *dev) {
        const PciDevice *pf = dev->type == PCI_TYPE_VF ? inventory_find(o->node->inventory, dev->physfn) : NULL;

        return pf ?: dev;
}

/* Returns the length of the path "HOST/BRIDGE/.../FUNCTION" that two devices at this distance share. */
static size_t path_needed(const char *path, Distance d) {
        const char *end = strchr(path, '/'), *parts[8];
        unsigned n = 0;

        for (const char *at = end; at && n < ELEMENTSOF(parts); at = strchr(at + 1, '/'))
                parts[n++] = at;
        if (d == DISTANCE_PHB)
                return (size_t) (parts[0] - path);
        if (n == 1) /* on the root bus: the slot, without the function */
                return strlen(path) - 1;
        /* PXB: below the root port. PIX: below the nearest bridge; above a port of a switch, that is the switch
         * itself. */
        return (size_t) ((d == DISTANCE_PXB ? parts[1] : n > 3 ? parts[n - 2] : parts[n - 1]) - path);
}

static Distance find_distance(const Oracle *o, uint32_t a, uint32_t b) {
        const PciDevice *x = card_of(o, device_at(o, a)), *y = card_of(o, device_at(o, b));

        for (Distance d = DISTANCE_PIX; d < DISTANCE_NODE; d++) {
                size_t n = path_needed(x->path, d);

                if (n == path_needed(y->path, d) && memcmp(x->path, y->path, n) == 0)
                        return d;
        }
        return x->numa_node >= 0 && x->numa_node == y->numa_node ? DISTANCE_NODE : DISTANCE_SYS;
}

/* A cache for the running oracle, by device index: 1 + distance; 0: not computed yet. */
static uint8_t distances[DISTANCES][DISTANCES];

static Distance distance(const Oracle *o, uint32_t a, uint32_t b) {
        if (a >= DISTANCES || b >= DISTANCES)
                return find_distance(o, a, b);
        if (distances[a][b] == 0)
                distances[a][b] = (uint8_t) (1 + find_distance(o, a, b));
        return (Distance) (distances[a][b] - 1);
}

/* Tries every assignment of partners to the larger side, device by device. */
typedef struct Pairing {
        const Oracle *oracle;
        uint32_t larger[CANDIDATES_MAX], smaller[CANDIDATES_MAX];
        size_t n_larger, n_smaller;
        unsigned used[CANDIDATES_MAX];
        unsigned worst, total; /* the best so far */
} Pairing;

static void pair_all(Pairing *p, size_t at, unsigned worst, unsigned total) {
        if (at == p->n_larger) {
                if (worst < p->worst || (worst == p->worst && total < p->total)) {
                        p->worst = worst;
                        p->total = total;
                }
                return;
        }
        for (size_t i = 0; i < p->n_smaller; i++) {
                unsigned d = distance(p->oracle, p->larger[at], p->smaller[i]);

                if (p->used[i] >= (p->n_larger + p->n_smaller - 1) / p->n_smaller)
                        continue;
                p->used[i]++;
                pair_all(p, at + 1, MAX(worst, d), total + d);
                p->used[i]--;
        }
}

/* Pairs the next device of the larger side. */
static void pair_larger(Pairing *p) {
        Pairing swapped = *p;

        if (p->n_larger < p->n_smaller) {
                memcpy(swapped.larger, p->smaller, sizeof(p->smaller));
                memcpy(swapped.smaller, p->larger, sizeof(p->larger));
                swapped.n_larger = p->n_smaller;
                swapped.n_smaller = p->n_larger;
                *p = swapped;
        }
        pair_all(p, 0, 0, 0);
}

static void score_pairs(const Oracle *o, const Choice *c, Score *ret) {
        Pairing p = { .oracle = o, .worst = UINT32_MAX };

        for (size_t i = 0; i < c->n; i++)
                if (pci_device_is_gpu(device_at(o, c->devices[i])))
                        p.larger[p.n_larger++] = c->devices[i];
                else if (pci_device_is_nic(device_at(o, c->devices[i])))
                        p.smaller[p.n_smaller++] = c->devices[i];
        for (size_t i = 0; i < p.n_larger; i++)
                for (size_t j = 0; j < i; j++)
                        ret->gpu_distance += distance(o, p.larger[i], p.larger[j]);
        if (p.n_larger == 0 || p.n_smaller == 0)
                return;
        pair_larger(&p);
        ret->worst_distance = p.worst;
        ret->total_distance = p.total;
}

/* Returns whether a chosen device is in the pool of the request. */
static bool is_of(const Oracle *o, uint32_t device, const char *pool) {
        return streq(policy_pool(o->node->policy, device_at(o, device))->name, pool);
}

static const Distance limits[] = { DISTANCE_PXB, DISTANCE_PHB, DISTANCE_NODE, DISTANCE_SYS };

/* Returns whether some pairing of the two pools, or all pairs within one pool, satisfy the limit. */
static bool limit_holds(const Oracle *o, const Choice *c, const RequestLimit *l) {
        Pairing p = { .oracle = o, .worst = UINT32_MAX };
        unsigned farthest = 0;

        for (size_t i = 0; i < c->n; i++)
                if (is_of(o, c->devices[i], l->pools[0]))
                        p.larger[p.n_larger++] = c->devices[i];
                else if (is_of(o, c->devices[i], l->pools[1]))
                        p.smaller[p.n_smaller++] = c->devices[i];
        for (size_t i = 0; i < p.n_larger; i++)
                for (size_t j = 0; j < i; j++)
                        farthest = MAX(farthest, (unsigned) distance(o, p.larger[i], p.larger[j]));
        if (streq(l->pools[0], l->pools[1]))
                return farthest <= (unsigned) limits[l->limit];
        pair_larger(&p);
        return p.worst <= (unsigned) limits[l->limit];
}

static bool is_chosen(const Choice *c, size_t index) {
        for (size_t i = 0; i < c->n; i++)
                if (c->devices[i] == index)
                        return true;
        return false;
}

/* Returns whether the held members of a group are counted once; include/plan/plan.h has the condition. */
static bool group_adds_up(const Oracle *o, int group) {
        const Inventory *inv = o->node->inventory;
        bool one_switch = true, one_pf = true, whole_pfs = true;

        for (uint32_t i = 0; i < inv->n_devices; i++)
                for (uint32_t j = 0; j < inv->n_devices; j++) {
                        const PciDevice *a = &inv->devices[i], *b = &inv->devices[j];
                        bool kin = i == j || (a->type == PCI_TYPE_VF && b->type == PCI_TYPE_VF &&
                                              pci_address_equal(a->physfn, b->physfn));

                        if (a->iommu_group != group || !is_free(o->node, a) || !is_free(o->node, b))
                                continue;
                        whole_pfs = whole_pfs && (!kin || b->iommu_group == group);
                        if (b->iommu_group != group)
                                continue;
                        one_pf = one_pf && kin;
                        one_switch = one_switch && distance(o, i, j) == DISTANCE_PIX;
                }
        return one_switch && (one_pf || whole_pfs);
}

/* Counts devices that are not chosen but share a group with a chosen one. */
static unsigned count_held(const Oracle *o, const Choice *c) {
        unsigned held = 0;

        for (size_t i = 0; i < o->node->inventory->n_devices; i++) {
                const PciDevice *dev = &o->node->inventory->devices[i];
                unsigned draggers = 0;

                for (size_t j = 0; j < c->n; j++)
                        draggers += c->devices[j] != i && device_at(o, c->devices[j])->iommu_group == dev->iommu_group;
                if (draggers == 0 || !is_free(o->node, dev))
                        continue;
                if (group_adds_up(o, dev->iommu_group))
                        held += !is_chosen(c, i);
                else
                        held += draggers;
        }
        return held;
}

/* Counts free physical devices left in places of this level from which a physical device was chosen. */
static unsigned count_left(const Oracle *o, const Choice *c, Distance level) {
        unsigned left = 0;

        for (size_t i = 0; i < o->node->inventory->n_devices; i++) {
                const PciDevice *dev = &o->node->inventory->devices[i];
                bool taken_from = false;

                if (dev->type == PCI_TYPE_VF || is_chosen(c, i) || !is_free(o->node, dev))
                        continue;
                for (size_t j = 0; j < c->n; j++)
                        taken_from = taken_from || (device_at(o, c->devices[j])->type != PCI_TYPE_VF &&
                                                    distance(o, c->devices[j], (uint32_t) i) <= level);
                left += taken_from;
        }
        return left;
}

static bool is_sibling(const PciDevice *a, const PciDevice *b) {
        return a->type == PCI_TYPE_VF && b->type == PCI_TYPE_VF && pci_address_equal(a->physfn, b->physfn);
}

static bool packs(const Oracle *o, const PciDevice *dev) {
        return policy_pool(o->node->policy, dev)->placement == VF_PLACEMENT_PACK;
}

static unsigned count_vf_load(const Oracle *o, const Choice *c) {
        unsigned load = 0;

        for (size_t i = 0; i < c->n; i++) {
                const PciDevice *dev = device_at(o, c->devices[i]);

                if (dev->type != PCI_TYPE_VF)
                        continue;
                load += packs(o, dev) ? 0 : ledger_pf_use(o->node->ledger, dev->physfn);
                for (size_t j = 0; j < i; j++)
                        load += is_sibling(dev, device_at(o, c->devices[j])) &&
                                !(packs(o, dev) && packs(o, device_at(o, c->devices[j])));
        }
        return load;
}

/* Counts free VFs, not chosen, on PFs from which a packing pool has one. */
static unsigned count_vf_left(const Oracle *o, const Choice *c) {
        unsigned left = 0;

        for (size_t i = 0; i < o->node->inventory->n_devices; i++) {
                const PciDevice *dev = &o->node->inventory->devices[i];
                bool taken_from = false;

                for (size_t j = 0; j < c->n; j++)
                        taken_from = taken_from || (packs(o, device_at(o, c->devices[j])) &&
                                                    is_sibling(dev, device_at(o, c->devices[j])));
                left += taken_from && !is_chosen(c, i) && is_free(o->node, dev);
        }
        return left;
}

static bool has_cpus(const NumaNode *node) {
        return !cpuset_is_empty(&node->cpus);
}

/* Finds the nearest other node with CPUs, with both CPUs and memory, or with memory that the request names; -1:
 * none. */
typedef enum Wanted {
        WANTED_CPUS,
        WANTED_BOTH,
        WANTED_NAMED
} Wanted;
static int nearest(const Oracle *o, const NumaNode *node, Wanted wanted) {
        const Inventory *inv = o->node->inventory;
        unsigned best = 0, count = 0;
        int found = -1, last = -1;

        for (size_t i = 0; i < inv->n_nodes; i++) {
                const NumaNode *other = &inv->nodes[i];

                if (wanted == WANTED_NAMED ? !cpuset_has(&o->request->memory_from, (unsigned) other->id)
                                           : !has_cpus(other) || (wanted == WANTED_BOTH && other->memory == 0))
                        continue;
                count++;
                last = other->id;
                if (node && node->distance[i] > 0 && (found < 0 || node->distance[i] < best)) {
                        best = node->distance[i];
                        found = other->id;
                }
        }
        return count == 1 ? last : found;
}

static bool no_cpus_anywhere(const Inventory *inv) {
        for (size_t i = 0; i < inv->n_nodes; i++)
                if (has_cpus(&inv->nodes[i]))
                        return false;
        return true;
}

/* Returns the node whose CPUs are used for guests of the device; -1: unknown. */
static int node_of(const Oracle *o, const PciDevice *dev) {
        const Inventory *inv = o->node->inventory;
        const NumaNode *node = inventory_find_node(inv, dev->numa_node);

        if (inv->n_nodes == 1)
                return inv->nodes[0].id;
        return (node && has_cpus(node)) || no_cpus_anywhere(inv) ? dev->numa_node : nearest(o, node, WANTED_CPUS);
}

/* Returns whether the device is on a node, or on a socket, of the set. A single node counts for all devices. */
static void judge(const Oracle *o, unsigned nodes, const PciDevice *dev, bool *ret_local, bool *ret_socket) {
        const Inventory *inv = o->node->inventory;
        int node = node_of(o, dev), package = -1;

        *ret_local = *ret_socket = false;
        for (size_t i = 0; i < inv->n_nodes; i++)
                if (inv->nodes[i].id == node)
                        package = inv->nodes[i].package;
        for (size_t i = 0; i < inv->n_nodes; i++)
                if (nodes >> i & 1) {
                        *ret_local = *ret_local || inv->nodes[i].id == node;
                        *ret_socket = *ret_socket || (package >= 0 && inv->nodes[i].package == package);
                }
}

static bool policy_allows(const Oracle *o, NumaPolicy policy, unsigned nodes, const PciDevice *dev) {
        bool local, socket;

        judge(o, nodes, dev, &local, &socket);
        switch (policy) {
        case NUMA_POLICY_SINGLE:
                return local && (nodes & (nodes - 1)) == 0;
        case NUMA_POLICY_REQUIRED:
                return local;
        case NUMA_POLICY_SOCKET:
                return local || socket;
        case NUMA_POLICY_LEGACY:
                return local || node_of(o, dev) < 0;
        default:
                return true;
        }
}

static void score_nodes(const Oracle *o, Choice *c) {
        const Inventory *inv = o->node->inventory;
        bool has_gpus = false;

        for (size_t i = 0; i < inv->n_nodes; i++) {
                if (!(c->nodes >> i & 1))
                        continue;
                c->score.numa_nodes++;
                for (size_t j = 0; o->request->n_pools == 0 && j < inv->n_devices; j++)
                        c->score.spoiled +=
                                node_of(o, &inv->devices[j]) == inv->nodes[i].id && is_free(o->node, &inv->devices[j]);
                for (size_t j = 0; j < i; j++)
                        if (c->nodes >> j & 1)
                                c->score.node_distance += inv->nodes[i].distance[j] ?: 255; /* unknown */
        }
        for (size_t i = 0; i < c->n; i++)
                has_gpus = has_gpus || pci_device_is_gpu(device_at(o, c->devices[i]));
        for (size_t i = 0; i < c->n; i++) {
                const PciDevice *dev = device_at(o, c->devices[i]);
                bool local, socket;

                judge(o, c->nodes, dev, &local, &socket);
                if (has_gpus && pci_device_is_nic(dev))
                        c->score.nic_off_node += !local;
                else {
                        c->score.off_node += !local;
                        c->score.remote += !local && node_of(o, dev) >= 0;
                }
        }
}

/* In the order of the members in the header. */
static int compare_scores(const Score *a, const Score *b) {
        const unsigned *x = (const unsigned *) a, *y = (const unsigned *) b;

        for (size_t i = 0; i < sizeof(Score) / sizeof(unsigned); i++)
                if (x[i] != y[i])
                        return x[i] < y[i] ? -1 : 1;
        return 0;
}

static bool is_better(const Choice *a, const Choice *b) {
        int c = b->found ? compare_scores(&a->score, &b->score) : -1;

        for (size_t i = 0; c == 0 && i < a->n; i++)
                c = a->devices[i] < b->devices[i] ? -1 : a->devices[i] > b->devices[i];
        for (unsigned bit = 1; c == 0 && bit < 1U << CHIPLETS; bit <<= 1)
                c = (int) (b->nodes & bit) - (int) (a->nodes & bit);
        return c < 0;
}

static bool has_named(const Oracle *o, const Choice *c) {
        for (size_t i = 0; i < o->request->n_at; i++) {
                bool found = false;

                for (size_t j = 0; j < c->n; j++)
                        found = found ||
                                pci_address_equal(device_at(o, c->devices[j])->address, o->request->at[i].address);
                if (!found)
                        return false;
        }
        return true;
}

/* Returns the module ids of GPUs with NVLink, the chosen ones or the free ones. */
static uint64_t modules_of(const Oracle *o, const Choice *c, unsigned *ret_n) {
        uint64_t modules = 0;

        *ret_n = 0;
        for (uint32_t i = 0; i < o->node->inventory->n_devices; i++) {
                const PciDevice *dev = device_at(o, i);
                const Pool *pool = policy_pool(o->node->policy, dev);

                if (!pool || !pool->fabric || !(c ? is_chosen(c, i) : is_free(o->node, dev)))
                        continue;
                ++*ret_n;
                for (size_t j = 0; j < o->node->config->n_modules; j++)
                        if (pci_address_equal(o->node->config->modules[j].address, dev->address))
                                modules |= UINT64_C(1) << o->node->config->modules[j].module;
        }
        return modules;
}

/* Returns whether the chosen GPUs are a partition. Counts the GPUs of larger partitions that this breaks. */
static bool judge_fabric(const Oracle *o, Choice *c) {
        const FabricTable *table = &o->node->config->fabric;
        unsigned n, n_free;
        uint64_t modules = modules_of(o, c, &n), whole = modules_of(o, NULL, &n_free);

        c->partition = -1;
        if (n == 0 || o->request->no_fabric)
                return true;
        for (size_t i = 0; i < table->n; i++) {
                uint64_t other = table->partitions[i].modules;

                if (other == modules && __builtin_popcountll(other) == (int) n)
                        c->partition = (int) table->partitions[i].id;
                if (__builtin_popcountll(other) > (int) n && (other & modules) && (other & whole) == other)
                        c->score.broken += (unsigned) __builtin_popcountll(other);
        }
        return c->partition >= 0;
}

static void consider(Oracle *o, Choice *c) {
        c->score = (Score) { 0 };
        if (!has_named(o, c) || !judge_fabric(o, c))
                return;
        for (size_t i = 0; i < c->n; i++) {
                const PciDevice *dev = device_at(o, c->devices[i]);

                if (!policy_allows(o, o->request->numa, c->nodes, dev) ||
                    !policy_allows(o, policy_pool(o->node->policy, dev)->numa, c->nodes, dev))
                        return;
        }
        score_nodes(o, c);
        score_pairs(o, c, &c->score);
        if (c->score.worst_distance > (unsigned) limits[o->request->proximity])
                return;
        for (size_t i = 0; i < o->request->n_limits; i++)
                if (!limit_holds(o, c, &o->request->limits[i]))
                        return;
        c->score.held = count_held(o, c);
        c->score.left_over = count_left(o, c, DISTANCE_PIX) + count_left(o, c, DISTANCE_NODE);
        c->score.vf_load = count_vf_load(o, c);
        c->score.vf_left = count_vf_left(o, c);
        c->found = true;
        if (is_better(c, &o->own))
                o->own = *c;
}

/* Tries every subset of the candidates with the wanted counts. */
static void choose(Oracle *o, Choice *c, size_t at, unsigned counts[]) {
        size_t missing = 0;

        for (size_t p = 0; p < o->request->n_pools; p++)
                missing += o->request->pools[p].count - counts[p];
        if (missing == 0) {
                consider(o, c);
                return;
        }
        if (at == o->n_candidates || missing > o->n_candidates - at)
                return;
        if (counts[o->pool[at]] < o->request->pools[o->pool[at]].count) {
                counts[o->pool[at]]++;
                c->devices[c->n++] = o->candidates[at];
                choose(o, c, at + 1, counts);
                c->n--;
                counts[o->pool[at]]--;
        }
        choose(o, c, at + 1, counts);
}

/* Counts CPUs in cores of the node of which no thread is allocated. */
static unsigned free_threads(const TestNode *t, const CpuSet *from, int node) {
        unsigned n = 0;

        for (size_t i = 0; i < t->inventory->n_cpus; i++) {
                bool taken = t->inventory->cpus[i].node != node ||
                             (!cpuset_is_empty(from) && !cpuset_has(from, t->inventory->cpus[i].id));

                for (size_t j = 0; !taken && j < t->inventory->n_cpus; j++)
                        taken = t->inventory->cpus[j].core == t->inventory->cpus[i].core &&
                                cpuset_has(&t->ledger->cpus, t->inventory->cpus[j].id);
                n += !taken;
        }
        return n;
}

/* Returns the free memory in pages of the request's size: unused hugepages, or ordinary memory. */
static uint64_t free_memory(const TestNode *t, const NumaNode *node, uint64_t page_size) {
        uint64_t taken = ledger_memory(t->ledger, node->id, page_size), all = node->memory;

        if (page_size > 0)
                all = MIN(node->pages[0].free, node->pages[0].total) * page_size;
        else
                all -= node->pages[0].total * HUGEPAGE;
        return all - MIN(all, taken);
}

typedef struct NodeSet {
        const NumaNode *nodes[CHIPLETS];
        unsigned n;
} NodeSet;

/* Tries every way to give some nodes a core more than others, and to leave threads of a core unused. */
static bool share_cpus(const Oracle *o, const NodeSet *set, Shares *best) {
        const Inventory *inv = o->node->inventory;
        unsigned wanted = o->request->cpus, threads = 1, cores, available[CHIPLETS];
        bool found = false;

        for (unsigned i = 0; i < set->n; i++)
                available[i] = free_threads(o->node, &o->request->cpus_from, set->nodes[i]->id);
        for (size_t i = 0; i < inv->n_cpus; i++)
                threads = MAX(threads, inv->cpus[i].id - inv->cpus[i].core + 1);
        while (threads > 1 && (wanted + threads - 1) / threads < set->n)
                threads--;
        cores = (wanted + threads - 1) / threads;
        for (unsigned more = 0; more < 1U << set->n; more++)
                for (unsigned odd = 0; odd < set->n; odd++) {
                        unsigned cpus[CHIPLETS] = { 0 };
                        bool fits = true, is_greater = !found;

                        if ((unsigned) __builtin_popcount(more) != cores % set->n || (more > 0 && !(more >> odd & 1)))
                                continue;
                        for (unsigned i = 0; i < set->n; i++) {
                                cpus[i] = (cores / set->n + (more >> i & 1)) * threads -
                                          (i == odd ? cores * threads - wanted : 0);
                                fits = fits && cpus[i] > 0 && cpus[i] <= available[i];
                        }
                        for (unsigned i = set->n; found && i-- > 0;)
                                is_greater = cpus[i] > best->cpus[i] || (cpus[i] == best->cpus[i] && is_greater);
                        if (fits && is_greater) {
                                memcpy(best->cpus, cpus, sizeof(cpus));
                                found = true;
                        }
                }
        return found;
}

/* Returns the node that gives memory to guests on this node, which may be another one. */
static const NumaNode *memory_node(const Oracle *o, const NumaNode *node) {
        bool is_named = cpuset_has(&o->request->memory_from, (unsigned) node->id);
        int id = cpuset_is_empty(&o->request->memory_from)
                         ? (node->memory > 0 ? node->id : nearest(o, node, WANTED_BOTH))
                 : is_named ? node->id
                            : nearest(o, node, WANTED_NAMED);

        return id < 0 ? node : inventory_find_node(o->node->inventory, id);
}

/* Returns whether every node has the memory that the set takes from it: shares of the guest, and the region. */
static bool memory_fits(const Oracle *o, const NodeSet *set, const uint64_t *memory, const Region *region,
                        unsigned region_at) {
        uint64_t page_size = o->request->page_size;

        for (unsigned i = 0; i < set->n; i++) {
                const NumaNode *from = memory_node(o, set->nodes[i]);
                uint64_t sum = 0, shared = region && memory_node(o, set->nodes[region_at]) == from ? region->size : 0;

                for (unsigned k = 0; k < set->n; k++)
                        sum += memory_node(o, set->nodes[k]) == from ? memory[k] : 0;
                if (memory[i] == 0 || sum > free_memory(o->node, from, page_size) ||
                    (shared > 0 && shared > free_memory(o->node, from, region->page_size)) ||
                    (shared > 0 && region->page_size == page_size &&
                     sum + shared > free_memory(o->node, from, page_size)))
                        return false;
        }
        return true;
}

/* Tries every way to give some nodes a page more than others, and each node for the shared memory. */
static bool share_memory(const Oracle *o, const NodeSet *set, Shares *best) {
        const Request *r = o->request;
        uint64_t page = r->page_size ? r->page_size : 4096, pages = r->memory / page;
        const Region *region = r->n_regions > 0 ? &r->regions[0] : NULL;
        bool found = false;

        for (unsigned at = 0; !found && at < (region ? set->n : 1); at++)
                for (unsigned more = 0; more < 1U << set->n; more++) {
                        uint64_t memory[CHIPLETS] = { 0 };
                        bool is_greater = !found;

                        if ((unsigned) __builtin_popcount(more) != pages % set->n)
                                continue;
                        for (unsigned i = 0; i < set->n; i++)
                                memory[i] = (pages / set->n + (more >> i & 1)) * page;
                        for (unsigned i = set->n; found && i-- > 0;)
                                is_greater =
                                        memory[i] > best->memory[i] || (memory[i] == best->memory[i] && is_greater);
                        if (is_greater && memory_fits(o, set, memory, region, at)) {
                                memcpy(best->memory, memory, sizeof(memory));
                                for (unsigned i = 0; i < set->n; i++)
                                        best->memory_nodes[i] = memory_node(o, set->nodes[i])->id;
                                best->region = best->memory_nodes[at];
                                found = true;
                        }
                }
        return found;
}

static bool nodes_have_room(const Oracle *o, unsigned nodes, Shares *ret) {
        const Inventory *inv = o->node->inventory;
        NodeSet set = { 0 };

        for (size_t i = 0; i < inv->n_nodes; i++)
                if (nodes >> i & 1) {
                        if (!has_cpus(&inv->nodes[i]) && !no_cpus_anywhere(inv) && inv->n_nodes > 1)
                                return false;
                        set.nodes[set.n++] = &inv->nodes[i];
                }
        if ((o->request->cells > 0 && set.n != o->request->cells) ||
            (o->request->numa == NUMA_POLICY_SINGLE && set.n > 1))
                return false;
        return o->request->cpus == 0 || (share_cpus(o, &set, ret) && share_memory(o, &set, ret));
}

static void enter_own(Oracle *o) {
        if (o->own.found && is_better(&o->own, &o->best)) {
                o->second = o->best;
                o->best = o->own;
        } else if (o->own.found && is_better(&o->own, &o->second))
                o->second = o->own;
        o->own = (Choice) { 0 };
}

static void oracle_run(Oracle *o) {
        const Inventory *inv = o->node->inventory;
        Choice c = { 0 };
        unsigned counts[REQUEST_POOLS_MAX] = { 0 }, named = 0;

        memset(distances, 0, sizeof(distances));
        for (size_t i = 0; i < inv->n_devices; i++)
                for (size_t p = 0; p < o->request->n_pools; p++)
                        if (is_free(o->node, &inv->devices[i]) &&
                            policy_pool(o->node->policy, &inv->devices[i]) ==
                                    config_find_pool(o->node->config, o->request->pools[p].pool)) {
                                o->candidates[o->n_candidates] = (uint32_t) i;
                                o->pool[o->n_candidates++] = p;
                        }
        for (size_t i = 0; i < o->request->n_host_nodes; i++)
                named |= 1U << inventory_node_index(inv, o->request->host_nodes[i]);
        /* Fewer nodes are better than any choice of devices. */
        for (int k = 1; k <= (int) inv->n_nodes && !o->best.found; k++)
                for (c.nodes = 1; c.nodes < 1U << inv->n_nodes; c.nodes++)
                        if (__builtin_popcount(c.nodes) == k && (named == 0 || named == c.nodes) &&
                            nodes_have_room(o, c.nodes, &c.shares)) {
                                choose(o, &c, 0, counts);
                                enter_own(o);
                        }
}

/* --- comparison --- */

static void print_score(FILE *f, const char *who, const Score *s) {
        (void) fprintf(
                f,
                "  %s: nodes %u off %u remote %u worst %u total %u NICs off %u gpus %u slit %u spoiled %u held %u left "
                "%u load %u VFs left %u broken %u:",
                who, s->numa_nodes, s->off_node, s->remote, s->worst_distance, s->total_distance, s->nic_off_node,
                s->gpu_distance, s->node_distance, s->spoiled, s->held, s->left_over, s->vf_load, s->vf_left,
                s->broken);
}

static void print_case(FILE *f, const Oracle *o, const Plan *plan, const Refusal *why) {
        const TestNode *t = o->node;

        for (size_t i = 0; i < t->inventory->n_nodes; i++)
                (void) fprintf(f, "  node %d socket %d of %u CPUs, memory of node %d: %u free CPUs, %s free\n",
                               t->inventory->nodes[i].id, t->inventory->nodes[i].package,
                               cpuset_count(&t->inventory->nodes[i].cpus), memory_node(o, &t->inventory->nodes[i])->id,
                               free_threads(t, &o->request->cpus_from, t->inventory->nodes[i].id),
                               FORMAT_SIZE(free_memory(t, &t->inventory->nodes[i], o->request->page_size)));
        for (size_t i = 0; i < t->inventory->n_devices; i++) {
                const PciDevice *dev = &t->inventory->devices[i];
                const Pool *pool = policy_pool(t->policy, dev);

                if (!dev->is_bridge)
                        (void) fprintf(f, "  %-4s %s node %d group %d module %u %s %s%s\n", pool ? pool->name : "-",
                                       dev->path, dev->numa_node, dev->iommu_group, config_module(t->config, dev),
                                       pool ? numa_policy_to_string(pool->numa) : "",
                                       pool ? vf_placement_to_string(pool->placement) : "",
                                       is_free(t, dev) ? "" : " (not free)");
        }
        (void) fprintf(f, "  wanted:");
        for (size_t i = 0; i < o->request->n_pools; i++)
                (void) fprintf(f, " %s=%u", o->request->pools[i].pool, o->request->pools[i].count);
        for (size_t i = 0; i < o->request->n_limits; i++) {
                _cleanup_free_ char *text = request_limit_format(&o->request->limits[i]);

                (void) fprintf(f, " %s", text);
        }
        for (size_t i = 0; i < o->request->n_at; i++)
                (void) fprintf(f, " at %s=%s", o->request->at[i].pool, PCI_ADDRESS_STR(o->request->at[i].address));
        for (size_t i = 0; i < o->request->n_host_nodes; i++)
                (void) fprintf(f, " host node %d", o->request->host_nodes[i]);
        if (o->request->n_regions > 0)
                (void) fprintf(f, " shared %s in pages of %s", FORMAT_SIZE(o->request->regions[0].size),
                               FORMAT_SIZE(o->request->regions[0].page_size));
        (void) fprintf(f, " cpus %u memory %s cells %u %s %s\n", o->request->cpus, FORMAT_SIZE(o->request->memory),
                       o->request->cells, numa_policy_to_string(o->request->numa),
                       proximity_to_string(o->request->proximity));
        if (o->best.found) {
                print_score(f, "search ", &o->best.score);
                for (size_t i = 0; i < o->best.n; i++)
                        (void) fprintf(f, " %s", PCI_ADDRESS_STR(device_at(o, o->best.devices[i])->address));
                (void) fprintf(f, " nodes %#x, CPUs and memory", o->best.nodes);
                for (int i = 0; o->request->cpus > 0 && i < __builtin_popcount(o->best.nodes); i++)
                        (void) fprintf(f, " %u %s", o->best.shares.cpus[i], FORMAT_SIZE(o->best.shares.memory[i]));
                (void) fprintf(f, "\n");
                if (o->second.found) {
                        print_score(f, "second ", &o->second.score);
                        (void) fprintf(f, " nodes %#x\n", o->second.nodes);
                }
        } else
                (void) fprintf(f, "  search : nothing\n");
        if (plan) {
                _cleanup_free_ char *devices = allocation_text(plan->allocation);

                print_score(f, "planner", &plan->score);
                (void) fprintf(f, " %s\n", devices);
        } else
                (void) fprintf(f, "  planner: %s\n", why->message);
}

/* Returns whether the pairs of the plan match its score. */
static bool pairs_are_right(const Oracle *o, const Plan *plan) {
        unsigned worst = 0, total = 0;

        for (size_t i = 0; i < plan->n_pairs; i++) {
                const PciDevice *gpu = inventory_find(o->node->inventory, plan->pairs[i].gpu);
                const PciDevice *nic = inventory_find(o->node->inventory, plan->pairs[i].nic);
                Distance d = distance(o, (uint32_t) inventory_device_index(o->node->inventory, gpu),
                                      (uint32_t) inventory_device_index(o->node->inventory, nic));

                if (d != plan->pairs[i].distance)
                        return false;
                worst = MAX(worst, (unsigned) d);
                total += d;
        }
        return worst == plan->score.worst_distance && total == plan->score.total_distance;
}

static bool same_choice(const Oracle *o, const Plan *plan) {
        const Allocation *a = plan->allocation;
        unsigned nodes = 0;
        size_t assigned = 0;

        for (size_t i = 0; i < a->n_devices; i++) {
                if (a->devices[i].role != DEVICE_ROLE_ASSIGNED)
                        continue;
                assigned++;
                if (!is_chosen(&o->best,
                               inventory_device_index(o->node->inventory,
                                                      inventory_find(o->node->inventory, a->devices[i].address))))
                        return false;
        }
        for (size_t i = 0; i < a->n_cells; i++) {
                nodes |= 1U << inventory_node_index(o->node->inventory, a->cells[i].node);
                if (cpuset_count(&a->cells[i].vcpus) != o->best.shares.cpus[i] ||
                    a->cells[i].memory != o->best.shares.memory[i] ||
                    cell_memory_node(&a->cells[i]) != o->best.shares.memory_nodes[i])
                        return false;
        }
        if (a->n_regions > 0 && a->regions[0].node != o->best.shares.region)
                return false;
        return assigned == o->best.n && a->partition == o->best.partition &&
               (a->n_cells == 0 || nodes == o->best.nodes);
}

/* Returns whether the runner-up is right: the best choice of another set of nodes. With partitions there may be several
 * choices of one set. */
static bool same_runner_up(const Oracle *o, const Plan *plan) {
        unsigned nodes = 0;

        if (o->best.partition >= 0)
                return true;
        if (!plan->has_runner_up || !o->second.found)
                return plan->has_runner_up == o->second.found;
        for (size_t i = 0; i < plan->n_runner_up_nodes; i++)
                nodes |= 1U << inventory_node_index(o->node->inventory, plan->runner_up_nodes[i]);
        for (size_t i = 0; i < plan->n_runner_up_devices && i < o->second.n; i++)
                if (!pci_address_equal(plan->runner_up_devices[i], device_at(o, o->second.devices[i])->address))
                        return false;
        return plan->n_runner_up_devices == o->second.n && nodes == o->second.nodes &&
               compare_scores(&plan->runner_up, &o->second.score) == 0;
}

/* Returns whether the plan can be claimed. */
static bool can_be_claimed(TestNode *t, Plan *plan) {
        bool good;

        assert_int_equal(string_copy(&plan->allocation->name, "vm"), 0);
        good = ledger_claim(t->ledger, t->inventory, t->config, plan->allocation, NULL) == VERDICT_NONE;
        if (good) {
                good = ledger_verify(t->ledger, t->inventory, t->config);
                (void) ledger_remove(t->ledger, "vm");
        }
        return good;
}

/* Returns whether planner_is_feasible(), which refusals call many times, agrees with the search. */
static bool same_feasibility(const Oracle *o) {
        uint64_t work = PLAN_WORK_MAX;
        size_t n_nodes = 0;
        Planner p;
        int r;

        if (planner_check_exact(&o->node->context, o->request, NULL) != VERDICT_NONE)
                return !o->best.found;
        assert_int_equal(planner_init(&p, &o->node->context, o->request, &work), 0);
        r = planner_is_feasible(&p, &n_nodes);
        planner_done(&p);
        return r == o->best.found && n_nodes == o->best.score.numa_nodes;
}

/* Returns the size of a case on which the two differ, with its description in *ret_text, or 0. */
static size_t compare_case(Feature feature, char **ret_text, unsigned *feasible) {
        _cleanup_request_ Request r = { 0 };
        _cleanup_node_ TestNode *t = feature == FEATURE_CHIPLETS                           ? make_chiplets(&r)
                                     : feature == FEATURE_FABRIC                           ? make_fabric(&r)
                                     : feature == FEATURE_UNEVEN || feature == FEATURE_FAR ? make_uneven(feature, &r)
                                                                                           : make_case(feature, &r);
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal why = { 0 };
        Oracle o = { .node = t, .request = &r };
        size_t size, wanted = 0;
        FILE *f;

        oracle_run(&o);
        (void) plan_make(&t->context, &r, &plan, &why);
        *feasible += o.best.found;
        if (!plan && !o.best.found && same_feasibility(&o))
                return 0;
        if (plan && o.best.found && same_feasibility(&o) && compare_scores(&plan->score, &o.best.score) == 0 &&
            same_choice(&o, plan) && same_runner_up(&o, plan) && pairs_are_right(&o, plan) && can_be_claimed(t, plan))
                return 0;
        f = open_memstream(ret_text, &size);
        assert_non_null(f);
        print_case(f, &o, plan, &why);
        (void) fclose(f);
        for (size_t i = 0; i < r.n_pools; i++)
                wanted += r.pools[i].count;
        return 1 + t->inventory->n_devices + t->inventory->n_nodes + wanted + (r.numa != NUMA_POLICY_PREFERRED) +
               (r.proximity != PROXIMITY_ANY) + t->ledger->n_allocations +
               (plan && o.best.found && same_choice(&o, plan) ? 1000
                                                              : 0); /* another set shows more than another score */
}

/* print_message() ends at 1023 characters. */
static void print_lines(char *text) {
        char *at = NULL;

        for (char *line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at))
                print_message("#%s\n", line);
}

static void compare_many(Feature feature) {
        const char *cases = getenv("PLAN_EXACT_CASES"), *from = getenv("PLAN_EXACT_SEED");
        uint64_t first = from ? strtoull(from, NULL, 10) : 1, smallest_seed = 0;
        unsigned n = cases                    ? (unsigned) strtoul(cases, NULL, 10)
                     : feature == FEATURE_FAR ? FAR_CASES
                                              : CASES,
                 differ = 0, feasible = 0;
        size_t smallest = SIZE_MAX;
        _cleanup_free_ char *shown = NULL;

        for (unsigned i = 0; i < n; i++) {
                _cleanup_free_ char *text = NULL;
                size_t size;

                seed = (first + i) * 1000003 + (uint64_t) feature;
                size = compare_case(feature, &text, &feasible);
                if (size == 0)
                        continue;
                differ++;
                if (size < smallest) {
                        free(shown);
                        shown = TAKE_PTR(text);
                        smallest = size;
                        smallest_seed = first + i;
                }
        }
        if (n >= 100)
                assert_in_range(feasible, n / 20, n); /* with fewer feasible cases the test proves little */
        if (differ > 0) {
                print_message("# %u of %u differ; the smallest has PLAN_EXACT_SEED=%llu PLAN_EXACT_CASES=1:\n", differ,
                              n, (unsigned long long) smallest_seed);
                print_lines(shown);
                free(TAKE_PTR(shown)); /* freed here, because a failing test does not return */
                fail();
        }
}

TEST(test_exact_plain) {
        compare_many(FEATURE_PLAIN);
}

TEST(test_exact_shared_groups) {
        compare_many(FEATURE_SHARED_GROUPS);
}

TEST(test_exact_vfs_and_devices_in_one_pool) {
        compare_many(FEATURE_MIXED_POOL);
}

TEST(test_exact_vfs_on_a_root_bus) {
        compare_many(FEATURE_SCATTERED_VFS);
}

TEST(test_exact_beside_other_pools) {
        compare_many(FEATURE_OTHER_POOLS);
}

TEST(test_exact_devices_only) {
        compare_many(FEATURE_DEVICES_ONLY);
}

TEST(test_exact_two_pools_of_vfs) {
        compare_many(FEATURE_TWO_VF_POOLS);
}

TEST(test_exact_many_pools) {
        compare_many(FEATURE_MANY_POOLS);
}

TEST(test_exact_named) {
        compare_many(FEATURE_NAMED);
}

TEST(test_exact_chiplets) {
        compare_many(FEATURE_CHIPLETS);
}

TEST(test_exact_fabric) {
        compare_many(FEATURE_FABRIC);
}

TEST(test_exact_uneven) {
        compare_many(FEATURE_UNEVEN);
}

TEST(test_exact_nodes_without_cpus_or_memory) {
        compare_many(FEATURE_FAR);
}

/* One GPU is on the guest's node. The NIC of the other GPU is below that GPU's switch, not beside the first GPU. */
static void pair_on_chiplets(NumaPolicy numa) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_request_ Request r = { 0 };
        Oracle o = { .node = t, .request = &r };

        for (unsigned i = 0; i < CHIPLETS; i++)
                add_chiplet(t, i, 2);
        node_ready(t, CHIPLETS_CONFIG);
        ask_request(ASK(.pools = "gpu=2 vf=2", .cpus = 4, .memory = GIB, .numa = numa), &r);
        oracle_run(&o);
        assert_int_equal(plan_make(&t->context, &r, &plan, NULL), VERDICT_NONE);
        assert_int_equal(compare_scores(&plan->score, &o.best.score), 0);
        assert_true(same_choice(&o, plan));
        assert_int_equal(plan->score.numa_nodes, 1);
        assert_int_equal(plan->score.off_node, 1);
        assert_int_equal(plan->score.nic_off_node, 1);
        assert_int_equal(plan->n_pairs, 2);
        for (size_t i = 0; i < plan->n_pairs; i++)
                assert_int_equal(plan->pairs[i].distance, DISTANCE_PIX);
}

TEST(test_socket_keeps_the_nic_with_its_gpu) {
        pair_on_chiplets(NUMA_POLICY_SOCKET);
}

TEST(test_preferred_keeps_the_nic_with_its_gpu) {
        pair_on_chiplets(NUMA_POLICY_PREFERRED);
}
