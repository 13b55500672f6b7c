/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which of the /dev/nvidiaN a GPU has: its driver tells, and may wake the GPU up for that and wait for it. So it is
 * asked by a child and kept beside the inventory, whose facts are read at one moment.
 */

#include "core/inventory.h"
#include "util/sysfs.h"

#define NVIDIA_DRIVER        "nvidia"
/* The numbers of GPUs among those of the driver; above are nvidia-modeset and nvidiactl. */
#define NVIDIA_MINOR_LAST    253U
#define NVIDIA_MINOR_UNKNOWN UINT32_MAX

typedef struct NvidiaGpu {
        PciAddress address;
        uint64_t instance; /* PciDevice.instance: a card that was plugged in later is another one */
        uint32_t minor;    /* or NVIDIA_MINOR_UNKNOWN */
        bool asked;        /* no more is to be asked */
} NvidiaGpu;

typedef struct NvidiaList {
        NvidiaGpu *gpus;
        size_t n;
} NvidiaList;

void nvidia_list_done(NvidiaList *l);
/* The one of this very card, or NULL. Good until the list grows. */
NvidiaGpu *nvidia_list_find(const NvidiaList *l, const PciDevice *dev);
/* Takes it in when it is new: unknown, not asked. NULL: out of memory. */
NvidiaGpu *nvidia_list_add(NvidiaList *l, const PciDevice *dev);
/* Forgets what is known of whatever is at that address. */
void nvidia_list_remove(NvidiaList *l, PciAddress address);

/* Asks for the number of each GPU in turn and tells it at once. For a child only. 0. */
int nvidia_ask(const Sysfs *fs, const PciAddress *gpus, size_t n,
               void (*tell)(size_t i, uint32_t minor, void *userdata), void *userdata);
