/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads .tree files. */
#pragma once

#include "sim.h"

int tree_load(Sim *sim, const char *path);
int tree_value_set(Node *file, const char *value);                 /* applies NAME=VALUE */
int tree_link_set(Sim *sim, const char *path, const char *target); /* applies NAME -> TARGET */
