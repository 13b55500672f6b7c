/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing the tree as it is now in the .tree format. */
#pragma once

#include <stdio.h>

#include "sim.h"

void sim_dump(const Sim *sim, FILE *f);
void sim_print(const Sim *sim, FILE *f); /* without directives, as passthroughctl records it */
