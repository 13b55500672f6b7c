/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connection and name. */

#include "bus/server.h"

#include <errno.h>

#include "server-internal.h"
#include "util/log.h"
#include "util/messages.h"

/* Where the bus is, D-Bus Specification, Well-known Message Bus Instances. */
#define SYSTEM_BUS "unix:path=/run/dbus/system_bus_socket"

/* What sd-bus tells itself. */
#define LOCAL      "org.freedesktop.DBus.Local"
#define LOCAL_PATH "/org/freedesktop/DBus/Local"

static int add_objects(Server *s) {
        int r = sd_bus_add_object_manager(s->bus, NULL, BUS_PATH);

        if (r >= 0)
                r = manager_object_add(s);
        if (r >= 0)
                r = device_objects_add(s);
        if (r >= 0)
                r = allocation_objects_add(s);
        if (r >= 0)
                r = job_objects_add(s);
        return r < 0 ? r : log_control_add(s);
}

/* A call that changes nothing is for its reply: it is not served when the caller wants none, so that calls cost the
 * caller a wait, and the bus has a limit for calls that wait. */
static int drop_unanswered(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *member = sd_bus_message_get_member(m);

        return sd_bus_message_is_method_call(m, NULL, NULL) > 0 && sd_bus_message_get_expect_reply(m) <= 0 &&
               !bus_is_change(member) && !streq(member, "Set");
}

/* The objects on a connection, whose messages the loop takes in. The loop ends with the connection. */
static int set_up(Server *s, sd_event *event) {
        int r = sd_bus_set_exit_on_disconnect(s->bus, true);

        if (r >= 0)
                r = sd_bus_add_filter(s->bus, NULL, drop_unanswered, s);
        if (r >= 0)
                r = add_objects(s);
        if (r >= 0)
                r = sd_bus_attach_event(s->bus, event, SD_EVENT_PRIORITY_NORMAL);
        return r < 0 ? log_error_errno(r, "Failed to set up the D-Bus objects: %m") : 0;
}

/* No message brings file descriptors: as many as callers like could come with calls, and the daemon has none to spare.
 */
static int connect_bus(sd_bus **ret) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        int r = sd_bus_new(&bus);

        if (r >= 0)
                r = sd_bus_set_address(bus, secure_getenv("DBUS_SYSTEM_BUS_ADDRESS") ?: SYSTEM_BUS);
        if (r >= 0)
                r = sd_bus_set_bus_client(bus, true);
        if (r >= 0)
                r = sd_bus_negotiate_fds(bus, false);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        log_full(LOG_ERR, 0, (&(LogFields){ .id = MESSAGE_BUS_LOST }),
                 "The connection to the system bus is lost, so that no caller can reach passthroughd. It ends.");
        return 0;
}

int server_new(sd_event *event, const ServerCallbacks *callbacks, void *userdata, Server **ret) {
        _cleanup_(cleanup_server_free) Server *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->callbacks = callbacks;
        s->userdata = userdata;
        r = connect_bus(&s->bus);
        if (r < 0)
                return log_error_errno(r, "Failed to connect to the system bus: %m");
        /* Before any hardware is touched; the name itself is taken when there is something to serve. */
        if (sd_bus_get_name_creds(s->bus, BUS_NAME, 0, NULL) >= 0)
                return log_error_errno(-EBUSY, "Another passthroughd serves on this bus.");
        r = set_up(s, event);
        if (r < 0)
                return r;
        r = sd_bus_match_signal(s->bus, NULL, LOCAL, LOCAL_PATH, LOCAL, "Disconnected", on_disconnected, s);
        if (r < 0)
                return log_error_errno(r, "Failed to watch the connection to the system bus: %m");
        *ret = TAKE_PTR(s);
        return 0;
}

static int start_peer(sd_bus *bus) {
        sd_id128_t id;
        int r = sd_id128_randomize(&id);

        if (r >= 0)
                r = sd_bus_set_server(bus, true, id);
        /* Who holds the other end may call everything. */
        if (r >= 0)
                r = sd_bus_set_trusted(bus, true);
        return r < 0 ? r : sd_bus_start(bus);
}

int server_new_peer(sd_event *event, int fd, const ServerCallbacks *callbacks, void *userdata, Server **ret) {
        _cleanup_(cleanup_server_free) Server *s = calloc(1, sizeof(*s));
        _cleanup_close_ int owned = fd;
        int r;

        if (!s)
                return -ENOMEM;
        s->callbacks = callbacks;
        s->userdata = userdata;
        r = sd_bus_new(&s->bus);
        if (r >= 0)
                r = sd_bus_set_fd(s->bus, fd, fd);
        if (r >= 0) {
                (void) TAKE_FD(owned);
                r = start_peer(s->bus);
        }
        if (r < 0)
                return log_error_errno(r, "Failed to set up the D-Bus connection: %m");
        r = set_up(s, event);
        if (r < 0)
                return r;
        s->announced = true;
        *ret = TAKE_PTR(s);
        return 0;
}

int server_announce(Server *s) {
        int r = sd_bus_request_name(s->bus, BUS_NAME, 0);

        if (r < 0)
                return log_error_errno(r, "Failed to take the name %s on the system bus: %m", BUS_NAME);
        s->announced = true;
        return 0;
}

Server *server_free(Server *s) {
        if (!s)
                return NULL;
        documents_done(s);
        callers_done(s);
        sd_bus_flush_close_unref(s->bus);
        free(s);
        return NULL;
}
