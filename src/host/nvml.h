/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* NVIDIA's management library, libnvidia-ml.so.1, which is opened at run time. A call of it may block for ever, so only
 * a process with a deadline calls these functions. */

#include <stdbool.h>

#include "model/pciaddr.h"

/*
 * Each function asks about a GPU that is bound to NVIDIA's driver, and initializes the GPU if no process has it open.
 * -ENODEV: the driver has lost the GPU. -ELIBACC: the library is missing or lacks a function. -ENODATA: the library
 * failed, or does not know the GPU.
 */

/* Returns the NVLink module id, 0: none, with the confidential mode: GPU_MODULE() and GPU_MODE() of host/nvidia.h. */
int nvml_read_module(PciAddress gpu);
/* Returns 1 when persistence mode is on, else 0. */
int nvml_read_persistence(PciAddress gpu);
/* Turns persistence mode on if it is off. Takes CAP_SYS_ADMIN. The call does not ask nvidia-persistenced, which knows
 * only the GPUs that NVIDIA's driver had when it started. -EPERM: the driver refuses. */
int nvml_set_persistence(PciAddress gpu);
/*
 * Returns 0 when the GPU can be given to a guest, as far as the library and the GPU can tell.
 *
 * -ENOTRECOVERABLE: the remapping of a row of memory has failed. -EUCLEAN: a row is to be remapped with the next reset.
 * The driver keeps both on the card. A process works on without the row, but a row that cannot be remapped is a reason
 * to return the card (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, nvmlDeviceGetRemappedRows() in
 * docs.nvidia.com/deploy/nvml-api).
 *
 * -EBADE: the uncorrectable ECC errors of the SRAM have exceeded the threshold of NVIDIA's field diagnostic
 * (nvmlDeviceGetSramEccErrorStatus(), bThresholdExceeded). The counters themselves tell nothing here: the volatile ones
 * begin anew each time that the driver takes the GPU, and the aggregate ones never do (nvmlEccCounterType_t).
 *
 * -ENOLINK, with fabric: Fabric Manager has answered the registration of the GPU with an error
 * (nvmlDeviceGetGpuFabricInfo(): "status must be checked only if state returns complete"). A registration that has not
 * ended is no error.
 */
int nvml_check_gpu(PciAddress gpu, bool fabric);
