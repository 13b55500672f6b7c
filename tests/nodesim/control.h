/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory .nodesim at the root of the mount, by which a test controls the simulator. */
#pragma once

#include "sim.h"

void control_make(Sim *sim);
int control_write(Sim *sim, const char *data, size_t size);       /* one command per line */
char *control_read(Sim *sim, const Node *file, size_t *ret_size); /* the report as of the open */
