/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "authorization.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "error.h"
#include "server-internal.h"
#include "util/strings.h"

#define POLKIT_NAME      "org.freedesktop.PolicyKit1"
#define POLKIT_PATH      "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"

/* AllowUserInteraction of polkit's CheckAuthorizationFlags. */
#define ALLOW_USER_INTERACTION 1U

/* The most rounds in which polkit is asked about one call. A further round begins if the intent of the call has changed
 * while polkit decided. */
#define ROUNDS_MAX 4U

static const char *const action_ids[_POLKIT_ACTION_MAX] = {
        [POLKIT_READ] = BUS_NAME ".read",     [POLKIT_ALLOCATE] = BUS_NAME ".allocate",
        [POLKIT_MANAGE] = BUS_NAME ".manage", [POLKIT_CONFIGURE] = BUS_NAME ".configure",
        [POLKIT_FORCE] = BUS_NAME ".force",
};

/* A call that waits for polkit. */
struct Authorization {
        Server *server;
        sd_bus_message *call;
        uint32_t uid;
        IntentRead read;
        CallerMethod method;
        Intent intent;       /* the intent about which polkit decides */
        PolkitAction action; /* the action about which polkit decides */
        unsigned rounds;
        char cancellation[32]; /* the id for CancelCheckAuthorization; "": polkit asks no person for a password */
        sd_bus_slot *query;
        Charge place;
        Authorization *next;
};

static void intent_done(Intent *i) {
        while (i->n_details > 0) {
                i->n_details--;
                free(i->details[i->n_details].key);
                free(i->details[i->n_details].value);
        }
        *i = (Intent) { 0 };
}

void intent_add(Intent *i, const char *key, const char *format, ...) {
        struct IntentDetail *d = &i->details[i->n_details];

        if (i->n_details == INTENT_DETAILS_MAX || i->error < 0) {
                i->error = i->error ?: -E2BIG;
                return;
        }
        *d = (struct IntentDetail) { .key = strdup(key), .value = FORMAT_ARGUMENTS(format) };
        i->n_details++;
        if (!d->key || !d->value)
                i->error = -ENOMEM;
}

void intent_add_owner(Intent *i, uint32_t owner, uint32_t uid) {
        i->actions |= 1U << (owner == uid ? POLKIT_ALLOCATE : POLKIT_MANAGE);
        intent_add(i, "owner", "%" PRIu32, owner);
}

static bool intent_equal(const Intent *a, const Intent *b) {
        if (a->actions != b->actions || a->n_details != b->n_details)
                return false;
        for (size_t i = 0; i < a->n_details; i++)
                if (!streq(a->details[i].key, b->details[i].key) || !streq(a->details[i].value, b->details[i].value))
                        return false;
        return true;
}

static Authorization *authorization_free(Authorization *a) {
        if (!a)
                return NULL;
        quota_give_back(&a->place);
        sd_bus_slot_unref(a->query);
        sd_bus_message_unref(a->call);
        intent_done(&a->intent);
        free(a);
        return NULL;
}
DEFINE_CLEANUP(Authorization *, authorization_free)

/* Removes the call from the list. The caller of this function frees the Authorization. */
static Authorization *take(Authorization *a) {
        for (Authorization **i = &a->server->authorizations; *i; i = &(*i)->next)
                if (*i == a) {
                        *i = a->next;
                        break;
                }
        return a;
}

/* Makes polkit close the password dialog of the call. */
static void cancel(const Authorization *a) {
        if (!a->cancellation[0])
                return;
        (void) sd_bus_call_method_async(sd_bus_message_get_bus(a->call), NULL, POLKIT_NAME, POLKIT_PATH,
                                        POLKIT_INTERFACE, "CancelCheckAuthorization", NULL, NULL, "s", a->cancellation);
}

/* Reads the intent that the call has now. Returns 0; 1: the caller was sent a refusal; or a negative errno. */
static int read_intent(Authorization *a, Intent *ret) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        int r = sd_bus_message_rewind(a->call, true);

        if (r < 0)
                return r;
        if (a->read(a->server, a->call, a->uid, ret, &refusal) != VERDICT_NONE) {
                r = bus_reply_refusal(a->call, &refusal);
                return r < 0 ? r : 1;
        }
        /* Without an action, polkit would never be asked, and the call never served. */
        assert(ret->actions != 0);
        return ret->error;
}

static int deny(Authorization *a, const char *name, const char *why, sd_bus_error *error) {
        int r = sd_bus_error_setf(error, name, "%s for %s.%s() by uid %" PRIu32 ".", why,
                                  sd_bus_message_get_interface(a->call) ?: BUS_MANAGER_INTERFACE,
                                  sd_bus_message_get_member(a->call), a->uid);

        report_refused(a->server, a->call, error->message);
        return r;
}

