/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "unit.h"

#include "util/strings.h"

TEST(test_parse_unsigned) {
        uint64_t n = 7;

        assert_int_equal(parse_unsigned("0", 10, &n), 0);
        assert_int_equal(n, 0);
        assert_int_equal(parse_unsigned("18446744073709551615", UINT64_MAX, &n), 0);
        assert_true(n == UINT64_MAX);

        n = 7;
        static const char *const bad[] = { "", " 1", "1 ", "+1", "-1", "0x1", "1a", "99999999999999999999999x" };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(parse_unsigned(bad[i], UINT64_MAX, &n), -EINVAL);
        assert_int_equal(parse_unsigned("11", 10, &n), -ERANGE);
        assert_int_equal(parse_unsigned("18446744073709551616", UINT64_MAX, &n), -ERANGE);
        assert_int_equal(n, 7);
}

TEST(test_format_hex) {
        static const struct {
                uint64_t value;
                unsigned digits;
                const char *text;
        } cases[] = {
                { 0, 1, "0" },
                { 0, 4, "0000" },
                { 0x1a, 2, "1a" },
                { 0x1a, 1, "1a" },
                { 0x10000, 4, "10000" },
                { 0x302, 6, "000302" },
                { 0xf, 16, "000000000000000f" },
                { UINT64_MAX, 1, "ffffffffffffffff" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char text[17];

                *format_hex(text, cases[i].value, cases[i].digits) = '\0';
                assert_string_equal(text, cases[i].text);
        }
}

TEST(test_format_unsigned) {
        static const uint64_t values[] = { 0, 7, 10, 4095, UINT64_MAX };
        static const char *const texts[] = { "0", "7", "10", "4095", "18446744073709551615" };

        for (size_t i = 0; i < ELEMENTSOF(values); i++) {
                char text[21];

                *format_unsigned(text, values[i]) = '\0';
                assert_string_equal(text, texts[i]);
        }
}

TEST(test_parse_hex) {
        uint64_t n = 7;

        assert_int_equal(parse_hex("0x10dE", 0xffff, &n), 0);
        assert_int_equal(n, 0x10de);
        assert_int_equal(parse_hex("ff", 0xff, &n), 0);
        assert_int_equal(n, 0xff);
        assert_int_equal(parse_hex("0x", 0xff, &n), -EINVAL);
        assert_int_equal(parse_hex("", 0xff, &n), -EINVAL);
        assert_int_equal(parse_hex("0x0x1", 0xff, &n), -EINVAL);
        assert_int_equal(parse_hex("g", 0xff, &n), -EINVAL);
        assert_int_equal(parse_hex("100", 0xff, &n), -ERANGE);
        assert_int_equal(n, 0xff);
}

TEST(test_parse_size) {
        static const struct {
                const char *text;
                uint64_t bytes;
        } good[] = {
                { "0", 0 },
                { "512", 512 },
                { "4K", 4096 },
                { "20G", UINT64_C(20) << 30 },
                { "20GiB", UINT64_C(20) << 30 },
                { "3MB", 3 << 20 },
                { "16777215T", UINT64_C(16777215) << 40 },
        };
        static const char *const bad[] = { "", "G", "-1G", "1.5G", "1X", "1 G", "1GiBs", "1Gi", "1iB" };
        uint64_t n = 7;

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                assert_int_equal(parse_size(good[i].text, &n), 0);
                assert_true(n == good[i].bytes);
        }
        n = 7;
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(parse_size(bad[i], &n), -EINVAL);
        assert_int_equal(parse_size("16777216T", &n), -ERANGE);
        assert_int_equal(n, 7);
}

TEST(test_format_size) {
        assert_string_equal(FORMAT_SIZE(0), "0 B");
        assert_string_equal(FORMAT_SIZE(1000), "1000 B");
        assert_string_equal(FORMAT_SIZE(UINT64_C(20) << 30), "20 GiB");
        assert_string_equal(FORMAT_SIZE(UINT64_C(1536) << 20), "1.5 GiB");
        assert_string_equal(FORMAT_SIZE(UINT64_C(527857612) << 10), "503.4 GiB");
        assert_string_equal(FORMAT_SIZE((UINT64_C(4) << 30) + 1), "4.0 GiB");
        assert_string_equal(FORMAT_SIZE(UINT64_C(1500) << 30), "1500 GiB");
        assert_string_equal(FORMAT_SIZE((UINT64_C(1) << 40) + (UINT64_C(100) << 20)), "1024.0 GiB");
        assert_string_equal(FORMAT_SIZE((UINT64_C(1) << 30) - 1), "1023.9 MiB");
        assert_string_equal(FORMAT_SIZE(UINT64_C(1) << 50), "1024 TiB");
        assert_string_equal(FORMAT_SIZE(UINT64_MAX), "17179869183.9 GiB");
}

