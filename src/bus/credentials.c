/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "credentials.h"

#include <errno.h>
#include <stdint.h>

#include "util/cleanup.h"
#include "util/strings.h"

int credentials_query(sd_bus *bus, const char *name, sd_bus_message_handler_t handler, void *userdata,
                      sd_bus_slot **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = sd_bus_message_new_method_call(bus, &m, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                               "org.freedesktop.DBus", "GetConnectionCredentials");

        if (r >= 0)
                r = sd_bus_message_append(m, "s", name);
        return r < 0 ? r
                     : sd_bus_call_async(bus, ret, m, handler, userdata, CREDENTIALS_TIMEOUT_SEC * UINT64_C(1000000));
}

static int read_groups(sd_bus_message *answer, gid_t group, bool *ret) {
        uint32_t gid;
        int r = sd_bus_message_enter_container(answer, 'v', "au");

        if (r >= 0)
                r = sd_bus_message_enter_container(answer, 'a', "u");
        while (r >= 0 && (r = sd_bus_message_read(answer, "u", &gid)) > 0)
                *ret |= gid == group && group != GID_NONE;
        if (r >= 0)
                r = sd_bus_message_exit_container(answer);
        return r < 0 ? r : sd_bus_message_exit_container(answer);
}

static int read_entry(sd_bus_message *answer, gid_t group, Credentials *c, bool *has_uid) {
        const char *key;
        int r = sd_bus_message_read(answer, "s", &key);

        if (r < 0)
                return r;
        if (streq(key, "UnixGroupIDs"))
                return read_groups(answer, group, &c->is_member);
        if (streq(key, "ProcessID"))
                return sd_bus_message_read(answer, "v", "u", &c->pid);
        if (!streq(key, "UnixUserID"))
                return sd_bus_message_skip(answer, "v");
        *has_uid = true;
        return sd_bus_message_read(answer, "v", "u", &c->uid);
}

int credentials_read(sd_bus_message *answer, gid_t group, Credentials *ret) {
        bool has_uid = false;
        int r;

        *ret = (Credentials) { 0 };
        if (sd_bus_message_is_method_error(answer, NULL))
                return sd_bus_message_is_method_error(answer, SD_BUS_ERROR_NO_REPLY) ? -ETIMEDOUT : -ESRCH;
        r = sd_bus_message_enter_container(answer, 'a', "{sv}");
        while (r >= 0 && (r = sd_bus_message_enter_container(answer, 'e', "sv")) > 0) {
                r = read_entry(answer, group, ret, &has_uid);
                if (r >= 0)
                        r = sd_bus_message_exit_container(answer);
        }
        return r < 0 ? r : has_uid ? 0 : -ENODATA;
}
