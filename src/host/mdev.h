/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The vGPU of a VF, by nvidia/current_vgpu_type or as a mediated device.
 *
 * Mediated devices as vGPUs: a driver that creates them lists its types in mdev_supported_types/ of their parent, a VF
 * or a GPU without VFs. The kernel's Documentation/ABI/testing/sysfs-bus-vfio-mdev describes the files. The directory
 * of a type has the name of the driver and, in NVIDIA's driver, a number: nvidia-558. That number is the id of the
 * type. GVT-g has names, i915-GVTg_V5_4: their id is a digest of the name. The address of a slot (model/mdev-slots.h)
 * stands for its GPU.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* Lists the types of the parent at dir_fd, as model/vgpu.h describes; "" for none. Returns 0 or a negative errno. */
int mdev_read_types(const Sysfs *fs, int dir_fd, char **ret);
/* Reads the id of the type of a mediated device of the parent at dir_fd. Returns 0 or a negative errno: -ENOENT when
 * there is no such device, -EBADMSG when the name of its type is not one of the driver. */
int mdev_read_type(int dir_fd, const char *uuid, unsigned *ret);

/*
 * Creates or removes a vGPU of the type with this id: as the mediated device with the UUID mdev, or with NULL as the
 * vGPU of a VF. Returns 1 after a change, 0 when nothing was to do, or a negative errno: -EBUSY when the VF has a vGPU
 * of another type, -EEXIST when the mediated device has, -EIO when the driver accepts the write without effect, -EPERM
 * when it does not remove the mediated device because a process has it open.
 */
int vgpu_set(const Sysfs *fs, PciAddress vf, unsigned type, const char *mdev, bool wanted);
