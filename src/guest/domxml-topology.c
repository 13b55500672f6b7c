/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Computes sockets, dies, cores and threads of the guest from those of the host. */

#include "domxml-internal.h"

/* Returns whether the `n` pins from pin `i` on are different CPUs of one core that is not in `cores` yet. Adds the core
 * and these CPUs to the sets. */
static bool take_core(const Domain *d, size_t i, unsigned n, CpuSet *cores, CpuSet *cpus) {
        const Cpu *head = inventory_find_cpu(d->inv, d->a->pins[i].cpu);

        if (!head || cpuset_has(cores, head->core))
                return false;
        cpuset_add(cores, head->core);
        for (unsigned t = 0; t < n; t++) {
                const Cpu *cpu = inventory_find_cpu(d->inv, d->a->pins[i + t].cpu);

                if (!cpu || cpu->core != head->core || cpuset_has(cpus, cpu->id))
                        return false;
                cpuset_add(cpus, cpu->id);
        }
        return true;
}

/* Returns the number of threads of each guest core. This is the number of threads of a host core if the pins are
 * consecutive whole cores of one size; otherwise it is 1. */
static unsigned guest_threads(const Domain *d) {
        const Cpu *first = inventory_find_cpu(d->inv, d->a->pins[0].cpu);
        CpuSet cores = { 0 }, cpus = { 0 };
        unsigned threads = 0;

        for (size_t i = 0; first && i < d->inv->n_cpus; i++)
                threads += d->inv->cpus[i].core == first->core;
        if (threads < 2 || d->a->n_pins % threads != 0)
                return 1;

        for (size_t i = 0; i < d->a->n_pins; i += threads)
                if (!take_core(d, i, threads, &cores, &cpus))
                        return 1;
        for (size_t i = 0; i < d->inv->n_cpus; i++) /* a core with further threads is not whole */
                if (cpuset_has(&cores, d->inv->cpus[i].core) && !cpuset_has(&cpus, d->inv->cpus[i].id))
                        return 1;
        return threads;
}

/* Returns whether all cells have the same number of vCPUs, consecutive and in whole cores. */
static bool cells_are_even(const Allocation *a, unsigned threads) {
        size_t each = a->n_pins / a->n_cells;

        if (a->n_pins % a->n_cells != 0 || each % threads != 0)
                return false;
        for (size_t i = 0; i < a->n_pins; i++)
                if (!cpuset_has(&a->cells[i / each].vcpus, (unsigned) i))
                        return false;
        return true;
}

/* Returns the package of a cell's node; -1: unknown. */
static int package_of(const Domain *d, size_t cell) {
        const NumaNode *node = inventory_find_node(d->inv, d->a->cells[cell].node);

        return node ? node->package : -1;
}

/* Returns whether each run of `each` cells is on one known package, and no two runs are on the same package. */
static bool packages_have_cells(const Domain *d, size_t each) {
        for (size_t i = 0; i < d->a->n_cells; i++)
                for (size_t j = 0; j <= i; j++)
                        if (package_of(d, i) < 0 || (package_of(d, i) == package_of(d, j)) != (i / each == j / each))
                                return false;
        return true;
}

/*
 * Returns one socket if the cells are not even (cells_are_even()). Otherwise returns one socket for each cell on
 * AArch64, because QEMU's 'virt' has no dies to separate the cells of a socket, and if a package is unknown. Otherwise
 * returns one socket for each host package if each has the same number of consecutive cells, else one socket.
 */
static unsigned guest_sockets(const Domain *d, unsigned threads) {
        size_t each = d->a->n_cells;

        if (!cells_are_even(d->a, threads))
                return 1;
        for (size_t i = 0; i < d->a->n_cells; i++)
                if (d->aarch64 || package_of(d, i) < 0)
                        return (unsigned) d->a->n_cells;
        while (each > 1 && (d->a->n_cells % each != 0 || !packages_have_cells(d, each)))
                each--;
        return packages_have_cells(d, each) ? (unsigned) (d->a->n_cells / each) : 1;
}

static unsigned die_of(const Domain *d, size_t pin) {
        const Cpu *cpu = inventory_find_cpu(d->inv, d->a->pins[pin].cpu);

        return cpu ? cpu->die : 0;
}

static unsigned bits(size_t n) {
        unsigned b = 0;

        while ((size_t) 1 << b < n)
                b++;
        return b;
}

/* Returns the APIC id of the last vCPU. Each level of the topology has bits of its own in the id. */
static size_t last_apic_id(size_t sockets, size_t dies, size_t cores, size_t threads) {
        unsigned core = bits(threads), die = core + bits(cores), socket = die + bits(dies);

        return (sockets - 1) << socket | (dies - 1) << die | (cores - 1) << core | (threads - 1);
}

/* Returns whether the guest can have the topology: its APIC ids need no <iommu>, or the guest has one anyway
 * (domain_needs_iommu()). */
static bool fits_apic_ids(const Domain *d, size_t sockets, size_t dies, size_t threads) {
        size_t cores = d->a->n_pins / sockets / dies / threads;

        return d->aarch64 || domain_needs_iommu(d) ||
               last_apic_id(sockets, dies, cores, threads) < DOMXML_PLAIN_VCPUS_MAX;
}

/* Returns the number of dies of each socket as on the host, if all dies have the same number of vCPUs, consecutive and
 * in whole cores; else 1. */
static unsigned host_dies(const Domain *d, unsigned sockets, unsigned threads) {
        size_t socket = d->a->n_pins / sockets, die = 1;
        CpuSet seen = { 0 };

        while (die < socket && die_of(d, die) == die_of(d, 0))
                die++;
        if (socket % die != 0 || die % threads != 0)
                return 1;
        for (size_t i = 0; i < d->a->n_pins; i++) {
                if (i % die == 0 ? cpuset_has(&seen, die_of(d, i)) : die_of(d, i) != die_of(d, i - 1))
                        return 1;
                cpuset_add(&seen, die_of(d, i));
        }
        return (unsigned) (socket / die);
}

/* Returns the number of dies of each socket. If the cells are even, no die spans cells: a guest assumes that CPUs of
 * one die share a cache. */
static unsigned guest_dies(const Domain *d, unsigned sockets, unsigned threads) {
        unsigned dies = host_dies(d, sockets, threads), cells = (unsigned) d->a->n_cells / sockets;

        return dies % cells == 0 || !cells_are_even(d->a, threads) ? dies : cells;
}

void domain_write_topology(Domain *d, xmlNode *cpu) {
        unsigned threads = guest_threads(d), sockets = guest_sockets(d, threads), dies;
        xmlNode *topology = node_add(d, cpu, "topology");

        if (!fits_apic_ids(d, sockets, 1, threads))
                sockets = 1;
        dies = d->aarch64 ? 1 : guest_dies(d, sockets, threads);
        if (!fits_apic_ids(d, sockets, dies, threads))
                dies = 1;
        node_set(d, topology, "sockets", "%u", sockets);
        node_set(d, topology, "dies", "%u", dies);
        node_set(d, topology, "cores", "%zu", d->a->n_pins / sockets / dies / threads);
        node_set(d, topology, "threads", "%u", threads);
}
