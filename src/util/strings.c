/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "util/strings.h"

/* Returns the value of a hexadecimal digit; 16 for other characters. */
static unsigned digit_value(char c) {
        if (c >= '0' && c <= '9')
                return (unsigned) (c - '0');
        if (c >= 'a' && c <= 'f')
                return (unsigned) (c - 'a') + 10;
        if (c >= 'A' && c <= 'F')
                return (unsigned) (c - 'A') + 10;
        return 16;
}

/* Parses exactly len digits, unlike strtoull(), which also accepts signs, spaces and octal numbers. Returns 0, -EINVAL
 * or -ERANGE. */
static int parse_digits(const char *s, size_t len, unsigned base, uint64_t max, uint64_t *ret) {
        uint64_t value = 0;
        bool over = false;

        if (len == 0)
                return -EINVAL;

        /* Continue after an overflow, because text that is no number is -EINVAL even if it is long. */
        for (size_t i = 0; i < len; i++) {
                unsigned digit = digit_value(s[i]);

                if (digit >= base)
                        return -EINVAL;
                if (__builtin_mul_overflow(value, (uint64_t) base, &value) ||
                    __builtin_add_overflow(value, (uint64_t) digit, &value))
                        over = true;
        }
        if (over || value > max)
                return -ERANGE;

        *ret = value;
        return 0;
}

int parse_unsigned(const char *s, uint64_t max, uint64_t *ret) {
        return parse_digits(s, strlen(s), 10, max, ret);
}

int parse_hex(const char *s, uint64_t max, uint64_t *ret) {
        if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
                s += 2;
        return parse_digits(s, strlen(s), 16, max, ret);
}

char *format_hex(char *at, uint64_t value, unsigned digits) {
        unsigned n = MAX(digits, 1U);

        while (n < 16 && value >> 4 * n != 0)
                n++;
        while (n-- > 0)
                *at++ = "0123456789abcdef"[value >> 4 * n & 0xf];
        return at;
}

char *format_unsigned(char *at, uint64_t value) {
        char digits[20];
        size_t n = 0;

        do
                digits[n++] = (char) ('0' + value % 10);
        while ((value /= 10) > 0);
        while (n > 0)
                *at++ = digits[--n];
        return at;
}

static const char size_units[] = { 'K', 'M', 'G', 'T' };
#define DECIMAL_UNITS_MAX 3U /* up to GiB: people write 1500 GiB; a tenth of a TiB is too coarse */

/* Returns by how many bits the unit "", "G", "GB" or "GiB" shifts a number; -EINVAL for other text. */
static int parse_size_unit(const char *unit) {
        if (!*unit)
                return 0;

        for (size_t i = 0; i < ELEMENTSOF(size_units); i++)
                if (unit[0] == size_units[i])
                        return !unit[1] || streq(unit + 1, "B") || streq(unit + 1, "iB") ? (int) (10 * (i + 1))
                                                                                         : -EINVAL;
        return -EINVAL;
}

int parse_size(const char *s, uint64_t *ret) {
        size_t digits = strspn(s, "0123456789");
        uint64_t value;
        int shift, r;

        shift = parse_size_unit(s + digits);
        if (shift < 0)
                return shift;

        r = parse_digits(s, digits, 10, UINT64_MAX >> shift, &value);
        if (r < 0)
                return r;

        *ret = value << shift;
        return 0;
}

const char *format_size(uint64_t bytes, bool up, char buf[static SIZE_STRING_MAX]) {
        uint64_t unit = 1, rest, whole, tenths;
        size_t units = 0;

        for (; units < DECIMAL_UNITS_MAX && bytes / unit >= 1024; units++)
                unit <<= 10;
        rest = bytes % unit;
        if (rest == 0)
                return format_size_exact(bytes, buf);

        tenths = (rest * 10 + (up ? unit - 1 : 0)) / unit;
        whole = bytes / unit + tenths / 10;
        if (whole == 1024 && units < DECIMAL_UNITS_MAX) {
                whole = 1;
                units++;
        }
        (void) snprintf(buf, SIZE_STRING_MAX, "%" PRIu64 ".%" PRIu64 " %ciB", whole, tenths % 10,
                        size_units[units - 1]);
        return buf;
}

