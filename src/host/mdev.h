/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Creates and removes the vGPU of a VF: by nvidia/current_vgpu_type, or as a mediated device.
 *
 * Mediated devices as vGPUs: their driver lists types in mdev_supported_types/ of the parent, a VF or a GPU without VFs
 * (kernel Documentation/ABI/testing/sysfs-bus-vfio-mdev). The name of a type's directory begins with the name of the
 * driver. With NVIDIA's driver the name ends with a number, as in nvidia-558, and that number is the id of the type.
 * GVT-g has names such as i915-GVTg_V5_4: the id of such a type is a digest of the name. A function that takes the
 * address of a VF also takes the address of a slot (model/mdev-slots.h), which stands for the GPU of the slot.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* Lists the types of the parent at dir_fd in the format of model/vgpu.h, "" for none. known: an earlier list of the
 * parent, or NULL; the names that it has are not read again. Frees the former *ret, and the caller frees the new one.
 * Returns 0 or a negative errno, which leaves *ret unchanged. */
int mdev_read_types(const Sysfs *fs, int dir_fd, const char *known, char **ret);
/* Reads the type id of the mediated device of the parent at dir_fd. Returns 0; -ENOENT when there is no such device;
 * -EBADMSG when the name of its type has no '-', has a space, or is too long; or another negative errno. */
int mdev_read_type(int dir_fd, const char *uuid, unsigned *ret);

/*
 * Creates a vGPU of the type with this id or, if not wanted, removes it: as the mediated device with the UUID `mdev`,
 * or if that is NULL, by current_vgpu_type of the VF. Returns 1 after a change, 0 when nothing was to do, or a negative
 * errno: -EBUSY when the VF has a vGPU of another type, -EEXIST when the mediated device is of another type, -ENOENT
 * when the type does not exist, -EIO when the driver accepts the write without effect, -EPERM when it does not remove
 * the mediated device because a process has it open.
 */
int vgpu_set(const Sysfs *fs, PciAddress vf, unsigned type, const char *mdev, bool wanted);
