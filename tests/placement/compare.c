/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * compare ROOT CONFIG REQUESTS GPU-POOL NIC-POOL: guests with as many NICs as GPUs come and go on the machine below
 * ROOT, the same ones for each chooser, each on a machine of its own. Prints for each chooser, in percent of the
 * requests: how many it placed; how many with a NIC for every GPU below one switch (and, where CONFIG has partitions,
 * with the GPUs of one NVLink partition), and for how many of these the planner had such a choice at that moment; and
 * how many it refused that the planner could have placed. Exits with 1 when the planner is not the best in each.
 */

#include <fcntl.h>
#include <stdio.h>

#include "random.h"

/* --- choosers of other programs: return an allocation that can be claimed, or NULL --- */

typedef struct NodeSet {
        size_t nodes[ALLOCATION_CELLS_MAX]; /* ascending */
        size_t n;
} NodeSet;

static bool has_node(const Machine *m, const NodeSet *set, int node) {
        for (size_t i = 0; i < set->n; i++)
                if (m->inventory->nodes[set->nodes[i]].id == node)
                        return true;
        return false;
}

static bool next_set(NodeSet *set, size_t n) {
        for (size_t i = set->n; i-- > 0;)
                if (set->nodes[i] < n - set->n + i) {
                        set->nodes[i]++;
                        while (++i < set->n)
                                set->nodes[i] = set->nodes[i - 1] + 1;
                        return true;
                }
        return false;
}

/* Takes whole cores from the lowest CPU on, in even shares on each node. False: too few CPUs, or too little memory. */
static bool take_room(const Machine *m, const Request *r, const NodeSet *set, Allocation *a) {
        uint64_t pages = r->memory / 4096;

        for (size_t i = 0; i < set->n; i++) {
                const NumaNode *node = &m->inventory->nodes[set->nodes[i]];
                uint64_t memory = (pages / set->n + (i < pages % set->n)) * 4096;
                unsigned wanted = r->cpus / (unsigned) set->n;
                CpuSet free_cpus;

                ledger_cpus_free(m->ledger, m->inventory, m->config, node, &free_cpus);
                if (memory > ledger_memory_free(m->ledger, m->inventory, m->config, node, 0))
                        return false;
                for (size_t c = 0; c < m->inventory->n_cpus && wanted > 0; c++) {
                        unsigned core = m->inventory->cpus[c].core;

                        if (m->inventory->cpus[c].id != core || !cpuset_has(&free_cpus, core))
                                continue;
                        for (size_t s = 0; s < m->inventory->n_cpus; s++)
                                if (m->inventory->cpus[s].core == core) {
                                        cpuset_add(&a->cpus, m->inventory->cpus[s].id);
                                        wanted -= wanted > 0;
                                }
                }
                if (wanted > 0)
                        return false;
                a->cells[a->n_cells++] = (Cell) { .node = node->id, .memory = memory };
        }
        return true;
}

/* Returns whether the NUMA policy allows the device. Socket counts as node: these machines have one node per socket. */
static bool policy_allows(const Machine *m, const Request *r, const NodeSet *set, const PciDevice *dev) {
        return r->numa == NUMA_POLICY_PREFERRED || has_node(m, set, dev->numa_node) ||
               (r->numa == NUMA_POLICY_LEGACY && dev->numa_node < 0);
}

static bool take_devices(const Machine *m, const Request *r, const NodeSet *set, Allocation *a) {
        for (size_t p = 0; p < r->n_pools; p++) {
                unsigned wanted = r->pools[p].count;

                for (size_t i = 0; i < m->inventory->n_devices && wanted > 0; i++) {
                        const PciDevice *dev = &m->inventory->devices[i];
                        const Pool *pool = policy_pool(m->policy, dev);
                        AllocationDevice *d;

                        if (!pool || !streq(pool->name, r->pools[p].pool) || !policy_allows(m, r, set, dev) ||
                            policy_verdict(m->policy, dev) != VERDICT_NONE ||
                            ledger_check_device(m->ledger, NULL, m->inventory, dev, NULL, NULL) != VERDICT_NONE)
                                continue;
                        d = allocation_add_device(a, dev->address, DEVICE_ROLE_ASSIGNED);
                        if (!d || allocation_device_identify(d, m->inventory, dev) < 0)
                                return false;
                        wanted--;
                }
                if (wanted > 0)
                        return false;
        }
        return true;
}

