/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vGPUs on the VFs of a GPU: what the vendor's VFIO driver shows below nvidia/, as read in public tools that use it. Or
 * mediated devices, as the kernel has them, on the VFs or on a GPU without VFs. */
#pragma once

#include "sim.h"

void vgpu_make(Sim *sim, Node *dev);   /* a driver of the host was bound to the VF or GPU */
void vgpu_remove(Sim *sim, Node *dev); /* it is unbound: the vGPUs are lost */

mode_t vgpu_mode(const Node *file); /* 0: it is not a file that vgpu_write() knows */
int vgpu_write(Sim *sim, Node *file, const char *value);
