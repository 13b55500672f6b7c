/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The clocks of the kernel. */

#include <stdint.h>
#include <time.h>

/* Returns the time of a clock of clock_gettime(2), in microseconds. */
uint64_t clock_usec(clockid_t clock);
