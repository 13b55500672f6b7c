/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation of whole CPU cores. */

#include "model/cores.h"

#include <assert.h>

unsigned cores_threads(const Inventory *inv) {
        uint8_t siblings[CPUSET_MAX] = { 0 };
        unsigned most = 1;

        for (size_t i = 0; i < inv->n_cpus; i++) {
                siblings[inv->cpus[i].core]++;
                most = MAX(most, siblings[inv->cpus[i].core]);
        }
        return most;
}

void cores_split(unsigned cpus, unsigned threads, size_t k, unsigned shares[]) {
        unsigned cores, larger;

        assert(k > 0 && cpus >= k && threads > 0);
        /* Use fewer threads of each core until there are at least k cores. */
        while (threads > 1 && (cpus + threads - 1) / threads < k)
                threads--;
        cores = (cpus + threads - 1) / threads;
        larger = cores % (unsigned) k;
        for (size_t i = 0; i < k; i++)
                shares[i] = (cores / (unsigned) k + (i < larger)) * threads;
        shares[(larger > 0 ? larger : k) - 1] -= cores * threads - cpus;
}

/* Pins up to `share` threads of a core, and claims all its threads. Returns how many it pinned. */
static unsigned take_core(const Inventory *inv, unsigned core, unsigned share, CpuSet *claimed, Pin *pins) {
        unsigned taken = 0;

        for (size_t i = 0; i < inv->n_cpus; i++) {
                if (inv->cpus[i].core != core)
                        continue;
                cpuset_add(claimed, inv->cpus[i].id);
                if (taken < share)
                        pins[taken++].cpu = inv->cpus[i].id;
        }
        return taken;
}

unsigned cores_count(const Inventory *inv, const CpuSet *free_cpus) {
        unsigned n = 0;

        for (size_t i = 0; i < inv->n_cpus; i++)
                n += cpuset_has(free_cpus, inv->cpus[i].core);
        return n;
}

static unsigned count_kind(const Inventory *inv, const CpuSet *free_cpus, CoreKind kind) {
        unsigned n = 0;

        for (size_t i = 0; i < inv->n_cpus; i++)
                n += inv->cpus[i].kind == kind && cpuset_has(free_cpus, inv->cpus[i].core);
        return n;
}

unsigned cores_pick(const Inventory *inv, const CpuSet *free_cpus, unsigned share, CpuSet *claimed, Pin *pins) {
        unsigned taken = 0;
        CoreKind kind = 0;

        while (kind < _CORE_KIND_MAX && count_kind(inv, free_cpus, kind) < share)
                kind++;
        for (size_t i = 0; i < inv->n_cpus && taken < share; i++) {
                const Cpu *cpu = &inv->cpus[i];

                if (cpu->core == cpu->id && cpuset_has(free_cpus, cpu->id) &&
                    (cpu->kind == kind || kind == _CORE_KIND_MAX))
                        taken += take_core(inv, cpu->core, share - taken, claimed, &pins[taken]);
        }
        return taken;
}
