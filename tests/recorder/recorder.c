/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into the daemon, this records in one file, in the order of the calls, what the daemon tells and keeps:
 * messages on D-Bus, journal entries, notifications to the service manager, and changes of the state directory.
 * No other order of these is certain: each has a channel of its own, and readers of two channels see no order.
 *
 * The file is $NODE_TMP/record; without the file nothing is recorded. A record is "KIND PID FD SIZE\n" and SIZE bytes:
 *     bus      what the daemon sent on a stream socket
 *     journal  an entry in the journal's native protocol, which is not sent on: the journal is this file
 *     notify   a notification
 *     save     the path of a file below the state directory, a newline, and its contents
 *     remove   the path of a file below the state directory
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))

#define NEXT(function) ((__typeof__(&function)) dlsym(RTLD_NEXT, #function))

#define JOURNAL "/run/systemd/journal/socket"

/* Appends a record in one write, so that records of the daemon and of its jobs do not mix. */
static void record(const char *kind, int fd, const struct iovec *parts, size_t n, size_t size) {
        const char *directory = getenv("NODE_TMP");
        const int saved = errno;
        struct iovec all[64];
        char path[PATH_MAX], head[64];
        int file, length;

        (void) snprintf(path, sizeof(path), "%.*s/record", PATH_MAX - 16, directory ? directory : "");
        file = directory ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
        if (file < 0) {
                errno = saved;
                return;
        }
        length = snprintf(head, sizeof(head), "%s %d %d %zu\n", kind, (int) getpid(), fd, size);
        all[0] = (struct iovec) { head, (size_t) length };
        if (n >= sizeof(all) / sizeof(*all))
                abort();
        for (size_t i = 0, left = size; i < n; left -= all[++i].iov_len)
                all[i + 1] = (struct iovec) { parts[i].iov_base, parts[i].iov_len < left ? parts[i].iov_len : left };
        if (writev(file, all, (int) n + 1) != (ssize_t) (size + (size_t) length))
                abort();
        (void) close(file);
        errno = saved;
}

static bool is_stream(int fd) {
        int type = 0;
        socklen_t size = sizeof(type);

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

VISIBLE ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
        ssize_t n = NEXT(sendmsg)(fd, message, flags);

        if (n > 0 && (message->msg_name || is_stream(fd)))
                record(message->msg_name ? "notify" : "bus", fd, message->msg_iov, message->msg_iovlen, (size_t) n);
        return n;
}

VISIBLE ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t to_size) {
        const struct sockaddr_un *address = (const struct sockaddr_un *) to;

        if (!to || to->sa_family != AF_UNIX || strncmp(address->sun_path, JOURNAL, sizeof(address->sun_path)) != 0)
                return NEXT(sendto)(fd, data, size, flags, to, to_size);
        record("journal", fd, &(struct iovec) { (void *) data, size }, 1, size);
        return (ssize_t) size;
}

/* Finds the path of an entry below the state directory. False: the entry is elsewhere. */
static bool find_state_path(int dir_fd, const char *name, char path[static PATH_MAX]) {
        const char *state = getenv("STATE_DIRECTORY");
        const size_t n = state ? strlen(state) : 0;
        char link[64], dir[PATH_MAX - NAME_MAX - 2];
        ssize_t length;

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
        length = readlink(link, dir, sizeof(dir) - 1);
        if (length < 0 || !state)
                return false;
        dir[length] = '\0';
        (void) snprintf(path, PATH_MAX, "%s/%s", dir[n] ? dir + n + 1 : ".", name);
        return strncmp(dir, state, n) == 0 && (dir[n] == '/' || dir[n] == '\0');
}

static void record_save(int dir_fd, const char *name) {
        char path[PATH_MAX], contents[65536], newline[] = "\n";
        ssize_t size;
        int fd;

        if (!find_state_path(dir_fd, name, path))
                return;
        fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
        size = fd < 0 ? -1 : read(fd, contents, sizeof(contents));
        if (size < 0)
                abort();
        (void) close(fd);
        record("save", dir_fd, (struct iovec[]) { { path, strlen(path) }, { newline, 1 }, { contents, (size_t) size } },
               3, strlen(path) + 1 + (size_t) size);
}

VISIBLE int renameat(int from_fd, const char *from, int to_fd, const char *to) {
        int r = NEXT(renameat)(from_fd, from, to_fd, to);

        if (r == 0)
                record_save(to_fd, to);
        return r;
}

VISIBLE int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags) {
        int r = NEXT(linkat)(from_fd, from, to_fd, to, flags);

        if (r == 0)
                record_save(to_fd, to);
        return r;
}

VISIBLE int unlinkat(int dir_fd, const char *name, int flags) {
        int r = NEXT(unlinkat)(dir_fd, name, flags);
        char path[PATH_MAX];

        if (r == 0 && find_state_path(dir_fd, name, path))
                record("remove", dir_fd, &(struct iovec) { path, strlen(path) }, 1, strlen(path));
        return r;
}
