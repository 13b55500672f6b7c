/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Brace expansion in lines of a hand-written .tree file: {A-B} in paths, {} in values. */

#include <ctype.h>
#include <errno.h>

#include "expand.h"
#include "util/strings.h"
#include "util/tree.h"

#define GROUPS_MAX 4U
#define RANGE_MAX  65536U
#define DIGITS_MAX 16

typedef struct Number {
        unsigned long value;
        int width;
        bool hex;
} Number;

#define NUMBER_STRING_MAX 32

typedef struct Expansion {
        Number numbers[GROUPS_MAX];
        size_t n;
        const char *value;
        ExpandFunction function;
        void *userdata;
} Expansion;

static const char *number_format(const Number *number, char buf[static NUMBER_STRING_MAX]) {
        (void) snprintf(buf, NUMBER_STRING_MAX, number->hex ? "%0*lx" : "%0*lu", number->width, number->value);
        return buf;
}

/* Parses a number. 0x3b makes the expansion hexadecimal; 0x3b and 007 keep their width. */
static int number_parse(const char **p, Number *ret) {
        bool hex = strncmp(*p, "0x", 2) == 0;
        const char *digits = *p + (hex ? 2 : 0);
        size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");

        if (n == 0 || n > DIGITS_MAX)
                return -EINVAL;
        *ret = (Number) {
                .value = strtoul(digits, NULL, hex ? 16 : 10),
                .width = hex || *digits == '0' ? (int) n : 0,
                .hex = hex,
        };
        *p = digits + n;
        return 0;
}

/*
 * Parses a reference at *p: {}, {+N}, {-N}, {K}, {K+N} or {K-N}. K is the number of a group in the path, counted from
 * 1. Without K, the reference is to the last group.
 */
static bool reference_parse(const Expansion *e, const char **p, Number *ret) {
        const char *s = *p + 1;
        unsigned long group = e->n;
        long add = 0;
        char *end;

        if (isdigit((unsigned char) *s)) {
                group = strtoul(s, &end, 10);
                s = end;
        }
        if (*s == '+' || *s == '-') {
                add = strtol(s, &end, 0);
                s = end;
        }
        if (*s != '}' || group < 1 || group > e->n)
                return false;
        *ret = e->numbers[group - 1];
        ret->value += (unsigned long) add;
        *p = s + 1;
        return true;
}

static int value_write(const Expansion *e, FILE *f) {
        for (const char *p = e->value; *p;) {
                size_t n = strcspn(p, "{");
                char buf[NUMBER_STRING_MAX];
                Number number;

                (void) fwrite(p, 1, n, f);
                p += n;
                if (*p && reference_parse(e, &p, &number))
                        (void) fputs(number_format(&number, buf), f);
                else if (*p)
                        (void) fputc(*p++, f);
        }
        return ferror(f) ? -ENOMEM : 0;
}

static int value_expand(const Expansion *e, char **ret) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f;
        int r;

        if (e->n == 0 || !strchr(e->value, '{')) {
                *ret = strdup(e->value);
                return *ret ? 0 : -ENOMEM;
        }
        f = open_memstream(&text, &size);
        if (!f)
                return -ENOMEM;
        r = value_write(e, f);
        if (fclose(f) != 0 || r < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(text);
        return 0;
}

static int expand_from(Expansion *e, const char *done, const char *rest);

static int expand_range(Expansion *e, const char *done, const char *rest, Number first, const Number *last) {
        int r = 0;

        if (e->n >= GROUPS_MAX || last->value < first.value || last->value - first.value > RANGE_MAX)
                return -EINVAL;
        e->n++;
        for (unsigned long left = last->value - first.value + 1; left > 0 && r >= 0; left--, first.value++) {
                char buf[NUMBER_STRING_MAX];
                _cleanup_free_ char *path = string_format("%s%s", done, number_format(&first, buf));

                e->numbers[e->n - 1] = first;
                r = path ? expand_from(e, path, rest) : -ENOMEM;
        }
        e->n--;
        return r;
}

/* p: the opening brace; path: the expanded text before it. */
static int expand_group(Expansion *e, const char *path, const char *p) {
        const char *close = strchr(p, '}');

        if (!close)
                return -EINVAL;
        do {
                Number first, last;
                int r;

                p++;
                r = number_parse(&p, &first);
                last = first;
                if (r >= 0 && *p == '-') {
                        p++;
                        r = number_parse(&p, &last);
                }
                if (r >= 0 && *p != ',' && p != close)
                        return -EINVAL;
                if (r >= 0)
                        r = expand_range(e, path, close + 1, first, &last);
                if (r < 0)
                        return r;
        } while (*p == ',');
        return 0;
}

static int expand_from(Expansion *e, const char *done, const char *rest) {
        size_t n = strcspn(rest, "{");
        _cleanup_free_ char *path = NULL, *value = NULL;
        int r;

        if (strlen(done) + n > TREE_PATH_MAX)
                return -E2BIG;
        path = string_format("%s%.*s", done, (int) n, rest);
        if (!path)
                return -ENOMEM;
        if (rest[n] == '{')
                return expand_group(e, path, rest + n);
        r = value_expand(e, &value);
        return r < 0 ? r : e->function(path, value, e->userdata);
}

int tree_expand(const char *path, const char *value, ExpandFunction f, void *userdata) {
        return expand_from(&(Expansion) { .value = value, .function = f, .userdata = userdata }, "", path);
}
