/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "caller.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "error.h"
#include "server-internal.h"

/* A queued call. */
struct WaitingCall {
        Server *server;
        sd_bus_message *call;
        size_t size;
        CallerMethod method;    /* NULL: only the uid is wanted */
        sd_bus_slot *uid_query; /* the pending GetConnectionUnixUser; NULL: an older call of the connection has it */
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
        Callers *c = &s->callers;

        while (c->n_waiting > 0)
                waiting_call_free(c->waiting[--c->n_waiting]);
        *c = (Callers){ 0 };
}

bool caller_is_root(uint32_t uid) {
        return uid == 0 || uid == getuid();
}

/* The bus never reuses a unique name, so the uid remains valid. */
static bool find_known(const Callers *c, const char *sender, uint32_t *ret) {
        for (size_t i = 0; i < CALLERS_KNOWN_MAX; i++)
                if (streq(c->known[i].sender, sender)) {
                        *ret = c->known[i].uid;
                        return true;
                }
        return false;
}

static void remember(Callers *c, const char *sender, uint32_t uid) {
        if (strlen(sender) >= sizeof(c->known[0].sender))
                return;
        strcpy(c->known[c->next_known].sender, sender);
        c->known[c->next_known].uid = uid;
        c->next_known = (c->next_known + 1) % CALLERS_KNOWN_MAX;
}

/* Removes the oldest call of a connection from the queue. NULL when none is left. The caller frees it. */
static WaitingCall *take_oldest(Callers *c, const char *sender) {
        for (size_t i = 0; i < c->n_waiting; i++)
                if (streq(sd_bus_message_get_sender(c->waiting[i]->call), sender)) {
                        WaitingCall *w = c->waiting[i];

                        c->n_waiting--;
                        memmove(&c->waiting[i], &c->waiting[i + 1], (c->n_waiting - i) * sizeof(c->waiting[0]));
                        return w;
                }
        return NULL;
}

void caller_reply_error(sd_bus_message *call, int r, const sd_bus_error *error) {
        if (r < 0 || sd_bus_error_is_set(error))
                (void) sd_bus_reply_method_errno(call, r, error);
}

/* The uid holds for all queued calls of the connection. Serves them in the order in which they arrived. */
static int on_uid(sd_bus_message *answer, void *userdata, sd_bus_error *ret_error) {
        const WaitingCall *asked = userdata;
        Server *s = asked->server;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *first = sd_bus_message_ref(asked->call);
        const char *sender = sd_bus_message_get_sender(first);
        WaitingCall *next;
        uint32_t uid;
        bool known = !sd_bus_message_is_method_error(answer, NULL) && sd_bus_message_read(answer, "u", &uid) > 0;

        if (known)
                remember(&s->callers, sender, uid);
        while ((next = take_oldest(&s->callers, sender))) {
                _cleanup_(cleanup_waiting_call_free) WaitingCall *w = next;
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
                int r = 0;

                if (!w->method)
                        continue;
                r = known ? w->method(s, w->call, uid, &error)
                          : sd_bus_error_set(&error, SD_BUS_ERROR_ACCESS_DENIED,
                                             "The bus did not return the uid of the caller.");
                caller_reply_error(w->call, r, &error);
        }
        return 0;
}

/* Adds the size of the values up to the end of the container. Returns -EMSGSIZE when *size exceeds CALL_SIZE_MAX. */
static int measure_values(sd_bus_message *m, size_t *size) {
        const char *contents;
        char type;
        int r;

        while ((r = sd_bus_message_peek_type(m, &type, &contents)) > 0) {
                union {
                        const char *text;
                        uint64_t number;
                } value = { 0 };

                *size += sizeof(value);
                if (contents) {
                        r = sd_bus_message_enter_container(m, type, contents);
                        if (r >= 0)
                                r = measure_values(m, size);
                        if (r >= 0)
                                r = sd_bus_message_exit_container(m);
                } else {
                        r = sd_bus_message_read_basic(m, type, &value);
                        if (r >= 0 && strchr("sog", type))
                                *size += strlen(value.text);
                }
                if (r < 0)
                        return r;
                if (*size > CALL_SIZE_MAX)
                        return -EMSGSIZE;
        }
        return r;
}

