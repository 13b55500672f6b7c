/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects what is free for a request: devices, CPUs and memory by NUMA node. */

#include <assert.h>
#include <errno.h>

#include "model/cores.h"
#include "plan-internal.h"
#include "plan/device-state.h"

Verdict planner_check_device(const HostView *view, const PciDevice *dev, Refusal *ret) {
        Verdict v = ledger_check_device(view->ledger, view->status, view->inventory, dev, NULL, ret);

        if (v == VERDICT_NONE)
                v = policy_check(view->policy, dev, ret);
        if (v == VERDICT_NONE)
                v = device_check_vgpu(view, dev, ret);
        return v == VERDICT_NONE ? device_check_mode(view, dev, ret) : v;
}

static bool is_free(const HostView *view, const PciDevice *dev) {
        return policy_verdict(view->policy, dev) == VERDICT_NONE &&
               planner_check_device(view, dev, NULL) == VERDICT_NONE && !device_is_in_use(view, dev);
}

static void add_candidate(Planner *p, size_t index, const PciDevice *dev, size_t node) {
        SearchPool *pool = &p->pools[index];

        if (!pool->has_vfs && !pool->has_devices) {
                pool->is_gpu = pci_device_is_accelerator(dev);
                pool->is_nic = pci_device_is_nic(dev);
        }
        if (dev->type == PCI_TYPE_VF)
                pool->has_vfs = true;
        else
                pool->has_devices = true;
        p->candidates[index][node]++;
}

/* Marks the NIC pools if the request has GPUs: the distance to a GPU then matters more than the NUMA node. */
static void find_gpu_nics(Planner *p) {
        bool has_gpus = false;

        for (size_t i = 0; i < p->request->n_pools; i++)
                has_gpus = has_gpus || p->pools[i].is_gpu;
        for (size_t i = 0; i < p->request->n_pools; i++)
                p->pools[i].is_gpu_nic = has_gpus && p->pools[i].is_nic;
}

/* Finds, in one pass over the devices, the free ones of each pool and of each node. */
static void find_candidates(Planner *p) {
        const Inventory *inv = p->context->inventory;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];
                size_t node = search_node(inv, dev);
                const Pool *pool;

                p->is_free[i] = is_free(p->context, dev);
                if (!p->is_free[i])
                        continue;
                if (node < inv->n_nodes)
                        p->spoiled[node]++;
                pool = policy_pool(p->context->policy, dev);
                for (size_t j = 0; j < p->request->n_pools; j++)
                        if (p->pools[j].pool == pool)
                                add_candidate(p, j, dev, node);
        }
}

static void find_required(Planner *p) {
        for (size_t i = 0; i < p->request->n_at; i++) {
                const PciDevice *dev = inventory_find(p->context->inventory, p->request->at[i].address);

                if (dev)
                        p->is_required[inventory_device_index(p->context->inventory, dev)] = true;
        }
}

const FabricPartition *planner_partition(const HostView *view, const Allocation *a) {
        return a->partition < 0 ? NULL : fabric_table_find(&view->config->fabric, (unsigned) a->partition);
}

/* Finds the GPU of each module, among the devices of pools with Fabric=yes; and the modules in partitions of
 * allocations. */
static void find_modules(Planner *p) {
        const HostView *view = p->context;

        for (uint32_t i = 0; view->config->fabric.n > 0 && i < view->inventory->n_devices; i++) {
                const PciDevice *dev = &view->inventory->devices[i];
                unsigned module = policy_has_fabric(view->policy, dev) ? config_module(view->config, dev) : 0;

                assert(module < ELEMENTSOF(p->modules));
                if (module > 0)
                        p->modules[module] = 1 + i;
        }
        for (size_t i = 0; view->config->fabric.n > 0 && i < view->ledger->n_allocations; i++) {
                const FabricPartition *held = planner_partition(view, view->ledger->allocations[i]);

                p->held |= held ? held->modules : 0;
        }
}

/* Finds the free CPUs of the node, as far as the request permits them (cpus_from). */
static void find_cpus(Planner *p, size_t node) {
        const HostView *view = p->context;
        const CpuSet *from = &p->request->cpus_from;
        CpuSet *free_cpus = &p->free_cpus[node];

        ledger_cpus_free(view->ledger, view->inventory, view->config, &view->inventory->nodes[node], free_cpus);
        for (int c = cpuset_is_empty(from) ? -1 : cpuset_next(free_cpus, 0); c >= 0;
             c = cpuset_next(free_cpus, (unsigned) c + 1))
                if (!cpuset_has(from, (unsigned) c))
                        cpuset_remove(free_cpus, (unsigned) c);
        p->n_free_cpus[node] = cores_count(view->inventory, free_cpus);
}

