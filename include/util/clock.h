/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Clocks of the kernel, in microseconds. */

#include <stdint.h>
#include <time.h>

/* The time of CLOCK_MONOTONIC or CLOCK_REALTIME. */
uint64_t clock_usec(clockid_t clock);