TEST(test_format_size_wanted) {
        assert_string_equal(FORMAT_SIZE_WANTED(1000), "1000 B");
        assert_string_equal(FORMAT_SIZE_WANTED(UINT64_C(20) << 30), "20 GiB");
        assert_string_equal(FORMAT_SIZE_WANTED((UINT64_C(4) << 30) + 1), "4.1 GiB");
        assert_string_equal(FORMAT_SIZE_WANTED((UINT64_C(1) << 30) - 1), "1.0 GiB");
        assert_string_equal(FORMAT_SIZE_WANTED(UINT64_MAX), "17179869184.0 GiB");
        for (unsigned shift = 12; shift < 60; shift++)
                for (uint64_t n = UINT64_C(1) << shift, step = (n >> 6) + 1; n < UINT64_C(1) << (shift + 1); n += step)
                        assert_string_not_equal(FORMAT_SIZE_WANTED(n + 1), FORMAT_SIZE(n));
}

TEST(test_and_more) {
        assert_string_equal(AND_MORE(0), "");
        assert_string_equal(AND_MORE(1), " and 1 more");
        assert_string_equal(AND_MORE(125), " and 125 more");
}

TEST(test_format_size_exact) {
        assert_string_equal(FORMAT_SIZE_EXACT(0), "0 B");
        assert_string_equal(FORMAT_SIZE_EXACT(UINT64_C(1536) << 20), "1536 MiB");
        assert_string_equal(FORMAT_SIZE_EXACT(UINT64_C(1) << 50), "1024 TiB");
        assert_string_equal(FORMAT_SIZE_EXACT(UINT64_MAX), "18446744073709551615 B");
}

TEST(test_replace_and_copy) {
        _cleanup_free_ char *s = NULL;

        s = string_format("%d%%", 1);
        assert_string_equal(s, "1%");
        assert_int_equal(string_replace(&s, "%s", "one"), 0);
        assert_int_equal(string_replace(&s, "%s; %s", s, "two"), 0); /* the old text may be an argument */
        assert_string_equal(s, "one; two");
        assert_int_equal(string_copy(&s, s + 5), 0);
        assert_string_equal(s, "two");
        assert_int_equal(string_copy(&s, NULL), 0);
        assert_null(s);
        assert_int_equal(string_append(&s, ", ", "%s", "one"), 0);
        assert_string_equal(s, "one");
        assert_int_equal(string_append(&s, ", ", "%s%d", s, 2), 0); /* the old text may be an argument */
        assert_string_equal(s, "one, one2");
        assert_int_equal(string_copy(&s, ""), 0);
        assert_int_equal(string_append(&s, ", ", "%s", "three"), 0);
        assert_string_equal(s, "three");
}

/* AddressSanitizer checks that every element up to a growth is inside. */
TEST(test_next_word) {
        char line[] = "  one\t two ", nothing[] = " \t", *rest = line;

        assert_string_equal(string_next_word(&rest), "one");
        assert_string_equal(string_next_word(&rest), "two");
        assert_null(string_next_word(&rest));
        assert_null(string_next_word(&rest));
        rest = nothing;
        assert_null(string_next_word(&rest));
}

TEST(test_array_reserve) {
        _cleanup_free_ uint32_t *a = NULL;

        for (uint32_t n = 0; n < 1000; n++) {
                assert_int_equal(ARRAY_RESERVE(a, n), 0);
                a[n] = n;
        }
        for (uint32_t n = 0; n < 1000; n++)
                assert_int_equal(a[n], n);

        void *untouched = NULL;
        assert_int_equal(array_reserve(&untouched, SIZE_MAX / 2 + 1, 2), -ENOMEM);
        assert_null(untouched);
}

