/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A fast digest by which changed values are detected: FNV-1a, 64 bits. An attacker who chooses the input can make two
 * values with the same digest. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DIGEST_START 14695981039346656037ULL

static inline uint64_t digest_bytes(uint64_t digest, const void *data, size_t size) {
        for (const uint8_t *c = data; size > 0; c++, size--)
                digest = (digest ^ *c) * 1099511628211ULL;
        return digest;
}

/* Adds the string with its final NUL to the digest, so that "ab" + "c" and "a" + "bc" differ. NULL counts as "". */
static inline uint64_t digest_string(uint64_t digest, const char *s) {
        return digest_bytes(digest, s ? s : "", strlen(s ? s : "") + 1);
}

static inline uint64_t digest_number(uint64_t digest, int64_t n) {
        return digest_bytes(digest, &n, sizeof(n));
}
