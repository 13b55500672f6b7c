/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Random requests, the same in each run, and their results in a ledger. */

#include <stdlib.h>

#include "../bench/machine.h"

#include "util/strings.h"

#define GIB (1ULL << 30)

static inline unsigned below(uint64_t *seed, unsigned n) {
        uint64_t z = *seed += 0x9e3779b97f4a7c15;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return (unsigned) ((z ^ z >> 31) % n);
}

/* Claims the allocation, or frees it. */
static inline bool enter(Machine *m, Allocation *a, unsigned number) {
        bool entered = a && string_replace(&a->name, "vm%u", number) >= 0 &&
                       ledger_claim(m->ledger, m->inventory, m->config, a, NULL) == VERDICT_NONE;

        if (!entered)
                allocation_free(a);
        return entered;
}

static inline void leave(Machine *m, size_t index) {
        allocation_free(ledger_remove(m->ledger, m->ledger->allocations[index]->name));
}
