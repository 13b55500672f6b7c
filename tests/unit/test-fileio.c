/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "unit.h"

#include "util/cleanup.h"
#include "util/fileio.h"

static char dir[] = "/tmp/test-fileio-XXXXXX";
static int dir_fd = -1;
static int last_synced = -1, synced_at_link = -1;

/* Replace the functions of the C library for the program under test. */

int fsync(int fd) {
        static int (*next)(int fd);

        if (!next)
                next = dlsym(RTLD_NEXT, "fsync");
        last_synced = fd;
        return next(fd);
}

int linkat(int old_dir, const char *old, int new_dir, const char *new, int flags) {
        static int (*next)(int old_dir, const char *old, int new_dir, const char *new, int flags);

        if (!next)
                next = dlsym(RTLD_NEXT, "linkat");
        synced_at_link = last_synced;
        return next(old_dir, old, new_dir, new, flags);
}

static int setup(void **state _unused_) {
        if (!mkdtemp(dir))
                return -1;
        dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return dir_fd < 0 ? -1 : 0;
}

static int teardown(void **state _unused_) {
        cleanup_close(&dir_fd);
        return rmdir(dir);
}

static void write_text(const char *name, const char *text) {
        assert_int_equal(write_file_atomic_at(dir_fd, name, text, strlen(text)), 0);
}

static void assert_content(const char *name, const char *expected) {
        _cleanup_free_ char *text = NULL;

        assert_int_equal(read_file_at(dir_fd, name, 100000, &text, NULL), 0);
        assert_string_equal(text, expected);
}

TEST(test_write_replaces) {
        write_text("a", "a long first version");
        write_text("a", "second");
        errno = EINTR; /* left by an earlier call */
        assert_content("a", "second");
        assert_int_equal(remove_file_at(dir_fd, "a"), 0);
        assert_int_equal(remove_file_at(dir_fd, "a"), 0); /* a missing file is no error */
}

typedef struct Lines {
        unsigned n, stop;
        size_t length;
} Lines;

static int count_line(char *line, void *userdata) {
        Lines *lines = userdata;

        assert_null(strchr(line, '\n'));
        lines->length += strlen(line);
        return ++lines->n == lines->stop ? 7 : 0;
}

