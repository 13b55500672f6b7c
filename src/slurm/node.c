/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects to passthroughd, and reads its texts. */
#include <errno.h>

#include "node.h"
#include "util/fileio.h"
#include "util/strings.h"

/* For one method call: Allocate and Release reply before their jobs run. */
#define CALL_TIMEOUT (60 * UINT64_C(1000000))

#define TEXT_MAX ((size_t) 256 << 20)

int node_open_bus(const char *address, sd_bus **ret) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r = address ? sd_bus_new(&bus) : sd_bus_open_system(&bus);

        if (r >= 0 && address) {
                r = sd_bus_set_address(bus, address);
                if (r >= 0)
                        r = sd_bus_set_bus_client(bus, true);
                if (r >= 0)
                        r = sd_bus_start(bus);
        }
        if (r >= 0)
                r = sd_bus_set_method_call_timeout(bus, CALL_TIMEOUT);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}

int node_read_text(sd_bus_message *reply, char **ret) {
        const char *contents, *text;
        int fd, r = sd_bus_message_peek_type(reply, NULL, &contents);

        if (r >= 0 && streq(contents, "s")) {
                r = sd_bus_message_read(reply, "v", "s", &text);
                return r < 0 ? r : string_copy(ret, text);
        }
        if (r >= 0)
                r = sd_bus_message_read(reply, "v", "h", &fd);
        if (r < 0)
                return r;
        return lseek(fd, 0, SEEK_SET) < 0 ? -errno : read_all_fd(fd, TEXT_MAX, ret, NULL);
}
