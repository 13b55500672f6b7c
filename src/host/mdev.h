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
 * Changes the type of the VF's vGPU from one id to another; "0" is none. Returns 1 after a change, 0 when the VF has
 * type to already, or a negative errno: -EBUSY when it has neither from nor to, -EIO when the driver accepts the write
 * and shows another type. A type of the form "TYPE/UUID" is a mediated device.
 */
int vgpu_set_type(const Sysfs *fs, PciAddress vf, const char *from, const char *to);
