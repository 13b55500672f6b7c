/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Text to numbers and sizes, and small string helpers. Everything here is pure. */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/cleanup.h"

/* Unsigned decimal, whole string, no sign, no space. -EINVAL on anything else, -ERANGE when larger than max. */
int parse_unsigned(const char *s, uint64_t max, uint64_t *ret);

/* Hexadecimal with or without 0x, whole string. -EINVAL, or -ERANGE when larger than max. */
int parse_hex(const char *s, uint64_t max, uint64_t *ret);

/* Writes the value in at least so many lower-case hexadecimal digits, as "%0*x" does but several times faster, and no
 * NUL. Returns the end of what it wrote, 16 bytes at most. */
char *format_hex(char *at, uint64_t value, unsigned digits);

/* Bytes: a decimal number with an optional suffix K M G T (powers of 1024; "GiB" and "GB" too). -EINVAL, -ERANGE on
 * overflow. */
int parse_size(const char *s, uint64_t *ret);

/* Writes a size for people: the largest binary unit that divides it, "20 GiB", "1536 MiB". SIZE_STRING_MAX bytes are
 * enough. */
#define SIZE_STRING_MAX 32
const char *format_size(uint64_t bytes, char buf[static SIZE_STRING_MAX]);
#define FORMAT_SIZE(bytes) format_size((bytes), (char[SIZE_STRING_MAX]){ 0 })

/* The ending of a regular noun, and the verb, that follow a count: "%u VF%s %s wanted". */
#define PLURAL(n) ((n) == 1 ? "" : "s")
#define ARE(n)    ((n) == 1 ? "is" : "are")

/* The formatted string. Caller frees; NULL when out of memory. */
char *string_format(const char *format, ...) _printf_(1, 2);
char *string_vformat(const char *format, va_list ap) _printf_(1, 0);

/* Replaces *s (freed) by a formatted string. -ENOMEM leaves *s as it was. */
int string_replace(char **s, const char *format, ...) _printf_(2, 3);

/* Copies s into *target, freeing what was there; NULL s clears it. -ENOMEM leaves *target as it was. */
int string_copy(char **target, const char *s);

/* Takes the next word, up to a space or tab, off *rest, which it cuts up. NULL when there is none left. */
char *string_next_word(char **rest);

/* Grows an array so that at least one more element fits; used with n as the number in use. -ENOMEM leaves it as it was.
 */
int array_reserve(void **array, size_t n, size_t element_size);
#define ARRAY_RESERVE(array, n) array_reserve((void **) &(array), (n), sizeof(*(array)))

/* True when s is at most UTF-8 text without control characters. */
bool text_is_clean(const char *s);

/*
 * Text of others, fit to stand in a sentence: at most 64 bytes, cut between characters with "..." after it; control
 * characters and what is not UTF-8 as \xHH for each byte. QUOTABLE_MAX bytes are enough.
 */
#define QUOTABLE_MAX 68
const char *quotable(const char *s, char buf[static QUOTABLE_MAX]);
#define QUOTABLE(s) quotable((s), (char[QUOTABLE_MAX]){ 0 })
