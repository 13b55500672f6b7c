/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: the running daemon. */

#include "check-internal.h"

void check_daemon(const CheckFacts *facts, CheckReport *report) {
        const DaemonReport *d = facts->daemon;

        if (!d)
                check_add(report, CHECK_UNKNOWN, NULL, "The daemon is not asked for a recorded node.");
        else if (d->unreachable)
                check_add(report, CHECK_WARNING, NULL, "%s", d->unreachable);
        if (!d || d->unreachable)
                return;
        if (d->read_only)
                check_add(report, CHECK_FAILURE, NULL, "%s", d->read_only);
        for (size_t i = 0; i < d->n_problems; i++)
                check_add(report, CHECK_WARNING, NULL, "%s", d->problems[i]);
}
