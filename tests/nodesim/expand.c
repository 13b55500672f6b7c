/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Owns the expansion of braces and escapes. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "expand.h"
#include "node.h"

enum {
        GROUPS_MAX = 4,
        RANGE_MAX = 65536
};

typedef struct Number {
        unsigned long value;
        int width;
        bool hex;
} Number;

typedef struct Expansion {
        Number numbers[GROUPS_MAX];
        size_t n;
        const char *value;
        ExpandFunction function;
        void *userdata;
} Expansion;

static char *number_format(const Number *number) {
        return number->hex ? xasprintf("%0*lx", number->width, number->value)
                           : xasprintf("%0*lu", number->width, number->value);
}

/* 0x3b counts in hex, and like 007 keeps its width. */
static int number_parse(const char **p, Number *ret) {
        bool hex = strncmp(*p, "0x", 2) == 0;
        const char *digits = *p + (hex ? 2 : 0);
        char *end;

        if (!isxdigit((unsigned char) *digits))
                return -EINVAL;
        ret->hex = hex;
        ret->value = strtoul(digits, &end, hex ? 16 : 10);
        ret->width = hex || *digits == '0' ? (int) (end - digits) : 0;
        if (end == digits)
                return -EINVAL;
        *p = end;
        return 0;
}

/* One of {}, {+N}, {-N}, {K}, {K+N}, {K-N} at *p: K counts the groups of the path from 1, none means the last. */
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

static char *value_expand(const Expansion *e) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                abort();
        for (const char *p = e->value; *p;) {
                Number number;

                if (*p == '{' && reference_parse(e, &p, &number)) {
                        _cleanup_free_ char *s = number_format(&number);
                        fputs(s, f);
                } else
                        fputc(*p++, f);
        }
        fclose(f);
        return text;
}

static int expand_from(Expansion *e, const char *done, const char *rest);

static int expand_range(Expansion *e, const char *done, const char *rest, Number first, const Number *last) {
        Number *slot = e->numbers + e->n;
        int r = 0;

        if (e->n >= GROUPS_MAX || last->value < first.value || last->value - first.value > RANGE_MAX)
                return -EINVAL;
        e->n++;
        for (; first.value <= last->value && r == 0; first.value++) {
                *slot = first;
                _cleanup_free_ char *text = number_format(slot);
                _cleanup_free_ char *path = xasprintf("%s%s", done, text);
                r = expand_from(e, path, rest);
        }
        e->n--;
        return r;
}

static int expand_from(Expansion *e, const char *done, const char *rest) {
        size_t n = strcspn(rest, "{");
        _cleanup_free_ char *path = xasprintf("%s%.*s", done, (int) n, rest);
        const char *p = rest + n, *close = strchr(p, '}');
        int r;

        if (*p == '\0') {
                _cleanup_free_ char *value = value_expand(e);
                return e->function(e->userdata, path, value);
        }
        if (!close)
                return -EINVAL;
        do {
                Number first, last;

                p++;
                r = number_parse(&p, &first);
                last = first;
                if (r == 0 && *p == '-') {
                        p++;
                        r = number_parse(&p, &last);
                }
                if (r == 0)
                        r = expand_range(e, path, close + 1, first, &last);
                if (r < 0)
                        return r;
        } while (*p == ',');
        return p == close ? 0 : -EINVAL;
}

int expand(const char *path, const char *value, ExpandFunction function, void *userdata) {
        Expansion e = { .value = value, .function = function, .userdata = userdata };

        return expand_from(&e, "", path);
}

static int unescape_one(const char **p, char *ret) {
        unsigned byte;

        switch (*(*p)++) {
        case 'n':
                *ret = '\n';
                return 0;
        case 't':
                *ret = '\t';
                return 0;
        case '\\':
                *ret = '\\';
                return 0;
        case 'x':
                if (!isxdigit((unsigned char) (*p)[0]) || !isxdigit((unsigned char) (*p)[1]))
                        return -EINVAL;
                (void) sscanf(*p, "%2x", &byte);
                *ret = (char) byte;
                *p += 2;
                return 0;
        default:
                return -EINVAL;
        }
}

char *unescape(const char *s, size_t *ret_size) {
        char *text = xrealloc(NULL, strlen(s) + 2, 1); /* one to spare, callers add a newline */
        size_t n = 0;

        while (*s)
                if (*s != '\\')
                        text[n++] = *s++;
                else if (s++, unescape_one(&s, text + n++) < 0) {
                        free(text);
                        return NULL;
                }
        text[n] = '\0';
        *ret_size = n;
        return text;
}

void escape(FILE *f, const char *s, size_t size) {
        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char) s[i];

                if (c == '\n')
                        fputs("\\n", f);
                else if (c == '\t')
                        fputs("\\t", f);
                else if (c == '\\')
                        fputs("\\\\", f);
                else if (isprint(c))
                        fputc(c, f);
                else
                        fprintf(f, "\\x%02x", c);
        }
}
