/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the executor asks NVIDIA's driver, through passthroughd-root. */

#include "host/executor.h"

/* Whether the step unbinds a GPU from NVIDIA's driver that may be in persistence mode. */
bool gpu_may_be_persistent(const Sysfs *fs, const Step *s);
/* Returns 1 when it is, 0 when it is not, or a negative errno; -ETIMEDOUT: the driver does not answer. */
int gpu_read_persistence(const Step *s);
/* For STEP_PERSISTENCE. Returns 0: a failure is logged by passthroughd-root. */
int gpu_restore_persistence(const Sysfs *fs, const Step *s, VfAttributes *found);
/* For STEP_CHECK_GPU: returns 0 when the GPU is healthy or cannot be checked, or a negative errno of nvml_check_gpu().
 * -ETIMEDOUT: the driver does not answer. */
int gpu_check(const StepList *steps, size_t i);
