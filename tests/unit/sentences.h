/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The golden file of the sentences of a test program. Tests check facts, and pass each sentence to record(). The
 * program's last test compares all sentences with tests/golden/NAME.txt. A person reviews the differences; "make
 * golden" writes the files.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "util/cleanup.h"
#include "util/fileio.h"
#include "util/strings.h"

#define SENTENCES_MAX (256U * 1024U)

static char *sentences;

static inline void put_escaped(FILE *f, const char *text, size_t max) {
        for (const char *c = text; *c && max > 0; c++, max--)
                if (*c < ' ' || *c > '~')
                        fprintf(f, "\\x%02x", (unsigned char) *c);
                else
                        fputc(*c, f);
}

/* Records the subject in one line, and the sentence below it. Each pair is recorded once. */
static inline void record(const char *about, const char *text) {
        _cleanup_free_ char *before = sentences, *entry = NULL;
        size_t size;
        FILE *f = open_memstream(&entry, &size);

        assert_non_null(f);
        put_escaped(f, about, 160);
        fputs("\n        ", f);
        put_escaped(f, text ?: "(nothing)", SIZE_MAX);
        fputc('\n', f);
        assert_int_equal(fclose(f), 0);
        sentences = before && strstr(before, entry) ? strdup(before) : string_format("%s%s", before ?: "", entry);
        assert_non_null(sentences);
}

static inline void assert_sentences(const char *name) {
        _cleanup_close_ int dir = open(SRCDIR "/tests/golden", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *expected = NULL, *found = sentences;

        sentences = NULL;
        assert_true(dir >= 0);
        assert_non_null(found);
        if (getenv("UPDATE_GOLDEN"))
                assert_int_equal(write_file_atomic_at(dir, name, found, strlen(found)), 0);
        assert_int_equal(read_file_at(dir, name, SENTENCES_MAX, &expected, NULL), 0);
        assert_string_equal(found, expected);
}
