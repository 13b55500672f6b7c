/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The unbind lock of NVIDIA's driver: proc/driver/nvidia/gpus/ADDRESS/unbindLock, if a test has made that file. */
#pragma once

#include "sim.h"

bool nvidia_is_lock(const Node *file);
/* Releases the lock, or takes it unless a process has the GPU's node open. Always succeeds, as the driver does: only a
 * read shows the result. */
int nvidia_write_lock(Sim *sim, Node *lock, const char *value);
/* Clears the lock of an unbound GPU, so that the next bind starts without it. */
void nvidia_drop_lock(Sim *sim, const Node *gpu);
