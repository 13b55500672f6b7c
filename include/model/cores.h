/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* CPUs are handed out as whole cores: all SMT siblings or none. Pure. */

#include "model/inventory.h"

typedef struct Pin {
        unsigned vcpu;
        unsigned cpu;
} Pin;

/* The most online SMT siblings any core has, at least 1. */
unsigned cores_threads(const Inventory *inv);

/*
 * Splits vCPUs over k guest cells as evenly as whole cores allow, the remainder to the first ones. No cell goes without
 * as long as there are as many vCPUs as cells.
 */
void cores_split(unsigned cpus, unsigned threads, size_t k, unsigned shares[]);

/* The threads of the whole cores in free_cpus. */
unsigned cores_count(const Inventory *inv, const CpuSet *free_cpus);

/*
 * Takes the lowest cores of free_cpus (whole cores only) until share threads are found: those go to pins (room for
 * share), their cores whole to *claimed. Returns how many threads were found, at most share.
 */
unsigned cores_pick(const Inventory *inv, const CpuSet *free_cpus, unsigned share, CpuSet *claimed, Pin *pins);
