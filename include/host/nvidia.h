/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the /dev/nvidiaN node of a GPU by asking the nvidia driver. The driver may resume the GPU from runtime suspend
 * to answer, which can take long.
 */

#include "model/inventory.h"
#include "util/sysfs.h"

/* The highest minor number of a GPU. The two minor numbers above are nvidia-modeset and nvidiactl. */
#define NVIDIA_MINOR_LAST    253U
#define NVIDIA_MINOR_UNKNOWN UINT32_MAX

/*
 * Whether the kernel rules out that any process has a GPU open: each of NVIDIA's modules that is loaded has as many
 * references as there are modules that depend on it. False when a process may have one open, or the kernel does not
 * tell. Reads a dozen files, and waits for nothing.
 *
 * Each open file of /dev/nvidiaN and the like, also one that is mapped, in transit, or of a process that is about to
 * end, has a reference to the module: chrdev_open() in fs/char_dev.c and drm_stub_open() in drivers/gpu/drm/drm_drv.c
 * take it by .owner of nvidia_fops (nv.c), uvm_fops (uvm.c) and nv_drm_fops (nvidia-drm-drv.c), __fput() drops it. A
 * module takes its references to others before it is listed as their holder (kernel/module/main.c).
 */
bool nvidia_is_closed(const Sysfs *fs);

/* The line of /proc/driver/nvidia/gpus/ADDRESS/information that has the minor number. */
#define NVIDIA_MINOR_KEY "Device Minor:"

/* Reads the minor number of the GPU; NVIDIA_MINOR_UNKNOWN when the driver does not report it. Must run in a child
 * process because it can block. */
uint32_t nvidia_read_minor(const Sysfs *fs, PciAddress gpu);

/* Sets *ret to the NUMA node that the driver gives to the GPU's memory, and *ret_online to whether the host has the
 * memory online. False: the driver gives it none. Must run in a child process because it can block. */
bool nvidia_read_memory(const Sysfs *fs, PciAddress gpu, int *ret, bool *ret_online);

/*
 * The unbind lock of a GPU, which the driver has on hosts of vGPUs only. The driver gives it when no process and no
 * client in the kernel has the GPU open, and refuses to open the GPU from then on (nv_procfs_close_unbind_lock() in
 * nv-procfs.c and nv_open_device() in nv.c of NVIDIA/open-gpu-kernel-modules). It takes effect when the file is closed,
 * and only a read tells whether it did. A bind starts without the lock.
 *
 * nvidia_lock_unbind() returns 1 when the GPU is locked, 0 when the driver has no such lock, -EBUSY when the GPU is in
 * use, or another negative errno. nvidia_unlock_unbind() returns 1 or 0, or a negative errno. Both must run in a child
 * process because they can block.
 */
int nvidia_lock_unbind(const Sysfs *fs, PciAddress gpu);
int nvidia_unlock_unbind(const Sysfs *fs, PciAddress gpu);

/* Reads has_memory_node and memory_node of all GPUs of a recorded node. */
void nvidia_read_memories(const Sysfs *fs, Inventory *inv);

/* Makes the node of the GPU, "nvidia0", the first of its kernel_names; removes it when the minor is unknown.
 * Idempotent. 0 or -ENOMEM. */
int nvidia_set_name(PciDevice *gpu, uint32_t minor);
/* As nvidia_set_name() with nvidia_read_minor(), for all GPUs of a recorded node. */
int nvidia_read_names(const Sysfs *fs, Inventory *inv);

/* What NVIDIA's library tells of a GPU, in one number: the NVLink module id, 0: none, and 1 + its ConfidentialMode, 0:
 * unknown. */
#define GPU_MODE_UNIT      256
#define GPU_MODULE(answer) ((answer) % GPU_MODE_UNIT)
#define GPU_MODE(answer)   ((answer) / GPU_MODE_UNIT)
