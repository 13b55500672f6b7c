/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the present tree in the .tree format. */
#pragma once

#include <stdio.h>

#include "sim.h"

void sim_dump(const Sim *sim, FILE *f);
void sim_print(const Sim *sim, FILE *f); /* without directives, like a recording of passthroughctl */
