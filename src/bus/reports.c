/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "reports.h"

#include <stdio.h>

#include "error.h"
#include "host/holders.h"
#include "server-internal.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

#define SECOND_USEC UINT64_C(1000000)
#define MINUTE_USEC (60 * SECOND_USEC)

typedef struct Sender {
        uint32_t uid, pid;
} Sender;

/* Reads the a{sv} of org.freedesktop.DBus.GetConnectionCredentials. */
static int read_sender(sd_bus_message *answer, Sender *ret) {
        bool has_uid = false;
        int r = sd_bus_message_enter_container(answer, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(answer, 'e', "sv")) > 0) {
                const char *key;

                r = sd_bus_message_read(answer, "s", &key);
                if (r < 0)
                        return r;
                if (streq(key, "UnixUserID"))
                        r = sd_bus_message_read(answer, "v", "u", &ret->uid);
                else if (streq(key, "ProcessID"))
                        r = sd_bus_message_read(answer, "v", "u", &ret->pid);
                else
                        r = sd_bus_message_skip(answer, "v");
                has_uid |= streq(key, "UnixUserID");
                if (r >= 0)
                        r = sd_bus_message_exit_container(answer);
        }
        return r < 0 ? r : has_uid;
}

/* False: this uid, or more than the table holds, were logged within the last minute. */
static bool may_log(Reports *reports, uint32_t uid, uint64_t now) {
        size_t place = REPORT_UIDS_MAX;

        for (size_t i = 0; i < REPORT_UIDS_MAX; i++)
                if (reports->uids[i].logged == 0 || now - reports->uids[i].logged >= MINUTE_USEC)
                        place = i;
                else if (reports->uids[i].uid == uid)
                        return false;
        if (place == REPORT_UIDS_MAX)
                return false;
        reports->uids[place].uid = uid;
        reports->uids[place].logged = now;
        return true;
}

static void log_sender(Reports *reports, const Sender *sender) {
        _cleanup_free_ char *others = NULL;
        char unit[HOLDER_UNIT_MAX];

        holder_unit_of_process((int) sender->pid, unit, sizeof(unit));
        if (reports->unlogged > 0)
                others = string_format(" %u earlier refusals were not logged.", reports->unlogged);
        log_full(LOG_NOTICE, 0, (&(LogFields){ .id = MESSAGE_CALL_REFUSED }),
                 "A call of uid %u, process %u%s%s, was refused: %s%s", sender->uid, sender->pid, unit[0] ? " of " : "",
                 unit, reports->reason, others ?: "");
        reports->unlogged = 0;
}

static int on_credentials(sd_bus_message *answer, void *userdata, sd_bus_error *error) {
        Reports *reports = userdata;
        Sender sender = { 0 };

        if (!sd_bus_message_is_method_error(answer, NULL) && read_sender(answer, &sender) > 0 &&
            may_log(reports, sender.uid, clock_usec(CLOCK_MONOTONIC)))
                log_sender(reports, &sender);
        else
                reports->unlogged++;
        reports_cancel(reports);
        return 0;
}

void report_refused(Server *s, sd_bus_message *call, const char *reason) {
        const char *sender = sd_bus_message_get_sender(call);
        uint64_t now = clock_usec(CLOCK_MONOTONIC);
        Reports *reports = &s->reports;

        if (!sender || !reason)
                return;
        if (reports->query || (reports->asked > 0 && now - reports->asked < SECOND_USEC)) {
                reports->unlogged++;
                return;
        }
        reports->asked = now;
        reports->reason = strdup(reason);
        if (!reports->reason ||
            sd_bus_call_method_async(sd_bus_message_get_bus(call), &reports->query, "org.freedesktop.DBus",
                                     "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetConnectionCredentials",
                                     on_credentials, reports, "s", sender) < 0)
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
