/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * NVIDIA's Fabric Manager, through its client library libnvfm.so.1, which is opened at run time. The library may block
 * for ever, so only a process without other work and with a deadline calls these functions.
 */

#include "model/fabric.h"
#include "util/cleanup.h"

typedef struct FabricManager FabricManager;

/*
 * Connects to Fabric Manager. address: HOST:PORT, or the path of a socket. Returns 0, or -ELIBACC when the library is
 * missing or lacks a function, -ENOTCONN when Fabric Manager does not answer, -ENOMEM, or an errno of
 * fabric_manager_set().
 */
int fabric_manager_open(const char *address, FabricManager **ret);
FabricManager *fabric_manager_close(FabricManager *f);
DEFINE_CLEANUP(FabricManager *, fabric_manager_close)

/*
 * Activates or deactivates the partition, and reads its state back. Returns 1 after a change, 0 when there was nothing
 * to change, or a negative errno:
 *   -ENOENT: Fabric Manager has no partition with this id
 *   -EXDEV:  its partition with this id has other modules
 *   -EBUSY:  a GPU of the partition is in another active partition
 *   -EAGAIN: Fabric Manager is not ready
 *   -EIO:    NVLinks failed
 *   -ESTALE: Fabric Manager reported success and changed nothing
 *   -EPROTO: the library has other versions of the structures
 *   -EOPNOTSUPP: the mode of Fabric Manager does not support this
 *   -ENOTCONN: there is no connection to Fabric Manager
 *   -ETIMEDOUT: Fabric Manager did not answer in time
 *   -EREMOTEIO, -EINVAL, -EUNATCH: another error of the library
 */
int fabric_manager_set(FabricManager *f, const FabricPartition *p, bool active);

/*
 * Sends the ids of the active partitions if Fabric Manager waits for them: after a restart with FABRIC_MODE_RESTART=1
 * it waits for a minute, and exits if no ids come. Returns 1 when the ids were sent. Otherwise returns 0 with the
 * report of Fabric Manager in *ret, or a negative errno. ids: the partitions that FabricReport.inactive is about. n: at
 * most FABRIC_PARTITIONS_MAX. active: bit i is set if the partition ids[i] is to be sent as active.
 */
int fabric_manager_follow(FabricManager *f, const unsigned *ids, size_t n, uint64_t active, FabricReport *ret);
