/* SPDX-License-Identifier: GPL-2.0-or-later */

/* JSON texts: the same texts are accepted and written with every version of json-c. */

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>

#include "unit.h"

#include "model/json-parse.h"
#include "model/json-text.h"
#include "model/json-value.h"
#include "util/strings.h"

/* Parses a copy of exactly that size, so that the sanitizer sees a read beyond. */
static int parse(const char *text, size_t size, json_object **ret) {
        _cleanup_free_ char *copy = malloc(size ?: 1);
        int r;

        assert_non_null(copy);
        memcpy(copy, text, size);
        r = json_parse(copy, size, ret);
        assert_true(r == 0 ? *ret != NULL : !*ret);
        return r;
}

/* Returns the rewritten text, or NULL for a refused one. */
static char *rewrite(const char *text, size_t size) {
        _cleanup_json_ json_object *o = NULL;
        char *written;
        int r = parse(text, size, &o);

        if (r < 0) {
                assert_int_equal(r, -EBADMSG);
                return NULL;
        }
        written = json_text(o);
        assert_non_null(written);
        assert_true(text_is_ascii(written, strlen(written)));
        return written;
}

TEST(test_accepted) {
        static const struct {
                const char *text, *written; /* written: NULL if equal to text */
        } cases[] = {
                { "{}", NULL },
                { " \t\r\n{ \"a\" :\n[ ] , \"b\":{ }\t}\r\n ", "{\"a\":[],\"b\":{}}" },
                { "{\"a\":[null,true,false,\"\",0,-1]}", NULL },
                { "{\"\":1}", NULL },
                /* ranges */
                { "{\"a\":18446744073709551615}", NULL },
                { "{\"a\":9223372036854775808}", NULL },
                { "{\"a\":-9223372036854775808}", NULL },
                { "{\"a\":-0}", "{\"a\":0}" },
                { "{\"a\":1.50}", NULL },
                { "{\"a\":[-0.5e+3,1E9,2e-9,1.7976931348623157e308]}", NULL },
                /* escapes */
                { "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"}",
                  "{\"a\":\"\\\"\\\\/\\u0008\\u000c\\u000a\\u000d\\u0009A\"}" },
                { "{\"J\xc3\xbcrgen\":\"J\xc3\xbcrgen\"}", "{\"J\\u00fcrgen\":\"J\\u00fcrgen\"}" },
                { "{\"a\":\"\\u00FC\\u00fc\"}", "{\"a\":\"\\u00fc\\u00fc\"}" },
                { "{\"a\":\"\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\"}",
                  "{\"a\":\"\\u20ac\\ud83d\\ude00\\udbff\\udfff\"}" },
                { "{\"a\":\"\\ud83d\\ude00 \\uD800\\uDC00\"}", "{\"a\":\"\\ud83d\\ude00 \\ud800\\udc00\"}" },
                { "{\"a\":\"\\uffff\\ufffe\x7f\"}", "{\"a\":\"\\uffff\\ufffe\x7f\"}" },
                /* lone surrogates and invalid UTF-8: one U+FFFD each */
                { "{\"a\":\"\\ud83d\"}", "{\"a\":\"\\ufffd\"}" },
                { "{\"a\":\"\\ude00\\ud83d\"}", "{\"a\":\"\\ufffd\\ufffd\"}" },
                { "{\"a\":\"\\ud83dx\\ud83d\\n\\ud83d\\u0041\"}", "{\"a\":\"\\ufffdx\\ufffd\\u000a\\ufffdA\"}" },
                { "{\"a\":\"\\ud83d\\ud83d\\ude00\"}", "{\"a\":\"\\ufffd\\ud83d\\ude00\"}" },
                { "{\"a\":\"\xff\"}", "{\"a\":\"\\ufffd\"}" },
                { "{\"a\":\"J\xfcrgen\"}", "{\"a\":\"J\\ufffdrgen\"}" },
                { "{\"a\":\"\xe2\x82\"}", "{\"a\":\"\\ufffd\\ufffd\"}" },
                { "{\"a\":\"\xc0\x80\xed\xa0\x80\"}", "{\"a\":\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"}" },
                { "{\"\xff\":1}", "{\"\\ufffd\":1}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *expected = cases[i].written ?: cases[i].text;
                _cleanup_free_ char *written = rewrite(cases[i].text, strlen(cases[i].text)), *again = NULL;

                if (!written)
                        fail_msg("refused: %s", cases[i].text);
                assert_string_equal(written, expected);
                again = rewrite(written, strlen(written));
                assert_string_equal(again, expected);
        }
}

