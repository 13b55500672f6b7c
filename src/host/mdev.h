/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
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
 * Creates, or removes, the mediated device of the VF; device is "TYPE/UUID", as in
 * "nvidia-558/4b20d080-1b54-4048-85b3-a6a62d165c01". TYPE is the directory of the type or its id. Returns 1 after a
 * change, 0 when nothing was to do, or a negative errno: -EIO when the kernel accepts the write and the device does not
 * appear or go, -EPERM when the driver does not remove it because a process has it open.
 */
int mdev_create(const Sysfs *fs, PciAddress vf, const char *device);
int mdev_remove(const Sysfs *fs, PciAddress vf, const char *device);
