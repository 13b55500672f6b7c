/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which of the /dev/nvidiaN a GPU has: its driver tells, and may wake the GPU up for that and wait for it
 * (model/probecache.h).
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

#define NVIDIA_DRIVER        "nvidia"
/* The numbers of GPUs among those of the driver; above are nvidia-modeset and nvidiactl. */
#define NVIDIA_MINOR_LAST    253U
#define NVIDIA_MINOR_UNKNOWN UINT32_MAX

/* Asks for the number of each GPU in turn and tells it at once. For a child only. 0. */
int nvidia_ask(const Sysfs *fs, const PciAddress *gpus, size_t n,
               void (*tell)(size_t i, uint32_t minor, void *userdata), void *userdata);
