/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A cheap digest to detect changed values: FNV-1a, 64 bits. Not collision-resistant against chosen input. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DIGEST_START 14695981039346656037ULL

static inline uint64_t digest_bytes(uint64_t digest, const void *data, size_t size) {
        for (const uint8_t *c = data; size > 0; c++, size--)
                digest = (digest ^ *c) * 1099511628211ULL;
        return digest;
}

/* Also digests the terminating NUL, so that "ab" + "c" and "a" + "bc" differ. NULL counts as "". */
static inline uint64_t digest_string(uint64_t digest, const char *s) {
        return digest_bytes(digest, s ? s : "", strlen(s ? s : "") + 1);
}

static inline uint64_t digest_number(uint64_t digest, int64_t n) {
        return digest_bytes(digest, &n, sizeof(n));
}
