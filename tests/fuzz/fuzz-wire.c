/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A letter for the receiver, then the bytes of a peer: "w" for any message, "e" for a question to
 * passthroughd-endpoints, "h" for one to passthroughd-holders. */

#include "fuzz.h"

#include <errno.h>
#include <sys/socket.h>

#include "host/endpoints.h"
#include "host/holders.h"
#include "util/wire.h"

static void check_message(int fd) {
        _cleanup_wire_ WireMessage m = { 0 };
        int r = wire_receive(fd, 1024, &m);

        assert_true(r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT || r == -ECONNRESET);
        assert_true(r == 0 ? m.size <= 1024 && ((const char *) m.data)[m.size] == '\0' : !m.data);
}

static void check_endpoints(int fd) {
        static EndpointName names[ENDPOINTS_MAX];
        int n = endpoints_receive(fd, names);

        assert_true(n > 0 || n == -EBADMSG);
        for (int i = 0; i < n; i++)
                assert_true(endpoint_is_valid(names[i].text));
}

/* The root has no processes. */
static void check_holders(int fd) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;

        assert_int_equal(sysfs_new("/sys/kernel", &fs), 0);
        (void) holders_answer(fs, fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        int fds[2];

        if (size == 0 || size > 65536)
                return 0;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        if (*data == 'w')
                assert_true(send(fds[0], data + 1, size - 1, 0) >= 0);
        else
                assert_int_equal(wire_send(fds[0], 0, &(struct iovec) { (void *) (data + 1), size - 1 }, 1), 0);
        assert_int_equal(shutdown(fds[0], SHUT_WR), 0);
        if (*data == 'e')
                check_endpoints(fds[1]);
        else if (*data == 'h')
                check_holders(fds[1]);
        else
                check_message(fds[1]);
        (void) close(fds[0]);
        (void) close(fds[1]);
        return 0;
}
