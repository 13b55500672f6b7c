/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates the D-Bus server, either for the system bus and the private socket, or for one peer. */

#include "bus/server.h"

#include <errno.h>

#include "server-internal.h"
#include "util/clock.h"
#include "util/group.h"
#include "util/log.h"

static int new_server(sd_event *event, const ServerCallbacks *callbacks, void *userdata, Server **ret) {
        Server *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->event = event;
        s->callbacks = callbacks;
        s->userdata = userdata;
        s->readers = GID_NONE;
        /* The first epoch is the start time, from which clients see that the daemon was restarted. */
        s->epoch = s->told_epoch = clock_usec(CLOCK_REALTIME);
        *ret = s;
        return 0;
}

int server_new(sd_event *event, const ServerCallbacks *callbacks, void *userdata, Server **ret) {
        int r = new_server(event, callbacks, userdata, ret);

        if (r < 0)
                return r;
        r = group_find(BUS_GROUP, &(*ret)->readers);
        if (r < 0)
                log_warning_errno(r,
                                  "Failed to find the group %s, so only root and users whom polkit allows it can "
                                  "read: %m",
                                  BUS_GROUP);
        system_bus_start(*ret);
        return 0;
}

static void on_only_peer_lost(Connection *c, const char *why) {
        (void) sd_event_exit(c->server->event, EXIT_SUCCESS);
}

int server_new_peer(sd_event *event, int fd, const ServerCallbacks *callbacks, void *userdata, Server **ret) {
        _cleanup_(cleanup_server_free) Server *s = NULL;
        _cleanup_close_ int owned = fd;
        int r = new_server(event, callbacks, userdata, &s);

        if (r >= 0)
                r = connection_open_peer(&s->peers[0], s, TAKE_FD(owned), on_only_peer_lost);
        if (r < 0)
                return log_error_errno(r, "Failed to set up the D-Bus connection: %m");
        *ret = TAKE_PTR(s);
        return 0;
}

void server_announce(Server *s) {
        s->announced = true;
        (void) problems_note_shown(s);
        peers_listen(s);
        system_bus_request_name(s);
}

bool server_waits_for_bus(const Server *s) {
        return s->system_bus.patience;
}

Server *server_free(Server *s) {
        if (!s)
                return NULL;
        answers_done(s);
        admission_done(&s->admission);
        parked_done(s);
        reports_cancel(&s->reports);
        peers_done(s);
        system_bus_done(s);
        quota_done(&s->quota);
        capacity_free(s->capacity);
        free(s);
        return NULL;
}
