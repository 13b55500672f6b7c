/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vGPUs on the VFs of a GPU: the files of the vendor's VFIO driver below nvidia/, as public tools use them. Or mediated
 * devices, as in the kernel, on the VFs or on a GPU without VFs. */
#pragma once

#include "sim.h"

void vgpu_make(Sim *sim, Node *dev);   /* called after a host driver was bound to the VF or GPU */
void vgpu_remove(Sim *sim, Node *dev); /* called after its unbind: the vGPUs are lost */

mode_t vgpu_mode(const Node *file); /* 0: vgpu_write() does not handle the file */
int vgpu_write(Sim *sim, Node *file, const char *value);