static int append_details(sd_bus_message *m, const Intent *intent) {
        int r = sd_bus_message_open_container(m, 'a', "{ss}");

        for (size_t i = 0; r >= 0 && i < intent->n_details; i++)
                r = sd_bus_message_append(m, "{ss}", intent->details[i].key, intent->details[i].value);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int on_decision(sd_bus_message *answer, void *userdata, sd_bus_error *error);

/* Asks polkit about a->action. Returns 0 or a negative errno. */
static int ask(Authorization *a) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus *bus = sd_bus_message_get_bus(a->call);
        bool person = a->cancellation[0];
        uint64_t usec = (person ? AUTHORIZATION_PERSON_TIMEOUT_SEC : AUTHORIZATION_TIMEOUT_SEC) * UINT64_C(1000000);
        int r;

        assert(a->action < _POLKIT_ACTION_MAX && a->intent.actions & 1U << a->action);
        a->query = sd_bus_slot_unref(a->query);
        r = sd_bus_message_new_method_call(bus, &m, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE, "CheckAuthorization");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "(sa{sv})s", "system-bus-name", 1, "name", "s", sd_bus_message_get_sender(a->call),
                                  action_ids[a->action]);
        if (r < 0)
                return r;
        r = append_details(m, &a->intent);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "us", person ? ALLOW_USER_INTERACTION : 0U, a->cancellation);
        return r < 0 ? r : sd_bus_call_async(bus, &a->query, m, on_decision, a, usec);
}

/* Asks polkit about the next action of the intent. Returns 1: asked; 0: polkit has allowed all actions; or a negative
 * errno. */
static int ask_next(Authorization *a) {
        for (; a->action < _POLKIT_ACTION_MAX; a->action++)
                if (a->intent.actions & (1U << a->action)) {
                        int r = ask(a);

                        return r < 0 ? r : 1;
                }
        return 0;
}

/* Calls the method after polkit has allowed all actions of a->intent. Returns 1 if the intent has changed, so that
 * polkit was asked again; 0 when the call was served or refused; or a negative errno. */
static int run(Authorization *a, sd_bus_error *error) {
        Intent now = { 0 };
        int r = read_intent(a, &now);
        bool same = r == 0 && intent_equal(&now, &a->intent);

        if (r == 0 && !same && ++a->rounds < ROUNDS_MAX) {
                intent_done(&a->intent);
                a->intent = now;
                a->action = 0;
                return ask_next(a);
        }
        intent_done(&now);
        if (r != 0)
                return r < 0 ? r : 0;
        if (!same)
                return deny(a, SD_BUS_ERROR_ACCESS_DENIED, "What the caller owns changes too fast for polkit", error);
        r = sd_bus_message_rewind(a->call, true);
        if (r < 0)
                return r;
        r = a->method(a->server, a->call, a->uid, error);
        return r < 0 ? r : 0;
}

/* Handles polkit's decision about one action. Returns 1 if polkit was asked about another action; 0 when the call was
 * served or refused; or a negative errno. */
static int take_decision(Authorization *a, sd_bus_message *answer, sd_bus_error *error) {
        int allowed = 0, needs_person = 0, r;

        if (sd_bus_message_is_method_error(answer, NULL))
                return deny(a, SD_BUS_ERROR_ACCESS_DENIED, "polkit does not answer, so access is denied", error);
        r = sd_bus_message_enter_container(answer, 'r', "bba{ss}");
        if (r < 0)
                return r;
        r = sd_bus_message_read(answer, "bb", &allowed, &needs_person);
        if (r < 0)
                return r;
        if (!allowed && needs_person && !a->cancellation[0])
                return deny(a, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "polkit requires a password", error);
        if (!allowed)
                return deny(a, SD_BUS_ERROR_ACCESS_DENIED, "polkit denies access", error);
        a->action++;
        r = ask_next(a);
        return r != 0 ? r : run(a, error);
}

static int on_decision(sd_bus_message *answer, void *userdata, sd_bus_error *ret_error) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Authorization *a = userdata;
        int r = take_decision(a, answer, &error);

        if (r > 0)
                return 0;
        if (r < 0 || sd_bus_error_is_set(&error))
                (void) sd_bus_reply_method_errno(a->call, r, &error);
        authorization_free(take(a));
        return 0;
}

static int refuse_too_many(Server *s, sd_bus_message *call) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Wait for the replies to earlier calls.",
                      "Too many calls wait for polkit.");
        return refuse_sender(s, call, &refusal);
}

int authorize(Server *s, sd_bus_message *call, uint32_t uid, IntentRead read, CallerMethod method,
              sd_bus_error *error) {
        _cleanup_(cleanup_authorization_free) Authorization *a = NULL;
        int r;

        if (caller_is_root(uid))
                return method(s, call, uid, error);
        a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        if (!quota_charge(&s->quota, call, uid, QUOTA_AUTHORIZATIONS, 1, &a->place))
                return refuse_too_many(s, call);
        a->server = s;
        a->call = sd_bus_message_ref(call);
        a->uid = uid;
        a->read = read;
        a->method = method;
        if (sd_bus_message_get_allow_interactive_authorization(call) > 0)
                (void) snprintf(a->cancellation, sizeof(a->cancellation), "%" PRIu64, ++s->n_authorizations);
        r = read_intent(a, &a->intent);
        if (r != 0)
                return r;
        r = ask_next(a);
        if (r < 0)
                return r;
        a->next = s->authorizations;
        s->authorizations = TAKE_PTR(a);
        return 1;
}

bool authorizations_have(const Server *s, const char *sender, IntentRead read) {
        for (const Authorization *a = s->authorizations; a; a = a->next)
                if (a->read == read && streq_ptr(sd_bus_message_get_sender(a->call), sender))
                        return true;
        return false;
}

void authorizations_drop(Server *s, const sd_bus *bus, const char *sender) {
        for (Authorization *a = s->authorizations, *next; a; a = next) {
                next = a->next;
                if (sd_bus_message_get_bus(a->call) != bus ||
                    (sender && !streq_ptr(sd_bus_message_get_sender(a->call), sender)))
                        continue;
                cancel(a);
                authorization_free(take(a));
        }
}
