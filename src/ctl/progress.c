/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "util/clock.h"
#include "util/strings.h"

#define SECOND          UINT64_C(1000000)
#define DELAY_SEC       2U             /* from this age on, a line shows its age; most steps take less time */
#define FRAME_USEC      (SECOND / 20U) /* lines are drawn at most once in this time */
#define ROWS_DEFAULT    24U
#define COLUMNS_DEFAULT 80U
#define SUFFIX_MAX      32
#define ERASE_LINE      "\033[K"
#define ERASE_BELOW     "\033[J"

static bool can_erase(void) {
        const char *terminal = getenv("TERM");

        return isatty(STDOUT_FILENO) && terminal && !streq(terminal, "dumb");
}

Progress progress_new(bool wanted) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        /* Until progress_set() is called, only the age of the job can be shown, and it is shown from DELAY_SEC on. */
        return (Progress) { .shows = wanted && can_erase(), .since = now, .next = now + DELAY_SEC * SECOND };
}

static void free_lines(ProgressLine *lines, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(lines[i].text);
        free(lines);
}

void progress_done(Progress *p) {
        free_lines(p->lines, p->n);
}

/* Moves the cursor to the beginning of the first of the lines on the terminal. */
static void print_up(const Progress *p) {
        (void) putchar('\r');
        if (p->n_shown > 1)
                printf("\033[%zuA", p->n_shown - 1);
}

void progress_end(Progress *p) {
        if (p->n_shown > 0) {
                print_up(p);
                fputs(ERASE_BELOW, stdout);
        }
        p->n_shown = 0;
        (void) fflush(stdout);
}

/* Adds a line. If `before` has a line with the same text, the new line keeps its start time. Returns 0 or -ENOMEM. */
static int add_line(Progress *p, const Progress *before, const char *text) {
        ProgressLine line = { .since = clock_usec(CLOCK_MONOTONIC) };
        int r = ARRAY_RESERVE(p->lines, p->n);

        if (r < 0)
                return r;
        r = string_copy(&line.text, text);
        if (r < 0)
                return r;
        for (size_t i = 0; i < before->n; i++)
                if (streq(before->lines[i].text, text))
                        line.since = before->lines[i].since;
        p->lines[p->n++] = line;
        return 0;
}

void progress_set(Progress *p, json_object *devices, const char *step) {
        const Progress before = *p;
        int r = 0;

        p->lines = NULL;
        p->n = 0;
        if (devices) {
                json_object_object_foreach(devices, address, value) {
                        (void) value;
                        if (r >= 0)
                                r = add_line(p, &before, reply_cell(devices, address));
                }
        }
        if (r >= 0 && p->n == 0 && step)
                (void) add_line(p, &before, step);
        free_lines(before.lines, before.n);
        p->next = MIN(p->next, p->drawn + FRAME_USEC);
}

uint64_t progress_next(const Progress *p) {
        return p->shows ? p->next : UINT64_MAX;
}

const char *progress_until(uint64_t deadline, char buf[static PROGRESS_TIME_MAX]) {
        time_t t = (time_t) (deadline / SECOND);
        struct tm tm;

        if (deadline == 0 || !localtime_r(&t, &tm) ||
            strftime(buf, PROGRESS_TIME_MAX, ", until %H:%M:%S at most", &tm) == 0)
                buf[0] = '\0';
        return buf;
}

/* Prints a line, and cuts the text so that the suffix fits. Cuts by bytes: a character has at least as many bytes as
 * columns. */
static void print_line(const char *text, const char *suffix, size_t columns) {
        const size_t used = strlen(suffix);
        size_t n = strnlen(text, columns > used ? columns - used : 0);

        while (n > 0 && (text[n] & 0xc0) == 0x80)
                n--;
        printf("%.*s%s" ERASE_LINE, (int) n, text, used < columns ? suffix : "");
}

/* Formats how long a line has existed, as "  12 s"; "" for less than DELAY_SEC. Returns when the text will change next.
 */
static uint64_t format_age(uint64_t since, uint64_t now, char buf[static SUFFIX_MAX]) {
        const uint64_t sec = (now - since) / SECOND;

        buf[0] = '\0';
        if (sec >= DELAY_SEC)
                (void) snprintf(buf, SUFFIX_MAX, "  %" PRIu64 " s", sec);
        return since + MAX(sec + 1, DELAY_SEC) * SECOND;
}

/* Returns the size of the terminal without its last column. This column stays empty, because terminals differ in what
 * they do after a character there. */
static struct winsize size_of_terminal(void) {
        struct winsize size = { 0 };

        (void) ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        return (struct winsize) { .ws_row = size.ws_row > 0 ? size.ws_row : ROWS_DEFAULT,
                                  .ws_col = (size.ws_col > 0 ? size.ws_col : COLUMNS_DEFAULT) - 1 };
}

/* Prints as many lines of p->lines as fit above the line of the steps. If some do not fit, a last line tells their
 * number. */
static void print_devices(Progress *p, uint64_t now, struct winsize size) {
        const size_t room = size.ws_row - 1U;
        const size_t n = p->n <= room ? p->n : room - (room > 0);
        char text[SUFFIX_MAX];

        for (size_t i = 0; i < p->n; i++) {
                uint64_t next = format_age(p->lines[i].since, now, text);

                p->next = MIN(p->next, next);
                if (i >= n)
                        continue;
                print_line(p->lines[i].text, text, size.ws_col);
                (void) putchar('\n');
        }
        p->n_shown = n;
        if (n == p->n || room == 0)
                return;
        (void) snprintf(text, sizeof(text), "and %zu more", p->n - n);
        print_line(text, "", size.ws_col);
        (void) putchar('\n');
        p->n_shown++;
}

static bool any_takes_long(const Progress *p, uint64_t now) {
        for (size_t i = 0; i < p->n; i++)
                if (now >= p->lines[i].since + DELAY_SEC * SECOND)
                        return true;
        return p->n == 0;
}

void progress_show(Progress *p, uint32_t done, uint32_t total, uint64_t deadline) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC), next;
        char age[SUFFIX_MAX], until[PROGRESS_TIME_MAX] = "", count[SUFFIX_MAX] = "";
        _cleanup_free_ char *text = NULL;
        struct winsize size;

        if (!p->shows || now < p->next)
                return;
        next = format_age(p->since, now, age);
        p->next = p->n == 0 ? next : UINT64_MAX;
        p->drawn = now;
        size = size_of_terminal();
        print_up(p);
        print_devices(p, now, size);
        if (total > 0)
                (void) snprintf(count, sizeof(count), "[%" PRIu32 "/%" PRIu32 "]", MIN(done + 1, total), total);
        if (any_takes_long(p, now))
                (void) progress_until(deadline, until);
        text = string_format("%s%s%s", count, p->n == 0 ? age : "", until);
        print_line(text ?: "", "", size.ws_col);
        fputs(ERASE_BELOW, stdout);
        p->n_shown++;
        (void) fflush(stdout);
}
