/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Unpacking recorded machines: what a reader finds, and that no text leads out of the directory. */

#include <errno.h>
#include <fcntl.h>

#include "unit.h"

#include "replay/replay.h"
#include "tmptree.h"

typedef struct Fixture {
        char *top; /* directory of everything that the test makes */
        char *file;
        char *dir; /* directory of the unpacked machine */
        char *problem;
} Fixture;

static int setup(void **state) {
        Fixture *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        f->top = tree_new();
        tree_dir(f->top, "tmp");
        tree_file(f->top, "outside/secret", "secret");
        assert_true(asprintf(&f->file, "%s/a.tree", f->top) > 0);
        {
                _cleanup_free_ char *tmp = tree_path(f->top, "tmp");

                assert_int_equal(setenv("TMPDIR", tmp, 1), 0);
        }
        *state = f;
        return 0;
}

static void forget(Fixture *f) {
        free(TAKE_PTR(f->dir));
        free(TAKE_PTR(f->problem));
}

static int teardown(void **state) {
        Fixture *f = *state;

        forget(f);
        tree_done(f->top);
        free(f->file);
        free(f);
        return 0;
}

static int unpack(Fixture *f, const char *text) {
        forget(f);
        tree_bytes(f->top, "a.tree", text, strlen(text));
        return tree_unpack(f->file, &f->dir, &f->problem);
}

/* Checks that the temporary directory is empty, and the files beside it unchanged. */
static void assert_clean(Fixture *f) {
        _cleanup_free_ char *tmp = tree_path(f->top, "tmp"), *secret = tree_path(f->top, "outside/secret");
        struct stat st;

        assert_int_equal(stat(tmp, &st), 0);
        assert_int_equal(st.st_nlink, 2);
        assert_int_equal(stat(secret, &st), 0);
        assert_int_equal(st.st_size, strlen("secret\n"));
}

static void done(Fixture *f) {
        tree_remove(f->dir);
        assert_clean(f);
}

static void assert_text(const Fixture *f, const char *path, const char *expected) {
        _cleanup_free_ char *full = tree_path(f->dir, path);
        char text[256] = "";
        FILE *file = fopen(full, "r");

        assert_non_null(file);
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        assert_int_equal(fclose(file), 0);
        assert_string_equal(text, expected);
}

static void assert_link(const Fixture *f, const char *path, const char *expected) {
        _cleanup_free_ char *full = tree_path(f->dir, path);
        char target[256] = "";

        if (readlink(full, target, sizeof(target) - 1) < 0)
                strcpy(target, "-");
        assert_string_equal(target, expected);
}

static void assert_absent(const Fixture *f, const char *path) {
        _cleanup_free_ char *full = NULL;
        struct stat st;

        assert_true(asprintf(&full, "%s/%s", f->dir, path) > 0);
        assert_int_equal(lstat(full, &st), -1);
}

TEST_WITH(test_items, setup, teardown) {
        Fixture *f = *state;
        _cleanup_free_ char *broken = NULL, *config = NULL;
        struct stat st;

        assert_int_equal(unpack(f, "a/b=1\na/c:=x\na/c=y\na/d/\na/e!EIO\na/l -> /a/b\na/m -> b\na/l/../f=3\n"),
                         -EINVAL);
        assert_memory_equal(f->problem + strlen(f->file), ":8: ", strlen(":8: "));
        assert_clean(f);
        assert_int_equal(unpack(f, "a/b=1\na/c:=x\na/c=y\na/d/\na/e!EIO\na/l -> /a\na/m -> ../a/b\na/l/f=3\n"
                                   "a/d=now a file\na/b/c=and a directory\na/config@0x100=ff\n"),
                         0);
        assert_int_equal(stat(f->dir, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_text(f, "a/c", "y\n");
        assert_text(f, "a/f", "3\n");
        assert_text(f, "a/d", "now a file\n");
        assert_text(f, "a/b/c", "and a directory\n");
        assert_link(f, "a/l", ".");
        assert_link(f, "a/m", "b");
        broken = tree_path(f->dir, "a/e");
        assert_int_equal(open(broken, O_RDWR), -1);
        config = tree_path(f->dir, "a/config");
        assert_int_equal(stat(config, &st), 0);
        assert_int_equal(st.st_size, 4096);
        done(f);
}

/* A file is written inside the directory regardless of links. */
TEST_WITH(test_hostile_links, setup, teardown) {
        Fixture *f = *state;
        _cleanup_free_ char *text = NULL;

        assert_true(asprintf(&text,
                             "%s/outside/\nx/a -> %s/outside\nx/a/secret=1\n"
                             "x/b -> ../../../../../../../../..%s/outside\nx/b/secret=2\n"
                             "x/c -> ../..\nx/d -> ..\nx/e -> b/../../..\nx/p -> /proc\nx/n -> /dev/null\n"
                             "proc/1/root -> %s\nproc/1/root/outside/secret=3\nproc/1/fd/3 -> /dev/vfio/7\n",
                             f->top, f->top, f->top, f->top) > 0);
        assert_int_equal(unpack(f, text), 0);
        {
                _cleanup_free_ char *inside = NULL, *target = NULL;

                assert_true(asprintf(&inside, "%s/outside/secret", f->top + 1) > 0);
                assert_text(f, inside, "3\n");
                assert_true(asprintf(&target, "../%s/outside", f->top + 1) > 0);
                assert_link(f, "x/a", target);
                assert_link(f, "x/b", target);
        }
        assert_absent(f, "x/c"); /* an absolute link of proc would lead out */
        assert_absent(f, "x/d");
        assert_absent(f, "x/e");
        assert_absent(f, "x/p");
        assert_link(f, "x/n", "/dev/null"); /* the link masks a name, and its target is missing */
        assert_link(f, "proc/1/fd/3", "/dev/vfio/7");
        done(f);
}

TEST_WITH(test_hostile_shapes, setup, teardown) {
        Fixture *f = *state;
        char text[8192] = "";
        size_t n = 0;

        assert_true(unpack(f, "a -> b\nb -> a\na/c=1\n") < 0);
        assert_clean(f);
        assert_true(unpack(f, "a -> nowhere\na/c=1\n") < 0);
        assert_clean(f);
        assert_true(unpack(f, "a/b/c=1\na/b=1\n") < 0); /* a file in place of a directory with a file */
        assert_clean(f);
        /* Deeper than a path may be. */
        for (char c = 'a'; c <= 'd'; c++) {
                n += (size_t) sprintf(text + n, "%c -> %c%s\n", c, c,
                                      "0/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8/9");
                n += (size_t) sprintf(text + n,
                                      "%c0/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8/9/%c -> %c\n", c,
                                      c + 1, c + 1);
        }
        n += (size_t) sprintf(
                text + n, "a/0/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x/y/z/0/1/2/3/4/5=1\n");
        assert_true(unpack(f, text) < 0);
        assert_non_null(f->problem);
        assert_clean(f);
}

TEST_WITH(test_remove, setup, teardown) {
        Fixture *f = *state;
        _cleanup_free_ char *link = NULL, *dir = NULL;

        assert_int_equal(unpack(f, "proc/1/root -> /\n"), 0);
        dir = tree_path(f->top, "outside");
        link = tree_path(f->dir, "escape");
        assert_int_equal(symlink(dir, link), 0);
        done(f);
        tree_link(f->top, "tmp/link", dir);
        free(link);
        link = tree_path(f->top, "tmp/link");
        tree_remove(link);
        assert_clean(f);
}