const char *format_size_exact(uint64_t bytes, char buf[static SIZE_STRING_MAX]) {
        size_t units = 0;

        while (units < ELEMENTSOF(size_units) && bytes > 0 && bytes % 1024 == 0) {
                bytes /= 1024;
                units++;
        }

        if (units == 0)
                (void) snprintf(buf, SIZE_STRING_MAX, "%" PRIu64 " B", bytes);
        else
                (void) snprintf(buf, SIZE_STRING_MAX, "%" PRIu64 " %ciB", bytes, size_units[units - 1]);
        return buf;
}

const char *format_more(size_t n, char buf[static AND_MORE_MAX]) {
        buf[0] = '\0';
        if (n > 0)
                (void) snprintf(buf, AND_MORE_MAX, " and %zu more", n);
        return buf;
}

char *string_vformat(const char *format, va_list ap) {
        char *s;

        return vasprintf(&s, format, ap) < 0 ? NULL : s;
}

char *string_format(const char *format, ...) {
        return FORMAT_ARGUMENTS(format);
}

int string_replace(char **s, const char *format, ...) {
        char *fresh = FORMAT_ARGUMENTS(format);

        if (!fresh)
                return -ENOMEM;

        /* Free the old text last, because the arguments may point into it. */
        free(*s);
        *s = fresh;
        return 0;
}

int string_append(char **s, const char *separator, const char *format, ...) {
        _cleanup_free_ char *added = FORMAT_ARGUMENTS(format);
        size_t before = *s ? strlen(*s) : 0;
        char *longer;

        longer = added ? realloc(*s, before + strlen(separator) + strlen(added) + 1) : NULL;
        if (!longer)
                return -ENOMEM;
        (void) stpcpy(stpcpy(longer + before, before > 0 ? separator : ""), added);
        *s = longer;
        return 0;
}

int string_copy(char **target, const char *s) {
        char *copy = NULL;

        if (s) {
                copy = strdup(s);
                if (!copy)
                        return -ENOMEM;
        }
        free(*target);
        *target = copy;
        return 0;
}

char *string_next_word(char **rest) {
        char *word;

        while ((word = strsep(rest, " \t")))
                if (*word)
                        return word;
        return NULL;
}

bool string_next_words(char **rest, char **words, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!(words[i] = string_next_word(rest)))
                        return false;
        return true;
}

/* The capacity of an array is the next of 4, 8, 16, ... that is at least n. It follows from n, so callers need not
 * store it. */
int array_reserve(void **array, size_t n, size_t element_size) {
        size_t capacity, bytes;
        void *p;

        if (n != 0 && (n < 4 || (n & (n - 1)) != 0))
                return 0;
        if (__builtin_mul_overflow(n, (size_t) 2, &capacity) ||
            __builtin_mul_overflow(MAX(capacity, (size_t) 4), element_size, &bytes))
                return -ENOMEM;

        /* Copy the pointer with memcpy(), because the caller's pointer is not of type void *. */
        memcpy(&p, array, sizeof(p));
        p = realloc(p, bytes);
        if (!p)
                return -ENOMEM;
        memcpy(array, &p, sizeof(p));
        return 0;
}

bool text_is_ascii(const char *s, size_t n) {
        uint64_t bits = 0, word = 0;

        for (; n >= sizeof(word); s += sizeof(word), n -= sizeof(word)) {
                memcpy(&word, s, sizeof(word));
                bits |= word;
        }
        word = 0;
        memcpy(&word, s, n);
        return ((bits | word) & UINT64_C(0x8080808080808080)) == 0;
}

