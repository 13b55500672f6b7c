/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "caller.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "error.h"
#include "host/holders.h"
#include "server-internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

/* A KnownCaller stays true until the daemon's connection to the bus ends, because a bus never uses a unique name
 * twice. */
KnownCaller *caller_find(Callers *c, const char *sender) {
        for (size_t i = 0; i < CALLERS_KNOWN_MAX; i++)
                if (streq(c->known[i].sender, sender))
                        return &c->known[i];
        return NULL;
}

void caller_remember(Callers *c, const char *sender, uint32_t uid, bool may_read) {
        if (strlen(sender) >= sizeof(c->known[0].sender))
                return;
        c->known[c->next_known] = (KnownCaller) { .uid = uid, .may_read = may_read };
        strcpy(c->known[c->next_known].sender, sender);
        c->next_known = (c->next_known + 1) % CALLERS_KNOWN_MAX;
}

void caller_reply_error(sd_bus_message *call, int r, const sd_bus_error *error) {
        if (r < 0 || sd_bus_error_is_set(error))
                (void) sd_bus_reply_method_errno(call, r, error);
}

/* Adds the size of all values up to the end of the container to *size. Returns 0 or a negative errno; -EMSGSIZE when
 * *size exceeds CALL_SIZE_MAX. */
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
                        if (r < 0)
                                return r;
                        r = measure_values(m, size);
                        if (r < 0)
                                return r;
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

int caller_check_size(Server *s, sd_bus_message *call, size_t *ret) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        int r = measure_call(call, ret);

        if (r != -EMSGSIZE)
                return r < 0 ? r : 0;
        (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Ask for less at once.",
                      "The call has more than %u KiB of arguments.", CALL_SIZE_MAX >> 10);
        return refuse_sender(s, call, &refusal);
}

/* Sets *ret to the uid of the process that opened the connection. Returns 0, or a negative errno when the kernel does
 * not tell the uid. */
static int get_peer_uid(sd_bus *bus, uint32_t *ret) {
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (getsockopt(sd_bus_get_fd(bus), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        *ret = peer.uid;
        return 0;
}

uint32_t caller_uid(Server *s, sd_bus_message *call) {
        const KnownCaller *known = caller_find(&s->callers, sd_bus_message_get_sender(call));

        return known ? known->uid : UINT32_MAX;
}

int caller_identify(Server *s, sd_bus_message *call, CallerMethod method, sd_bus_error *error) {
        uint32_t uid = UINT32_MAX;
        size_t size;
        int r;

        /* A peer without a bus is root or the daemon's user at the private socket; or, in a server of
         * server_new_peer(), this program itself. */
        if (!sd_bus_message_get_sender(call)) {
                r = get_peer_uid(sd_bus_message_get_bus(call), &uid);
                return r < 0 ? r : method(s, call, uid, error);
        }
        r = caller_check_size(s, call, &size);
        return r != 0 ? r : method(s, call, caller_uid(s, call), error);
}

/* The largest reply that is not charged, in bytes as estimate_list() estimates them. */
#define SMALL_LIST 16384U

typedef enum Objects {
        DEVICES = 1,
        ALLOCATIONS = 2,
} Objects;

/* The calls with long typed replies, and the estimated size of the reply in bytes for each object in it. */
static const struct {
        const char *interface, *member;
        int objects;
        unsigned size;
} list_calls[] = {
        { BUS_MANAGER_INTERFACE, "ListDevices", DEVICES, 160 },
        { BUS_MANAGER_INTERFACE, "ListAllocations", ALLOCATIONS, 160 },
        { "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", DEVICES | ALLOCATIONS, 2048 },
};

static uint64_t estimate_list(const HostView *view, sd_bus_message *m) {
        for (size_t i = 0; i < ELEMENTSOF(list_calls); i++) {
                uint64_t n = 0;

                if (sd_bus_message_is_method_call(m, list_calls[i].interface, list_calls[i].member) <= 0)
                        continue;
                n += list_calls[i].objects & DEVICES ? view->inventory->n_devices : 0;
                n += list_calls[i].objects & ALLOCATIONS ? view->ledger->n_allocations : 0;
                return n * list_calls[i].size;
        }
        return 0;
}

int caller_charge_list(Server *s, sd_bus_message *call) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        HostView view = server_view(s);
        uint64_t bytes = estimate_list(&view, call);

        if (!sd_bus_message_get_sender(call) || bytes <= SMALL_LIST ||
            quota_charge(&s->quota, call, caller_uid(s, call), QUOTA_LIST_BYTES, bytes, NULL))
                return 0;
        (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Wait a minute, and follow the signals instead of asking again.",
                      "Too many long replies were asked for within a minute.");
        return refuse_sender(s, call, &refusal);
}

int credentials_query(sd_bus *bus, const char *name, sd_bus_message_handler_t handler, void *userdata,
                      sd_bus_slot **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = sd_bus_message_new_method_call(bus, &m, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                               "org.freedesktop.DBus", "GetConnectionCredentials");

        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", name);
        return r < 0 ? r
                     : sd_bus_call_async(bus, ret, m, handler, userdata, CREDENTIALS_TIMEOUT_SEC * UINT64_C(1000000));
}

static int read_groups(sd_bus_message *answer, gid_t group, bool *ret) {
        uint32_t gid;
        int r = sd_bus_message_enter_container(answer, 'v', "au");

        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(answer, 'a', "u");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(answer, "u", &gid)) > 0)
                *ret |= gid == group && group != GID_NONE;
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(answer);
        return r < 0 ? r : sd_bus_message_exit_container(answer);
}