static int measure_call(sd_bus_message *call, size_t *ret) {
        int r;

        *ret = 0;
        r = measure_values(call, ret);
        return r < 0 ? r : sd_bus_message_rewind(call, true);
}

static bool has_room(const Callers *c, const char *sender, size_t size) {
        size_t of_one = 0, bytes = size;

        for (size_t i = 0; i < c->n_waiting; i++) {
                of_one += streq(sd_bus_message_get_sender(c->waiting[i]->call), sender);
                bytes += c->waiting[i]->size > CALL_SIZE_SMALL ? c->waiting[i]->size : 0;
        }
        return of_one < CALLERS_WAITING_OF_ONE &&
               c->n_waiting < (of_one > 0 ? CALLERS_WAITING_MAX / 2 : CALLERS_WAITING_MAX) &&
               (size <= CALL_SIZE_SMALL || bytes <= CALLERS_WAITING_BYTES);
}

static bool is_asked_for(const Callers *c, const char *sender) {
        for (size_t i = 0; i < c->n_waiting; i++)
                if (streq(sd_bus_message_get_sender(c->waiting[i]->call), sender))
                        return true;
        return false;
}

static int enqueue(Server *s, sd_bus_message *call, size_t size, CallerMethod method) {
        _cleanup_(cleanup_waiting_call_free) WaitingCall *w = calloc(1, sizeof(*w));
        const char *sender = sd_bus_message_get_sender(call);
        Callers *c = &s->callers;
        int r = 0;

        if (!w)
                return -ENOMEM;
        w->server = s;
        w->call = sd_bus_message_ref(call);
        w->size = size;
        w->method = method;
        if (!is_asked_for(c, sender))
                r = sd_bus_call_method_async(sd_bus_message_get_bus(call), &w->uid_query, "org.freedesktop.DBus",
                                             "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetConnectionUnixUser",
                                             on_uid, w, "s", sender);
        if (r < 0)
                return r;
        c->waiting[c->n_waiting++] = TAKE_PTR(w);
        return 1;
}

/* The uid of the process that opened the connection. Returns a negative errno when the kernel does not tell. */
static int get_peer_uid(sd_bus *bus, uint32_t *ret) {
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (getsockopt(sd_bus_get_fd(bus), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        *ret = peer.uid;
        return 0;
}

int caller_identify(Server *s, sd_bus_message *call, CallerMethod method, sd_bus_error *error) {
        const char *sender = sd_bus_message_get_sender(call);
        _cleanup_refusal_ Refusal refusal = { 0 };
        uint32_t uid = UINT32_MAX;
        size_t size;
        int r;

        /* A peer without a bus is root or the daemon's user, at the private socket, or this program itself, with
         * server_new_peer(). */
        if (!sender) {
                r = get_peer_uid(sd_bus_message_get_bus(call), &uid);
                return r < 0 ? r : method(s, call, uid, error);
        }
        r = measure_call(call, &size);
        if (r < 0 && r != -EMSGSIZE)
                return r;
        if (r == -EMSGSIZE)
                (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Ask for less at once.",
                              "The call has more than %u KiB of arguments.", CALL_SIZE_MAX >> 10);
        else if (find_known(&s->callers, sender, &uid))
                return method(s, call, uid, error);
        else if (has_room(&s->callers, sender, size))
                return enqueue(s, call, size, method);
        else
                (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Wait for the replies to earlier calls.",
                              "Too many calls wait for the bus to return the uid of their caller.");
        return refuse_sender(s, call, &refusal);
}

bool caller_find_uid(Server *s, sd_bus_message *call, uint32_t *ret) {
        const char *sender = sd_bus_message_get_sender(call);
        size_t size;

        if (find_known(&s->callers, sender, ret))
                return true;
        if (!is_asked_for(&s->callers, sender) && measure_call(call, &size) >= 0 && has_room(&s->callers, sender, size))
                (void) enqueue(s, call, size, NULL);
        return false;
}
