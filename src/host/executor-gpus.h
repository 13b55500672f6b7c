/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the executor asks NVIDIA's driver, through passthroughd-root. */

#include "host/executor.h"

/* Reports the GPUs of the steps that unbind them from NVIDIA's driver and that are in persistence mode. Returns whether
 * there are any. */
bool gpus_report_persistent(const Sysfs *fs, const StepList *steps, ReportFunction report, void *userdata);
/* For STEP_PERSISTENCE. Returns 0: a failure is logged by passthroughd-root. */
int gpu_restore_persistence(const Sysfs *fs, const Step *s, VfAttributes *found);
/* For STEP_CHECK_GPU: returns 0 when the GPU is healthy or cannot be checked, or a negative errno of nvml_check_gpu().
 * -ETIMEDOUT: the driver does not answer. */
int gpu_check(const StepList *steps, size_t i);
