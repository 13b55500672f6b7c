/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The NVLink partitions of a machine with NVSwitches: sets of GPUs that can use NVLink with each other and with no
 * other GPU. Fabric Manager activates a partition as a whole. It identifies a GPU by its module id, the number of the
 * GPU's socket on the board. Module ids are not in the order of PCI addresses.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/pciaddr.h"

#define FABRIC_MODULE_MAX     63U /* module ids are 1 to 63; 0 means unknown */
#define FABRIC_PARTITIONS_MAX 64U
#define FABRIC_ID_MAX         65535U
#define FABRIC_FAILED_MAX     16U

typedef struct FabricPartition {
        unsigned id;
        uint64_t modules; /* bit N: module id N; see fabric_bit() */
} FabricPartition;

typedef struct FabricTable {
        FabricPartition partitions[FABRIC_PARTITIONS_MAX]; /* ascending by id */
        size_t n;
} FabricTable;

/* Fabric Manager's answer to a question about some partitions. */
typedef struct FabricReport {
        FabricTable table; /* all partitions that Fabric Manager has */
        uint64_t active;   /* bit i: the table's i-th partition is active */
        uint64_t inactive; /* bit i: Fabric Manager has the i-th partition of the question, and it is not active */
        uint32_t n_failed;
        PciAddress failed[FABRIC_FAILED_MAX]; /* GPUs with failed NVLinks */
} FabricReport;

/* Sets *ret to Fabric Manager's default partitions for machine: "hgx-a100", "hgx-h100" or "hgx-b200". 0 or -EINVAL. */
int fabric_table_of(const char *machine, FabricTable *ret);
/* Adds a partition, or replaces the one with this id. 0, or -E2BIG beyond FABRIC_PARTITIONS_MAX. */
int fabric_table_add(FabricTable *t, unsigned id, uint64_t modules);
/* Returns the partition with this id; NULL: the table has none. */
const FabricPartition *fabric_table_find(const FabricTable *t, unsigned id);
/* Returns true when the table has a partition with both the id and the modules of p. */
bool fabric_table_has(const FabricTable *t, const FabricPartition *p);
bool fabric_table_equal(const FabricTable *t, const FabricTable *other);
/* Returns true when some partition of the table has both modules. False if one of them is 0, which means unknown. */
bool fabric_table_joins(const FabricTable *t, unsigned module, unsigned other);

static inline uint64_t fabric_bit(unsigned module) {
        return UINT64_C(1) << module;
}
static inline unsigned fabric_count(uint64_t modules) {
        return (unsigned) __builtin_popcountll(modules);
}
