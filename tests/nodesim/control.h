/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory .nodesim at the root of the mount, through which a test speaks to the simulator. */
#pragma once

#include "sim.h"

void control_make(Sim *sim);
int control_write(Sim *sim, const char *data, size_t size);       /* one command a line */
char *control_read(Sim *sim, const Node *file, size_t *ret_size); /* made when opened */
