/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "unit.h"

#include "util/wire.h"

typedef struct Pair {
        int ends[2];
} Pair;

static Pair new_pair(int type) {
        Pair p;

        assert_return_code(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, p.ends), errno);
        return p;
}

static void close_pair(const Pair *p) {
        for (size_t i = 0; i < ELEMENTSOF(p->ends); i++)
                if (p->ends[i] >= 0)
                        (void) close(p->ends[i]);
}
#define _cleanup_pair_ _cleanup_(close_pair)

/* Returns the error for a message of these bytes, after which the peer closes the connection. */
static int receive(int type, const void *bytes, size_t size, size_t max) {
        _cleanup_pair_ Pair p = new_pair(type);
        _cleanup_wire_ WireMessage m = { 0 };
        int r;

        assert_int_equal(send(p.ends[0], bytes, size, 0), size);
        (void) shutdown(p.ends[0], SHUT_WR);
        r = wire_receive(p.ends[1], max, &m);
        assert_true(r < 0 ? !m.data : m.size <= max);
        return r;
}

static void check_exchange(int type) {
        static char request[] = "question", answer[100000];
        _cleanup_pair_ Pair p = new_pair(type);
        _cleanup_wire_ WireMessage m = { 0 }, got = { 0 };
        const struct iovec parts[] = { { request, 5 }, { request + 5, 0 }, { request + 5, 3 } };

        memset(answer, 'a', sizeof(answer));
        /* The answer is sent before the request. */
        assert_int_equal(wire_send(p.ends[1], -EBUSY, &(struct iovec) { answer, sizeof(answer) }, 1), 0);
        assert_int_equal(wire_exchange(p.ends[0], 7, parts, ELEMENTSOF(parts), sizeof(answer), &m), 0);
        assert_int_equal(m.code, -EBUSY);
        assert_int_equal(m.size, sizeof(answer));
        assert_memory_equal(m.data, answer, sizeof(answer));
        assert_int_equal(wire_send(p.ends[0], 8, NULL, 0), 0);
        assert_int_equal(wire_receive(p.ends[1], strlen(request), &got), 0);
        assert_int_equal(got.code, 7);
        assert_string_equal(got.data, request); /* terminated by a NUL */
        wire_message_done(&got);
        assert_int_equal(wire_receive(p.ends[1], 0, &got), 0);
        assert_int_equal(got.code, 8);
        assert_int_equal(got.size, 0);
}

TEST(test_exchange) {
        check_exchange(SOCK_STREAM);
        check_exchange(SOCK_SEQPACKET);
}

TEST(test_malformed) {
        static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };
        static const struct {
                WireHeader header;
                size_t size, max;
                int error;
        } cases[] = {
                { { WIRE_VERSION, 1, 4 }, sizeof(WireHeader) + 4, 4, 0 },
                { { WIRE_VERSION, 1, 5 }, sizeof(WireHeader) + 5, 4, -EBADMSG },
                { { WIRE_VERSION, 1, 5 }, sizeof(WireHeader) + 4, 9, -EBADMSG },
                { { WIRE_VERSION, 1, UINT64_MAX }, sizeof(WireHeader) + 4, SIZE_MAX / 2, -EBADMSG },
                { { WIRE_VERSION, 1, 0 }, sizeof(WireHeader) - 1, 4, -EBADMSG },
                { { WIRE_VERSION + 1, 1, 4 }, sizeof(WireHeader) + 4, 4, -EPROTONOSUPPORT },
                { { WIRE_VERSION + 1, 1, 4 }, 4, 4, -EPROTONOSUPPORT },
                { { WIRE_VERSION + 1, 1, 4 }, 3, 4, -EBADMSG },
                { { 0 }, 0, 4, -ECONNRESET },
        };

        for (size_t t = 0; t < ELEMENTSOF(types); t++)
                for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                        char bytes[64] = "";

                        memcpy(bytes, &cases[i].header, sizeof(cases[i].header));
                        if (cases[i].size > 0 || types[t] == SOCK_STREAM)
                                assert_int_equal(receive(types[t], bytes, cases[i].size, cases[i].max), cases[i].error);
                }
        /* The packet is longer than its header says. */
        assert_int_equal(receive(SOCK_SEQPACKET, (char[32]) { 1, 0, 't', 'p', 1 }, 32, 64), -EBADMSG);
}

/* Each end learns that the other has another version. */
TEST(test_version) {
        _cleanup_pair_ Pair p = new_pair(SOCK_STREAM);
        _cleanup_wire_ WireMessage m = { 0 };
        const WireHeader other = { .version = WIRE_VERSION - 1 };
        WireHeader told;

        assert_int_equal(send(p.ends[0], &other, sizeof(other), 0), sizeof(other));
        assert_int_equal(wire_receive(p.ends[1], 0, &m), -EPROTONOSUPPORT);
        assert_int_equal(recv(p.ends[0], &told, sizeof(told), 0), sizeof(told));
        assert_true(told.version == WIRE_VERSION && told.code == -EPROTONOSUPPORT && told.size == 0);
}

/* A descriptor with O_NONBLOCK. */
TEST(test_again) {
        static char large[1 << 20];
        _cleanup_pair_ Pair p = new_pair(SOCK_STREAM | SOCK_NONBLOCK);
        _cleanup_wire_ WireMessage m = { 0 };
        const WireHeader half = { .version = WIRE_VERSION, .size = 8 };

        assert_int_equal(wire_receive(p.ends[1], 8, &m), -EAGAIN);
        assert_int_equal(wire_send(p.ends[0], 0, &(struct iovec) { large, sizeof(large) }, 1), -EAGAIN);
        assert_int_equal(wire_send(p.ends[0], 0, &(struct iovec) { large, sizeof(large) }, 1), -EAGAIN);
        assert_int_equal(send(p.ends[1], &half, sizeof(half), 0), sizeof(half));
        assert_int_equal(wire_receive(p.ends[0], 8, &m), -EBADMSG);
        assert_int_equal(wire_connect("/nonexistent/socket", 0), -ENOENT);
        memset(large, 'a', 200);
        large[200] = '\0';
        assert_int_equal(wire_connect(large, 1), -ENAMETOOLONG);
}
