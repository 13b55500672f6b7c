/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into the daemon, this kills it before call N of those that make the ledger durable: what it has on disk
 * then is what a crash at that instant leaves. N is in $NODE_TMP/die-at, from where it is counted down; without the
 * file nothing dies. The file is removed before the death, so that its end shows that the instant has come.
 */

#include "disk.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))

#define NEXT(function) ((__typeof__(&function)) dlsym(RTLD_NEXT, #function))

/* In one piece and of one length: the test reads it meanwhile, and may have taken it away. */
static void write_number(const char *path, long n) {
        char text[32];
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0)
                return;
        (void) snprintf(text, sizeof(text), "%08ld\n", n);
        if (write(fd, text, strlen(text)) < 0)
                abort();
        (void) close(fd);
}

static void count_down(void) {
        const char *directory = getenv("NODE_TMP");
        char path[PATH_MAX], text[32] = "";
        long n;
        int fd;

        if (!directory)
                return;
        (void) snprintf(path, sizeof(path), "%s/die-at", directory);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return;
        if (read(fd, text, sizeof(text) - 1) < 0)
                abort();
        (void) close(fd);
        n = strtol(text, NULL, 10) - 1;
        if (n > 0) {
                write_number(path, n);
                return;
        }
        (void) NEXT(unlinkat)(AT_FDCWD, path, 0);
        (void) kill(getpid(), SIGKILL);
}

VISIBLE int fsync(int fd) {
        int r;

        count_down();
        r = NEXT(fsync)(fd);
        if (r == 0)
                disk_note(fd);
        return r;
}

VISIBLE int renameat(int old_dir, const char *old, int new_dir, const char *new) {
        count_down();
        return NEXT(renameat)(old_dir, old, new_dir, new);
}

VISIBLE int unlinkat(int dir, const char *path, int flags) {
        count_down();
        return NEXT(unlinkat)(dir, path, flags);
}

VISIBLE ssize_t writev(int fd, const struct iovec *iov, int n) {
        count_down();
        return NEXT(writev)(fd, iov, n);
}
