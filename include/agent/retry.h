/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Times between tries. Without random numbers, all agents that the restart of a server has cut off would return at
 * once. */

#include <stdint.h>

/* Below max. */
uint64_t random_usec(uint64_t max);

/* The time until the next try: 0.5 to 1.5 of *delay, which doubles with each call, from 1 to 60 s. *delay is 0 at the
 * first failure. */
uint64_t retry_usec(uint64_t *delay);
