/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has passthroughd-endpoints connect to the endpoints of services with Health=tcp: at the start, after a reload or a
 * rescan, and every 30 seconds. One question is asked at a time, and the daemon does not wait for the answer. If
 * passthroughd-endpoints hangs or does not run, all endpoints keep their states, because that says nothing about
 * them. */

#include <errno.h>

#include "host/endpoints.h"
#include "state.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

#define INTERVAL_USEC (30U * UINT64_C(1000000))
/* How long the daemon waits for an answer: as long as passthroughd-endpoints may take, and 5 s for systemd to start
 * it. */
#define PATIENCE_USEC ((ENDPOINT_LOOKUP_SEC + ENDPOINT_CONNECT_SEC + 5U) * UINT64_C(1000000))

/* The most allocations that a message names. */
#define NAMED_MAX 3U

/* Lists the allocations that have slots of the endpoint: "'vm1', 'vm2', 'vm3' and 5 more". The caller frees; NULL:
 * none. */
static char *list_allocations(const Ledger *l, const char *endpoint) {
        char *text = NULL;
        size_t n = 0;

        for (size_t i = 0; i < l->n_allocations; i++)
                for (size_t k = 0; k < l->allocations[i]->n_services; k++)
                        if (streq(l->allocations[i]->services[k].endpoint, endpoint) && n++ < NAMED_MAX)
                                (void) string_append(&text, ", ", "'%s'", l->allocations[i]->name);
        if (n > NAMED_MAX)
                (void) string_append(&text, "", "%s", AND_MORE(n - NAMED_MAX));
        return text;
}

static void log_state(const Manager *m, const EndpointStatus *s) {
        _cleanup_free_ char *holders = list_allocations(m->host.ledger, s->name);

        if (s->state == ENDPOINT_STATE_UP)
                log_full(LOG_NOTICE, 0, (&(LogFields) { .id = MESSAGE_ENDPOINT_UP }),
                         "Endpoint %s is in service again: it accepts connections.", s->name);
        else
                log_full(LOG_WARNING, 0, (&(LogFields) { .id = MESSAGE_ENDPOINT_DOWN }),
                         "Endpoint %s is out of service: %s.%s%s%s", s->name,
                         endpoint_status_reason(&m->host.endpoints, s->name), holders ? " Its slots are kept by " : "",
                         holders ?: "", holders ? "." : "");
}

static void take_answer(Manager *m, EndpointStatus *s, EndpointAnswer answer) {
        EndpointState before = s->state;
        bool was_unclear = s->unclear, changed = endpoint_status_take(s, answer);

        if (s->unclear && !was_unclear)
                log_warning(
                        "The health of endpoint %s cannot be checked, so it stays '%s': its host could not be looked "
                        "up, or the connect failed on this node.",
                        s->name, endpoint_state_to_string(s->state));
        if (!changed)
                return;
        if (before == ENDPOINT_STATE_DOWN || s->state == ENDPOINT_STATE_DOWN)
                log_state(m, s);
        note_turn(m);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata);

static void set_timer(Manager *m, uint64_t usec) {
        EndpointWatch *w = &m->watches.endpoints;
        int r;

        sd_event_source_disable_unref(w->timer);
        w->timer = NULL;
        r = sd_event_add_time_relative(m->event, &w->timer, CLOCK_MONOTONIC, usec, 0, on_time, m);
        if (r < 0)
                log_warning_errno(r, "The health of endpoints is not checked until a rescan, ignoring: %m");
}

/* Ends the question. r: a negative errno if it has no answer, otherwise 0. */
static void end_question(Manager *m, int r) {
        EndpointWatch *w = &m->watches.endpoints;

        w->answer = sd_event_source_disable_unref(w->answer);
        if (r < 0 && !w->silent)
                log_warning_errno(r, "passthroughd-endpoints does not answer, so all endpoints keep their states: %m");
        w->silent = r < 0;
        set_timer(m, w->again ? 0 : INTERVAL_USEC);
        w->again = false;
}

/* Handles the answer. An endpoint in it may be gone, because a reload has removed it meanwhile. */
static int on_answer(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Manager *m = userdata;
        const EndpointWatch *w = &m->watches.endpoints;
        EndpointAnswer answers[ENDPOINTS_MAX];
        int r = endpoints_read(fd, answers, w->n_asked);

        for (size_t i = 0; r == 0 && i < w->n_asked; i++) {
                EndpointStatus *s = endpoint_status_find(&m->host.endpoints, w->asked[i].text);

                if (s)
                        take_answer(m, s, answers[i]);
        }
        end_question(m, r);
        return 0;
}

static int begin_question(Manager *m) {
        const EndpointStatusTable *t = &m->host.endpoints;
        EndpointWatch *w = &m->watches.endpoints;
        _cleanup_close_ int fd = -1;
        int r;

        free(w->asked);
        w->n_asked = MIN(t->n, ENDPOINTS_MAX);
        w->asked = calloc(w->n_asked, sizeof(*w->asked));
        if (!w->asked)
                return -ENOMEM;
        for (size_t i = 0; i < w->n_asked; i++)
                memcpy(w->asked[i].text, t->endpoints[i].name, sizeof(w->asked[i].text));
        fd = endpoints_ask(w->asked, w->n_asked);
        if (fd < 0)
                return TAKE_FD(fd);
        r = sd_event_add_io(m->event, &w->answer, fd, EPOLLIN, on_answer, m);
        if (r < 0)
                return r;
        r = sd_event_source_set_io_fd_own(w->answer, true);
        if (r < 0)
                return r;
        fd = -1;
        return 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        int r = m->watches.endpoints.answer ? -ETIMEDOUT : begin_question(m);

        if (r < 0)
                end_question(m, r);
        else
                set_timer(m, PATIENCE_USEC);
        return 0;
}

void manager_check_endpoints(Manager *m) {
        EndpointWatch *w = &m->watches.endpoints;

        if (w->answer)
                w->again = true;
        else if (m->host.endpoints.n > 0)
                set_timer(m, 0);
}

/* Returns true when the endpoint is watched. An endpoint with 0 slots is not, because it is out of service anyway. */
static bool is_watched(const Config *c, const char *endpoint) {
        for (size_t i = 0; i < c->n_services; i++)
                for (size_t k = 0; k < c->services[i].n_endpoints; k++)
                        if (streq(c->services[i].endpoints[k].name, endpoint))
                                return c->services[i].health == REMOTE_HEALTH_TCP &&
                                       c->services[i].endpoints[k].slots > 0;
        return false;
}

void manager_follow_endpoints(Manager *m) {
        const Config *c = m->host.config;
        EndpointStatusTable *t = &m->host.endpoints;
        int r = 0;

        for (size_t i = t->n; i-- > 0;)
                if (!is_watched(c, t->endpoints[i].name))
                        endpoint_status_remove(t, i);
        for (size_t i = 0; i < c->n_services; i++)
                for (size_t k = 0; r >= 0 && k < c->services[i].n_endpoints; k++)
                        if (is_watched(c, c->services[i].endpoints[k].name))
                                r = endpoint_status_add(t, c->services[i].endpoints[k].name);
        if (r < 0)
                log_warning_errno(r, "The health of some endpoints is not checked until a reload, ignoring: %m");
        if (t->n == 0)
                endpoint_watch_done(&m->watches.endpoints);
        manager_check_endpoints(m);
}

void endpoint_watch_done(EndpointWatch *w) {
        sd_event_source_disable_unref(w->answer);
        sd_event_source_disable_unref(w->timer);
        free(w->asked);
        *w = (EndpointWatch) { 0 };
}
