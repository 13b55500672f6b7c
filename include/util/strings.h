/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Parsing of numbers and sizes, and string helpers. Pure. */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/cleanup.h"

/* Parses an unsigned decimal number, without sign or space. -EINVAL for other text, -ERANGE when larger than max. */
int parse_unsigned(const char *s, uint64_t max, uint64_t *ret);

/* Parses a hexadecimal number with or without 0x. -EINVAL for other text, -ERANGE when larger than max. */
int parse_hex(const char *s, uint64_t max, uint64_t *ret);

/*
 * Writes value as at least digits lower-case hexadecimal digits, without a NUL. Same result as "%0*x", several times
 * faster. Returns the end of the text, at most 16 bytes after at.
 */
char *format_hex(char *at, uint64_t value, unsigned digits);

/* Writes value as a decimal number, without a NUL. Returns the end of the text, at most 20 bytes after at. */
char *format_unsigned(char *at, uint64_t value);

/*
 * Parses a size in bytes: a decimal number with an optional suffix K, M, G or T (powers of 1024; "GiB" and "GB" too).
 * -EINVAL for other text, -ERANGE on overflow.
 */
int parse_size(const char *s, uint64_t *ret);

/*
 * Formats a size for people, with one decimal when it is not whole: "20 GiB", "503.4 GiB". What is wanted is rounded up
 * and everything else down, so that a sentence never shows as much free as is wanted when less is. buf: SIZE_STRING_MAX
 * bytes.
 */
#define SIZE_STRING_MAX 32
const char *format_size(uint64_t bytes, bool up, char buf[static SIZE_STRING_MAX]);
#define FORMAT_SIZE(bytes)        format_size((bytes), false, (char[SIZE_STRING_MAX]) { 0 })
#define FORMAT_SIZE_WANTED(bytes) format_size((bytes), true, (char[SIZE_STRING_MAX]) { 0 })

/* Formats a size in the largest binary unit that divides it: "20 GiB", "1536 MiB". For sentences about the last byte,
 * and for sizes that people type again: parse_size() knows no decimals. */
const char *format_size_exact(uint64_t bytes, char buf[static SIZE_STRING_MAX]);
#define FORMAT_SIZE_EXACT(bytes) format_size_exact((bytes), (char[SIZE_STRING_MAX]) { 0 })

/* The end of a list that leaves out n items: " and 5 more"; "" when it leaves out none. */
#define AND_MORE_MAX 32
const char *format_more(size_t n, char buf[static AND_MORE_MAX]);
#define AND_MORE(n) format_more((n), (char[AND_MORE_MAX]) { 0 })

/* Plural "s" of a regular noun, and "is" or "are", for a count: "%u VF%s %s wanted". */
#define PLURAL(n) ((n) == 1 ? "" : "s")
#define ARE(n)    ((n) == 1 ? "is" : "are")

/* Returns the formatted string. The caller frees; NULL when out of memory. */
char *string_format(const char *format, ...) _printf_(1, 2);
char *string_vformat(const char *format, va_list ap) _printf_(1, 0);

/*
 * Frees *s and replaces it with a formatted string, of which *s may be an argument. 0, or -ENOMEM, which leaves *s
 * unchanged.
 */
int string_replace(char **s, const char *format, ...) _printf_(2, 3);

/*
 * Appends a formatted string to *s, which may be NULL; after the separator, unless *s is NULL or empty. 0, or -ENOMEM,
 * which leaves *s unchanged.
 */
int string_append(char **s, const char *separator, const char *format, ...) _printf_(3, 4);

/* Frees *target and sets it to a copy of s, or to NULL if s is NULL. 0, or -ENOMEM, which leaves *target unchanged. */
int string_copy(char **target, const char *s);

/*
 * Returns the next word of *rest and advances *rest. Words are separated by spaces or tabs; the text is modified. NULL
 * when there is no word left.
 */
char *string_next_word(char **rest);
/* The next n words. False when there are fewer; the others are then not set. */
bool string_next_words(char **rest, char **words, size_t n);

/* Makes room for one more element in an array of n elements. 0, or -ENOMEM, which leaves the array unchanged. */
int array_reserve(void **array, size_t n, size_t element_size);
#define ARRAY_RESERVE(array, n) array_reserve((void **) &(array), (n), sizeof(*(array)))

/* True when each of the n bytes is ASCII. */
bool text_is_ascii(const char *s, size_t n);
/* Valid UTF-8 that sd-bus sends: without noncharacters. */
bool text_is_utf8(const char *s);

/* Decodes base64 (RFC 4648), in which line breaks and blanks count for nothing, into a text. The caller frees *ret.
 * -EINVAL or -ENOMEM. */
int base64_decode(const char *text, char **ret);

/* Stands for a byte that is not UTF-8. */
#define UTF8_REPLACEMENT 0xfffdU

/*
 * Length of the UTF-8 sequence at s, in n bytes or up to a NUL, and its code point; 0 when it is invalid (RFC 3629:
 * shortest form, no surrogates).
 */
size_t utf8_decode(const char *s, size_t n, uint32_t *ret);
/* The bytes of the whole characters of a text that fit into max. */
size_t text_prefix(const char *text, size_t max);
/* Writes the code point into buf. Returns its number of bytes, at most 4. */
size_t utf8_encode(uint32_t code, char *buf);

/*
 * True when s is printable: valid UTF-8 without control characters, without characters that break a line, are invisible
 * or turn the direction of a text, and without noncharacters. The one rule for what callers and files may say.
 */
bool text_is_clean(const char *s);

#define UUID_STRING_MAX 37

/* True for a UUID in lower case, as the kernel, libvirt and OpenStack write it. */
bool text_is_uuid(const char *s);

/*
 * Makes untrusted text safe to quote in a message: at most 64 bytes, then "..."; what is not printable, as
 * text_is_clean() has it, becomes \xHH. buf: QUOTABLE_MAX bytes.
 */
#define QUOTABLE_MAX 68
const char *quotable(const char *s, char buf[static QUOTABLE_MAX]);
#define QUOTABLE(s) quotable((s), (char[QUOTABLE_MAX]) { 0 })
