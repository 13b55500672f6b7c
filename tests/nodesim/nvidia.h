/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The unbind lock of NVIDIA's driver: proc/driver/nvidia/gpus/ADDRESS/unbindLock, where a test has made that file. */
#pragma once

#include "sim.h"

bool nvidia_is_lock(const Node *file);
/* Takes the lock unless a process has the node of the GPU open, or gives it back. Succeeds in any case, as the driver
 * does: only a read tells. */
int nvidia_write_lock(Sim *sim, Node *lock, const char *value);
/* The GPU was unbound: the next bind starts without the lock. */
void nvidia_drop_lock(Sim *sim, const Node *gpu);
