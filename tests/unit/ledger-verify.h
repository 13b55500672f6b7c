/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The invariants of a ledger. */

#include "ledger/ledger.h"
#include "util/strings.h"

static inline bool same_claims(const Ledger *a, const Ledger *b) {
        if (a->n_allocations != b->n_allocations || a->n_claims != b->n_claims || a->n_pf_uses != b->n_pf_uses ||
            !cpuset_equal(&a->cpus, &b->cpus))
                return false;
        for (size_t i = 0; i < a->n_claims; i++)
                if (!pci_address_equal(a->claims[i].address, b->claims[i].address) ||
                    !streq(a->claims[i].allocation->name, b->claims[i].allocation->name))
                        return false;
        for (size_t i = 0; i < a->n_pf_uses; i++)
                if (!pci_address_equal(a->pf_uses[i].pf, b->pf_uses[i].pf) || a->pf_uses[i].vfs != b->pf_uses[i].vfs)
                        return false;
        if (a->n_slots != b->n_slots)
                return false;
        for (size_t i = 0; i < a->n_slots; i++)
                if (a->slots[i].slots != ledger_slots(b, a->slots[i].endpoint))
                        return false;
        if (a->n_regions != b->n_regions)
                return false;
        for (size_t i = 0; i < a->n_regions; i++)
                if (!streq(a->regions[i]->region.name, b->regions[i]->region.name) ||
                    a->regions[i]->n_members != b->regions[i]->n_members)
                        return false;
        for (size_t i = 0; i < a->n_memory; i++)
                if (a->memory[i].bytes != ledger_memory(b, a->memory[i].node, a->memory[i].page_size) ||
                    a->memory[i].bytes - a->memory[i].backed !=
                            ledger_memory_idle(b, a->memory[i].node, a->memory[i].page_size))
                        return false;
        return true;
}

/* Returns whether no IOMMU group has devices of two allocations. */
static inline bool groups_are_exclusive(const Ledger *l, const Inventory *inv) {
        for (size_t i = 0; i < inv->n_groups; i++) {
                const Allocation *first = NULL;

                for (size_t j = 0; j < inv->groups[i].n_members; j++) {
                        const Allocation *holder = ledger_holder(l, inv->devices[inv->groups[i].members[j]].address);

                        if (holder && first && holder != first)
                                return false;
                        first = first ?: holder;
                }
        }
        return true;
}

/*
 * Recomputes the claims from the allocations and compares them with those of the ledger. Checks that each IOMMU group
 * has one holder, and that no node has promised more ordinary memory than it has.
 */
static inline bool ledger_verify(const Ledger *l, const Inventory *inv, const Config *config) {
        _cleanup_(cleanup_ledger_free) Ledger *again = ledger_copy(l);
        bool good = again && same_claims(l, again) && groups_are_exclusive(l, inv);

        for (size_t i = 0; good && i < inv->n_nodes; i++) {
                uint64_t have = numa_node_base_memory(&inv->nodes[i]);

                good = ledger_memory(l, inv->nodes[i].id, 0) <= have - MIN(have, config->reserve_memory);
        }
        return good;
}
