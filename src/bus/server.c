/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects to the system bus, registers the D-Bus objects and requests the bus name. */

#include "bus/server.h"

#include <errno.h>

#include "server-internal.h"
#include "util/log.h"
#include "util/messages.h"

/* The default address: D-Bus Specification, Well-known Message Bus Instances. */
#define SYSTEM_BUS "unix:path=/run/dbus/system_bus_socket"

static int add_objects(sd_bus *bus, Server *s) {
        int r = sd_bus_add_object_manager(bus, NULL, BUS_PATH);

        if (r >= 0)
                r = manager_object_add(bus, s);
        if (r >= 0)
                r = device_objects_add(bus, s);
        if (r >= 0)
                r = allocation_objects_add(bus, s);
        if (r >= 0)
                r = job_objects_add(bus, s);
        return r < 0 ? r : log_control_add(bus, s);
}

/* Ignores a read-only call that expects no reply. The bus limits the pending replies of a connection, so a caller
 * cannot flood the daemon with calls that expect a reply. */
static int drop_unanswered(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *member = sd_bus_message_get_member(m);

        return sd_bus_message_is_method_call(m, NULL, NULL) > 0 && sd_bus_message_get_expect_reply(m) <= 0 &&
               !bus_is_change(member) && !streq(member, "Set");
}

int server_add_bus(Server *s, sd_bus *bus, sd_event *event) {
        /* At exit the daemon must not wait for a peer to read. Messages are sent when they are queued, if the peer
         * reads at all. */
        int r = sd_bus_set_close_on_exit(bus, false);

        if (r >= 0)
                r = sd_bus_add_filter(bus, NULL, drop_unanswered, s);
        if (r >= 0)
                r = add_objects(bus, s);
        return r < 0 ? r : sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL);
}

/* Serves s->bus. The event loop exits when the connection is lost. */
static int set_up(Server *s, sd_event *event) {
        int r = sd_bus_set_exit_on_disconnect(s->bus, true);

        s->event = event;
        if (r >= 0)
                r = server_add_bus(s, s->bus, event);
        return r < 0 ? log_error_errno(r, "Failed to set up the D-Bus objects: %m") : 0;
}

/* Rejects file descriptors in messages. No method takes one, and callers could exhaust the daemon's descriptors. */
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
                 "The system bus closed the connection, so no caller can reach passthroughd. passthroughd exits.");
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
        /* Fail before any hardware is changed. server_announce() requests the name later, when the daemon is ready. */
        if (sd_bus_get_name_creds(s->bus, BUS_NAME, 0, NULL) >= 0)
                return log_error_errno(-EBUSY, "Another passthroughd owns the name %s on this bus.", BUS_NAME);
        r = set_up(s, event);
        if (r < 0)
                return r;
        r = sd_bus_match_signal(s->bus, NULL, BUS_LOCAL, BUS_LOCAL_PATH, BUS_LOCAL, "Disconnected", on_disconnected, s);
        if (r < 0)
                return log_error_errno(r, "Failed to watch the connection to the system bus: %m");
        *ret = TAKE_PTR(s);
        return 0;
}

int server_start_peer(sd_bus *bus) {
        sd_id128_t id;
        int r = sd_id128_randomize(&id);

        if (r >= 0)
                r = sd_bus_set_server(bus, true, id);
        /* The peer may call every method. */
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
                r = server_start_peer(s->bus);
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
                return log_error_errno(r, "Failed to request the name %s on the system bus: %m", BUS_NAME);
        s->announced = true;
        peers_listen(s);
        return 0;
}

Server *server_free(Server *s) {
        if (!s)
                return NULL;
        documents_done(s);
        callers_done(s);
        peers_done(s);
        sd_bus_close_unref(s->bus);
        free(s);
        return NULL;
}
