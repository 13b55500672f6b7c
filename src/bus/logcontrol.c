/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The D-Bus interface org.freedesktop.LogControl1(5), which "systemctl service-log-level" uses. */

#include <errno.h>

#include "server-internal.h"
#include "util/log.h"
#include "util/strings.h"

#define PATH      "/org/freedesktop/LogControl1"
#define INTERFACE "org.freedesktop.LogControl1"

static int property_get_level(sd_bus *bus, const char *path, const char *interface, const char *property,
                              sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", log_level_to_string(log_max_level()));
}

static int set_level(const char *text, sd_bus_error *error) {
        int level = log_level_from_string(text);

        if (level < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "'%s' is not a log level. The log levels are emerg, alert, crit, err, "
                                         "warning, notice, info and debug.",
                                         QUOTABLE(text));
        log_info("The maximum log level is now %s.", text);
        log_set_max_level(level);
        return 0;
}

static int property_get_target(sd_bus *bus, const char *path, const char *interface, const char *property,
                               sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", log_target_to_string(log_target()));
}

static int set_target(const char *text, sd_bus_error *error) {
        LogTarget target = log_target_from_string(text);

        if (target == _LOG_TARGET_INVALID)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "'%s' is not a log target. The log targets are auto, journal, console and "
                                         "null.",
                                         QUOTABLE(text));
        log_info("The log target is now %s.", text);
        log_set_target(target);
        return 0;
}

static int property_get_identifier(sd_bus *bus, const char *path, const char *interface, const char *property,
                                   sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", "passthroughd");
}

static int set_property(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        const char *interface, *property, *text;
        int r = sd_bus_message_read(call, "ssv", &interface, &property, "s", &text);

        if (r == -ENXIO)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "Set takes an interface, a property, and a string as its value.");
        if (r < 0)
                return r;
        if (!streq(interface, INTERFACE) || (!streq(property, "LogLevel") && !streq(property, "LogTarget")))
                return sd_bus_error_setf(error, SD_BUS_ERROR_UNKNOWN_PROPERTY, "There is no writable property '%s'.",
                                         QUOTABLE(property));
        r = streq(property, "LogLevel") ? set_level(text, error) : set_target(text, error);
        return r < 0 ? r : sd_bus_reply_method_return(call, NULL);
}

static int authorize_set(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        return authorize(s, call, uid, intent_to_configure, set_property, error);
}

/* Handles calls of Properties.Set before sd-bus passes them to the vtable, because the setter of a vtable property must
 * reply immediately: it cannot wait for the uid of the caller and for polkit. */
static int on_call(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        if (sd_bus_message_is_method_call(call, "org.freedesktop.DBus.Properties", "Set") <= 0)
                return 0;
        return caller_identify(userdata, call, authorize_set, error);
}

static const sd_bus_vtable log_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", property_get_level, NULL, 0, 0),
        SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", property_get_target, NULL, 0, 0),
        SD_BUS_PROPERTY("SyslogIdentifier", "s", property_get_identifier, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END,
};

int log_control_add(sd_bus *bus, Server *s) {
        int r = sd_bus_add_object(bus, NULL, PATH, on_call, s);

        return r < 0 ? r : sd_bus_add_object_vtable(bus, NULL, PATH, INTERFACE, log_vtable, s);
}
