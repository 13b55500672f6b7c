/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "options.h"
#include "reply.h"

/* Prints a plan so that it fits a screen: devices with the distance of each pair, CPUs, memory, cost, runner-up.
 * --paths adds what ACS and ATS allow between the pairs, --steps the steps. 0 or a negative errno, reported. */
int plan_print(const Args *args, json_object *plan);
