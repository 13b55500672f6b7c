/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "caller.h"

#include <errno.h>
#include <unistd.h>

#include "error.h"
#include "server-internal.h"

/* One call that was put aside. */
struct WaitingCall {
        Server *server;
        sd_bus_message *call;
        CallerMethod method;
        sd_bus_slot *question; /* GetConnectionUnixUser */
};

static WaitingCall *waiting_call_free(WaitingCall *w) {
        if (!w)
                return NULL;
        sd_bus_slot_unref(w->question);
        sd_bus_message_unref(w->call);
        free(w);
        return NULL;
}
DEFINE_CLEANUP(WaitingCall *, waiting_call_free)

void callers_done(Server *s) {
        while (s->n_waiting > 0)
                waiting_call_free(s->waiting[--s->n_waiting]);
}

/* The oldest call of a connection, which the caller frees; NULL when none is left. */
static WaitingCall *take_oldest(Server *s, const char *sender) {
        for (size_t i = 0; i < s->n_waiting; i++)
                if (streq(sd_bus_message_get_sender(s->waiting[i]->call), sender)) {
                        WaitingCall *w = s->waiting[i];

                        s->n_waiting--;
                        memmove(&s->waiting[i], &s->waiting[i + 1], (s->n_waiting - i) * sizeof(s->waiting[0]));
                        return w;
                }
        return NULL;
}

/* As sd-bus does with what a method returns: it is an error of which the method has told nothing yet. */
static void reply_error(sd_bus_message *call, int r, const sd_bus_error *error) {
        if (r < 0 || sd_bus_error_is_set(error))
                (void) sd_bus_reply_method_errno(call, r, error);
}

static void read_answer(Server *s, sd_bus_message *answer, const char *sender) {
        uint32_t uid;

        if (sd_bus_message_is_method_error(answer, NULL) || sd_bus_message_read(answer, "u", &uid) < 0)
                return;
        if (strlen(sender) >= sizeof(s->last_caller))
                return;
        strcpy(s->last_caller, sender);
        s->last_uid = uid;
}

/* The answer is good for all calls of the connection: they are served now, in the order in which they came. */
static int on_answer(sd_bus_message *answer, void *userdata, sd_bus_error *ret_error) {
        const WaitingCall *asked = userdata;
        Server *s = asked->server;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *first = sd_bus_message_ref(asked->call);
        const char *sender = sd_bus_message_get_sender(first);
        WaitingCall *next;

        read_answer(s, answer, sender);
        while ((next = take_oldest(s, sender))) {
                _cleanup_(cleanup_waiting_call_free) WaitingCall *w = next;
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
                int r = streq(sender, s->last_caller)
                                ? w->method(s, w->call, s->last_uid, &error)
                                : sd_bus_error_set(&error, SD_BUS_ERROR_ACCESS_DENIED,
                                                   "The bus does not tell the uid of the caller.");

                reply_error(w->call, r, &error);
        }
        return 0;
}

static size_t waiting_of(const Server *s, const char *sender) {
        size_t n = 0;

        for (size_t i = 0; i < s->n_waiting; i++)
                n += streq(sd_bus_message_get_sender(s->waiting[i]->call), sender);
        return n;
}

static int put_aside(Server *s, sd_bus_message *call, CallerMethod method) {
        _cleanup_(cleanup_waiting_call_free) WaitingCall *w = calloc(1, sizeof(*w));
        int r;

        if (!w)
                return -ENOMEM;
        w->server = s;
        w->call = sd_bus_message_ref(call);
        w->method = method;
        r = sd_bus_call_method_async(s->bus, &w->question, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                     "org.freedesktop.DBus", "GetConnectionUnixUser", on_answer, w, "s",
                                     sd_bus_message_get_sender(call));
        if (r < 0)
                return r;
        s->waiting[s->n_waiting++] = TAKE_PTR(w);
        return 1;
}

int caller_identify(Server *s, sd_bus_message *call, CallerMethod method, sd_bus_error *error) {
        const char *sender = sd_bus_message_get_sender(call);
        _cleanup_refusal_ Refusal refusal = { 0 };

        /* Without a bus the other end of the socket is this program's own. */
        if (!sender)
                return method(s, call, getuid(), error);
        /* A bus gives a unique name only once. */
        if (streq(sender, s->last_caller))
                return method(s, call, s->last_uid, error);
        if (s->n_waiting >= CALLERS_WAITING_MAX || waiting_of(s, sender) >= CALLERS_WAITING_OF_ONE) {
                (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Wait for the replies to earlier calls.",
                              "Too many calls wait for the bus to tell who called.");
                return bus_reply_refusal(call, &refusal);
        }
        return put_aside(s, call, method);
}

int caller_check_root(sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        if (uid == 0 || uid == getuid())
                return 0;
        return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED, "Access to %s.%s() not permitted.",
                                 sd_bus_message_get_interface(call) ?: BUS_MANAGER_INTERFACE,
                                 sd_bus_message_get_member(call));
}
