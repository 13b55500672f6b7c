/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* CPUs are allocated as whole cores: all SMT siblings of a core, or none. Pure. */

#include "model/inventory.h"

typedef struct Pin {
        unsigned vcpu;
        unsigned cpu;
} Pin;

/* Returns the largest number of online SMT siblings in any core, at least 1. */
unsigned cores_threads(const Inventory *inv);

/*
 * Splits `cpus` vCPUs, at least k, into k shares, the largest first. A core has `threads` threads. Uses as few cores as
 * possible; two shares differ by at most one core. If the vCPUs do not fill the cores, one of the largest shares leaves
 * threads of one core unused. If the vCPUs filled fewer cores than there are shares, they are spread over more cores,
 * so that each share gets a vCPU.
 */
void cores_split(unsigned cpus, unsigned threads, size_t k, unsigned shares[]);

/* Returns the number of threads of the cores in free_cpus, which contains whole cores only. */
unsigned cores_count(const Inventory *inv, const CpuSet *free_cpus);

/*
 * Picks the lowest-numbered cores of free_cpus (whole cores only) until `share` threads are found: cores of the fastest
 * kind that has enough free threads, or of all kinds if none has. Sets the cpu of pins[], which has room for `share`
 * pins, and adds the cores with all their threads to *claimed. Returns the number of threads found, at most `share`.
 */
unsigned cores_pick(const Inventory *inv, const CpuSet *free_cpus, unsigned share, CpuSet *claimed, Pin *pins);
