/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The questions to passthroughd-endpoints and their answers, from both sides. */

#include "host/endpoints.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/cleanup.h"

static const char *socket_path = ENDPOINTS_SOCKET;

void endpoints_use_socket(const char *path) {
        socket_path = path;
}

int endpoints_ask(const EndpointName *names, size_t n) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (fd < 0)
                return -errno;
        if (strlen(socket_path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, socket_path);
        /* A message is sent as a whole or not at all. */
        if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            send(fd, names, n * sizeof(*names), MSG_NOSIGNAL) < 0)
                return -errno;
        return TAKE_FD(fd);
}

int endpoints_read(int fd, EndpointAnswer *ret, size_t n) {
        uint8_t answers[ENDPOINTS_MAX + 1];
        ssize_t size = recv(fd, answers, sizeof(answers), MSG_DONTWAIT);

        if (size <= 0)
                return size < 0 ? -errno : -ECONNRESET;
        if ((size_t) size != n)
                return -EBADMSG;
        for (size_t i = 0; i < n; i++)
                ret[i] = answers[i] < _ENDPOINT_ANSWER_MAX ? (EndpointAnswer) answers[i] : ENDPOINT_UNKNOWN;
        return 0;
}

int endpoints_receive(int fd, EndpointName *names) {
        ssize_t size = recv(fd, names, ENDPOINTS_MAX * sizeof(*names), MSG_TRUNC);
        size_t n;

        if (size < 0)
                return -errno;
        n = (size_t) size / sizeof(*names);
        if (n == 0 || n > ENDPOINTS_MAX || n * sizeof(*names) != (size_t) size)
                return -EBADMSG;
        for (size_t i = 0; i < n; i++)
                if (!memchr(names[i].text, '\0', sizeof(names[i].text)) || !endpoint_is_valid(names[i].text))
                        return -EBADMSG;
        return (int) n;
}

int endpoints_send(int fd, const EndpointAnswer *answers, size_t n) {
        uint8_t bytes[ENDPOINTS_MAX];

        for (size_t i = 0; i < n; i++)
                bytes[i] = (uint8_t) answers[i];
        return send(fd, bytes, n, MSG_NOSIGNAL) < 0 ? -errno : 0;
}
