/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Functions shared by the fuzz targets. Each fuzz-NAME.c is a function that must hold for any input. libFuzzer calls it
 * in "make fuzz", fuzz-main.c with the corpus in "make check". A finding ends the process. The asserts have the names
 * of cmocka's, which needs a test, so that the fixtures of tests/unit can be used here.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/refusal.h"
#include "util/strings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fail_msg(...) (fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), abort())
#define assert_true(condition)                                                                                         \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        fail_msg("not true: %s\n", #condition);                                                        \
        } while (0)
#define assert_false(condition)   assert_true(!(condition))
#define assert_non_null(p)        assert_true((p) != NULL)
#define assert_null(p)            assert_true((p) == NULL)
#define assert_int_equal(a, b)    assert_true((a) == (b))
#define assert_string_equal(a, b) fuzz_same_text((a), (b), __FILE__, __LINE__)

static inline void fuzz_same_text(const char *a, const char *b, const char *file, int line) {
        if (streq(a, b))
                return;
        fprintf(stderr, "%s:%d: not the same:\n%s\n---\n%s\n", file, line, a, b);
        abort();
}

/* Returns the input up to its first NUL as a string. The caller frees. */
static inline char *fuzz_text(const uint8_t *data, size_t size) {
        char *text = malloc(size + 1);

        assert_non_null(text);
        if (size > 0)
                memcpy(text, data, size);
        text[size] = '\0';
        return text;
}

/* Checks that a sentence is fit for a log line and for D-Bus, and not empty. */
static inline void fuzz_check_sentence(const char *s) {
        if (!s || !*s || !text_is_clean(s))
                fail_msg("no sentence: '%s'\n", s ? s : "NULL");
}

static inline void fuzz_check_refusal(Verdict v, const Refusal *r) {
        size_t n = r->message ? strlen(r->message) : 0;

        assert_int_equal(r->verdict, v);
        assert_non_null(verdict_to_string(v));
        fuzz_check_sentence(r->message);
        assert_int_equal(r->message[n - 1], '.');
        if (r->remedy)
                fuzz_check_sentence(r->remedy);
}
