/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection to the system bus. The daemon also works without the bus: it connects when the bus runs, and again
 * after the connection is lost. No function here waits for the bus. */

#include "system-bus.h"

#include <errno.h>

#include "server-internal.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

/* The default address of the bus. The D-Bus Specification has it with /var/run, a symbolic link to /run. */
#define SYSTEM_BUS "unix:path=/run/dbus/system_bus_socket"

/* Startup waits for the bus twice (server_waits_for_bus() in bus/server.h), each time at most this long. */
#define PATIENCE_USEC (UINT64_C(15) * 1000000)

/* The delay before the daemon connects again. It doubles with each attempt, until the daemon owns its name. */
#define DELAY_MIN_USEC (UINT64_C(100) * 1000)
#define DELAY_MAX_USEC (UINT64_C(10) * 1000000)

static void connect_bus(Server *s);
static void on_lost(Connection *c, const char *why);

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        connect_bus(userdata);
        return 0;
}

/* Ends startup's wait for the bus, which has answered or cannot be used. */
static void stop_waiting(Server *s) {
        SystemBus *b = &s->system_bus;

        if (!b->patience)
                return;
        b->patience = sd_event_source_disable_unref(b->patience);
        s->callbacks->bus_settled(s->userdata);
}

/* Logs that the bus was lost. Logs once until the bus is back, however often the daemon tries to connect. */
static void log_lost(SystemBus *b, const char *why) {
        if (!b->lost_logged)
                log_full(LOG_WARNING, 0, (&(LogFields) { .id = MESSAGE_BUS_LOST }),
                         "The system bus cannot be used: %s. Until passthroughd has connected again, only root can "
                         "call it.",
                         why);
        b->lost_logged = true;
}

static int on_patience_ends(sd_event_source *source, uint64_t usec, void *userdata) {
        Server *s = userdata;

        log_lost(&s->system_bus, "the bus does not answer");
        stop_waiting(s);
        return 0;
}

static void start_waiting(Server *s) {
        SystemBus *b = &s->system_bus;

        if (sd_event_add_time_relative(s->event, &b->patience, CLOCK_MONOTONIC, PATIENCE_USEC, 0, on_patience_ends, s) <
            0)
                b->patience = NULL;
}

static void on_lost(Connection *c, const char *why) {
        Server *s = c->server;
        SystemBus *b = &s->system_bus;

        b->query = sd_bus_slot_unref(b->query);
        admission_done(&s->admission);
        s->callers = (Callers) { 0 };
        reports_cancel(&s->reports);
        connection_close(c);
        /* With the connection, the bus has dropped the messages that it charged to the daemon, so a new minute
         * begins. */
        quota_start_minute(&s->quota);
        log_lost(b, why ?: "the bus closed the connection");
        b->delay = b->delay ? MIN(2 * b->delay, DELAY_MAX_USEC) : DELAY_MIN_USEC;
        b->retry = sd_event_source_disable_unref(b->retry);
        if (sd_event_add_time_relative(s->event, &b->retry, CLOCK_MONOTONIC, b->delay, 0, on_time, s) < 0)
                log_error("Failed to set up the timer for the next connection to the system bus.");
        stop_waiting(s);
}

/* Handles the failure to own the bus name. During startup the event loop exits, because no second passthroughd may
 * change hardware beside the owner of the name. Later the daemon continues without the bus, because guests have its
 * devices. */
static void refuse_name(Server *s, const char *why) {
        if (s->announced && !s->system_bus.patience) {
                on_lost(&s->system_bus.connection, why);
                return;
        }
        log_error("passthroughd cannot own the name %s on the system bus: %s.", BUS_NAME, why);
        (void) sd_event_exit(s->event, EXIT_FAILURE);
}

