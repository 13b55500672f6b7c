/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A set of CPU numbers or NUMA node ids, below CPUSET_MAX. Copied by value; a zero-initialised set is empty. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPUSET_MAX 4096U

typedef struct CpuSet {
        uint64_t words[CPUSET_MAX / 64];
} CpuSet;

void cpuset_add(CpuSet *set, unsigned n); /* n < CPUSET_MAX */
void cpuset_remove(CpuSet *set, unsigned n);
bool cpuset_has(const CpuSet *set, unsigned n); /* false for n >= CPUSET_MAX */
unsigned cpuset_count(const CpuSet *set);
bool cpuset_is_empty(const CpuSet *set);
bool cpuset_intersects(const CpuSet *a, const CpuSet *b);
bool cpuset_equal(const CpuSet *a, const CpuSet *b);
void cpuset_merge(CpuSet *set, const CpuSet *other);
void cpuset_subtract(CpuSet *set, const CpuSet *other);

/* Returns the smallest member that is at least `from`, or -1. To walk a set:
 * for (int c = cpuset_next(s, 0); c >= 0; c = cpuset_next(s, c + 1)) */
int cpuset_next(const CpuSet *set, unsigned from);

/*
 * Parses the kernel's list format, "0-3,8,10-11". Surrounding space is allowed; empty text is the empty set. 0,
 * -EINVAL, or -ERANGE for a number of CPUSET_MAX or more.
 */
int cpuset_parse(const char *s, CpuSet *ret);

/* Formats the set as the shortest list of ranges. The caller frees; NULL when out of memory. */
char *cpuset_format(const CpuSet *set);
