/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "progress.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/cleanup.h"
#include "util/clock.h"

#define SECOND     UINT64_C(1000000)
#define DELAY_SEC  2U /* of most steps */
#define ERASE_LINE "\r\033[K"

static bool can_erase(void) {
        const char *terminal = getenv("TERM");

        return isatty(STDOUT_FILENO) && terminal && !streq(terminal, "dumb");
}

Progress progress_new(bool wanted) {
        return (Progress) { .shows = wanted && can_erase(), .since = clock_usec(CLOCK_MONOTONIC), .second = DELAY_SEC };
}

void progress_end(Progress *p) {
        if (p->is_shown)
                fputs(ERASE_LINE, stdout);
        p->is_shown = false;
        (void) fflush(stdout);
}

void progress_begin(Progress *p) {
        progress_end(p);
        p->since = clock_usec(CLOCK_MONOTONIC);
        p->second = DELAY_SEC;
}

uint64_t progress_next(const Progress *p) {
        return p->shows ? p->since + p->second * SECOND : UINT64_MAX;
}

const char *progress_until(uint64_t deadline, char buf[static PROGRESS_TIME_MAX]) {
        time_t t = (time_t) (deadline / SECOND);
        struct tm tm;

        if (deadline == 0 || !localtime_r(&t, &tm) ||
            strftime(buf, PROGRESS_TIME_MAX, ", until %H:%M:%S at most", &tm) == 0)
                buf[0] = '\0';
        return buf;
}

void progress_show(Progress *p, uint64_t deadline) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC);
        char until[PROGRESS_TIME_MAX];

        if (!p->shows || now < progress_next(p))
                return;
        printf(ERASE_LINE "      %" PRIu64 " s%s", (now - p->since) / SECOND, progress_until(deadline, until));
        (void) fflush(stdout);
        p->is_shown = true;
        p->second = (now - p->since) / SECOND + 1;
}
