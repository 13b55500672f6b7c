/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/cpuset.h"

#define WORDS (CPUSET_MAX / 64)
#define SPACE " \t\n"

void cpuset_add(CpuSet *set, unsigned n) {
        assert(n < CPUSET_MAX);
        set->words[n / 64] |= UINT64_C(1) << n % 64;
}

void cpuset_remove(CpuSet *set, unsigned n) {
        if (n < CPUSET_MAX)
                set->words[n / 64] &= ~(UINT64_C(1) << n % 64);
}

bool cpuset_has(const CpuSet *set, unsigned n) {
        return n < CPUSET_MAX && set->words[n / 64] >> n % 64 & 1;
}

unsigned cpuset_count(const CpuSet *set) {
        unsigned n = 0;

        for (size_t i = 0; i < WORDS; i++)
                n += (unsigned) __builtin_popcountll(set->words[i]);
        return n;
}

bool cpuset_is_empty(const CpuSet *set) {
        return cpuset_next(set, 0) < 0;
}

bool cpuset_intersects(const CpuSet *a, const CpuSet *b) {
        for (size_t i = 0; i < WORDS; i++)
                if (a->words[i] & b->words[i])
                        return true;
        return false;
}

bool cpuset_equal(const CpuSet *a, const CpuSet *b) {
        return memcmp(a->words, b->words, sizeof(a->words)) == 0;
}

void cpuset_merge(CpuSet *set, const CpuSet *other) {
        for (size_t i = 0; i < WORDS; i++)
                set->words[i] |= other->words[i];
}

void cpuset_subtract(CpuSet *set, const CpuSet *other) {
        for (size_t i = 0; i < WORDS; i++)
                set->words[i] &= ~other->words[i];
}

int cpuset_next(const CpuSet *set, unsigned from) {
        if (from >= CPUSET_MAX)
                return -1;

        for (size_t i = from / 64; i < WORDS; i++) {
                uint64_t word = set->words[i];

                if (i == from / 64)
                        word &= ~UINT64_C(0) << from % 64;
                if (word)
                        return (int) (i * 64) + __builtin_ctzll(word);
        }
        return -1;
}

static int take_number(const char **s, unsigned *ret) {
        unsigned value = 0;
        size_t n = strspn(*s, "0123456789");

        if (n == 0)
                return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                value = value * 10 + (unsigned) ((*s)[i] - '0');
                if (value >= CPUSET_MAX)
                        return -ERANGE;
        }
        *s += n;
        *ret = value;
        return 0;
}

/* Parses a number or range, "8" or "0-3", into the set. 0, -EINVAL or -ERANGE. */
static int take_range(const char **s, CpuSet *set) {
        unsigned first, last;
        int r;

        r = take_number(s, &first);
        if (r < 0)
                return r;
        last = first;
        if (**s == '-') {
                (*s)++;
                r = take_number(s, &last);
                if (r < 0)
                        return r;
        }
        if (last < first)
                return -EINVAL;

        for (unsigned i = first; i <= last; i++)
                cpuset_add(set, i);
        return 0;
}

int cpuset_parse(const char *s, CpuSet *ret) {
        CpuSet set = { 0 };
        int r;

        s += strspn(s, SPACE);
        while (*s) {
                r = take_range(&s, &set);
                if (r < 0)
                        return r;
                if (*s != ',')
                        break;
                s++;
                if (!*s)
                        return -EINVAL;
        }
        s += strspn(s, SPACE);
        if (*s)
                return -EINVAL;

        *ret = set;
        return 0;
}

char *cpuset_format(const CpuSet *set) {
        /* The longest text is of pairs, "1000-1001,": ten bytes for two members and a gap. */
        char *buf = malloc((CPUSET_MAX / 3 + 1) * 10 + 1);
        char *p = buf, *fitted;

        if (!buf)
                return NULL;

        *p = 0;
        for (int first = cpuset_next(set, 0), last; first >= 0; first = cpuset_next(set, (unsigned) last + 1)) {
                last = first;
                while (cpuset_has(set, (unsigned) last + 1))
                        last++;
                p += sprintf(p, first == last ? "%s%d" : "%s%d-%d", p == buf ? "" : ",", first, last);
        }

        fitted = realloc(buf, (size_t) (p - buf) + 1);
        return fitted ? fitted : buf;
}
