/* SPDX-License-Identifier: GPL-2.0-or-later */
/* org.freedesktop.LogControl1(5), what "systemctl service-log-level" talks to. */

#include "bus/server-internal.h"
#include "util/log.h"
#include "util/strings.h"

static int property_get_level(sd_bus *bus, const char *path, const char *interface, const char *property,
                              sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", log_level_to_string(log_max_level()));
}

static int property_set_level(sd_bus *bus, const char *path, const char *interface, const char *property,
                              sd_bus_message *value, void *userdata, sd_bus_error *error) {
        const char *text;
        int level, r = sd_bus_message_read(value, "s", &text);

        if (r < 0)
                return r;
        level = log_level_from_string(text);
        if (level < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "'%s' is not a log level; there are emerg, alert, crit, err, warning, "
                                         "notice, info and debug.",
                                         QUOTABLE(text));
        log_info("Messages up to %s are logged from now on.", text);
        log_set_max_level(level);
        return 0;
}

static int property_get_target(sd_bus *bus, const char *path, const char *interface, const char *property,
                               sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", log_target_to_string(log_target()));
}

static int property_set_target(sd_bus *bus, const char *path, const char *interface, const char *property,
                               sd_bus_message *value, void *userdata, sd_bus_error *error) {
        const char *text;
        LogTarget target;
        int r = sd_bus_message_read(value, "s", &text);

        if (r < 0)
                return r;
        target = log_target_from_string(text);
        if (target == _LOG_TARGET_INVALID)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "'%s' is not a log target; there are auto, journal, console and null.",
                                         QUOTABLE(text));
        log_info("Messages go to %s from now on.", text);
        log_set_target(target);
        return 0;
}

static int property_get_identifier(sd_bus *bus, const char *path, const char *interface, const char *property,
                                   sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", "passthroughd");
}

static const sd_bus_vtable log_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", property_get_level, property_set_level, 0, 0),
        SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", property_get_target, property_set_target, 0, 0),
        SD_BUS_PROPERTY("SyslogIdentifier", "s", property_get_identifier, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END,
};

int log_control_add(Server *s) {
        return sd_bus_add_object_vtable(s->bus, NULL, "/org/freedesktop/LogControl1", "org.freedesktop.LogControl1",
                                        log_vtable, s);
}
