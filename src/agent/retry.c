/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "agent/retry.h"

#include <sys/random.h>

#include "util/cleanup.h"

#define RETRY_MIN_USEC UINT64_C(1000000)
#define RETRY_MAX_USEC (60 * RETRY_MIN_USEC)

uint64_t random_usec(uint64_t max) {
        uint64_t n = 0;

        if (getrandom(&n, sizeof(n), GRND_NONBLOCK) < 0)
                return 0;
        return n % max;
}

uint64_t retry_usec(uint64_t *delay) {
        *delay = *delay == 0 ? RETRY_MIN_USEC : MIN(*delay * 2, RETRY_MAX_USEC);
        return *delay / 2 + random_usec(*delay);
}
