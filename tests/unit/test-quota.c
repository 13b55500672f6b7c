/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "bus/quota.h"

/* Makes a call of the connection :1.5. */
static sd_bus_message *call_new(void) {
        sd_bus *bus = NULL;
        sd_bus_message *m = NULL;
        int ends[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        assert_true(sd_bus_new(&bus) >= 0);
        assert_true(sd_bus_set_fd(bus, ends[0], ends[0]) >= 0);
        assert_true(sd_bus_start(bus) >= 0);
        assert_true(sd_bus_message_new_method_call(bus, &m, "a.b", "/a", "a.b", "c") >= 0);
        assert_true(sd_bus_message_set_sender(m, ":1.5") >= 0);
        sd_bus_unref(bus);
        (void) close(ends[1]);
        return m;
}

static void assert_unused(const Quota *q) {
        assert_null(q->accounts);
        for (int root = 0; root < 2; root++)
                for (QuotaKind kind = 0; kind < _QUOTA_KIND_MAX; kind++)
                        assert_int_equal(q->used[root][kind], 0);
}

/* A connection is not yet known as root's while its first call waits. */
TEST(test_all_comes_back) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = call_new();
        Charge waits, answer, process;
        Quota q = { 0 };

        assert_true(quota_charge(&q, m, UID_UNKNOWN, QUOTA_UNKNOWN_CALLS, 1, &waits));
        assert_true(quota_charge(&q, m, 0, QUOTA_ANSWERS, 1, &answer));
        quota_give_back(&waits);
        assert_true(quota_charge(&q, m, 0, QUOTA_PROCESSES, 1, &process));
        assert_int_equal(quota_used(&q, m, 0, QUOTA_PROCESSES), 1);
        assert_int_equal(quota_used(&q, m, 4711, QUOTA_PROCESSES), 0);
        quota_give_back(&answer);
        quota_give_back(&process);
        quota_give_back(&process); /* gives back nothing */
        assert_unused(&q);
}

TEST(test_last_places) {
        Charge charges[8];
        Quota q = { 0 };
        size_t n = 0;

        for (uint32_t uid = 1001; uid <= 1003; uid++)
                for (int i = 0; i < 2; i++)
                        assert_true(quota_charge(&q, NULL, uid, QUOTA_PROCESSES, 1, &charges[n++]));
        assert_false(quota_charge(&q, NULL, 1001, QUOTA_PROCESSES, 1, NULL)); /* the caller's own limit */
        for (uint32_t uid = 1004; uid <= 1005; uid++)
                assert_true(quota_charge(&q, NULL, uid, QUOTA_PROCESSES, 1, &charges[n++]));
        assert_false(quota_charge(&q, NULL, 1006, QUOTA_PROCESSES, 1, NULL));
        quota_give_back(&charges[0]);
        assert_false(quota_charge(&q, NULL, 1004, QUOTA_PROCESSES, 1, NULL)); /* reserved for a uid without any */
        assert_true(quota_charge(&q, NULL, 1006, QUOTA_PROCESSES, 1, &charges[0]));
        while (n > 0)
                quota_give_back(&charges[--n]);
        assert_unused(&q);
}

TEST(test_minute) {
        Quota q = { 0 };

        assert_true(quota_charge(&q, NULL, 1001, QUOTA_REFUSALS_LOGGED, 1, NULL));
        assert_false(quota_charge(&q, NULL, 1001, QUOTA_REFUSALS_LOGGED, 1, NULL));
        quota_start_minute(&q);
        assert_true(quota_charge(&q, NULL, 1001, QUOTA_REFUSALS_LOGGED, 1, NULL));
        quota_done(&q);
        assert_unused(&q);
}
