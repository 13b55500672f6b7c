/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "admission.h"

#include <assert.h>
#include <errno.h>

#include "error.h"
#include "server-internal.h"

/* A call in the queue. */
struct WaitingCall {
        Server *server;
        sd_bus_message *call;
        Charge place, bytes;
        sd_bus_slot *query; /* the GetConnectionCredentials sent for this call; NULL: it was sent for an earlier call,
                               or the caller may read */
        bool admitted;      /* the call was put back into the queue of sd-bus */
};

static WaitingCall *waiting_call_free(WaitingCall *w) {
        if (!w)
                return NULL;
        quota_give_back(&w->place);
        quota_give_back(&w->bytes);
        sd_bus_slot_unref(w->query);
        sd_bus_message_unref(w->call);
        free(w);
        return NULL;
}

void admission_done(Admission *a) {
        while (a->n_waiting > 0)
                waiting_call_free(a->waiting[--a->n_waiting]);
}

/* Removes the call at index i from the queue. The caller of this function frees the call. */
static WaitingCall *take(Admission *a, size_t i) {
        WaitingCall *w = a->waiting[i];

        assert(i < a->n_waiting);
        a->n_waiting--;
        memmove(&a->waiting[i], &a->waiting[i + 1], (a->n_waiting - i) * sizeof(a->waiting[0]));
        return w;
}

/* Returns true if a call of the connection is in the queue. asked: consider only the call for which
 * GetConnectionCredentials was sent. */
static bool is_waiting(const Admission *a, const char *sender, bool asked) {
        for (size_t i = 0; i < a->n_waiting; i++)
                if ((!asked || a->waiting[i]->query) && streq(sd_bus_message_get_sender(a->waiting[i]->call), sender))
                        return true;
        return false;
}

/* Makes sd-bus serve the call again, after the calls that sd-bus has read already. Returns 0 or a negative errno. */
static int admit(WaitingCall *w) {
        int r = sd_bus_enqueue_for_read(sd_bus_message_get_bus(w->call), w->call);

        w->admitted = r >= 0;
        return r;
}

static int on_credentials(sd_bus_message *answer, void *userdata, sd_bus_error *ret_error);

/* Adds the call to the queue. Returns 0 or a negative errno; -EDQUOT: too many calls wait, or they are too long. */
static int hold(Server *s, sd_bus_message *call, size_t size, WaitingCall **ret) {
        WaitingCall *w = calloc(1, sizeof(*w));

        if (!w)
                return -ENOMEM;
        *w = (WaitingCall) { .server = s, .call = sd_bus_message_ref(call) };
        if (!quota_charge(&s->quota, call, UID_UNKNOWN, QUOTA_UNKNOWN_CALLS, 1, &w->place) ||
            (size > ADMISSION_SIZE_SMALL &&
             !quota_charge(&s->quota, call, UID_UNKNOWN, QUOTA_UNKNOWN_BYTES, size, &w->bytes))) {
                waiting_call_free(w);
                return -EDQUOT;
        }
        assert(s->admission.n_waiting < ADMISSION_WAITING_MAX);
        s->admission.waiting[s->admission.n_waiting++] = *ret = w;
        return 0;
}

/* Queues the call. may_read: the caller may read; the call is admitted at once, behind the earlier calls. Otherwise
 * asks the bus for the credentials of the caller, unless the bus was asked for an earlier call of the caller. Returns 1
 * when the call was queued or refused, otherwise a negative errno. */
static int enqueue(Server *s, sd_bus_message *call, bool may_read) {
        const char *sender = sd_bus_message_get_sender(call);
        _cleanup_refusal_ Refusal refusal = { 0 };
        bool asked = is_waiting(&s->admission, sender, true);
        WaitingCall *w;
        size_t size;
        int r = caller_check_size(s, call, &size);

        if (r != 0)
                return r;
        r = hold(s, call, size, &w);
        if (r == -EDQUOT) {
                (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Wait for the replies to earlier calls.",
                              "Too many calls wait for the bus to return the uid of their caller.");
                return refuse_sender(s, call, &refusal);
        }
        if (r < 0)
                return r;
        if (may_read)
                r = admit(w);
        else if (!asked)
                r = credentials_query(sd_bus_message_get_bus(call), sender, on_credentials, w, &w->query);
        if (r < 0)
                waiting_call_free(take(&s->admission, s->admission.n_waiting - 1));
        return r < 0 ? r : 1;
}

/* Admits a call after polkit has decided that its caller may read. */
static int admit_reader(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        KnownCaller *known = caller_find(&s->callers, sd_bus_message_get_sender(call));

        if (known)
                known->may_read = true;
        return enqueue(s, call, true);
}

static int ask_polkit(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        return authorize(s, call, uid, intent_to_read, admit_reader, error);
}

/* Handles the credentials that the bus has returned. They apply to all queued calls of the connection. */
static int on_credentials(sd_bus_message *answer, void *userdata, sd_bus_error *ret_error) {
        const WaitingCall *asked = userdata;
        Server *s = asked->server;
        Admission *a = &s->admission;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *first = sd_bus_message_ref(asked->call);
        const char *sender = sd_bus_message_get_sender(first);
        Credentials credentials;
        int known = credentials_read(answer, s->readers, &credentials);
        bool may_read = known >= 0 && (caller_is_root(credentials.uid) || credentials.is_member);

        /* A bus that has not answered for CREDENTIALS_TIMEOUT_SEC is taken for one that no longer reads the daemon's
         * messages. */
        if (known == -ETIMEDOUT) {
                connection_give_up(&s->system_bus.connection);
                return 0;
        }
        if (known >= 0)
                caller_remember(&s->callers, sender, credentials.uid, may_read);
        for (size_t i = 0; i < a->n_waiting;) {
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
                WaitingCall *w = a->waiting[i];
                int r = 0;

                if (w->admitted || !streq(sd_bus_message_get_sender(w->call), sender)) {
                        i++;
                        continue;
                }
                if (known < 0)
                        r = sd_bus_error_set(&error, SD_BUS_ERROR_ACCESS_DENIED,
                                             "The bus did not return the uid of the caller.");
                else if (may_read)
                        r = admit(w);
                else
                        r = ask_polkit(s, w->call, credentials.uid, &error);
                caller_reply_error(w->call, r, &error);
                if (w->admitted)
                        i++;
                else
                        waiting_call_free(take(a, i));
        }
        return 0;
}

int admission_check(Server *s, sd_bus_message *call, sd_bus_error *error) {
        const char *sender = sd_bus_message_get_sender(call);
        Admission *a = &s->admission;
        const KnownCaller *known;
        bool was_admitted = false;

        if (!sender)
                return 0;
        for (size_t i = 0; i < a->n_waiting; i++)
                if (a->waiting[i]->call == call) {
                        waiting_call_free(take(a, i));
                        was_admitted = true;
                        break;
                }
        known = caller_find(&s->callers, sender);
        if (known && known->may_read && was_admitted)
                return 0;
        /* While polkit still decides about earlier calls of the caller, polkit is asked about this call too, even if
         * the caller may read by now: so the calls keep their order. */
        if (known && (!known->may_read || authorizations_have(s, sender, intent_to_read)))
                return ask_polkit(s, call, known->uid, error);
        if (known && !is_waiting(a, sender, false))
                return 0;
        return enqueue(s, call, known);
}
