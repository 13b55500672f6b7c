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

/* Writes value in lower-case hexadecimal with at least `digits` digits, without a NUL, as "%0*x" does but several times
 * faster. Returns the end of the text, which has at most 16 bytes. */
char *format_hex(char *at, uint64_t value, unsigned digits);

/* Writes value as a decimal number, without a NUL. Returns the end of the text, which has at most 20 bytes. */
char *format_unsigned(char *at, uint64_t value);

/* Parses a size in bytes: a decimal number with an optional suffix K, M, G or T (powers of 1024; "GiB" and "GB" too).
 * -EINVAL for other text, -ERANGE on overflow. */
int parse_size(const char *s, uint64_t *ret);

/* Formats a size for people, with one decimal when it is not whole: "20 GiB", "503.4 GiB". Rounds up if `up` is true,
 * for a size that is wanted; otherwise rounds down. So a refusal for lack of memory never shows as much free memory as
 * is wanted. buf: SIZE_STRING_MAX bytes. Returns buf. */
#define SIZE_STRING_MAX 32
const char *format_size(uint64_t bytes, bool up, char buf[static SIZE_STRING_MAX]);
#define FORMAT_SIZE(bytes)        format_size((bytes), false, (char[SIZE_STRING_MAX]) { 0 })
#define FORMAT_SIZE_WANTED(bytes) format_size((bytes), true, (char[SIZE_STRING_MAX]) { 0 })

/* Formats a size exactly, in the largest binary unit that divides it: "20 GiB", "1536 MiB". For sentences in which each
 * byte counts, and for sizes that people type again, because parse_size() accepts no decimals. Returns buf. */
const char *format_size_exact(uint64_t bytes, char buf[static SIZE_STRING_MAX]);
#define FORMAT_SIZE_EXACT(bytes) format_size_exact((bytes), (char[SIZE_STRING_MAX]) { 0 })

/* Formats the end of a list from which n items are left out: " and 5 more"; "" for 0. Returns buf. */
#define AND_MORE_MAX 32
const char *format_more(size_t n, char buf[static AND_MORE_MAX]);
#define AND_MORE(n) format_more((n), (char[AND_MORE_MAX]) { 0 })

/* The ending "s" of a plural, and the verb "is" or "are", for the count n: "%u VF%s %s wanted". */
#define PLURAL(n) ((n) == 1 ? "" : "s")
#define ARE(n)    ((n) == 1 ? "is" : "are")

/* Return the formatted string. The caller frees it; NULL when out of memory. */
char *string_format(const char *format, ...) _printf_(1, 2);
char *string_vformat(const char *format, va_list ap) _printf_(1, 0);
/* In a function with variable arguments: formats those after the parameter called format. Yields the result of
 * string_vformat(). */
#define FORMAT_ARGUMENTS(format)                                                                                       \
        ({                                                                                                             \
                va_list arguments_;                                                                                    \
                char *text_;                                                                                           \
                                                                                                                       \
                va_start(arguments_, format);                                                                          \
                text_ = string_vformat(format, arguments_);                                                            \
                va_end(arguments_);                                                                                    \
                text_;                                                                                                 \
        })

/* Frees *s and sets it to a formatted string. *s may be one of the arguments. Returns 0, or -ENOMEM, which leaves *s
 * unchanged. */
int string_replace(char **s, const char *format, ...) _printf_(2, 3);

/* Appends a formatted string to *s, after the separator unless *s is NULL or empty. Returns 0, or -ENOMEM, which leaves
 * *s unchanged. */
int string_append(char **s, const char *separator, const char *format, ...) _printf_(3, 4);

/* Frees *target and sets it to a copy of s, or to NULL if s is NULL. Returns 0, or -ENOMEM, which leaves *target
 * unchanged. */
int string_copy(char **target, const char *s);

/* Returns the next word of *rest and advances *rest. Words are separated by spaces or tabs; the text is modified. NULL
 * when there is no word left. */
char *string_next_word(char **rest);
/* Sets words[0] to words[n - 1] to the next n words. Returns false, with *rest at its end, when fewer words are
 * left. */
bool string_next_words(char **rest, char **words, size_t n);

/* Makes room for one more element in an array that has n elements. Call it for each n in turn, because it allocates
 * memory only for some of them. Returns 0, or -ENOMEM, which leaves the array unchanged. */
int array_reserve(void **array, size_t n, size_t element_size);
#define ARRAY_RESERVE(array, n) array_reserve((void **) &(array), (n), sizeof(*(array)))

/* Returns true when each of the n bytes is ASCII. */
bool text_is_ascii(const char *s, size_t n);
/* Returns true when s is UTF-8 that sd-bus accepts: valid, and without the noncharacters of Unicode. */
bool text_is_utf8(const char *s);

/* Decodes base64 (RFC 4648) into a string. Ignores newlines, spaces, and the text from the first "=" on. The caller
 * frees *ret. 0, -EINVAL or -ENOMEM. */
int base64_decode(const char *text, char **ret);

/* The character U+FFFD, which is shown in place of bytes that are not UTF-8. */
#define UTF8_REPLACEMENT 0xfffdU

/* Decodes the UTF-8 sequence at s into its code point, and reads at most n bytes. Returns the length of the sequence in
 * bytes; 0 when it is invalid (RFC 3629: shortest form, no surrogates) or cut off. A NUL is a valid sequence of one
 * byte. */
size_t utf8_decode(const char *s, size_t n, uint32_t *ret);
/* Returns the size of the longest prefix of text that has at most max bytes, splits no UTF-8 character, and ends before
 * the first byte that is not UTF-8. */
size_t text_prefix(const char *text, size_t max);
/* Writes the code point as UTF-8 into buf, without a NUL. Returns the number of bytes, at most 4. */
size_t utf8_encode(uint32_t code, char *buf);

/* Returns true when s is printable: valid UTF-8 without control characters, line breaks, invisible characters (except
 * joiners and variation selectors), characters that change the text direction, and noncharacters. Single-line text from
 * callers and files is checked with this function. */
bool text_is_clean(const char *s);

#define UUID_STRING_MAX 37

/* Returns true for a UUID in lower case, as the kernel, libvirt and OpenStack write it. */
bool text_is_uuid(const char *s);

/* Makes untrusted text safe to quote in a message: at most 64 bytes, then "..." if s is longer. Bytes that
 * text_is_clean() does not accept become \xHH. buf: QUOTABLE_MAX bytes. Returns buf. */
#define QUOTABLE_MAX 68
const char *quotable(const char *s, char buf[static QUOTABLE_MAX]);
#define QUOTABLE(s) quotable((s), (char[QUOTABLE_MAX]) { 0 })
