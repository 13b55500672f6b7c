/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Asks NVIDIA's driver about a GPU: its /dev/nvidiaN node, its users, its memory. To answer, the driver may resume the
 * GPU from runtime suspend, which can take long.
 */

#include "model/inventory.h"
#include "util/sysfs.h"

/* Minor numbers of GPUs end here: nvidia-modeset and nvidiactl have the two above. */
#define NVIDIA_MINOR_LAST    253U
#define NVIDIA_MINOR_UNKNOWN UINT32_MAX

/*
 * Returns true when the kernel's reference counts show that no process has a GPU open: each loaded module of NVIDIA has
 * only the references of the modules that depend on it. False when a process may have a GPU open, or the counts are
 * unknown. Reads a dozen files, and never blocks.
 *
 * Each open file of /dev/nvidiaN and the like has a reference to the module, even a file that is only mapped, is in
 * transit through a socket, or belongs to a process that is about to end. chrdev_open() in fs/char_dev.c and
 * drm_stub_open() in drivers/gpu/drm/drm_drv.c take the reference by .owner of nvidia_fops (nv.c), uvm_fops (uvm.c) and
 * nv_drm_fops (nvidia-drm-drv.c); __fput() drops it. A module takes its references to other modules before it is listed
 * as their holder (kernel/module/main.c).
 */
bool nvidia_is_closed(const Sysfs *fs);

/* The key of the minor number in /proc/driver/nvidia/gpus/ADDRESS/information. */
#define NVIDIA_MINOR_KEY "Device Minor:"

/* Reads the minor number of the GPU; NVIDIA_MINOR_UNKNOWN when the driver does not report it. Must run in a child
 * process because it can block. */
uint32_t nvidia_read_minor(const Sysfs *fs, PciAddress gpu);

/* Sets *ret to the NUMA node of the GPU's memory, and *ret_online to whether the host has this memory online. Returns
 * false when the driver reports no node. Must run in a child process because it can block. */
bool nvidia_read_memory(const Sysfs *fs, PciAddress gpu, int *ret, bool *ret_online);

/*
 * The unbind lock of a GPU, which NVIDIA's driver has only on hosts of vGPUs. The driver grants the lock when no
 * process and no client in the kernel has the GPU open, and then refuses to open the GPU (nv_procfs_close_unbind_lock()
 * in nv-procfs.c and nv_open_device() in nv.c of NVIDIA/open-gpu-kernel-modules). The lock takes effect when the file
 * is closed, and only a later read tells whether it was granted. After a bind the GPU is not locked.
 *
 * nvidia_lock_unbind() returns 1 when the GPU is locked, 0 when the driver has no such lock, -EBUSY when the GPU is in
 * use, or another negative errno. nvidia_unlock_unbind() returns 1 when it has released the lock, 0 when the GPU was
 * not locked, or a negative errno. Both must run in a child process because they can block.
 */
int nvidia_lock_unbind(const Sysfs *fs, PciAddress gpu);
int nvidia_unlock_unbind(const Sysfs *fs, PciAddress gpu);

/* For a recorded node: sets has_memory_node and memory_node of all GPUs on NVIDIA's driver. */
void nvidia_read_memories(const Sysfs *fs, Inventory *inv);

/* Makes the GPU's node, "nvidia0", the first of its kernel_names, or removes it when the minor is unknown. Idempotent.
 * 0 or -ENOMEM. */
int nvidia_set_name(PciDevice *gpu, uint32_t minor);
/* For a recorded node: calls nvidia_set_name() for all GPUs, with the minor that nvidia_read_minor() returns. */
int nvidia_read_names(const Sysfs *fs, Inventory *inv);

/* The answer of NVIDIA's library about a GPU, as one number: NVLink module id (0: none, or unknown) and
 * ConfidentialMode. */
#define GPU_MODE_UNIT      256
#define GPU_MODULE(answer) ((answer) % GPU_MODE_UNIT)
#define GPU_MODE(answer)   ((answer) / GPU_MODE_UNIT)
