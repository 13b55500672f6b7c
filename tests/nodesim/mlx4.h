/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The iov directory of mlx4's InfiniBand device: GUIDs and partition keys of PF and VFs. */
#pragma once

#include "sim.h"

void mlx4_make(Node *pf, unsigned n_vfs); /* keeps existing files */
bool mlx4_is_writable(const Node *file);
int mlx4_write(Node *file, const char *value);
