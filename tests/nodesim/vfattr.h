/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a PF keeps of each VF: the state behind rtnetlink, the sriov directory of MLNX_OFED, the iov directory of
 * mlx4. */
#pragma once

#include "sim.h"

int vf_kind_parse(const char *name, VfKind *ret);
const char *vf_kind_name(VfKind kind);

void vfattr_make(Sim *sim, Node *pf, VfKind kind, unsigned vf); /* what is there already stays */
void vfattr_remove(Sim *sim, Node *pf, VfKind kind, unsigned vf);
void vfattr_forget(Node *pf); /* what was kept for VFs that come back: its driver goes */

bool vfattr_is_writable(const Node *file);
int vfattr_write(Sim *sim, Node *file, const char *value);
