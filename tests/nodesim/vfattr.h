/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The attributes of VFs in a PF: the state behind rtnetlink, the sriov directory of MLNX_OFED, the iov directory of
 * mlx4. */
#pragma once

#include "sim.h"

int vf_kind_parse(const char *name, VfKind *ret);
const char *vf_kind_name(VfKind kind);

void vfattr_make(Sim *sim, Node *pf, VfKind kind, unsigned vf); /* keeps existing files */
void vfattr_remove(Sim *sim, Node *pf, VfKind kind, unsigned vf);
void vfattr_forget(Node *pf); /* drops the attributes kept for VFs, when the driver is unbound */

bool vfattr_is_writable(const Node *file);
int vfattr_write(Sim *sim, Node *file, const char *value);
