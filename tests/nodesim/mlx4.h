/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The iov directory of mlx4's InfiniBand device: who has which GUID, who sees which partition key. */
#pragma once

#include "sim.h"

void mlx4_make(Node *pf, unsigned n_vfs); /* what is there already stays */
bool mlx4_is_writable(const Node *file);
int mlx4_write(Node *file, const char *value);
