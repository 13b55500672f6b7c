/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into the daemon, this kills it before call N of the calls that make the ledger durable: the files on disk
 * are then those of a crash at that instant. $NODE_TMP/die-at has N, and counts down; without the file the daemon
 * lives. The file is removed before the death, which shows that the instant was reached.
 *
 * Or call N of those that change the state directory fails. $NODE_TMP/fail-at has "N ERRNO", and is removed at the
 * call. "N ERRNO ever" stays with N as 0, and all further calls fail too.
 */

#include "disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))

#define NEXT(function) ((__typeof__(&function)) dlsym(RTLD_NEXT, #function))

/* Overwrites the file in one write of the same length, because the test reads it meanwhile, and may have removed it. */
static void write_text(const char *path, const char *text) {
        int fd = NEXT(openat)(AT_FDCWD, path, O_WRONLY | O_CLOEXEC);

        if (fd < 0)
                return;
        if (NEXT(write)(fd, text, strlen(text)) < 0)
                abort();
        (void) close(fd);
}

/* Counts down the number at the beginning of the file. Returns 0 when the call is due, with the text after the number
 * in ret_rest. Returns a negative number without the file. */
static long count_down(const char *name, char path[static PATH_MAX], char rest[static 32]) {
        const char *directory = getenv("NODE_TMP");
        char text[64] = "", *end;
        long n;
        int fd;

        if (!directory)
                return -1;
        (void) snprintf(path, PATH_MAX, "%s/%s", directory, name);
        fd = NEXT(openat)(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -1;
        if (read(fd, text, sizeof(text) - 1) < 0)
                abort();
        (void) close(fd);
        n = strtol(text, &end, 10);
        (void) snprintf(rest, 32, "%s", end);
        if (n > 0) {
                (void) snprintf(text, sizeof(text), "%08ld%s", --n, rest);
                write_text(path, text);
        }
        return n;
}

static void die_in_time(void) {
        char path[PATH_MAX], rest[32];

        if (count_down("die-at", path, rest) != 0)
                return;
        (void) NEXT(unlinkat)(AT_FDCWD, path, 0);
        (void) kill(getpid(), SIGKILL);
}

/* Returns whether the descriptor is of the state directory, or of an entry below it. */
static bool is_state(int fd) {
        const char *state = getenv("STATE_DIRECTORY");
        char link[32], path[PATH_MAX];
        ssize_t n;

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = state ? readlink(link, path, sizeof(path) - 1) : -1;
        return n > 0 && strncmp(path, state, strlen(state)) == 0;
}

/* Returns whether the call that changes the state directory fails, with errno set. */
static bool fails(int fd) {
        char path[PATH_MAX], rest[32];
        int saved = errno;

        if (!is_state(fd) || count_down("fail-at", path, rest) != 0) {
                errno = saved;
                return false;
        }
        if (!strstr(rest, " ever"))
                (void) NEXT(unlinkat)(AT_FDCWD, path, 0);
        errno = (int) strtol(rest, NULL, 10);
        return true;
}

VISIBLE int fsync(int fd) {
        int r;

        die_in_time();
        if (fails(fd))
                return -1;
        r = NEXT(fsync)(fd);
        if (r == 0)
                disk_note(fd);
        return r;
}

VISIBLE int renameat(int old_dir, const char *old, int new_dir, const char *new) {
        die_in_time();
        return fails(new_dir) ? -1 : NEXT(renameat)(old_dir, old, new_dir, new);
}

VISIBLE int unlinkat(int dir, const char *path, int flags) {
        die_in_time();
        return fails(dir) ? -1 : NEXT(unlinkat)(dir, path, flags);
}

VISIBLE int linkat(int old_dir, const char *old, int new_dir, const char *new, int flags) {
        return fails(new_dir) ? -1 : NEXT(linkat)(old_dir, old, new_dir, new, flags);
}

VISIBLE ssize_t write(int fd, const void *data, size_t size) {
        return fails(fd) ? -1 : NEXT(write)(fd, data, size);
}

VISIBLE ssize_t writev(int fd, const struct iovec *iov, int n) {
        die_in_time();
        return NEXT(writev)(fd, iov, n);
}

static bool creates(int flags) {
        return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

VISIBLE int openat(int dir, const char *path, int flags, ...) {
        va_list list;
        mode_t mode;

        va_start(list, flags);
        mode = creates(flags) ? va_arg(list, mode_t) : 0;
        va_end(list);
        return creates(flags) && fails(dir) ? -1 : NEXT(openat)(dir, path, flags, mode);
}

/* the name that the daemon calls */
VISIBLE int openat64(int dir, const char *path, int flags, ...) __attribute__((alias("openat")));
