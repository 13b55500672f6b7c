/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The vGPU of a VF, by nvidia/current_vgpu_type or as a mediated device.
 *
 * Mediated devices as vGPUs: their driver lists types in mdev_supported_types/ of the parent, a VF or a GPU without VFs
 * (kernel Documentation/ABI/testing/sysfs-bus-vfio-mdev). The directory of a type is named by the driver and, in
 * NVIDIA's driver, a number: nvidia-558. That number is the id of the type. GVT-g has names such as i915-GVTg_V5_4:
 * their id is a digest of the name. The address of a slot (model/mdev-slots.h) stands for its GPU.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* Lists the types of the parent at dir_fd in the format of model/vgpu.h, "" for none. known: an earlier list of the
 * parent, whose names are not read again; may be NULL. Returns 0 or a negative errno. */
int mdev_read_types(const Sysfs *fs, int dir_fd, const char *known, char **ret);
/* Reads the type id of a mediated device of the parent at dir_fd. Returns 0, -ENOENT when there is no such device,
 * -EBADMSG when its type has a foreign name, or another negative errno. */
int mdev_read_type(int dir_fd, const char *uuid, unsigned *ret);

/*
 * Changes the type of the VF's vGPU from one id to another; "0" is none. Returns 1 after a change, 0 when the type is
 * "to" already, or a negative errno: -EBUSY when it is neither from nor to, -EIO when the write succeeds and another
 * type is shown. A type of the form "TYPE/UUID" is a mediated device.
 */
int vgpu_set_type(const Sysfs *fs, PciAddress vf, const char *from, const char *to);