size_t utf8_decode(const char *s, size_t n, uint32_t *ret) {
        static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
        static const uint8_t lead_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
        uint8_t lead = n > 0 ? (uint8_t) s[0] : 0;
        uint32_t code;
        size_t len;

        if (lead < 0x80)
                len = 1;
        else if (lead >= 0xc0 && lead < 0xe0)
                len = 2;
        else if (lead >= 0xe0 && lead < 0xf0)
                len = 3;
        else if (lead >= 0xf0 && lead < 0xf8)
                len = 4;
        else
                return 0;
        if (len > n)
                return 0;

        code = lead & lead_bits[len];
        for (size_t i = 1; i < len; i++) {
                if (((uint8_t) s[i] & 0xc0) != 0x80)
                        return 0;
                code = code << 6 | ((uint8_t) s[i] & 0x3f);
        }
        if (code < smallest[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
                return 0;

        *ret = code;
        return len;
}

size_t utf8_encode(uint32_t code, char *buf) {
        static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
        size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

        for (size_t i = n - 1; i > 0; i--, code >>= 6)
                buf[i] = (char) (0x80 | (code & 0x3f));
        buf[0] = (char) (lead[n] | code);
        return n;
}

/* Returns true for a code point that Unicode reserves as a noncharacter. XML excludes U+FFFE and U+FFFF, and sd-bus
 * refuses a message with any noncharacter. */
static bool is_noncharacter(uint32_t code) {
        return (code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) == 0xfffe;
}

/* Returns false for control characters (C0, DEL, C1), line breaks, invisible characters, characters that change the
 * text direction, and noncharacters. Three kinds of invisible characters are allowed: U+200C and U+200D, which Persian
 * words and emoji need, and variation selectors. */
static bool is_plain(uint32_t code) {
        static const uint32_t others[][2] = {
                { 0x00, 0x1f },       { 0x7f, 0x9f },       { 0xad, 0xad },       { 0x34f, 0x34f },
                { 0x61c, 0x61c },     { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180e, 0x180e },
                { 0x200b, 0x200b },   { 0x200e, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f },
                { 0x3164, 0x3164 },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff9, 0xfffb },
                { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe007f },
        };

        for (size_t i = 0; i < ELEMENTSOF(others) && code >= others[i][0]; i++)
                if (code <= others[i][1])
                        return false;
        return !is_noncharacter(code);
}

bool text_is_utf8(const char *s) {
        uint32_t code;

        if (text_is_ascii(s, strlen(s)))
                return true;
        while (*s) {
                size_t len = utf8_decode(s, SIZE_MAX, &code);

                if (len == 0 || is_noncharacter(code))
                        return false;
                s += len;
        }
        return true;
}

bool text_is_clean(const char *s) {
        while (*s) {
                uint32_t code;
                size_t len = utf8_decode(s, SIZE_MAX, &code);

                if (len == 0 || !is_plain(code))
                        return false;
                s += len;
        }
        return true;
}

bool text_is_uuid(const char *s) {
        static const char pattern[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
        size_t i = 0;

        if (strlen(s) != strlen(pattern))
                return false;
        while (pattern[i] && (pattern[i] == '-' ? s[i] == '-' : strchr("0123456789abcdef", s[i]) != NULL))
                i++;
        return !pattern[i];
}

const char *quotable(const char *s, char buf[static QUOTABLE_MAX]) {
        const size_t limit = QUOTABLE_MAX - sizeof("...");
        size_t n = 0;

        while (*s) {
                uint32_t code = 0;
                size_t len = utf8_decode(s, SIZE_MAX, &code);
                bool plain = len > 0 && is_plain(code);
                /* Each byte that is escaped takes the four characters \xHH. A character that is not plain has up to
                 * four bytes; of an invalid sequence, one byte at a time is escaped. */
                size_t needed = plain ? len : 4 * MAX(len, (size_t) 1);

                if (n + needed > limit) {
                        memcpy(buf + n, "...", 3);
                        n += 3;
                        break;
                }
                if (plain) {
                        memcpy(buf + n, s, len);
                        s += len;
                } else
                        for (size_t i = 0; i < needed; i += 4)
                                (void) snprintf(buf + n + i, 5, "\\x%02x", (uint8_t) *s++);
                n += needed;
        }
        buf[n] = 0;
        return buf;
}

size_t text_prefix(const char *text, size_t max) {
        size_t n = 0, size;
        uint32_t code;

        while (text[n] && (size = utf8_decode(text + n, strlen(text + n), &code)) > 0 && n + size <= max)
                n += size;
        return n;
}

int base64_decode(const char *text, char **ret) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        _cleanup_free_ char *out = malloc(strlen(text) + 1);
        unsigned bits = 0, n_bits = 0;
        size_t n = 0;

        if (!out)
                return -ENOMEM;
        for (; *text && *text != '='; text++) {
                const char *digit = strchr(digits, *text);

                if (*text == '\n' || *text == ' ')
                        continue;
                if (!digit)
                        return -EINVAL;
                bits = bits << 6 | (unsigned) (digit - digits);
                n_bits += 6;
                if (n_bits >= 8)
                        out[n++] = (char) (bits >> (n_bits -= 8));
        }
        out[n] = '\0';
        *ret = TAKE_PTR(out);
        return 0;
}
