/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One D-Bus connection: adds the objects to it, serves it in the event loop, and detects its loss. */

#include "connection.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "error.h"
#include "server-internal.h"
#include "util/log.h"
#include "util/strings.h"

/* Sender, interface and path of the signal Disconnected, which sd-bus itself makes when the connection ends. */
#define LOCAL      "org.freedesktop.DBus.Local"
#define LOCAL_PATH "/org/freedesktop/DBus/Local"

/* An interface that sd-bus itself serves. The reply to its method GetManagedObjects is long. */
#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"

/* If messages wait this long to be sent, the connection is lost. */
#define STALL_USEC (UINT64_C(10) * 1000000)

/* A call that expects a reply is served only while at most this many messages wait to be sent. */
#define QUEUE_MAX 4U

static uint64_t count_queued(const Connection *c) {
        uint64_t n;

        return sd_bus_get_n_queued_write(c->bus, &n) < 0 ? 0 : n;
}

/* Filters each message before sd-bus serves it. A call is queued or refused if admission_check() says so. A call that
 * expects a reply is refused if replies on the connection are not read; GetManagedObjects also if its sender has asked
 * for too many long replies. A call of a reading method that expects no reply is ignored, because a caller could flood
 * the daemon with such calls: the bus limits the number only of calls that wait for a reply. */
static int filter_call(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *member = sd_bus_message_get_member(m);
        _cleanup_refusal_ Refusal refusal = { 0 };
        const Connection *c = userdata;
        int r;

        if (sd_bus_message_is_method_call(m, NULL, NULL) <= 0)
                return 0;
        if (sd_bus_message_get_expect_reply(m) <= 0 && !bus_is_change(member) && !streq(member, "Set"))
                return 1;
        r = admission_check(c->server, m, error);
        if (r != 0 || sd_bus_message_get_expect_reply(m) <= 0)
                return r;
        /* Check the queue again: sd_bus_process() may read a call although messages wait to be sent. */
        if (count_queued(c) <= QUEUE_MAX)
                return sd_bus_message_is_method_call(m, OBJECT_MANAGER, NULL) > 0 ? caller_charge_list(c->server, m)
                                                                                  : 0;
        (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Wait for the replies to earlier calls.",
                      "Too many replies have not been read.");
        return refuse_sender(c->server, m, &refusal);
}

static int on_writable(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Connection *c = userdata;
        int r = sd_bus_process(c->bus, NULL);

        if (r < 0 && c->bus)
                c->lost(c, strerror(-r));
        return 0;
}

/* Closes the connection after connection_give_up(), or if messages still wait to be sent STALL_USEC after
 * stop_reading(). Otherwise serves the messages that sd-bus has read already, for which the socket does not
 * become readable again: those that arrived together with the end of the authentication, and those that sd-bus read
 * after stop_reading(), while it was not attached. */
static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Connection *c = userdata;
        int r;

        if (c->writable || c->given_up) {
                c->lost(c, "messages are not read in time");
                return 0;
        }
        r = sd_bus_process(c->bus, NULL);
        if (!c->bus)
                return 0;
        (void) sd_event_source_set_time(source, r > 0 ? 0 : UINT64_MAX);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* Detaches sd-bus from the event loop, because sd-bus would also read. The event loop then waits until the socket can
 * be written, at most STALL_USEC. */
static int stop_reading(Connection *c) {
        int fd = sd_bus_get_fd(c->bus);
        int r = sd_bus_detach_event(c->bus);

        assert(!c->writable);
        if (r < 0)
                return r;
        r = sd_event_add_io(c->server->event, &c->writable, fd, EPOLLOUT, on_writable, c);
        return r < 0 ? r : sd_event_source_set_time_relative(c->timer, STALL_USEC);
}

static int start_reading(Connection *c) {
        c->writable = sd_event_source_disable_unref(c->writable);
        (void) sd_event_source_set_time(c->timer, 0);
        return sd_bus_attach_event(c->bus, c->server->event, SD_EVENT_PRIORITY_NORMAL);
}

/* Runs in each turn of the event loop. While a message waits to be sent, the daemon reads no further calls of this
 * connection, because replies that are not read would fill the daemon's memory. */
static int on_prepare(sd_event_source *source, void *userdata) {
        Connection *c = userdata;
        bool ready = sd_bus_is_ready(c->bus) > 0;
        bool waits = ready && count_queued(c) > 0;

        if (ready && !c->authenticated)
                (void) sd_event_source_set_time(source, 0);
        c->authenticated = ready;
        if (waits == (c->writable != NULL))
                return 0;
        return waits ? stop_reading(c) : start_reading(c);
}

void connection_give_up(Connection *c) {
        c->given_up = true;
        (void) sd_event_source_set_time(c->timer, 0);
        (void) sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

static int add_timer(Connection *c) {
        int r = sd_event_add_time(c->server->event, &c->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_timer, c);

        return r < 0 ? r : sd_event_source_set_prepare(c->timer, on_prepare);
}

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Connection *c = userdata;

        c->lost(c, NULL);
        return 0;
}

static int start(Connection *c) {
        /* Messages are sent as they are queued, as long as the peer reads. At exit the daemon must not wait for a peer
         * that does not read. */
        int r = sd_bus_set_close_on_exit(c->bus, false);

        if (r < 0)
                return r;
        r = sd_bus_add_filter(c->bus, NULL, filter_call, c);
        if (r < 0)
                return r;
        r = objects_add(c->bus, c->server);
        if (r < 0)
                return r;
        r = sd_bus_match_signal(c->bus, NULL, LOCAL, LOCAL_PATH, LOCAL, "Disconnected", on_disconnected, c);
        if (r < 0)
                return r;
        r = sd_bus_start(c->bus);
        if (r < 0)
                return r;
        r = sd_bus_attach_event(c->bus, c->server->event, SD_EVENT_PRIORITY_NORMAL);
        return r < 0 ? r : add_timer(c);
}

