/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects to passthroughd. */
#include <errno.h>
#include <stdarg.h>

#include "bus/names.h"
#include "node.h"
#include "util/strings.h"

/* Time limit of a call. Allocate and Release reply before their jobs run, so it covers no hardware work. */
#define CALL_TIMEOUT (60 * UINT64_C(1000000))

int node_open_bus(const char *address, sd_bus **ret) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r = address ? sd_bus_new(&bus) : sd_bus_open_system(&bus);

        if (r < 0)
                return r;
        if (address) {
                r = sd_bus_set_address(bus, address);
                if (r < 0)
                        return r;
                r = sd_bus_set_bus_client(bus, true);
                if (r < 0)
                        return r;
                r = sd_bus_start(bus);
        }
        if (r < 0)
                return r;
        r = sd_bus_set_method_call_timeout(bus, CALL_TIMEOUT);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}

int node_new_call(sd_bus *bus, const char *member, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = sd_bus_message_new_method_call(bus, &m, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, member);

        if (r < 0)
                return r;
        r = sd_bus_message_set_auto_start(m, false);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

int node_call(sd_bus *bus, const char *member, sd_bus_error *ret_error, sd_bus_message **ret_reply, const char *types,
              ...) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        va_list values;
        int r = node_new_call(bus, member, &m);

        if (r < 0)
                return r;
        va_start(values, types);
        r = sd_bus_message_appendv(m, types, values);
        va_end(values);
        return r < 0 ? r : sd_bus_call(bus, m, 0, ret_error, ret_reply);
}