TEST(test_refused) {
        static const char *const cases[] = {
                "",
                " ",
                "null",
                "[]",
                "[{}]",
                "1",
                "\"a\"",
                "{",
                "}",
                "{}}",
                "{}{}",
                "{} x",
                "{}//",
                "\xef\xbb\xbf{}",
                "{a:1}",
                "{'a':1}",
                "{\"a\"}",
                "{\"a\":}",
                "{\"a\":1,}",
                "{,}",
                "{\"a\":1 \"b\":2}",
                "{\"a\":[1,]}",
                "{\"a\":[1 2]}",
                "{\"a\":[1}",
                "{\"a\":[1]",
                "{1:2}",
                "{\"a\":1/* */}",
                "{\"a\":nul}",
                "{\"a\":NULL}",
                "{\"a\":True}",
                "{\"a\":NaN}",
                "{\"a\":Infinity}",
                "{\"a\":-Infinity}",
                /* the same key twice, in different spellings */
                "{\"a\":1,\"a\":1}",
                "{\"a\":1,\"\\u0061\":2}",
                "{\"\xff\":1,\"\xfe\":2}",
                /* numbers */
                "{\"a\":+1}",
                "{\"a\":-}",
                "{\"a\":01}",
                "{\"a\":-01}",
                "{\"a\":.5}",
                "{\"a\":5.}",
                "{\"a\":5.e1}",
                "{\"a\":1e}",
                "{\"a\":1e+}",
                "{\"a\":0x10}",
                "{\"a\":1_0}",
                "{\"a\":18446744073709551616}",
                "{\"a\":-9223372036854775809}",
                "{\"a\":1e309}",
                "{\"a\":0.00000000000000000000000000000000000000000000000000000000000000001}",
                /* strings */
                "{\"a\":\"}",
                "{\"a\":\"\\\"}",
                "{\"a\":\"\\",
                "{\"a\":\"\\x41\"}",
                "{\"a\":\"\\U0041\"}",
                "{\"a\":\"\\u004\"}",
                "{\"a\":\"\\u004g\"}",
                "{\"a\":\"\\u\"}",
                "{\"a\":\"\\u0000\"}",
                "{\"a\\u0000\":1}",
                "{\"a\":\"\n\"}",
                "{\"a\":\"\x1f\"}",
                "{\"a\":\"\\\n\"}",
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *written = rewrite(cases[i], strlen(cases[i]));

                if (written)
                        fail_msg("accepted: %s", cases[i]);
        }
}

TEST(test_nul) {
        static const char inside[] = "{\"a\":\"\0\"}", between[] = "{\0}", behind[] = "{}\0", more[] = "{}\0{}";

        assert_null(rewrite(inside, sizeof(inside) - 1));
        assert_null(rewrite(between, sizeof(between) - 1));
        assert_null(rewrite(behind, sizeof(behind) - 1));
        assert_null(rewrite(more, sizeof(more) - 1));
}

/* Each prefix of a text is incomplete. */
TEST(test_truncated) {
        static const char text[] = "{\"a\\n\\u00fc\xc3\xbc\":[1.5e1,true,null,-7,{\"b\":\"\\ud83d\\ude00\"}]}";
        _cleanup_free_ char *whole = rewrite(text, strlen(text));

        assert_non_null(whole);
        for (size_t n = 0; n < strlen(text); n++)
                assert_null(rewrite(text, n));
}

/* Makes an object with nested arrays, depth levels in all. */
static char *make_deep(unsigned depth) {
        char *text = malloc(2 * (size_t) depth + sizeof("{\"a\":}")), *end = stpcpy(text, "{\"a\":");

        for (unsigned i = 1; i < depth; i++)
                *end++ = '[';
        for (unsigned i = 1; i < depth; i++)
                *end++ = ']';
        (void) strcpy(end, "}");
        return text;
}

TEST(test_depth) {
        _cleanup_free_ char *deepest = make_deep(JSON_DEPTH_MAX), *deeper = make_deep(JSON_DEPTH_MAX + 1),
                            *abyss = make_deep(1000000), *written = rewrite(deepest, strlen(deepest));

        assert_string_equal(written, deepest);
        assert_null(rewrite(deeper, strlen(deeper)));
        assert_null(rewrite(abyss, strlen(abyss)));
        abyss[strlen("{\"a\":") + 999999] = '\0';
        assert_null(rewrite(abyss, strlen(abyss)));
}

/* Makes {"a":[VALUE,VALUE,...]} or {"a":{"0":VALUE,"1":VALUE,...}}. */
static char *make_many(const char *value, size_t n, bool is_object) {
        char *text = malloc(n * (strlen(value) + sizeof("\"1000000\":,")) + sizeof("{\"a\":[]}")), *end;

        assert_non_null(text);
        end = stpcpy(text, is_object ? "{\"a\":{" : "{\"a\":[");
        for (size_t i = 0; i < n; i++) {
                end += is_object ? sprintf(end, "%s\"%zu\":", i > 0 ? "," : "", i)
                                 : sprintf(end, "%s", i > 0 ? "," : "");
                end = stpcpy(end, value);
        }
        (void) strcpy(end, is_object ? "}}" : "]}");
        return text;
}

