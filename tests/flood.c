/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flood COUNT [--regions] [--descriptors] POOL=N...: sends calls of Plan without replies, and waits until the bus has
 * received them. With --regions the daemon needs the uid of the caller. With --descriptors each call is followed by
 * another one with a file descriptor.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-bus.h>

#include "bus/names.h"
#include "util/cleanup.h"

static int append_devices(sd_bus_message *m, char *const *pools) {
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append(m, "s", REQUEST_KEY_DEVICES);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "a(su)");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "(su)");
        for (; r >= 0 && *pools; pools++) {
                _cleanup_free_ char *pool = strdup(*pools);
                char *count = strchr(pool, '=');

                *count++ = '\0';
                r = sd_bus_message_append(m, "(su)", pool, (uint32_t) strtoul(count, NULL, 10));
        }
        for (int i = 0; r >= 0 && i < 3; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

static int send_plan(sd_bus *bus, bool regions, int fd, char *const *pools) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = sd_bus_message_new_method_call(bus, &m, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, "Plan");

        if (r >= 0)
                r = sd_bus_message_set_expect_reply(m, false);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0)
                r = append_devices(m, pools);
        if (r >= 0 && regions)
                r = sd_bus_message_append(m, "{sv}", REQUEST_KEY_SHARED_MEMORY, "a(stt)", 1, "flood", UINT64_C(1048576),
                                          UINT64_C(0));
        if (r >= 0 && fd >= 0)
                r = sd_bus_message_append(m, "{sv}", "descriptor", "h", fd);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_send(bus, m, NULL);
}

static int flush(sd_bus *bus) {
        return sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus.Peer",
                                  "Ping", NULL, NULL, NULL);
}

int main(int argc, char *argv[]) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_close_ int fd = -1;
        bool regions = false;
        long count;
        int r, i = 2;

        if (argc < 2)
                return 2;
        count = strtol(argv[1], NULL, 10);
        for (; i < argc && argv[i][0] == '-'; i++)
                if (streq(argv[i], "--regions"))
                        regions = true;
                else
                        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        r = sd_bus_open_system(&bus);
        for (long n = 0; r >= 0 && n < count; n++) {
                r = send_plan(bus, regions, -1, argv + i);
                if (r >= 0 && fd >= 0)
                        r = send_plan(bus, false, fd, argv + i);
        }
        if (r >= 0)
                r = flush(bus);
        if (r < 0)
                fprintf(stderr, "flood: %s\n", strerror(-r));
        return r < 0;
}
