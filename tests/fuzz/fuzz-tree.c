/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Trees: each item is as the header says, and writable items are read back unchanged. Checks the first items of a tree.
 */

#include "fuzz.h"

#include <errno.h>

#include "util/tree.h"

#define ITEMS_MAX 4096U
#define AGAIN_MAX 64U /* items that are written and read again */
#define PCI_SIZE  256U

static void check_path(const char *path) {
        size_t depth = 1;

        assert_true(*path && strlen(path) <= TREE_PATH_MAX);
        for (const char *at = path;; at++, depth++) {
                size_t n = strcspn(at, "/");

                assert_true(n > 0 && n <= TREE_NAME_MAX && depth <= TREE_DEPTH_MAX);
                assert_false((n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'));
                at += n;
                if (!*at)
                        return;
        }
}

static void check_line(const TreeLine *line) {
        assert_int_equal(line->value[line->size], '\0');
        switch (line->item) {
        case TREE_CONFIG:
                assert_true(line->offset + line->size <= TREE_CONFIG_MAX);
                break;
        case TREE_LINK:
                assert_true(line->size > 0 && line->size <= TREE_TARGET_MAX && strlen(line->value) == line->size);
                break;
        case TREE_ERROR:
                assert_true(tree_error_number(line->value) > 0);
                break;
        case TREE_DIRECTORY:
                assert_int_equal(line->size, 0);
                break;
        default:
                assert_int_equal(line->item, TREE_FILE);
        }
        check_path(line->path);
}

/* Reads written items again. Config space comes in rows. */
typedef struct Again {
        const TreeLine *first;
        char config[TREE_CONFIG_MAX];
        size_t rows, items;
} Again;

static int take_again(const TreeLine *line, void *userdata) {
        Again *again = userdata;

        check_line(line);
        assert_string_equal(line->path, again->first->path);
        if (line->item == TREE_CONFIG && again->first->item == TREE_FILE) {
                (void) mempcpy(again->config + line->offset, line->value, line->size);
                again->rows++;
                return 0;
        }
        again->items++;
        assert_int_equal(line->item, again->first->item);
        if (line->item == TREE_ERROR)
                assert_int_equal(tree_error_number(line->value), tree_error_number(again->first->value));
        else
                assert_true(line->size == again->first->size &&
                            memcmp(line->value, again->first->value, line->size) == 0);
        return 0;
}

static void write_line(FILE *f, const TreeLine *line) {
        if (line->item == TREE_FILE)
                tree_write_file(f, line->path, line->value, line->size);
        else if (line->item == TREE_LINK)
                tree_write_link(f, line->path, line->value);
        else if (line->item == TREE_DIRECTORY)
                tree_write_directory(f, line->path);
        else
                tree_write_error(f, line->path, tree_error_number(line->value));
}

static void check_again(const TreeLine *line) {
        _cleanup_free_ char *text = NULL, *problem = NULL;
        Again again = { .first = line };
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        write_line(f, line);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(tree_parse("a.tree", text, size, take_again, &again, &problem), 0);
        if (again.rows == 0) {
                assert_int_equal(again.items, 1);
                return;
        }
        assert_int_equal(again.items, 0);
        assert_true(line->size == PCI_SIZE || line->size == TREE_CONFIG_MAX);
        assert_int_equal(memcmp(again.config, line->value, line->size), 0);
}

static int take_line(const TreeLine *line, void *userdata) {
        size_t *n = userdata;

        check_line(line);
        if (*n < AGAIN_MAX && line->item != TREE_CONFIG)
                check_again(line);
        return ++*n < ITEMS_MAX ? 0 : -ECANCELED;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *problem = NULL;
        size_t n = 0;
        int r = tree_parse("a.tree", (const char *) data, size, take_line, &n, &problem);

        assert_true(r == 0 || r == -EINVAL || r == -E2BIG || (r == -ECANCELED && n == ITEMS_MAX));
        if (r < 0)
                fuzz_check_sentence(problem);
        else
                assert_null(problem);
        return 0;
}
