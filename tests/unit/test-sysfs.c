/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "unit.h"

#include "util/sysfs.h"

/* DIR/root is the root. DIR/secret must be unreachable. */
static char dir[] = "/tmp/test-sysfs-XXXXXX";
static Sysfs *fs;

static void put(const char *path, const char *text) {
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static int setup(void **state _unused_) {
        static const char *const dirs[] = {
                "root",         "root/sys",         "root/sys/devices",         "root/sys/devices/card",
                "root/sys/bus", "root/sys/drivers", "root/sys/drivers/vfio-pci"
        };

        if (!mkdtemp(dir) || chdir(dir) < 0)
                return -1;
        for (size_t i = 0; i < ELEMENTSOF(dirs); i++)
                if (mkdir(dirs[i], 0755) < 0)
                        return -1;
        put("secret", "secret\n");
        put("root/sys/devices/card/vendor", "0x10de\n");
        put("root/sys/devices/card/empty", "");
        if (symlink("../devices/card", "root/sys/bus/card") < 0 ||
            symlink("../../drivers/vfio-pci", "root/sys/devices/card/driver") < 0 ||
            symlink("../../../../secret", "root/sys/devices/card/upward") < 0 ||
            symlink("/sys/devices/card/vendor", "root/sys/devices/card/absolute") < 0)
                return -1;
        return sysfs_new("root//", &fs);
}

static int remove_entry(const char *path, const struct stat *st _unused_, int type _unused_, struct FTW *ftw _unused_) {
        return remove(path);
}

static int teardown(void **state _unused_) {
        fs = sysfs_free(fs);
        return chdir("/") < 0 ? -1 : nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

TEST(test_new) {
        Sysfs *other = NULL;

        assert_string_equal(sysfs_root(fs), "root");
        assert_int_equal(sysfs_new("none", &other), -ENOENT);
        assert_int_equal(sysfs_new("secret", &other), -ENOTDIR);
        assert_int_equal(sysfs_new("", &other), -EINVAL);
        assert_null(other);
}

TEST(test_real_root) {
        _cleanup_(cleanup_sysfs_free) Sysfs *real = NULL;
        _cleanup_free_ char *path = NULL;
        char small[16], big[65536];

        assert_int_equal(sysfs_new("/", &real), 0);
        assert_string_equal(sysfs_root(real), "");
        assert_int_equal(sysfs_realpath(real, "/usr/../usr", &path), 0);
        assert_string_equal(path, "usr");
        assert_true(sysfs_read(real, "proc/self/status", big, sizeof(big)) > 0);
        assert_int_equal(sysfs_read(real, "proc/self/status", small, sizeof(small)), -E2BIG);
        assert_true(sysfs_read(real, "proc/self/mountinfo", big, sizeof(big)) > 0);
}

TEST(test_read) {
        char buf[8];

        assert_int_equal(sysfs_read(fs, "sys/bus/card/vendor", buf, sizeof(buf)), 6);
        assert_string_equal(buf, "0x10de");
        assert_int_equal(sysfs_read(fs, "/sys/bus/card/empty", buf, sizeof(buf)), 0);
        assert_string_equal(buf, "");
        assert_int_equal(sysfs_read(fs, "sys/bus/card/vendor", buf, 7), -E2BIG);
        assert_int_equal(sysfs_read(fs, "sys/bus/card/none", buf, sizeof(buf)), -ENOENT);
        assert_int_equal(sysfs_read(fs, "sys/bus/card", buf, sizeof(buf)), -EISDIR);
}

TEST(test_read_at) {
        _cleanup_close_ int fd = sysfs_open(fs, "sys/bus/card", O_PATH | O_DIRECTORY);
        char buf[16];

        assert_true(fd >= 0);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        assert_int_equal(sysfs_read_at(fs, fd, "vendor", buf, sizeof(buf)), 6);
        assert_int_equal(sysfs_read_at(fs, fd, "none", buf, sizeof(buf)), -ENOENT);
        assert_int_equal(sysfs_read_at(fs, fd, "upward", buf, sizeof(buf)), -ELOOP);
}

/* A read in a recording waits neither for the writer of a FIFO nor for its data. A read in a machine waits for both. */
TEST(test_recorded) {
        _cleanup_(cleanup_sysfs_free) Sysfs *recorded = NULL;
        _cleanup_close_ int dir_fd = -1, writer = -1, reader = -1;
        char buf[16];

        assert_int_equal(mkfifo("root/sys/devices/card/class", 0600), 0);
        assert_int_equal(sysfs_new_recorded("root", &recorded), 0);
        dir_fd = sysfs_open(recorded, "sys/bus/card", O_PATH | O_DIRECTORY);
        assert_true(dir_fd >= 0);
        (void) alarm(120);
        assert_int_equal(sysfs_read(recorded, "sys/bus/card/class", buf, sizeof(buf)), 0);
        assert_int_equal(sysfs_read_at(recorded, dir_fd, "class", buf, sizeof(buf)), 0);
        writer = open("root/sys/devices/card/class", O_RDWR | O_CLOEXEC);
        assert_int_equal(sysfs_read(recorded, "sys/bus/card/class", buf, sizeof(buf)), -EAGAIN);
        assert_int_equal(sysfs_read_at(recorded, dir_fd, "class", buf, sizeof(buf)), -EAGAIN);
        (void) alarm(0);
        reader = sysfs_open(fs, "sys/bus/card/class", O_RDONLY);
        assert_int_equal(fcntl(reader, F_GETFL) & O_NONBLOCK, 0);
}

/* Without openat2() (old kernels, some seccomp filters) links can leave the root. */
static bool has_openat2(void) {
        return syscall(SYS_openat2, -1, "", NULL, 0) >= 0 || (errno != ENOSYS && errno != EPERM);
}

TEST(test_links_stay_inside) {
        _cleanup_(cleanup_sysfs_free) Sysfs *real = NULL;
        char buf[16];

        if (!has_openat2())
                fail_msg("this kernel, or a seccomp filter, has no openat2(2)");

        assert_int_equal(sysfs_new("/", &real), 0);
        assert_int_equal(sysfs_open(real, "proc/self/root/usr", O_PATH), -ELOOP);

        /* ".." stops at the root, which has no "secret". */
        assert_int_equal(sysfs_read(fs, "sys/bus/card/upward", buf, sizeof(buf)), -ENOENT);
        assert_int_equal(sysfs_read(fs, "../secret", buf, sizeof(buf)), -ENOENT);
        assert_int_equal(sysfs_read(fs, "sys/bus/card/absolute", buf, sizeof(buf)), 6);
}

TEST(test_write) {
        char buf[16];

        assert_int_equal(sysfs_write(fs, "sys/bus/card/vendor", "0x15b3"), 0);
        assert_int_equal(sysfs_read(fs, "sys/bus/card/vendor", buf, sizeof(buf)), 6);
        assert_string_equal(buf, "0x15b3");
        assert_int_equal(sysfs_write(fs, "sys/bus/card/vendor", "0x10de"), 0);
        assert_int_equal(sysfs_write(fs, "sys/bus/card/none", "1"), -ENOENT); /* never creates */
}

TEST(test_link_name) {
        _cleanup_close_ int fd = sysfs_open(fs, "sys/devices/card", O_PATH | O_DIRECTORY);
        char buf[16];

        assert_int_equal(sysfs_link_name(fs, "sys/bus/card/driver", buf, sizeof(buf)), 0);
        assert_string_equal(buf, "vfio-pci");
        assert_int_equal(sysfs_link_name(fs, "sys/bus/card/driver", buf, 8), -E2BIG);
        assert_int_equal(sysfs_link_name(fs, "sys/bus/card/none", buf, sizeof(buf)), -ENOENT);
        assert_int_equal(sysfs_link_name(fs, "sys/bus/card/vendor", buf, sizeof(buf)), -EINVAL);

        assert_true(fd >= 0);
        assert_int_equal(sysfs_link_name_at(fd, "driver", buf, sizeof(buf)), 0);
        assert_string_equal(buf, "vfio-pci");
        assert_int_equal(sysfs_link_name_at(fd, "none", buf, sizeof(buf)), -ENOENT);
        assert_int_equal(sysfs_link_name_at(fd, "vendor", buf, sizeof(buf)), -EINVAL);
}

TEST(test_realpath) {
        _cleanup_free_ char *path = NULL;

        assert_int_equal(sysfs_realpath(fs, "sys/bus/card/driver", &path), 0);
        assert_string_equal(path, "sys/drivers/vfio-pci");
        free(path);
        assert_int_equal(sysfs_realpath(fs, "/", &path), 0);
        assert_string_equal(path, "");
        assert_int_equal(sysfs_realpath(fs, "sys/none", &path), -ENOENT);
}

TEST_GROUP(setup, teardown)
