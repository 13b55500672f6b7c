/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Calls NVIDIA's management library, libnvidia-ml.so.1, which is opened at run time. A call to the library may block
 * for ever, so only a process with a deadline calls these functions. */

#include <stdbool.h>

#include "model/pciaddr.h"

/*
 * Each function queries a GPU that is bound to NVIDIA's driver, and initializes the GPU if no process has it open.
 * -ENODEV: the driver has lost the GPU. -ELIBACC: the library is missing or lacks a function. -ENODATA: the library
 * failed, or does not know the GPU.
 */

/* Returns the NVLink module id (0: none, or the library does not tell it) and the confidential mode as one number, for
 * GPU_MODULE() and GPU_MODE(). */
int nvml_read_module(PciAddress gpu);
/* Returns 1 when persistence mode is on, else 0. */
int nvml_read_persistence(PciAddress gpu);
/* Turns persistence mode on if it is off. Returns 0. Needs CAP_SYS_ADMIN. Does not use nvidia-persistenced, which knows
 * only the GPUs that NVIDIA's driver had at its start. -EPERM: the driver refuses. */
int nvml_set_persistence(PciAddress gpu);
/*
 * Returns 0 when neither the library nor the GPU reports a reason against giving the GPU to a guest.
 *
 * -ENOTRECOVERABLE: the remapping of a memory row has failed. -EUCLEAN: a row will be remapped at the next reset. The
 * driver keeps both facts on the card. Without the row a process can continue, but a row that cannot be remapped is a
 * reason to return the card (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, nvmlDeviceGetRemappedRows() in
 * docs.nvidia.com/deploy/nvml-api).
 *
 * -EBADE: the uncorrectable ECC errors of the SRAM exceed the threshold of NVIDIA's field diagnostic
 * (nvmlDeviceGetSramEccErrorStatus(), bThresholdExceeded). The counters are useless here: the volatile ones restart
 * whenever the driver takes the GPU, and the aggregate ones never do (nvmlEccCounterType_t).
 *
 * -ENOLINK, with fabric: Fabric Manager answered the GPU's registration with an error (nvmlDeviceGetGpuFabricInfo():
 * "status must be checked only if state returns complete"). An unfinished registration is no error.
 */
int nvml_check_gpu(PciAddress gpu, bool fabric);
