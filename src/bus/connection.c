/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One D-Bus connection: its objects, its place in the event loop, and its loss. */

#include "connection.h"

#include "server-internal.h"
#include "util/strings.h"

/* The sender and path of the Disconnected signal that sd-bus generates locally. */
#define LOCAL      "org.freedesktop.DBus.Local"
#define LOCAL_PATH "/org/freedesktop/DBus/Local"

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

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Connection *c = userdata;

        c->lost(c, NULL);
        return 0;
}

int connection_open(Connection *c, Server *s, sd_bus *bus, ConnectionLost lost) {
        /* At exit the daemon must not wait for a peer to read. Messages are sent when they are queued, if the peer
         * reads at all. */
        int r = sd_bus_set_close_on_exit(bus, false);

        c->server = s;
        c->lost = lost;
        c->bus = bus;
        if (r >= 0)
                r = sd_bus_add_filter(bus, NULL, drop_unanswered, s);
        if (r >= 0)
                r = add_objects(bus, s);
        if (r >= 0)
                r = sd_bus_match_signal(bus, NULL, LOCAL, LOCAL_PATH, LOCAL, "Disconnected", on_disconnected, c);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r >= 0)
                r = sd_bus_attach_event(bus, s->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                connection_close(c);
        return r;
}

int connection_open_peer(Connection *c, Server *s, int fd, ConnectionLost lost) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        _cleanup_close_ int owned = fd;
        sd_id128_t id;
        int r = sd_bus_new(&bus);

        if (r >= 0)
                r = sd_bus_set_fd(bus, fd, fd);
        if (r < 0)
                return r;
        (void) TAKE_FD(owned);
        r = sd_id128_randomize(&id);
        if (r >= 0)
                r = sd_bus_set_server(bus, true, id);
        /* The peer may call every method. */
        if (r >= 0)
                r = sd_bus_set_trusted(bus, true);
        /* A client recognises signals by their sender. */
        if (r >= 0)
                r = sd_bus_set_sender(bus, BUS_NAME);
        if (r >= 0)
                r = connection_open(c, s, TAKE_PTR(bus), lost);
        c->announced = r >= 0;
        return r;
}

void connection_close(Connection *c) {
        c->announced = false;
        if (c->bus)
                answers_drop(c->server, c->bus, NULL);
        c->bus = sd_bus_close_unref(c->bus);
}
