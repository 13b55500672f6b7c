/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The NVLink partitions of a machine with NVSwitches: sets of GPUs that can use NVLink with each other and with no
 * other GPU. Fabric Manager activates a partition as a whole. It knows a GPU by its module id, the number of its
 * socket, which is not in the order of PCI addresses.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/pciaddr.h"

#define FABRIC_MODULE_MAX     63U /* module ids are 1 to this; 0: unknown */
#define FABRIC_PARTITIONS_MAX 64U
#define FABRIC_ID_MAX         65535U
#define FABRIC_FAILED_MAX     16U

typedef struct FabricPartition {
        unsigned id;
        uint64_t modules; /* a bit for each module id */
} FabricPartition;

typedef struct FabricTable {
        FabricPartition partitions[FABRIC_PARTITIONS_MAX]; /* ascending by id */
        size_t n;
} FabricTable;

/* What Fabric Manager reports when it is asked about certain partitions. */
typedef struct FabricReport {
        FabricTable table; /* all its partitions */
        uint64_t active;   /* bit i: the i-th of the table is active */
        uint64_t inactive; /* bit i: it has the i-th of them, which is not active */
        uint32_t n_failed;
        PciAddress failed[FABRIC_FAILED_MAX]; /* GPUs with failed NVLinks */
} FabricReport;

/* The partitions that Fabric Manager has by default on "hgx-a100", "hgx-h100" and "hgx-b200". 0 or -EINVAL. */
int fabric_table_of(const char *machine, FabricTable *ret);
/* Adds a partition, or replaces the one with this id. 0, or -E2BIG beyond FABRIC_PARTITIONS_MAX. */
int fabric_table_add(FabricTable *t, unsigned id, uint64_t modules);
/* NULL: no such partition. */
const FabricPartition *fabric_table_find(const FabricTable *t, unsigned id);
/* The table has a partition with the id and the modules of p. */
bool fabric_table_has(const FabricTable *t, const FabricPartition *p);
bool fabric_table_equal(const FabricTable *t, const FabricTable *other);
/* Some partition has both modules. */
bool fabric_table_joins(const FabricTable *t, unsigned module, unsigned other);

static inline uint64_t fabric_bit(unsigned module) {
        return UINT64_C(1) << module;
}
static inline unsigned fabric_count(uint64_t modules) {
        return (unsigned) __builtin_popcountll(modules);
}
