/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "caller.h"

#include <errno.h>
#include <unistd.h>

#include "error.h"
#include "server-internal.h"

/* A queued call. */
struct WaitingCall {
        Server *server;
        sd_bus_message *call;
        CallerMethod method;
        sd_bus_slot *uid_query; /* the pending GetConnectionUnixUser */
};

static WaitingCall *waiting_call_free(WaitingCall *w) {
        if (!w)
                return NULL;
        sd_bus_slot_unref(w->uid_query);
        sd_bus_message_unref(w->call);
        free(w);
        return NULL;
}
DEFINE_CLEANUP(WaitingCall *, waiting_call_free)

void callers_done(Server *s) {
        s->last_caller[0] = 0;
        while (s->n_waiting > 0)
                waiting_call_free(s->waiting[--s->n_waiting]);
}

/* Removes the oldest call of a connection from the queue. NULL when none is left. The caller frees it. */
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

/* Does what sd-bus does after a method handler: sends an error reply if the handler returned an error. */
static void reply_error(sd_bus_message *call, int r, const sd_bus_error *error) {
        if (r < 0 || sd_bus_error_is_set(error))
                (void) sd_bus_reply_method_errno(call, r, error);
}

static void store_uid(Server *s, sd_bus_message *answer, const char *sender) {
        uint32_t uid;

        if (sd_bus_message_is_method_error(answer, NULL) || sd_bus_message_read(answer, "u", &uid) < 0)
                return;
        if (strlen(sender) >= sizeof(s->last_caller))
                return;
        strcpy(s->last_caller, sender);
        s->last_uid = uid;
}

/* The uid holds for all queued calls of the connection. Serves them in the order in which they arrived. */
static int on_uid(sd_bus_message *answer, void *userdata, sd_bus_error *ret_error) {
        const WaitingCall *asked = userdata;
        Server *s = asked->server;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *first = sd_bus_message_ref(asked->call);
        const char *sender = sd_bus_message_get_sender(first);
        WaitingCall *next;

        store_uid(s, answer, sender);
        while ((next = take_oldest(s, sender))) {
                _cleanup_(cleanup_waiting_call_free) WaitingCall *w = next;
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
                int r = streq(sender, s->last_caller)
                                ? w->method(s, w->call, s->last_uid, &error)
                                : sd_bus_error_set(&error, SD_BUS_ERROR_ACCESS_DENIED,
                                                   "The bus did not return the uid of the caller.");

                reply_error(w->call, r, &error);
        }
        return 0;
}

static size_t count_waiting(const Server *s, const char *sender) {
        size_t n = 0;

        for (size_t i = 0; i < s->n_waiting; i++)
                n += streq(sd_bus_message_get_sender(s->waiting[i]->call), sender);
        return n;
}

static int enqueue(Server *s, sd_bus_message *call, CallerMethod method) {
        _cleanup_(cleanup_waiting_call_free) WaitingCall *w = calloc(1, sizeof(*w));
        int r;

        if (!w)
                return -ENOMEM;
        w->server = s;
        w->call = sd_bus_message_ref(call);
        w->method = method;
        r = sd_bus_call_method_async(sd_bus_message_get_bus(call), &w->uid_query, "org.freedesktop.DBus",
                                     "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetConnectionUnixUser", on_uid,
                                     w, "s", sd_bus_message_get_sender(call));
        if (r < 0)
                return r;
        s->waiting[s->n_waiting++] = TAKE_PTR(w);
        return 1;
}

int caller_identify(Server *s, sd_bus_message *call, CallerMethod method, sd_bus_error *error) {
        const char *sender = sd_bus_message_get_sender(call);
        _cleanup_refusal_ Refusal refusal = { 0 };

        /* A peer without a bus is root, at the private socket, or this program itself, with server_new_peer(). */
        if (!sender)
                return method(s, call, getuid(), error);
        /* The bus never reuses a unique name, so the cached uid is valid. */
        if (streq(sender, s->last_caller))
                return method(s, call, s->last_uid, error);
        if (s->n_waiting >= CALLERS_WAITING_MAX || count_waiting(s, sender) >= CALLERS_WAITING_OF_ONE) {
                (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Wait for the replies to earlier calls.",
                              "Too many calls wait for the bus to return the uid of their caller.");
                return refuse_sender(s, call, &refusal);
        }
        return enqueue(s, call, method);
}