static int read_entry(sd_bus_message *answer, gid_t group, Credentials *c, bool *has_uid) {
        const char *key;
        int r = sd_bus_message_read(answer, "s", &key);

        if (r < 0)
                return r;
        if (streq(key, "UnixGroupIDs"))
                return read_groups(answer, group, &c->is_member);
        if (streq(key, "ProcessID"))
                return sd_bus_message_read(answer, "v", "u", &c->pid);
        if (!streq(key, "UnixUserID"))
                return sd_bus_message_skip(answer, "v");
        *has_uid = true;
        return sd_bus_message_read(answer, "v", "u", &c->uid);
}

int credentials_read(sd_bus_message *answer, gid_t group, Credentials *ret) {
        bool has_uid = false;
        int r;

        *ret = (Credentials) { 0 };
        if (sd_bus_message_is_method_error(answer, NULL))
                return sd_bus_message_is_method_error(answer, SD_BUS_ERROR_NO_REPLY) ? -ETIMEDOUT : -ESRCH;
        r = sd_bus_message_enter_container(answer, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(answer, 'e', "sv")) > 0) {
                r = read_entry(answer, group, ret, &has_uid);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(answer);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : has_uid ? 0 : -ENODATA;
}

#define SECOND_USEC UINT64_C(1000000)

static void log_sender(Reports *reports, const Credentials *sender) {
        _cleanup_free_ char *others = NULL;
        char unit[HOLDER_UNIT_MAX];

        holder_unit_of_process((int) sender->pid, unit, sizeof(unit));
        if (reports->unlogged > 1)
                others = string_format(" %u earlier refusals were not logged.", reports->unlogged - 1);
        log_full(LOG_NOTICE, 0, (&(LogFields) { .id = MESSAGE_CALL_REFUSED }),
                 "A call of uid %u, process %u%s%s, was refused: %s%s", sender->uid, sender->pid, unit[0] ? " of " : "",
                 unit, reports->reason, others ?: "");
        reports->unlogged = 0;
}

static int on_credentials(sd_bus_message *answer, void *userdata, sd_bus_error *error) {
        Server *s = userdata;
        Reports *reports = &s->reports;
        Credentials sender;

        if (credentials_read(answer, GID_NONE, &sender) >= 0 &&
            quota_charge(&s->quota, NULL, sender.uid, QUOTA_REFUSALS_LOGGED, 1, NULL))
                log_sender(reports, &sender);
        reports_cancel(reports);
        return 0;
}

void report_refused(Server *s, sd_bus_message *call, const char *reason) {
        const char *sender = sd_bus_message_get_sender(call);
        uint64_t now = clock_usec(CLOCK_MONOTONIC);
        Reports *reports = &s->reports;

        if (!sender || !reason)
                return;
        reports->unlogged++;
        if (reports->query || (reports->asked > 0 && now - reports->asked < SECOND_USEC))
                return;
        reports->asked = now;
        reports->reason = strdup(reason);
        if (!reports->reason ||
            credentials_query(sd_bus_message_get_bus(call), sender, on_credentials, s, &reports->query) < 0)
                reports_cancel(reports);
}

int refuse_sender(Server *s, sd_bus_message *call, const Refusal *refusal) {
        report_refused(s, call, refusal->message);
        return bus_reply_refusal(call, refusal);
}

void reports_cancel(Reports *r) {
        r->query = sd_bus_slot_unref(r->query);
        free(r->reason);
        r->reason = NULL;
}
