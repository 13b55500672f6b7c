/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Both sides of the questions to passthroughd-endpoints. */

#include "host/endpoints.h"

#include <assert.h>
#include <errno.h>

#include "util/wire.h"

static const char *socket_path = ENDPOINTS_SOCKET;

void endpoints_use_socket(const char *path) {
        socket_path = path;
}

int endpoints_ask(const EndpointName *names, size_t n) {
        _cleanup_close_ int fd = wire_connect(socket_path, 0);
        int r = fd < 0 ? fd : wire_send(fd, 0, &(struct iovec) { (void *) names, n * sizeof(*names) }, 1);

        assert(n <= ENDPOINTS_MAX);
        return r < 0 ? r : TAKE_FD(fd);
}

int endpoints_read(int fd, EndpointAnswer *ret, size_t n) {
        _cleanup_wire_ WireMessage m = { 0 };
        int r = wire_receive(fd, ENDPOINTS_MAX, &m);

        if (r < 0)
                return r;
        if (m.size != n)
                return -EBADMSG;
        for (size_t i = 0; i < n; i++) {
                uint8_t answer = ((const uint8_t *) m.data)[i];

                ret[i] = answer < _ENDPOINT_ANSWER_MAX ? (EndpointAnswer) answer : ENDPOINT_UNKNOWN;
        }
        return 0;
}

int endpoints_receive(int fd, EndpointName *names) {
        _cleanup_wire_ WireMessage m = { 0 };
        int r = wire_receive(fd, ENDPOINTS_MAX * sizeof(*names), &m);
        size_t n = m.size / sizeof(*names);

        if (r < 0)
                return r;
        if (n == 0 || n * sizeof(*names) != m.size)
                return -EBADMSG;
        memcpy(names, m.data, m.size);
        for (size_t i = 0; i < n; i++)
                if (!memchr(names[i].text, '\0', sizeof(names[i].text)) || !endpoint_is_valid(names[i].text))
                        return -EBADMSG;
        return (int) n;
}

int endpoints_send(int fd, const EndpointAnswer *answers, size_t n) {
        uint8_t bytes[ENDPOINTS_MAX];

        for (size_t i = 0; i < n; i++)
                bytes[i] = (uint8_t) answers[i];
        return wire_send(fd, 0, &(struct iovec) { bytes, n }, 1);
}
