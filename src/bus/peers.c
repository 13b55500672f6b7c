/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Root's own connections: a socket that only root can open, on which each peer speaks D-Bus to the daemon without a
 * bus. They work while the system bus is clogged.
 */

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server-internal.h"
#include "util/log.h"
#include "util/strings.h"

/* Connections are accepted at most so many times in an interval. */
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

        /* bind() gives the file the mode of the socket. */
        if (fd < 0 || fchmod(fd, 0600) < 0)
                return -errno;
        if (unlink(address->sun_path) < 0 && errno != ENOENT)
                return -errno;
        if (bind(fd, (const struct sockaddr *) address, sizeof(*address)) < 0 || listen(fd, PEERS_MAX) < 0)
                return -errno;
        return TAKE_FD(fd);
}

void peers_listen(Server *s) {
        const char *directory = secure_getenv("RUNTIME_DIRECTORY"); /* systemd.exec(5), RuntimeDirectory= */
        int n, r;

        if (!directory)
                return;
        s->socket.sun_family = AF_UNIX;
        n = snprintf(s->socket.sun_path, sizeof(s->socket.sun_path), "%s/" BUS_PRIVATE_SOCKET, directory);
        r = n < 0 || (size_t) n >= sizeof(s->socket.sun_path) ? -ENAMETOOLONG : listen_at(&s->socket);
        if (r >= 0) {
                int fd = r;

                r = sd_event_add_io(s->event, &s->listening, fd, EPOLLIN, on_connection, s);
                /* accept4() fails while no descriptor is free, and the socket stays ready. */
                if (r >= 0)
                        r = sd_event_source_set_ratelimit(s->listening, ACCEPT_INTERVAL_USEC, ACCEPT_BURST);
                if (r >= 0)
                        r = sd_event_source_set_io_fd_own(s->listening, true);
                else
                        (void) close(fd);
        }
        if (r < 0)
                log_warning_errno(r, "Failed to listen at %s, root can use the system bus only: %m",
                                  s->socket.sun_path);
}

void peers_done(Server *s) {
        sd_event_source_disable_unref(s->listening);
        for (size_t i = 0; i < PEERS_MAX; i++)
                connection_close(&s->peers[i]);
}