int connection_open(Connection *c, Server *s, sd_bus *bus, ConnectionLost lost) {
        int r;

        assert(!c->bus && !c->timer);
        c->server = s;
        c->lost = lost;
        c->bus = bus;
        r = start(c);
        if (r < 0)
                connection_close(c);
        return r;
}

int connection_open_peer(Connection *c, Server *s, int fd, ConnectionLost lost) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        _cleanup_close_ int owned = fd;
        sd_id128_t id;
        int r = sd_bus_new(&bus);

        if (r < 0)
                return r;
        r = sd_bus_set_fd(bus, fd, fd);
        if (r < 0)
                return r;
        (void) TAKE_FD(owned);
        r = sd_id128_randomize(&id);
        if (r < 0)
                return r;
        r = sd_bus_set_server(bus, true, id);
        if (r < 0)
                return r;
        /* The peer may call every method. */
        r = sd_bus_set_trusted(bus, true);
        if (r < 0)
                return r;
        /* Signals need a sender, by which a client recognises the daemon. */
        r = sd_bus_set_sender(bus, BUS_NAME);
        if (r < 0)
                return r;
        r = connection_open(c, s, TAKE_PTR(bus), lost);
        c->announced = r >= 0;
        return r;
}

void connection_close(Connection *c) {
        c->announced = c->authenticated = c->given_up = false;
        if (c->bus) {
                answers_drop(c->server, c->bus, NULL);
                authorizations_drop(c->server, c->bus, NULL);
        }
        c->timer = sd_event_source_disable_unref(c->timer);
        c->writable = sd_event_source_disable_unref(c->writable);
        c->bus = sd_bus_close_unref(c->bus);
}

/* Root's own connections: at a socket that only root and the daemon's user can open, each peer speaks D-Bus to the
 * daemon without a bus. They also work while the system bus does not. */

/* The most connections that are accepted in each interval. */
#define ACCEPT_BURST         50U
#define ACCEPT_INTERVAL_USEC (UINT64_C(100) * 1000)

static void on_lost(Connection *c, const char *why) {
        if (why)
                log_warning("A connection to %s was closed: %s.", c->server->socket.sun_path, why);
        connection_close(c);
}

static Connection *find_free(Server *s) {
        for (size_t i = 0; i < PEERS_MAX; i++)
                if (!s->peers[i].bus)
                        return &s->peers[i];
        return NULL;
}

static int on_connection(sd_event_source *source, int listening, uint32_t events, void *userdata) {
        Server *s = userdata;
        /* cppcheck-suppress nullPointer ; NULL means that the address is not wanted */
        _cleanup_close_ int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        Connection *c = find_free(s);
        int r;

        if (fd < 0)
                return 0;
        if (!c) {
                log_warning("A connection to %s was refused: there are %u already.", s->socket.sun_path, PEERS_MAX);
                return 0;
        }
        r = connection_open_peer(c, s, TAKE_FD(fd), on_lost);
        if (r < 0)
                log_warning_errno(r, "Failed to serve a connection to %s: %m", s->socket.sun_path);
        return 0;
}

static int listen_at(struct sockaddr_un *address) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        /* bind() gives the socket file the mode of the socket. */
        if (fd < 0 || fchmod(fd, 0600) < 0)
                return -errno;
        if (unlink(address->sun_path) < 0 && errno != ENOENT)
                return -errno;
        if (bind(fd, (const struct sockaddr *) address, sizeof(*address)) < 0 || listen(fd, PEERS_MAX) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int listen_in(Server *s, const char *directory) {
        _cleanup_close_ int fd = -1;
        int n, r;

        s->socket.sun_family = AF_UNIX;
        n = snprintf(s->socket.sun_path, sizeof(s->socket.sun_path), "%s/" BUS_PRIVATE_SOCKET, directory);
        if (n < 0 || (size_t) n >= sizeof(s->socket.sun_path))
                return -ENAMETOOLONG;
        fd = listen_at(&s->socket);
        if (fd < 0)
                return fd;
        r = sd_event_add_io(s->event, &s->listening, fd, EPOLLIN, on_connection, s);
        if (r < 0)
                return r;
        /* While this process has no free descriptor, accept4() fails and the socket stays readable. The limit prevents
         * a busy loop. */
        r = sd_event_source_set_ratelimit(s->listening, ACCEPT_INTERVAL_USEC, ACCEPT_BURST);
        if (r < 0)
                return r;
        (void) TAKE_FD(fd);
        return sd_event_source_set_io_fd_own(s->listening, true);
}

void peers_listen(Server *s) {
        const char *directory = secure_getenv("RUNTIME_DIRECTORY"); /* systemd.exec(5), RuntimeDirectory= */
        int r = directory ? listen_in(s, directory) : 0;

        if (r < 0)
                log_warning_errno(r, "Failed to listen at %s, root can use the system bus only: %m",
                                  s->socket.sun_path);
}

void peers_done(Server *s) {
        sd_event_source_disable_unref(s->listening);
        for (size_t i = 0; i < PEERS_MAX; i++)
                connection_close(&s->peers[i]);
}