/* Chooses the first set of k nodes with room. devices_too: and with the devices. */
static Allocation *choose(const Machine *m, const Request *r, size_t k, bool devices_too, bool *ret_room) {
        NodeSet set = { .n = k };

        for (size_t i = 0; i < k; i++)
                set.nodes[i] = i;
        *ret_room = false;
        if (k > m->inventory->n_nodes || r->cpus < k)
                return NULL;
        do {
                Allocation *a = allocation_new(NULL);

                if (a && take_room(m, r, &set, a)) {
                        *ret_room = true;
                        if (take_devices(m, r, &set, a))
                                return a;
                        if (!devices_too) {
                                allocation_free(a);
                                return NULL;
                        }
                }
                allocation_free(a);
        } while (next_set(&set, m->inventory->n_nodes));
        return NULL;
}

/*
 * Chooses the first NUMA nodes with CPUs and memory, then the first free devices by address that the NUMA policy allows
 * there: as with a list of free devices beside a scheduler of CPUs and memory.
 */
static Allocation *choose_first_fit(const Machine *m, const Request *r) {
        Allocation *a = NULL;
        bool room = false;

        for (size_t k = r->cells ?: 1; !room && k <= (r->cells ?: ALLOCATION_CELLS_MAX); k++)
                a = choose(m, r, k, false, &room);
        return a;
}

/*
 * Chooses the first NUMA nodes with CPUs, memory and enough devices of each pool, then the first free devices of these
 * nodes by address: Nova's NUMA topology filter, which knows nodes but not switches. As in Nova, a guest has the
 * requested number of cells, or one.
 */
static Allocation *choose_by_numa(const Machine *m, const Request *r) {
        bool room;

        return choose(m, r, r->cells ?: 1, true, &room);
}

static Allocation *choose_planner(const Machine *m, const Request *r) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        HostView c = machine_view(m);

        return plan_make(&c, r, &plan, NULL) == VERDICT_NONE ? TAKE_PTR(plan->allocation) : NULL;
}

static const struct {
        const char *name;
        Allocation *(*choose)(const Machine *m, const Request *r);
} choosers[] = {
        { "first fit", choose_first_fit },
        { "NUMA only, like Nova", choose_by_numa },
        { "passthroughd", choose_planner },
};

/* --- arrivals and departures --- */

typedef struct Count {
        unsigned asked, placed, close, could_be_close, refused_in_vain;
} Count;

static int make_request(uint64_t *seed, const char *const pools[2], Request *r) {
        static const unsigned counts[] = { 1, 1, 1, 2, 2, 4 };
        static const NumaPolicy policies[] = { NUMA_POLICY_LEGACY, NUMA_POLICY_REQUIRED, NUMA_POLICY_PREFERRED,
                                               NUMA_POLICY_SINGLE };
        unsigned n = counts[below(seed, ELEMENTSOF(counts))];

        request_init(r);
        r->cpus = n * (4 + 4 * below(seed, 6));
        r->memory = n * (16 + 16 * below(seed, 8)) * GIB;
        r->cells = below(seed, 3); /* 0: as few as possible */
        r->numa = policies[below(seed, ELEMENTSOF(policies))];
        r->cells = r->numa == NUMA_POLICY_SINGLE ? MIN(r->cells, 1U) : r->cells;
        return request_add_pool(r, pools[0], n) < 0 || request_add_pool(r, pools[1], n) < 0 ? -1 : 0;
}

/* With NVLink partitions, returns whether the guest's GPUs are one. */
static bool is_partition(const Machine *m, const Allocation *a) {
        uint64_t modules = 0;

        for (size_t i = 0; i < a->n_devices; i++) {
                unsigned module = config_module(m->config, inventory_find(m->inventory, a->devices[i].address));

                modules |= module > 0 ? fabric_bit(module) : 0;
        }
        for (size_t i = 0; i < m->config->fabric.n; i++)
                if (m->config->fabric.partitions[i].modules == modules)
                        return true;
        return m->config->fabric.n == 0;
}

