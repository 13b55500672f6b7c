/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The time in microseconds, with a fraction. */

#include <time.h>

static inline double now_us(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}
