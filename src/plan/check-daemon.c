/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: the running daemon. */

#include "check-internal.h"
#include "util/strings.h"

static bool is_told(const CheckReport *report, const char *problem) {
        for (size_t i = 0; i < report->n; i++)
                if (streq(report->findings[i].message, problem))
                        return true;
        return false;
}

void check_daemon(const CheckFacts *facts, CheckReport *report) {
        const DaemonReport *d = facts->daemon;
        size_t n = 0;

        if (!d)
                check_add(report, CHECK_UNKNOWN, NULL, "The daemon is not asked for a recorded node.");
        else if (d->unreachable)
                check_add(report, CHECK_WARNING, NULL, "%s", d->unreachable);
        if (!d || d->unreachable)
                return;
        if (d->read_only)
                check_add(report, CHECK_FAILURE, NULL, "%s", d->read_only);
        for (size_t i = 0; i < d->n_problems; i++)
                if (is_told(report, d->problems[i]))
                        n++;
                else
                        check_add(report, CHECK_WARNING, NULL, "%s", d->problems[i]);
        if (n > 0)
                check_add(report, CHECK_WARNING, NULL, "passthroughd reports %zu problem%s that %s named above.", n,
                          PLURAL(n), ARE(n));
}
