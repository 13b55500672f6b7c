/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vGPUs on the VFs of a GPU: what the vendor's VFIO driver shows below nvidia/, as read in public tools that use it, or
 * mediated devices, as the kernel has them. */
#pragma once

#include "sim.h"

void vgpu_make(Sim *sim, Node *vf);   /* a driver of the host was bound to the VF */
void vgpu_remove(Sim *sim, Node *vf); /* it is unbound: the vGPU is lost */

mode_t vgpu_mode(const Node *file); /* 0: it is not a file that vgpu_write() knows */
int vgpu_write(Sim *sim, Node *file, const char *value);