TEST(test_text_is_clean) {
        static const char *const clean[] = {
                "",
                "gpu 1",
                "\xc3\xa9",
                "\xe2\x82\xac",
                "\xf0\x9f\x98\x80",
                "\xc2\xa0",
                "\xe2\x80\x8a",     /* U+200A, a hair space */
                "\xe2\x80\x8c",     /* U+200C, in Persian words */
                "\xe2\x80\x8d",     /* U+200D, between emoji */
                "\xe2\x80\x90",     /* U+2010, a hyphen */
                "\xef\xb8\x8f",     /* U+FE0F, which asks for an emoji */
                "\xf3\xa0\x84\x80", /* U+E0100, which asks for a variant of an ideograph */
        };
        static const char *const dirty[] = {
                "a\nb",
                "a\tb",
                "\x7f",
                "\xc2\x85",
                "\xff",
                "\xc3",
                "\x80",
                "\xc0\x80",
                "\xe0\x80\x80",
                "\xed\xa0\x80",
                "\xe2\x82",
                "\xf4\x90\x80\x80",
                "\xf0\x80\x80\x80",
                "\xf8\x88\x80\x80\x80",
                "\xe2\x80\xa8",         /* U+2028, a line separator */
                "\xe2\x80\xae",         /* U+202E, from right to left */
                "\xe2\x81\xa6",         /* U+2066, an isolate */
                "\xc2\xad",             /* U+00AD, a soft hyphen */
                "\xd8\x9c",             /* U+061C, a mark of Arabic */
                "\xe2\x80\x8b",         /* U+200B, a space without width */
                "\xd7\xa9\xe2\x80\x8f", /* U+200F, a mark from right to left */
                "\xe2\x81\xa0",         /* U+2060, a word joiner */
                "\xe2\x81\xaf",
                "\xcd\x8f",         /* U+034F, a joiner of graphemes */
                "\xe1\x85\x9f",     /* U+115F, which fills a syllable of Hangul */
                "\xe1\xa0\x8e",     /* U+180E, a separator of Mongolian vowels */
                "\xe3\x85\xa4",     /* U+3164, a letter of Hangul that is empty */
                "\xef\xbe\xa0",     /* U+FFA0, the same in half the width */
                "\xf0\x9d\x85\xb3", /* U+1D173, which begins a beam of notes */
                "\xef\xbb\xbf",     /* U+FEFF, a byte order mark */
                "\xef\xbf\xb9",     /* U+FFF9, an annotation */
                "\xf3\xa0\x80\x81", /* U+E0001, a language tag */
                "\xf3\xa0\x81\x81", /* U+E0041, a tag */
                "\xf3\xa0\x81\xbf",
                "\xef\xbf\xbe",
                "\xef\xbf\xbf",
                "\xef\xb7\x90",     /* U+FDD0, a noncharacter */
                "\xf0\x9f\xbf\xbe", /* U+1FFFE */
                "\xf4\x8f\xbf\xbf", /* U+10FFFF */
        };

        for (size_t i = 0; i < ELEMENTSOF(clean); i++)
                assert_true(text_is_clean(clean[i]));
        for (size_t i = 0; i < ELEMENTSOF(dirty); i++)
                assert_false(text_is_clean(dirty[i]));
}

TEST(test_text_is_ascii) {
        char text[20];

        memset(text, '\x7f', sizeof(text));
        for (size_t n = 0; n <= sizeof(text); n++) {
                assert_true(text_is_ascii(text, n));
                for (size_t i = 0; i < sizeof(text); i++) {
                        text[i] = '\x80';
                        assert_int_equal(text_is_ascii(text, n), i >= n);
                        text[i] = '\x7f';
                }
        }
}

TEST(test_text_is_uuid) {
        static const char uuid[] = "4b20d080-1b54-4048-85b3-a6a62d165c01";

        assert_true(text_is_uuid(uuid));
        for (size_t i = 0; i < sizeof(uuid); i++) {
                char other[sizeof(uuid) + 1] = "";

                memcpy(other, uuid, sizeof(uuid));
                other[i] = 'A';
                assert_false(text_is_uuid(other));
                memcpy(other, uuid, i);
                other[i] = '\0';
                assert_int_equal(text_is_uuid(other), uuid[i] == '\0');
        }
}

TEST(test_quotable) {
#define FIFTY                                                                                                          \
        "0123456789012345678901234567890123456789"                                                                     \
        "0123456789"
        static const struct {
                const char *text, *shown;
        } cases[] = {
                { "", "" },
                { "gpu \xc3\xa9", "gpu \xc3\xa9" },
                { "a\nb\x1b[m\x7f", "a\\x0ab\\x1b[m\\x7f" },
                { "\xc2\x85|\xff|\xe2\x82|", "\\xc2\\x85|\\xff|\\xe2\\x82|" },
                { FIFTY "01234567890123", FIFTY "01234567890123" },
                { FIFTY "012345678901234", FIFTY "01234567890123..." },
                { FIFTY "0123456789012\xc3\xa9", FIFTY "0123456789012..." },
                { FIFTY "012345678901\xc3\xa9", FIFTY "012345678901\xc3\xa9" },
                { FIFTY "01234567890\n", FIFTY "01234567890..." },
                { FIFTY "0123456789\n", FIFTY "0123456789\\x0a" },
                { FIFTY "0123456789\xf0\x9f\x98\x80|", FIFTY "0123456789\xf0\x9f\x98\x80..." },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *shown = QUOTABLE(cases[i].text);

                assert_string_equal(shown, cases[i].shown);
                assert_true(text_is_clean(shown));
                assert_true(strlen(shown) < QUOTABLE_MAX);
        }
#undef FIFTY
}
