/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the /dev/nvidiaN node of a GPU by asking the nvidia driver. The driver may resume the GPU from runtime suspend
 * to answer, which can take long (model/probecache.h).
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

#define NVIDIA_DRIVER        "nvidia"
/* The highest minor number of a GPU. The two minor numbers above are nvidia-modeset and nvidiactl. */
#define NVIDIA_MINOR_LAST    253U
#define NVIDIA_MINOR_UNKNOWN UINT32_MAX

/* Reads the minor number of each GPU in turn and calls tell() with it, or with NVIDIA_MINOR_UNKNOWN. Must run in a
 * child process because it can block. Always returns 0. */
int nvidia_query(const Sysfs *fs, const PciAddress *gpus, size_t n,
                 void (*tell)(size_t i, uint32_t minor, void *userdata), void *userdata);
