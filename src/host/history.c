/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes and reads the history on disk. */

#include "host/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define FILE_NOW "history"
#define FILE_OLD "history.1"

struct History {
        int dir_fd;
};

int history_open(const char *state_dir, History **ret) {
        _cleanup_(cleanup_history_close) History *h = calloc(1, sizeof(*h));

        if (!h)
                return -ENOMEM;
        h->dir_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (h->dir_fd < 0)
                return -errno;
        *ret = TAKE_PTR(h);
        return 0;
}

History *history_close(History *h) {
        if (!h)
                return NULL;
        cleanup_close(&h->dir_fd);
        free(h);
        return NULL;
}

/* Opens a regular file. O_NONBLOCK: opening a FIFO would otherwise wait for the other end. */
static int open_file(const History *h, const char *name, int flags, off_t *ret_size) {
        _cleanup_close_ int fd = openat(h->dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        *ret_size = st.st_size;
        return TAKE_FD(fd);
}

static int open_to_append(const History *h, off_t *ret_size) {
        return open_file(h, FILE_NOW, O_RDWR | O_APPEND | O_CREAT, ret_size);
}

/* Whether the last line is incomplete, after a crash or on a full disk. */
static bool is_incomplete(int fd, off_t size) {
        char last;

        return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

static int write_lines(int fd, bool incomplete, const char *lines, size_t size) {
        struct iovec iov[2] = {
                { .iov_base = (char *) "\n", .iov_len = incomplete },
                { .iov_base = (char *) lines, .iov_len = size },
        };
        ssize_t n = writev(fd, iov, ELEMENTSOF(iov));

        if (n < 0)
                return -errno;
        return (size_t) n < size + incomplete ? -ENOSPC : 0;
}

int history_append(const History *h, const char *lines, size_t size) {
        _cleanup_close_ int fd = -1;
        off_t used;

        if (size >= HISTORY_FILE_MAX)
                return -E2BIG;
        fd = open_to_append(h, &used);
        if (fd < 0)
                return fd;
        if ((size_t) used + 1 + size > HISTORY_FILE_MAX) {
                if (renameat(h->dir_fd, FILE_NOW, h->dir_fd, FILE_OLD) < 0)
                        return -errno;
                cleanup_close(&fd);
                fd = open_to_append(h, &used);
                if (fd < 0)
                        return fd;
        }
        return write_lines(fd, is_incomplete(fd, used), lines, size);
}

/* Reads at most the last HISTORY_FILE_MAX bytes: another program may have made the file larger. */
static int read_end(int fd, off_t size, char **ret, size_t *ret_n) {
        size_t wanted = MIN((size_t) size, (size_t) HISTORY_FILE_MAX), n = 0;
        _cleanup_free_ char *text = malloc(wanted + 1);

        if (!text)
                return -ENOMEM;
        while (n < wanted) {
                ssize_t k = pread(fd, text + n, wanted - n, size - (off_t) (wanted - n));

                if (k < 0)
                        return -errno;
                if (k == 0)
                        break;
                n += (size_t) k;
        }
        *ret = TAKE_PTR(text);
        *ret_n = n;
        return 0;
}

static int read_lines(const History *h, const char *name, PciAddress device, HistoryList *l) {
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = -1;
        size_t n = 0;
        off_t size;
        int r;

        fd = open_file(h, name, O_RDONLY, &size);
        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        r = read_end(fd, size, &text, &n);
        return r < 0 ? r : history_list_add(l, text, n, device);
}

int history_read(const History *h, PciAddress device, HistoryList *l) {
        int r = read_lines(h, FILE_NOW, device, l);

        return r < 0 || l->n >= l->max ? r : read_lines(h, FILE_OLD, device, l);
}
