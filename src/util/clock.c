/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "util/clock.h"

uint64_t clock_usec(clockid_t clock) {
        struct timespec ts = { 0 };

        (void) clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * 1000000U + (uint64_t) ts.tv_nsec / 1000U;
}