/* Returns the bytes that malloc() has given out, with large blocks. */
static size_t allocated(void) {
        struct mallinfo2 m = mallinfo2();

        return m.uordblks + m.hblkhd;
}

/* Parsing costs at most the permitted amount, and memory is proportional to it. */
TEST(test_cost) {
        static const struct {
                const char *value;
                unsigned cost;
        } cases[] = {
                { "0", JSON_COST },
                { "null", JSON_COST },
                { "1.5", JSON_COST },
                { "\"\"", JSON_COST },
                { "[]", JSON_COST_ARRAY },
                { "{}", JSON_COST_OBJECT },
                { "[[0]]", 2 * JSON_COST_ARRAY + JSON_COST },
                { "{\"b\":{}}", 2 * JSON_COST_OBJECT + JSON_COST_MEMBER },
        };
        const size_t n = 10000;

        for (size_t i = 0; i < 2 * ELEMENTSOF(cases); i++) {
                bool is_object = i % 2;
                _cleanup_free_ char *text = make_many(cases[i / 2].value, n, is_object);
                size_t cost = JSON_COST_OBJECT + (is_object ? JSON_COST_OBJECT : JSON_COST_ARRAY) +
                              (is_object ? (n + 1) * JSON_COST_MEMBER : JSON_COST_MEMBER) + n * cases[i / 2].cost,
                       before = allocated();
                json_object *o;

                assert_int_equal(json_parse_within(text, strlen(text), cost, &o), 0);
                assert_true(allocated() - before < 120 * cost);
                json_object_put(o);
                assert_int_equal(json_parse_within(text, strlen(text), cost - 1, &o), -E2BIG);
                assert_null(o);
        }
}

TEST(test_values) {
        static const char text[] =
                "{\"n\":18446744073709551615,\"i\":-2,\"d\":1.5,\"s\":\"\\u00fc\",\"b\":true,\"z\":null}";
        _cleanup_json_ json_object *o = NULL;
        json_object *z;

        assert_int_equal(parse(text, strlen(text), &o), 0);
        assert_true(json_object_get_uint64(json_object_object_get(o, "n")) == UINT64_MAX);
        assert_int_equal(json_object_get_int64(json_object_object_get(o, "i")), -2);
        assert_true(json_object_get_double(json_object_object_get(o, "d")) == 1.5);
        assert_string_equal(json_object_get_string(json_object_object_get(o, "s")), "\xc3\xbc");
        assert_true(json_object_get_boolean(json_object_object_get(o, "b")));
        assert_true(json_object_object_get_ex(o, "z", &z) && !z);
}

/* Text written directly equals text written from objects. */
TEST(test_written) {
        static const char strings[] =
                "quote \" and \\, \x01\x1f, J\xc3\xbcrgen \xf0\x9f\x98\x80 \xff and more text behind";
        _cleanup_json_ json_object *o = json_object_new_object();
        _cleanup_free_ char *of_object = NULL, *direct = NULL;
        JsonText t = json_text_new();

        json_text_first_key(&t, "s");
        json_text_string(&t, strings);
        json_text_key(&t, "none");
        json_text_string(&t, NULL);
        json_text_key(&t, "words");
        json_text_words(&t, "flr \xc3\xbc");
        json_text_key(&t, "n");
        json_text_number(&t, UINT64_MAX);
        json_text_literal(&t, "}");
        direct = json_text_finish(&t);

        assert_non_null(o);
        (void) json_object_object_add(o, "s", json_object_new_string(strings));
        (void) json_object_object_add(o, "none", NULL);
        (void) json_object_object_add(o, "words", json_object_new_array());
        (void) json_object_array_add(json_object_object_get(o, "words"), json_object_new_string("flr"));
        (void) json_object_array_add(json_object_object_get(o, "words"), json_object_new_string("\xc3\xbc"));
        (void) json_object_object_add(o, "n", json_object_new_uint64(UINT64_MAX));
        of_object = json_text(o);
        assert_string_equal(direct, of_object);
        assert_string_equal(
                direct, "{\"s\":\"quote \\\" and \\\\, \\u0001\\u001f, J\\u00fcrgen \\ud83d\\ude00 \\ufffd and more "
                        "text behind\",\"none\":null,\"words\":[\"flr\",\"\\u00fc\"],\"n\":18446744073709551615}");
}