/* Returns whether each GPU has a NIC below its switch (DISTANCE_PIX). Within a switch any NIC fits: count them. */
static bool is_close(const Machine *m, const Allocation *a) {
        int balance[REQUEST_DEVICES_MAX] = { 0 };
        uint32_t places[REQUEST_DEVICES_MAX];
        size_t n = 0;

        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->inventory, a->devices[i].address);
                uint32_t place = m->locality->places[inventory_device_index(m->inventory, dev)].level[DISTANCE_PIX];
                size_t at = 0;

                while (at < n && places[at] != place)
                        at++;
                if (at == n)
                        places[n++] = place;
                balance[at] += pci_device_is_gpu(dev) ? 1 : -1;
        }
        for (size_t i = 0; i < n; i++)
                if (balance[i] != 0)
                        return false;
        return is_partition(m, a);
}

/* Returns whether the planner could place the request. ret_close: as is_close(). */
static bool could_be(const Machine *m, const Request *r, bool *ret_close) {
        Allocation *a = choose_planner(m, r);
        bool found = a;

        *ret_close = a && is_close(m, a);
        allocation_free(a);
        return found;
}

static int arrive(Machine *m, const Request *r, size_t chooser, unsigned number, Count *count) {
        Allocation *a = choosers[chooser].choose(m, r);
        bool could_be_close, could = could_be(m, r, &could_be_close);

        count->asked++;
        count->could_be_close += could_be_close;
        if (!a) {
                count->refused_in_vain += could;
                return 0;
        }
        count->placed++;
        count->close += is_close(m, a);
        return enter(m, a, number) ? 0 : -1;
}

/* The same guests depart with all choosers, if they were placed. */
static void depart(Machine *m, unsigned number) {
        char name[32];
        Allocation *a;

        (void) snprintf(name, sizeof(name), "vm%u", number);
        a = ledger_remove(m->ledger, name);
        if (a)
                allocation_free(a);
}

static int run(Machine *m, size_t chooser, unsigned requests, const char *const pools[2], Count *count) {
        uint64_t seed = 7;
        unsigned first = 0;
        int r = 0;

        for (unsigned number = 0; r == 0 && number < requests; number++) {
                _cleanup_request_ Request request;

                r = make_request(&seed, pools, &request);
                if (r == 0)
                        r = arrive(m, &request, chooser, number, count);
                /* From none to a handful of guests at a time. */
                while (first < number && below(&seed, 8) < number - first)
                        depart(m, first++);
                if (below(&seed, 6) == 0 && number > first)
                        depart(m, first + below(&seed, number - first));
        }
        while (m->ledger->n_allocations > 0)
                leave(m, 0);
        return r;
}

static double share(unsigned n, unsigned of) {
        return of > 0 ? 100.0 * n / of : 0;
}

/* Prints a count as a share of the requests. */
static void print_count(const char *name, const Count *c) {
        printf("# %-22s %6u  %7.1f %%  %12.1f %%  %17.1f %%  %15.1f %%\n", name, c->asked, share(c->placed, c->asked),
               share(c->close, c->asked), share(c->could_be_close, c->asked), share(c->refused_in_vain, c->asked));
}

/* Returns whether the last chooser, the planner, is the best. */
static bool is_best(const Count counts[ELEMENTSOF(choosers)]) {
        const Count *ours = &counts[ELEMENTSOF(choosers) - 1];

        for (size_t i = 0; i < ELEMENTSOF(choosers); i++)
                if (ours->placed == 0 || ours->refused_in_vain > 0 || counts[i].close > ours->close)
                        return false;
        return ours->close == ours->could_be_close;
}

int main(int argc, char *argv[]) {
        _cleanup_(machine_done) Machine m = { 0 };
        Count counts[ELEMENTSOF(choosers)] = { 0 };
        bool best;

        if (argc != 6 || machine_read(&m, argv[1], argv[2]) < 0) {
                (void) fprintf(stderr, "usage: compare ROOT CONFIG REQUESTS GPU-POOL NIC-POOL\n");
                return EXIT_FAILURE;
        }
        printf("# %-22s %6s  %9s  %14s  %19s  %17s\n", "chooser", "asked", "placed", "all pairs near",
               "where planner could", "refused in vain");
        for (size_t i = 0; i < ELEMENTSOF(choosers); i++) {
                if (run(&m, i, (unsigned) strtoul(argv[3], NULL, 10), (const char *[]) { argv[4], argv[5] },
                        &counts[i]) < 0)
                        return EXIT_FAILURE;
                print_count(choosers[i].name, &counts[i]);
        }
        best = is_best(counts);
        printf("%sok - nothing is refused in vain, and no chooser has more guests with all pairs near\n",
               best ? "" : "not ");
        return best ? EXIT_SUCCESS : EXIT_FAILURE;
}
