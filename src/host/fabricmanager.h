/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * NVIDIA's Fabric Manager, through its client library libnvfm.so.1, which is opened at run time. The library may block
 * for ever, so a process that has nothing else to do and a deadline calls these functions.
 */

#include "model/fabric.h"
#include "util/cleanup.h"

typedef struct FabricManager FabricManager;

/*
 * Connects to Fabric Manager. address: HOST:PORT, or the path of a socket. Returns 0 or a negative errno: -ELIBACC when
 * the library is missing or lacks a function, -ENOTCONN when Fabric Manager does not answer, or one of
 * fabric_manager_set().
 */
int fabric_manager_open(const char *address, FabricManager **ret);
FabricManager *fabric_manager_close(FabricManager *f);
DEFINE_CLEANUP(FabricManager *, fabric_manager_close)

/*
 * Activates or deactivates the partition, and reads back. Returns 1 when the partition was changed, 0 when it was as
 * wanted before. Otherwise a negative errno:
 *   -ENOENT: Fabric Manager has no partition with this id
 *   -EXDEV:  its partition with this id has other modules
 *   -EBUSY:  a GPU of the partition is in another active partition
 *   -EAGAIN: Fabric Manager is not ready
 *   -EIO:    NVLinks failed
 *   -ESTALE: Fabric Manager reported success and changed nothing
 *   -EPROTO: the library has other versions of the structures
 */
int fabric_manager_set(FabricManager *f, const FabricPartition *p, bool active);

/*
 * A Fabric Manager with FABRIC_MODE_RESTART=1 that has restarted waits a minute for the ids of the active partitions,
 * and exits without them. Sends the ids if it waits. Otherwise *ret is its report about these partitions. Returns 1
 * when the ids were sent, 0 when Fabric Manager does not wait, or a negative errno. n: at most FABRIC_PARTITIONS_MAX.
 * active: bit i: the i-th partition is active.
 */
int fabric_manager_follow(FabricManager *f, const unsigned *ids, size_t n, uint64_t active, FabricReport *ret);