static int open_at(const char *name) {
        return openat(dir_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

TEST(test_lines) {
        Lines lines = { 0 }, two = { .stop = 2 }, none = { 0 };

        write_text("a", "one\n\nthree\nfour");
        assert_int_equal(read_lines_fd(open_at("a"), count_line, &lines), 0);
        assert_int_equal(lines.n, 4);
        assert_int_equal(lines.length, 12);
        assert_int_equal(read_lines_fd(open_at("a"), count_line, &two), 7);
        assert_int_equal(two.n, 2);
        write_text("a", "");
        assert_int_equal(read_lines_fd(open_at("a"), count_line, &none), 0);
        assert_int_equal(mkfifoat(dir_fd, "fifo", 0600), 0);
        assert_int_equal(read_lines_fd(open_at("fifo"), count_line, &none), -EINVAL);
        assert_int_equal(read_lines_fd(open_at("."), count_line, &none), -EISDIR);
        assert_int_equal(none.n, 0);
        assert_int_equal(remove_file_at(dir_fd, "a"), 0);
        assert_int_equal(remove_file_at(dir_fd, "fifo"), 0);
}

/* A temporary file left by a crash, or by an attacker, is replaced, and nothing is written through it. */
TEST(test_write_stale_temporary) {
        write_text("victim", "mine");
        assert_int_equal(symlinkat("victim", dir_fd, ".a.tmp"), 0);
        errno = 0;
        write_text("a", "new");
        assert_content("a", "new");
        assert_content("victim", "mine");
        assert_int_equal(faccessat(dir_fd, ".a.tmp", F_OK, AT_SYMLINK_NOFOLLOW), -1);
        assert_int_equal(remove_file_at(dir_fd, "a"), 0);
        assert_int_equal(remove_file_at(dir_fd, "victim"), 0);
}

TEST(test_write_failure_leaves_nothing) {
        assert_int_equal(mkdirat(dir_fd, "a", 0755), 0);
        assert_int_equal(write_file_atomic_at(dir_fd, "a", "x", 1), -EISDIR); /* rename() fails */
        assert_int_equal(faccessat(dir_fd, ".a.tmp", F_OK, AT_SYMLINK_NOFOLLOW), -1);
        assert_int_equal(unlinkat(dir_fd, "a", AT_REMOVEDIR), 0);
        assert_int_equal(write_file_atomic_at(dir_fd, "../a", "x", 1), -EINVAL);
        assert_int_equal(write_file_atomic_at(-1, "a", "x", 1), -EBADF);
}

static size_t count_names(void) {
        char **names = NULL;
        size_t n = 0;

        assert_int_equal(list_dir_at(dir_fd, ".", 100, &names, &n), 0);
        (void) free_names(names, n);
        return n;
}

/* A spare file has no name until it is written, and does not replace another file. */
TEST(test_spare) {
        int spare = spare_file_at(dir_fd);

        if (spare == -EOPNOTSUPP)
                skip();
        assert_true(spare >= 0);
        assert_int_equal(count_names(), 0);
        last_synced = -1;
        assert_int_equal(write_spare_file_at(dir_fd, "a", spare, "one", 3), 0);
        assert_int_equal(synced_at_link, spare); /* after a power cut the name has the whole file or no file */
        assert_int_equal(last_synced, dir_fd);
        assert_content("a", "one");
        assert_int_equal(close(spare), -1); /* the write has closed it */
        spare = spare_file_at(dir_fd);
        assert_true(spare >= 0);
        assert_int_equal(write_spare_file_at(dir_fd, "a", spare, "two", 3), -EEXIST);
        assert_content("a", "one");
        assert_int_equal(count_names(), 1);
        assert_int_equal(remove_file_at(dir_fd, "a"), 0);
}

TEST(test_read_limit) {
        _cleanup_free_ char *big = calloc(1, 10000), *text = NULL;
        char *untouched = NULL;
        size_t size;

        memset(big, 'x', 9999);
        write_text("a", big);
        assert_int_equal(read_file_at(dir_fd, "a", 9999, &text, &size), 0);
        assert_int_equal(size, 9999);
        assert_string_equal(text, big);
        assert_int_equal(read_file_at(dir_fd, "a", 9998, &untouched, NULL), -E2BIG);
        assert_int_equal(read_file_at(dir_fd, "a", 0, &untouched, NULL), -E2BIG);
        assert_int_equal(read_file_at(dir_fd, "none", 10, &untouched, NULL), -ENOENT);
        assert_int_equal(read_file_at(dir_fd, ".", 10, &untouched, NULL), -EISDIR);
        assert_null(untouched);

        write_text("a", "");
        free(text);
        assert_int_equal(read_file_at(dir_fd, "a", 0, &text, &size), 0);
        assert_int_equal(size, 0);
        assert_string_equal(text, "");
        assert_int_equal(remove_file_at(dir_fd, "a"), 0);
}

TEST(test_read_only_regular_files) {
        char *text = NULL;

        assert_int_equal(mkfifoat(dir_fd, "fifo", 0600), 0);
        (void) alarm(120);
        assert_int_equal(read_file_at(dir_fd, "fifo", 10, &text, NULL), -EINVAL);
        (void) alarm(0);
        assert_int_equal(read_file_at(AT_FDCWD, "/dev/null", 10, &text, NULL), -EINVAL);
        assert_null(text);
        write_text("a", "x");
        assert_int_equal(symlinkat("a", dir_fd, "link"), 0);
        assert_content("link", "x");
        assert_int_equal(remove_file_at(dir_fd, "fifo"), 0);
        assert_int_equal(remove_file_at(dir_fd, "link"), 0);
        assert_int_equal(remove_file_at(dir_fd, "a"), 0);
}

TEST(test_list) {
        static const char *const names[] = { "c", "a", ".hidden", "b" };
        static const char *const sorted[] = { ".hidden", "a", "b", "c" };
        char **list = NULL;
        size_t n = 7;

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                write_text(names[i], "");
        assert_int_equal(list_dir_at(dir_fd, ".", 3, &list, &n), -E2BIG);
        assert_null(list);
        assert_int_equal(list_dir_at(dir_fd, ".", 4, &list, &n), 0);
        assert_int_equal(n, 4);
        assert_null(list[n]);
        for (size_t i = 0; i < n; i++) {
                assert_string_equal(list[i], sorted[i]);
                assert_int_equal(remove_file_at(dir_fd, list[i]), 0);
        }
        list = free_names(list, n);

        assert_int_equal(list_dir_at(dir_fd, ".", 4, &list, &n), 0);
        assert_int_equal(n, 0);
        assert_int_equal(list_dir_at(dir_fd, "none", 4, &list, &n), -ENOENT);
        list = free_names(list, n);
}

TEST_GROUP(setup, teardown)
