/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The fragment of modprobe.d: written once, never over another program's file, and removed again. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unit.h"

#include "host/modprobe.h"
#include "plan/mlx4.h"
#include "tmptree.h"
#include "util/fileio.h"
#include "util/strings.h"

#define ONE MLX4_MARK "\noptions mlx4_core num_vfs=1 probe_vf=0\n"
#define TWO MLX4_MARK "\noptions mlx4_core num_vfs=2 probe_vf=0\n"

/* The mode of the last file at its rename, which it keeps if the daemon dies then. */
static mode_t mode_at_rename;

int renameat(int from_fd, const char *from, int to_fd, const char *to) {
        struct stat st;

        if (fstatat(from_fd, from, &st, AT_SYMLINK_NOFOLLOW) == 0)
                mode_at_rename = st.st_mode & 07777;
        return (int) syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

typedef struct Fixture {
        char *root;
        Sysfs *fs;
        int dir;
} Fixture;

static int setup(void **state) {
        Fixture *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        p->root = tree_new();
        tree_dir(p->root, "etc/modprobe.d");
        assert_int_equal(sysfs_new(p->root, &p->fs), 0);
        p->dir = modprobe_open(p->fs, NULL);
        assert_true(p->dir >= 0);
        *state = p;
        return 0;
}

static int teardown(void **state) {
        Fixture *p = *state;

        cleanup_close(&p->dir);
        sysfs_free(p->fs);
        tree_done(p->root);
        free(p);
        return 0;
}

static struct stat stat_of(const Fixture *p) {
        struct stat st;

        assert_int_equal(fstatat(p->dir, MODPROBE_FRAGMENT, &st, AT_SYMLINK_NOFOLLOW), 0);
        return st;
}

static void assert_content(const Fixture *p, const char *expected) {
        _cleanup_free_ char *text = NULL;

        assert_int_equal(read_file_at(p->dir, MODPROBE_FRAGMENT, 100000, &text, NULL), 0);
        assert_string_equal(text, expected);
}

static bool is_there(const Fixture *p) {
        return faccessat(p->dir, MODPROBE_FRAGMENT, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

TEST_WITH(test_writes_and_removes, setup, teardown) {
        const Fixture *p = *state;
        struct stat before, now;
        mode_t mask = umask(0077);

        assert_int_equal(modprobe_set(p->dir, NULL), 0);
        assert_int_equal(modprobe_set(p->dir, ONE), 1);
        (void) umask(mask);
        assert_content(p, ONE);
        before = stat_of(p);
        assert_int_equal(before.st_mode & 07777, 0644);
        assert_int_equal(mode_at_rename, 0644);
        assert_int_equal(modprobe_set(p->dir, ONE), 0);
        now = stat_of(p);
        assert_true(now.st_ino == before.st_ino && now.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
        assert_int_equal(modprobe_set(p->dir, TWO), 1);
        assert_content(p, TWO);
        assert_int_equal(modprobe_set(p->dir, NULL), 1);
        assert_false(is_there(p));
        assert_int_equal(modprobe_set(p->dir, NULL), 0);
}

TEST_WITH(test_of_others, setup, teardown) {
        static const char *const others[] = { "options mlx4_core num_vfs=8\n", "",
                                              "# mine\n" MLX4_MARK "\noptions mlx4_core num_vfs=8\n" };
        const Fixture *p = *state;

        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                tree_bytes(p->root, "etc/modprobe.d/" MODPROBE_FRAGMENT, others[i], strlen(others[i]));
                assert_int_equal(modprobe_set(p->dir, ONE), -EEXIST);
                assert_int_equal(modprobe_set(p->dir, NULL), 0);
                assert_content(p, others[i]);
        }
}

/* A link that masks the name, or leads to another file of the daemon; a directory; a FIFO without a writer. */
TEST_WITH(test_no_plain_file, setup, teardown) {
        const Fixture *p = *state;
        _cleanup_free_ char *path = tree_path(p->root, "etc/modprobe.d/" MODPROBE_FRAGMENT);

        tree_file(p->root, "etc/ours", ONE);
        for (int i = 0; i < 4; i++) {
                struct stat before;

                if (i < 2)
                        tree_link(p->root, "etc/modprobe.d/" MODPROBE_FRAGMENT, i == 0 ? "/dev/null" : "../ours");
                else
                        assert_int_equal(i == 2 ? mkdir(path, 0755) : mkfifo(path, 0644), 0);
                before = stat_of(p);
                assert_int_equal(modprobe_set(p->dir, TWO), -EEXIST);
                assert_int_equal(modprobe_set(p->dir, NULL), 0);
                assert_true(stat_of(p).st_ino == before.st_ino);
                assert_int_equal(remove(path), 0);
        }
}

TEST_WITH(test_too_large, setup, teardown) {
        const Fixture *p = *state;
        static char large[70000];

        memset(large, '#', sizeof(large));
        memcpy(large, MLX4_MARK, strlen(MLX4_MARK));
        tree_bytes(p->root, "etc/modprobe.d/" MODPROBE_FRAGMENT, large, sizeof(large));
        assert_int_equal(modprobe_set(p->dir, ONE), -EEXIST);
        assert_int_equal(stat_of(p).st_size, sizeof(large));
}

TEST_WITH(test_directory, setup, teardown) {
        const Fixture *p = *state;
        _cleanup_free_ char *path = NULL, *other = NULL;
        _cleanup_close_ int fd = -1;

        assert_int_equal(modprobe_path(p->fs, NULL, &path), 0);
        assert_int_equal(strncmp(path, p->root, strlen(p->root)), 0);
        assert_string_equal(path + strlen(p->root), "/etc/modprobe.d/passthroughd.conf");
        assert_int_equal(string_replace(&other, "%s/other", p->root), 0);
        assert_int_equal(modprobe_open(p->fs, other), -ENOENT);
        tree_dir(p->root, "other");
        fd = modprobe_open(p->fs, other);
        assert_true(fd >= 0);
        assert_int_equal(modprobe_set(fd, ONE), 1);
        assert_false(is_there(p));
        assert_int_equal(modprobe_path(p->fs, "/x", &path), 0);
        assert_string_equal(path, "/x/passthroughd.conf");
}
