/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A node in a few lines, for tests of policy, ledger and planner. A failure ends the test. Include after unit.h. */

#include "ledger-verify.h"
#include "plan/plan.h"
#include "plan/proximity.h"
#include "util/strings.h"

#define GIB (1ULL << 30)

typedef struct TestNode {
        Inventory *inventory;
        Config *config;
        Policy *policy;
        Locality *locality;
        Ledger *ledger;
        DeviceStatusTable status;
        Mlx4 mlx4;
        HostView context;
} TestNode;

/* A request in one expression: ASK(.pools = "gpu=1 nic=2", .cpus = 4). Defaults: 1 GiB of memory per vCPU, any
 * proximity. */
typedef struct Ask {
        const char *pools;
        unsigned cpus;
        uint64_t memory, page_size;
        unsigned cells;
        NumaPolicy numa;
        const char *proximity;
        uint64_t shared, shared_pages; /* shared memory "mpi", and its page size */
} Ask;
#define ASK(...) (&(const Ask) { __VA_ARGS__ })

static inline PciAddress address_of(const char *text) {
        PciAddress a;

        assert_int_equal(pci_address_parse(text, &a), 0);
        return a;
}

static inline TestNode *node_new(void) {
        TestNode *t = calloc(1, sizeof(*t));

        assert_non_null(t);
        t->inventory = inventory_new();
        t->ledger = ledger_new();
        assert_true(t->inventory && t->ledger);
        return t;
}

static inline TestNode *node_free(TestNode *t) {
        t->ledger = ledger_free(t->ledger);
        device_status_table_done(&t->status);
        mlx4_done(&t->mlx4);
        policy_free(t->policy);
        locality_free(t->locality);
        config_free(t->config);
        inventory_free(t->inventory);
        free(t);
        return NULL;
}
DEFINE_CLEANUP(TestNode *, node_free)
#define _cleanup_node_ _cleanup_(cleanup_node_free)

/* Adds a NUMA node with n CPUs from first on, threads of them per core. */
static inline NumaNode *node_numa(TestNode *t, int id, unsigned first, unsigned n, unsigned threads, uint64_t memory) {
        Inventory *inv = t->inventory;
        NumaNode *node;

        assert_int_equal(ARRAY_RESERVE(inv->nodes, inv->n_nodes), 0);
        node = &inv->nodes[inv->n_nodes];
        *node = (NumaNode) { .id = id, .package = n > 0 ? id : -1, .memory = memory };
        for (size_t i = 0; i <= inv->n_nodes; i++)
                node->distance[i] = inv->nodes[i].distance[inv->n_nodes] = i == inv->n_nodes ? 10 : 20;
        inv->n_nodes++;
        for (unsigned i = 0; i < n; i++) {
                assert_int_equal(ARRAY_RESERVE(inv->cpus, inv->n_cpus), 0);
                inv->cpus[inv->n_cpus++] = (Cpu) { .id = first + i, .node = id, .core = first + i / threads * threads };
                cpuset_add(&node->cpus, first + i);
        }
        return node;
}

static inline void node_hugepages(NumaNode *node, uint64_t size, uint64_t total, uint64_t unused) {
        node->pages[node->n_pages++] = (PagePool) { .size = size, .total = total, .free = unused };
}

/* Adds a function at path below sys/devices. The next addition invalidates the pointer. */
static inline PciDevice *node_device(TestNode *t, const char *path, uint32_t class, int numa, int group) {
        PciDevice *dev = inventory_add_device(t->inventory, address_of(strrchr(path, '/') + 1));
        const char *driver = class >> 16 == 0x06 ? "pcieport" : class >> 16 == 0x02 ? "mlx5_core" : "nvidia";

        assert_non_null(dev);
        dev->class = class;
        dev->vendor = class >> 16 == 0x02 ? 0x15b3 : 0x10de;
        dev->is_bridge = class >> 16 == 0x06;
        dev->numa_node = numa;
        dev->iommu_group = group;
        dev->has_override = true;
        assert_int_equal(string_copy(&dev->path, path), 0);
        assert_int_equal(string_copy(&dev->driver, driver), 0);
        assert_int_equal(string_copy(&dev->reset_methods, dev->is_bridge ? NULL : "flr"), 0);
        return dev;
}

#define node_bridge(t, path, numa, group) node_device((t), (path), 0x060400, (numa), (group))
#define node_gpu(t, path, numa, group)    node_device((t), (path), 0x030200, (numa), (group))
#define node_nic(t, path, numa, group)    node_device((t), (path), 0x020000, (numa), (group))

/* Adds a VF of pf, which may be added before or after the VF. */
static inline PciDevice *node_vf(TestNode *t, const char *path, const char *pf, int numa, int group) {
        PciDevice *dev = node_nic(t, path, numa, group);

        dev->type = PCI_TYPE_VF;
        dev->physfn = address_of(pf);
        assert_int_equal(string_copy(&dev->driver, NULL), 0);
        return dev;
}

