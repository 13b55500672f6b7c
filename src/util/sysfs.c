/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/log.h"
#include "util/sysfs.h"

/* openat2() with RESOLVE_IN_ROOT fails with EAGAIN for a path, or a link target on it, with ".." when any file on the
 * machine is renamed at the same time. The call is then repeated, at most this often. */
#define OPEN_TRIES 100

#define NEVER_WAIT (O_NONBLOCK | O_NOCTTY)

struct Sysfs {
        char *root;
        int root_fd;
        bool has_openat2; /* the kernel has openat2(), since Linux 5.6, and no seccomp filter forbids it */
        bool recorded;
};

static int open_in_root(int root_fd, const char *path, int flags) {
        struct open_how how = {
                .flags = (uint64_t) (flags | O_CLOEXEC),
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
        };

        for (unsigned i = 0; i < OPEN_TRIES; i++) {
                long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

                if (fd >= 0)
                        return (int) fd;
                if (errno != EAGAIN)
                        return -errno;
        }
        return -EAGAIN;
}

static int probe_openat2(int root_fd, bool *ret) {
        _cleanup_close_ int fd = open_in_root(root_fd, ".", O_PATH | O_DIRECTORY);

        if (fd < 0 && fd != -ENOSYS && fd != -EPERM)
                return fd;
        *ret = fd >= 0;
        return 0;
}

static int open_root(const char *root, Sysfs **ret) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        size_t len = strlen(root);

        if (len == 0)
                return -EINVAL;
        while (len > 0 && root[len - 1] == '/')
                len--;

        fs = calloc(1, sizeof(*fs));
        if (!fs)
                return -ENOMEM;
        fs->root_fd = -1;
        fs->root = strndup(root, len);
        if (!fs->root)
                return -ENOMEM;

        fs->root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fs->root_fd < 0)
                return -errno;
        *ret = TAKE_PTR(fs);
        return 0;
}

int sysfs_new(const char *root, Sysfs **ret) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        int r = open_root(root, &fs);

        if (r >= 0)
                r = probe_openat2(fs->root_fd, &fs->has_openat2);
        if (r >= 0)
                *ret = TAKE_PTR(fs);
        return r;
}

int sysfs_reopen(const Sysfs *fs, Sysfs **ret) {
        int r = open_root(*fs->root ? fs->root : "/", ret);

        if (r < 0)
                return r;
        (*ret)->has_openat2 = fs->has_openat2;
        (*ret)->recorded = fs->recorded;
        return 0;
}

int sysfs_new_recorded(const char *root, Sysfs **ret) {
        int r = sysfs_new(root, ret);

        if (r >= 0)
                (*ret)->recorded = true;
        return r;
}

Sysfs *sysfs_free(Sysfs *fs) {
        if (!fs)
                return NULL;
        cleanup_close(&fs->root_fd);
        free(fs->root);
        free(fs);
        return NULL;
}

const char *sysfs_root(const Sysfs *fs) {
        return fs->root;
}

bool sysfs_is_confined(const Sysfs *fs) {
        return fs->has_openat2;
}

bool sysfs_is_recorded(const Sysfs *fs) {
        return fs->recorded;
}