static int on_named(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Server *s = userdata;
        SystemBus *b = &s->system_bus;
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        uint32_t result = 0;

        b->query = sd_bus_slot_unref(b->query);
        if (sd_bus_error_has_name(e, SD_BUS_ERROR_ACCESS_DENIED))
                refuse_name(s, "the policy of the bus does not allow it");
        else if (e || sd_bus_message_read(reply, "u", &result) < 0)
                on_lost(&b->connection, e ? e->name : "the bus does not answer");
        else if (result != 1) /* DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER */
                refuse_name(s, "another passthroughd owns it");
        else {
                b->connection.announced = true;
                b->delay = 0;
                if (b->lost_logged)
                        log_full(LOG_NOTICE, 0, (&(LogFields) { .id = MESSAGE_BUS_BACK }),
                                 "passthroughd is connected to the system bus and owns the name %s.", BUS_NAME);
                b->lost_logged = false;
                stop_waiting(s);
        }
        return 0;
}

static void request_name(Server *s) {
        SystemBus *b = &s->system_bus;
        int r = sd_bus_request_name_async(b->connection.bus, &b->query, BUS_NAME, 0, on_named, s);

        if (r < 0)
                on_lost(&b->connection, strerror(-r));
}

static int on_owner(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Server *s = userdata;
        SystemBus *b = &s->system_bus;
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        b->query = sd_bus_slot_unref(b->query);
        if (!e)
                refuse_name(s, "another passthroughd owns it");
        else if (!sd_bus_error_has_name(e, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                on_lost(&b->connection, e->name);
        else if (s->announced)
                request_name(s);
        else
                stop_waiting(s);
        return 0;
}

/* Asks the bus who owns the name, so that this daemon exits before it changes hardware if another daemon owns the name.
 * The daemon requests the name only at the end of startup. */
static int ask_for_owner(Server *s) {
        SystemBus *b = &s->system_bus;

        return sd_bus_call_method_async(b->connection.bus, &b->query, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                        "org.freedesktop.DBus", "GetNameOwner", on_owner, s, "s", BUS_NAME);
}

/* Drops the calls of a client that has left the bus. */
static int on_name(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *name;

        if (sd_bus_message_read(m, "s", &name) > 0) {
                answers_drop(userdata, sd_bus_message_get_bus(m), name);
                authorizations_drop(userdata, sd_bus_message_get_bus(m), name);
        }
        return 0;
}

static int watch_clients(Server *s) {
        return sd_bus_add_match_async(s->system_bus.connection.bus, NULL,
                                      "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                                      "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg2=''",
                                      on_name, NULL, s);
}

static int open_bus(Server *s) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        int r = sd_bus_new(&bus);

        if (r < 0)
                return r;
        r = sd_bus_set_address(bus, secure_getenv("DBUS_SYSTEM_BUS_ADDRESS") ?: SYSTEM_BUS);
        if (r < 0)
                return r;
        r = sd_bus_set_bus_client(bus, true);
        if (r < 0)
                return r;
        /* Long replies are sent as descriptors. (The policy of the bus refuses calls with descriptors.) */
        r = sd_bus_negotiate_fds(bus, true);
        if (r < 0)
                return r;
        r = connection_open(&s->system_bus.connection, s, TAKE_PTR(bus), on_lost);
        if (r < 0)
                return r;
        r = watch_clients(s);
        return r < 0 ? r : ask_for_owner(s);
}

static void connect_bus(Server *s) {
        Connection *c = &s->system_bus.connection;
        int r;

        c->server = s;
        r = open_bus(s);
        if (r < 0)
                on_lost(c, strerror(-r));
}

void system_bus_start(Server *s) {
        start_waiting(s);
        connect_bus(s);
}

void system_bus_request_name(Server *s) {
        SystemBus *b = &s->system_bus;

        if (!b->connection.bus || b->query)
                return;
        start_waiting(s);
        request_name(s);
}

void system_bus_done(Server *s) {
        SystemBus *b = &s->system_bus;

        b->query = sd_bus_slot_unref(b->query);
        b->retry = sd_event_source_disable_unref(b->retry);
        b->patience = sd_event_source_disable_unref(b->patience);
        connection_close(&b->connection);
}