/* Completes the node. Without a setting, no memory is reserved for the host. */
static inline void node_ready(TestNode *t, const char *config) {
        _cleanup_free_ char *text = NULL;

        assert_int_equal(string_replace(&text, "[Daemon]\nReserveMemory=0\n%s", config), 0);
        assert_int_equal(inventory_finish(t->inventory), 0);
        for (size_t i = 0; t->inventory->n_nodes == 1 && i < t->inventory->n_devices; i++) /* as in a scan */
                if (t->inventory->devices[i].numa_node < 0)
                        t->inventory->devices[i].numa_node = t->inventory->nodes[0].id;
        assert_int_equal(config_parse("test.conf", text, strlen(text), &t->config), 0);
        assert_int_equal(t->config->n_problems, 0);
        assert_int_equal(policy_new(t->config, t->inventory, &t->policy), 0);
        assert_int_equal(mlx4_decide(t->policy, &t->mlx4), 0);
        assert_int_equal(locality_new(t->inventory, &t->locality), 0);
        t->context = (HostView) { t->inventory, t->locality, t->config, t->policy, t->ledger, &t->status, &t->mlx4 };
}

static inline const PciDevice *node_find(const TestNode *t, const char *address) {
        const PciDevice *dev = inventory_find(t->inventory, address_of(address));

        assert_non_null(dev);
        return dev;
}

static inline void ask_request(const Ask *ask, Request *r) {
        _cleanup_free_ char *pools = strdup(ask->pools ?: "");
        char *at = NULL;

        request_init(r);
        assert_non_null(pools);
        for (char *word = strtok_r(pools, " ", &at); word; word = strtok_r(NULL, " ", &at)) {
                char *count = strchr(word, '=');

                *count++ = '\0';
                assert_int_equal(request_add_pool(r, word, (unsigned) strtoul(count, NULL, 10)), 0);
        }
        r->cpus = ask->cpus;
        r->memory = ask->memory ?: ask->cpus * GIB;
        r->page_size = ask->page_size;
        r->cells = ask->cells;
        r->numa = ask->numa;
        if (ask->proximity)
                assert_int_equal(proximity_parse(ask->proximity, r, NULL), VERDICT_NONE);
        if (ask->shared > 0)
                assert_int_equal(request_add_region(r, "mpi", ask->shared, ask->shared_pages, NULL), VERDICT_NONE);
}

static inline Verdict node_plan(TestNode *t, const Ask *ask, Plan **ret, Refusal *ret_refusal) {
        _cleanup_request_ Request r = { 0 };

        ask_request(ask, &r);
        return plan_make(&t->context, &r, ret, ret_refusal);
}

/* Plans and claims, as the daemon does. */
static inline Verdict node_allocate(TestNode *t, const char *name, const Ask *ask, Refusal *ret_refusal) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Verdict v = node_plan(t, ask, &plan, ret_refusal);

        if (v != VERDICT_NONE)
                return v;
        assert_int_equal(string_copy(&plan->allocation->name, name), 0);
        v = ledger_claim(t->ledger, t->inventory, t->config, plan->allocation, ret_refusal);
        if (v == VERDICT_NONE)
                plan->allocation = NULL;
        assert_true(ledger_verify(t->ledger, t->inventory, t->config));
        return v;
}

static inline void node_release(TestNode *t, const char *name) {
        Allocation *a = ledger_remove(t->ledger, name);

        assert_non_null(a);
        allocation_free(a);
}

/* Returns the number of devices of the pool that are available now. */
static inline unsigned node_available(const TestNode *t, const char *pool) {
        unsigned n = 0;

        for (size_t i = 0; i < t->inventory->n_devices; i++) {
                const PciDevice *dev = &t->inventory->devices[i];
                const Pool *p = policy_pool(t->policy, dev);

                n += p && streq(p->name, pool) && policy_verdict(t->policy, dev) == VERDICT_NONE &&
                     ledger_check_device(t->ledger, &t->status, t->inventory, dev, NULL, NULL) == VERDICT_NONE;
        }
        return n;
}

/* Formats "gpu0=0000:01:00.0 gpu0-1=0000:01:00.1 held=...". */
static inline char *allocation_text(const Allocation *a) {
        char *text = NULL;

        assert_int_equal(string_replace(&text, "%s", ""), 0);
        for (size_t i = 0; i < a->n_devices; i++) {
                _cleanup_free_ char *before = text;

                text = NULL;
                assert_int_equal(string_replace(&text, "%s%s%s=%s", before, i ? " " : "", a->devices[i].slot ?: "held",
                                                PCI_ADDRESS_STR(a->devices[i].address)),
                                 0);
        }
        return text;
}

static inline void assert_devices(const Allocation *a, const char *expected) {
        _cleanup_free_ char *text = allocation_text(a);

        assert_string_equal(text, expected);
}

static inline void assert_cpus(const CpuSet *set, const char *expected) {
        _cleanup_free_ char *text = cpuset_format(set);

        assert_string_equal(text, expected);
}

/* The sentence must have the words. */
static inline void assert_says(const Refusal *r, const char *words) {
        assert_non_null(r->message);
        if (!strstr(r->message, words))
                fail_msg("\"%s\" does not say \"%s\"", r->message, words);
}
