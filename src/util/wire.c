/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "util/wire.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "util/fileio.h"

#define PARTS_MAX 3U

void wire_message_done(WireMessage *m) {
        free(m->data);
        *m = (WireMessage) { 0 };
}

int wire_connect(const char *path, uint64_t usec) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (usec > 0 ? 0 : SOCK_NONBLOCK), 0);
        const struct timeval time = { .tv_sec = (time_t) (usec / 1000000U),
                                      .tv_usec = (suseconds_t) (usec % 1000000U) };
        int r;

        if (fd < 0)
                return -errno;
        /* A socket call with a timeout fails with EINTR when the process continues after SIGSTOP or a freezer, even
         * without a signal handler (signal(7)). So each call on this socket is repeated after EINTR. */
        if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) < 0)
                return -errno;
        r = connect_unix(fd, path);
        return r < 0 ? r : TAKE_FD(fd);
}

int wire_send(int fd, int code, const struct iovec *parts, size_t n) {
        WireHeader header = { .version = WIRE_VERSION, .code = code };
        struct iovec all[1 + PARTS_MAX] = { { &header, sizeof(header) } };
        const struct msghdr message = { .msg_iov = all, .msg_iovlen = 1 + n };
        ssize_t sent;

        assert(n <= PARTS_MAX);
        for (size_t i = 0; i < n; i++) {
                all[1 + i] = parts[i];
                header.size += parts[i].iov_len;
        }
        sent = TEMP_FAILURE_RETRY(sendmsg(fd, &message, MSG_NOSIGNAL));
        if (sent < 0)
                return -errno;
        return (size_t) sent == sizeof(header) + header.size ? 0 : -EAGAIN;
}

int wire_receive(int fd, size_t max, WireMessage *ret) {
        WireHeader header;
        struct iovec parts[] = { { &header, sizeof(header) }, { 0 } };
        struct msghdr message = { .msg_iov = parts, .msg_iovlen = ELEMENTSOF(parts) };
        _cleanup_free_ char *data = NULL;
        ssize_t n = TEMP_FAILURE_RETRY(recv(fd, &header, sizeof(header), MSG_PEEK));

        if (n <= 0)
                return n < 0 ? -errno : -ECONNRESET;
        if ((size_t) n >= sizeof(header.version) && header.version != WIRE_VERSION) {
                (void) wire_send(fd, -EPROTONOSUPPORT, NULL, 0);
                return -EPROTONOSUPPORT;
        }
        if (n != sizeof(header) || header.size > max)
                return -EBADMSG;
        data = malloc(header.size + 1);
        if (!data)
                return -ENOMEM;
        parts[1] = (struct iovec) { data, header.size };
        n = TEMP_FAILURE_RETRY(recvmsg(fd, &message, MSG_WAITALL));
        if (n < 0)
                return -errno;
        if ((size_t) n != sizeof(header) + parts[1].iov_len || message.msg_flags & MSG_TRUNC)
                return -EBADMSG;
        data[parts[1].iov_len] = '\0';
        *ret = (WireMessage) { header.code, TAKE_PTR(data), parts[1].iov_len };
        return 0;
}

int wire_exchange(int fd, int code, const struct iovec *parts, size_t n, size_t max, WireMessage *ret) {
        int r = wire_send(fd, code, parts, n);

        return r < 0 ? r : wire_receive(fd, max, ret);
}
