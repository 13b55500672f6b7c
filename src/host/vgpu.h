/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Creates and removes the vGPU of a VF, by nvidia/current_vgpu_type or as a mediated device. */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/*
 * Changes the type of the VF's vGPU from one id to another; "0" is none. Returns 1 after a change, 0 when the VF has
 * type to already, or a negative errno: -EBUSY when it has neither from nor to, -EIO when the driver accepts the write
 * and shows another type. A type of the form "TYPE/UUID" is a mediated device of mdev.h.
 */
int vgpu_set_type(const Sysfs *fs, PciAddress vf, const char *from, const char *to);
