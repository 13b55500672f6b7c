/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the executor asks NVIDIA's driver, through passthroughd-root. */

#include "host/executor.h"

/* Whether the step unbinds a GPU from NVIDIA's driver that may be in persistence mode. */
bool gpu_may_be_persistent(const Sysfs *fs, const Step *s);
/* One question about all GPUs. The results are those of root_read_persistence(), and are 0 before the call. */
void gpus_read_persistence(const PciAddress *gpus, size_t n, int32_t *results);
/* For STEP_PERSISTENCE. Returns 0: a failure is logged by passthroughd-root. */
int gpu_restore_persistence(const Sysfs *fs, const Step *s, VfAttributes *found);
/* As gpus_read_persistence(); the results are those of root_check_health(). */
void gpus_check(const PciAddress *gpus, size_t n, int32_t *results);