static void find_memory(Planner *p, uint64_t page_size) {
        const HostView *view = p->context;

        for (size_t i = 0; i < view->inventory->n_nodes; i++)
                p->free_memory[i] = ledger_memory_free(view->ledger, view->inventory, view->config,
                                                       &view->inventory->nodes[i], page_size);
        p->page_size = page_size;
}

/* Finds the nodes on which a guest can be, and the node that gives memory to each. */
static void find_nodes(Planner *p) {
        const Inventory *inv = p->context->inventory;
        const CpuSet *from = cpuset_is_empty(&p->request->memory_from) ? NULL : &p->request->memory_from;

        for (size_t i = 0; i < inv->n_nodes; i++) {
                int id = inv->nodes[i].id, memory = inventory_node_index(inv, inventory_memory_node(inv, id, from));

                /* With `from`, memory < 0 means that the request names several memory nodes, and that it is unknown
                 * which is near this node. */
                if (inventory_cpu_node(inv, id) == id && (memory >= 0 || !from))
                        p->nodes[p->n_nodes++] = i;
                p->memory_node[i] = memory >= 0 ? (size_t) memory : i;
        }
}

bool planner_gives_memory(const Planner *p, size_t node) {
        for (size_t i = 0; i < p->n_nodes; i++)
                if (p->memory_node[p->nodes[i]] == node)
                        return true;
        return false;
}

int planner_init(Planner *p, const HostView *view, const Request *r, uint64_t *work) {
        const Inventory *inv = view->inventory;

        *p = (Planner) { .context = view, .request = r, .work = work, .threads = cores_threads(inv) };
        p->is_free = calloc(inv->n_devices + 1, sizeof(*p->is_free));
        p->free_cpus = calloc(inv->n_nodes + 1, sizeof(*p->free_cpus));
        p->is_required = calloc(inv->n_devices + 1, sizeof(*p->is_required));
        if (!p->is_free || !p->free_cpus || !p->is_required)
                return -ENOMEM;
        assert(r->n_pools <= ELEMENTSOF(p->pools) && r->n_limits <= ELEMENTSOF(p->limits));
        for (size_t i = 0; i < r->n_pools; i++) {
                p->pools[i] = (SearchPool) { .pool = config_find_pool(view->config, r->pools[i].pool),
                                             .wanted = r->pools[i].count };
                assert(p->pools[i].pool);
        }
        for (size_t i = 0; i < r->n_limits; i++)
                for (unsigned side = 0; side < 2; side++)
                        (void) request_find_pool(r, r->limits[i].pools[side], &p->limits[i][side]);
        for (size_t i = 0; i < inv->n_nodes; i++)
                find_cpus(p, i);
        find_nodes(p);
        find_memory(p, r->page_size);
        find_candidates(p);
        find_gpu_nics(p);
        find_required(p);
        find_modules(p);
        return search_new(view, p->pools, r->n_pools, p->is_free, p->is_required, &p->search);
}

void planner_ask(Planner *p, const Request *r) {
        assert(r->n_pools == p->request->n_pools);
        p->request = r;
        for (size_t i = 0; i < r->n_pools; i++)
                p->pools[i].wanted = r->pools[i].count;
        if (r->page_size != p->page_size)
                find_memory(p, r->page_size);
        search_want(p->search, p->pools, r->n_pools);
}

void planner_done(Planner *p) {
        free(p->is_free);
        free(p->is_required);
        free(p->free_cpus);
        p->search = search_free(p->search);
}

unsigned planner_count(const Planner *p, size_t pool) {
        unsigned n = 0;

        assert(pool < p->request->n_pools);
        for (size_t i = 0; i < SEARCH_NODES_MAX; i++)
                n += p->candidates[pool][i];
        return n;
}

Verdict planner_give_up(int r, Refusal *ret) {
        if (r == -E2BIG)
                return refuse(ret, VERDICT_LIMIT, NULL, "Ask for fewer devices from fewer pools at once.",
                              "The request combines too many devices of too many pools to be planned exactly.");
        return refuse_no_memory(ret);
}
