/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "reports.h"

#include <stdio.h>

#include "credentials.h"
#include "error.h"
#include "host/holders.h"
#include "server-internal.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

#define SECOND_USEC UINT64_C(1000000)

static void log_sender(Reports *reports, const Credentials *sender) {
        _cleanup_free_ char *others = NULL;
        char unit[HOLDER_UNIT_MAX];

        holder_unit_of_process((int) sender->pid, unit, sizeof(unit));
        if (reports->unlogged > 0)
                others = string_format(" %u earlier refusals were not logged.", reports->unlogged);
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
