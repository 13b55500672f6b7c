/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "parked.h"

#include "server-internal.h"

/* Serves the parked calls whose ticket is not above the number `answered`. */
static void serve(Server *s, uint64_t answered) {
        Parked *p = &s->parked;

        while (p->n > 0 && p->calls[0].ticket <= answered) {
                ParkedCall c = p->calls[0];
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

                memmove(&p->calls[0], &p->calls[1], --p->n * sizeof(p->calls[0]));
                caller_reply_error(c.call, c.method(s, c.call, c.uid, &error), &error);
                sd_bus_message_unref(c.call);
        }
        if (p->n == 0)
                p->timer = sd_event_source_disable_unref(p->timer);
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        serve(userdata, UINT64_MAX);
        return 0;
}

bool parked_add(Server *s, sd_bus_message *call, CallerMethod method, uint32_t uid, uint64_t ticket) {
        Parked *p = &s->parked;

        if (p->n == PARKED_MAX)
                return false;
        if (!p->timer && sd_event_add_time_relative(s->event, &p->timer, CLOCK_MONOTONIC,
                                                    PARKED_SEC * UINT64_C(1000000), 0, on_timeout, s) < 0)
                return false;
        p->calls[p->n++] =
                (ParkedCall) { .call = sd_bus_message_ref(call), .method = method, .uid = uid, .ticket = ticket };
        return true;
}

void parked_done(Server *s) {
        while (s->parked.n > 0)
                sd_bus_message_unref(s->parked.calls[--s->parked.n].call);
        s->parked.timer = sd_event_source_disable_unref(s->parked.timer);
}

void server_guests_listed(Server *s, uint64_t answered) {
        serve(s, answered);
}