static int open_below(const Sysfs *fs, const char *path, int flags) {
        int fd;

        if (fs->has_openat2)
                return open_in_root(fs->root_fd, path, flags);
        fd = openat(fs->root_fd, path, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Makes the user of this process the owner of an attribute, because attributes belong to root and the daemon does not
 * run as root. Returns true on success. CAP_CHOWN works only on file systems that are writable in the daemon's sandbox,
 * whereas CAP_DAC_OVERRIDE would open every file and every socket of the machine. */
static bool take_over(const Sysfs *fs, const char *path) {
        _cleanup_close_ int fd = strncmp(path, "sys/", 4) == 0 ? open_below(fs, path, O_PATH) : -1;

        return fd >= 0 && fchownat(fd, "", geteuid(), (gid_t) -1, AT_EMPTY_PATH) >= 0;
}

int sysfs_open(const Sysfs *fs, const char *path, int flags) {
        int fd;

        path += strspn(path, "/");
        if (!*path)
                path = ".";
        if (fs->recorded && !(flags & O_PATH))
                flags |= NEVER_WAIT;
        fd = open_below(fs, path, flags);
        return fd == -EACCES && take_over(fs, path) ? open_below(fs, path, flags) : fd;
}

/* Calls read(2) once or, if buf is larger than an attribute, until the end of file or until buf is full. Returns the
 * number of bytes or a negative errno. */
static ssize_t read_buffer(int fd, char *buf, size_t size) {
        size_t used = 0;

        while (used < size) {
                ssize_t n = read(fd, buf + used, size - used);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                used += (size_t) n;
                if (n == 0 || size <= SYSFS_ATTRIBUTE_MAX)
                        break;
        }
        return (ssize_t) used;
}

static int read_attribute(int fd, char *buf, size_t size) {
        ssize_t n = read_buffer(fd, buf, MIN(size, (size_t) INT_MAX));

        if (n < 0)
                return (int) n;
        if ((size_t) n == size)
                return -E2BIG; /* no room for the NUL */

        if (n > 0 && buf[n - 1] == '\n')
                n--;
        buf[n] = 0;
        return (int) n;
}

int sysfs_read_at(const Sysfs *fs, int dir_fd, const char *name, char *buf, size_t size) {
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (fs->recorded ? NEVER_WAIT : 0);
        _cleanup_close_ int fd = openat(dir_fd, name, flags);

        if (fd < 0)
                return -errno;
        return read_attribute(fd, buf, size);
}

int sysfs_read(const Sysfs *fs, const char *path, char *buf, size_t size) {
        _cleanup_close_ int fd = sysfs_open(fs, path, O_RDONLY);

        if (fd < 0)
                return fd;
        return read_attribute(fd, buf, size);
}

int sysfs_write(const Sysfs *fs, const char *path, const char *value) {
        _cleanup_close_ int fd = -1;
        size_t len = strlen(value);
        ssize_t n;

        /* Log before the write, which may never return. */
        log_debug("Writing '%s' to %s", value, path);

        fd = sysfs_open(fs, path, O_WRONLY);
        if (fd < 0)
                return fd;
        n = write(fd, value, len);
        if (n < 0)
                return -errno;
        return (size_t) n == len ? 0 : -EIO;
}

int sysfs_set(const Sysfs *fs, const char *path, const char *value) {
        char now[SYSFS_ATTRIBUTE_MAX];
        int r = sysfs_read(fs, path, now, sizeof(now));

        if (r < 0 || streq(now, value))
                return MIN(r, 0);
        r = sysfs_write(fs, path, value);
        if (r < 0)
                return r;
        r = sysfs_read(fs, path, now, sizeof(now));
        if (r < 0)
                return r;
        return streq(now, value) ? 1 : -EIO;
}

static int link_name(int fd, const char *name, char *buf, size_t size) {
        char target[PATH_MAX];
        const char *last;
        ssize_t n = readlinkat(fd, name, target, sizeof(target));

        if (n < 0)
                return -errno;
        if ((size_t) n == sizeof(target))
                return -E2BIG;
        target[n] = 0;

        last = strrchr(target, '/');
        last = last ? last + 1 : target;
        if (strlen(last) >= size)
                return -E2BIG;
        strcpy(buf, last);
        return 0;
}

int sysfs_link_name_at(int dir_fd, const char *name, char *buf, size_t size) {
        return link_name(dir_fd, name, buf, size);
}

int sysfs_link_name(const Sysfs *fs, const char *path, char *buf, size_t size) {
        _cleanup_close_ int fd = sysfs_open(fs, path, O_PATH | O_NOFOLLOW);
        int r;

        if (fd < 0)
                return fd;
        r = link_name(fd, "", buf, size);
        return r == -ENOENT ? -EINVAL : r; /* readlinkat() fails so if the descriptor is not a link */
}

static int fd_path(int fd, char buf[static PATH_MAX]) {
        char name[64];
        ssize_t n;

        (void) snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        n = readlink(name, buf, PATH_MAX);
        if (n < 0)
                return -errno;
        if (n == PATH_MAX)
                return -E2BIG;
        buf[n] = 0;
        return 0;
}

int sysfs_realpath(const Sysfs *fs, const char *path, char **ret) {
        _cleanup_close_ int fd = -1;
        char root[PATH_MAX], full[PATH_MAX];
        char *copy;
        size_t len;
        int r;

        fd = sysfs_open(fs, path, O_PATH);
        if (fd < 0)
                return fd;
        r = fd_path(fs->root_fd, root);
        if (r < 0)
                return r;
        r = fd_path(fd, full);
        if (r < 0)
                return r;

        len = streq(root, "/") ? 0 : strlen(root);
        if (strncmp(full, root, len) != 0 || (full[len] && full[len] != '/'))
                return -EXDEV; /* only possible without openat2() */

        copy = strdup(full + len + (full[len] == '/'));
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}
