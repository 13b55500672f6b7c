/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of text and rows of columns, cut to the width of the terminal. */
#include <errno.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "grid.h"
#include "util/strings.h"

#define GAP       2U  /* columns between cells */
#define WIDTH_MIN 40U /* lines are at least this wide, even on a narrower terminal */

static const char *const tints[_TINT_MAX] = {
        [TINT_BOLD] = "\033[1m",    [TINT_DIM] = "\033[2m",  [TINT_GREEN] = "\033[32m",
        [TINT_YELLOW] = "\033[33m", [TINT_RED] = "\033[31m",
};

void grid_init(Grid *g) {
        struct winsize size = { 0 };
        const char *no_colour = getenv("NO_COLOR");
        bool terminal = isatty(STDOUT_FILENO);

        *g = (Grid){ .width = GRID_WIDTH, .utf8 = streq(nl_langinfo(CODESET), "UTF-8") };
        g->colour = terminal && (!no_colour || !*no_colour);
        if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
                g->width = MAX(size.ws_col, WIDTH_MIN);
}

static void line_done(GridLine *line) {
        free(line->lead);
        for (size_t i = 0; i < GRID_COLUMNS; i++)
                free(line->cells[i]);
}

void grid_done(Grid *g) {
        for (size_t i = 0; i < g->n; i++)
                line_done(&g->lines[i]);
        free(g->lines);
}

static GridLine *add_line(Grid *g, Tint tint, const char *lead) {
        GridLine *line;

        if (ARRAY_RESERVE(g->lines, g->n) < 0) {
                g->failed = true;
                return NULL;
        }
        line = &g->lines[g->n++];
        *line = (GridLine){ .tint = tint, .lead = strdup(lead) };
        g->failed = g->failed || !line->lead;
        return line;
}

void grid_text(Grid *g, Tint tint, const char *lead, const char *format, ...) {
        GridLine *line = add_line(g, tint, lead);
        va_list ap;

        if (!line)
                return;
        va_start(ap, format);
        line->cells[0] = string_vformat(format, ap);
        va_end(ap);
        if (!line->cells[0])
                g->failed = true;
}

void grid_row(Grid *g, Tint tint, const char *lead, const char *const *cells) {
        GridLine *line = add_line(g, tint, lead);

        for (size_t i = 0; line && i < GRID_COLUMNS; i++) {
                line->cells[i] = strdup(cells[i]);
                g->failed = g->failed || !line->cells[i];
        }
}

void grid_header(Grid *g) {
        grid_row(g, TINT_DIM, "", (const char *const[GRID_COLUMNS]){ "DEVICE", "POOL", "STATE", "ALLOCATION", "NAME" });
}

char *grid_branch(const Grid *g, const char *lead, bool last, bool below) {
        static const char *const branches[2][2][2] = {
                { { "|-", "| " }, { "`-", "  " } },
                { { "\u251c\u2500", "\u2502 " }, { "\u2514\u2500", "  " } },
        };
        char *text;

        return asprintf(&text, "%s%s", lead, branches[g->utf8][last][below]) < 0 ? NULL : text;
}

/* Decodes the first character of s: *ret and *ret_size are the bytes to print, "?" for one that the locale cannot
 * print. Returns its width in columns. */
static size_t next_character(const char *s, mbstate_t *state, const char **ret, size_t *ret_size) {
        wchar_t c;
        size_t n = mbrtowc(&c, s, MB_CUR_MAX, state);
        int width = n == (size_t) -1 || n == (size_t) -2 || n == 0 ? -1 : wcwidth(c);

        if (width < 0) {
                *state = (mbstate_t){ 0 };
                *ret = "?";
                *ret_size = 1;
                return 1;
        }
        *ret = s;
        *ret_size = n;
        return (size_t) width;
}

static size_t text_width(const char *s) {
        mbstate_t state = { 0 };
        size_t width = 0, size;
        const char *c;

        for (; *s; s += size)
                width += next_character(s, &state, &c, &size);
        return width;
}

/* Prints at most width columns of s. Returns the number of columns printed. */
static size_t put_text(const Grid *g, const char *s, size_t width) {
        const char *dots = g->utf8 ? "\u2026" : "...", *c;
        size_t n_dots = g->utf8 ? 1 : 3, used = 0, size;
        bool cut = text_width(s) > width;
        mbstate_t state = { 0 };

        if (cut && width < n_dots)
                return 0;
        for (; *s; s += size) {
                size_t n = next_character(s, &state, &c, &size);

                if (used + n > width - (cut ? n_dots : 0))
                        break;
                (void) fwrite(c, 1, size, stdout);
                used += n;
        }
        if (cut)
                (void) fputs(dots, stdout);
        return used + (cut ? n_dots : 0);
}

static bool is_row(const GridLine *line) {
        return line->cells[1];
}

/* Each column is as wide as its widest cell. While the total exceeds the terminal, the columns are narrowed in the
 * order of steps, each to its minimum. */
static void find_widths(const Grid *g, size_t widths[static GRID_COLUMNS]) {
        static const struct {
                size_t column, min;
        } steps[] = { { 4, 20 }, { 3, 14 }, { 2, 14 }, { 1, 10 }, { 4, 12 },
                      { 3, 9 },  { 2, 9 },  { 1, 6 },  { 4, 3 },  { 0, 18 } };
        size_t total = GAP * (GRID_COLUMNS - 1);

        for (size_t c = 0; c < GRID_COLUMNS; c++) {
                widths[c] = 0;
                for (size_t i = 0; i < g->n; i++)
                        if (is_row(&g->lines[i]))
                                widths[c] = MAX(widths[c], text_width(g->lines[i].cells[c]) +
                                                                   (c == 0 ? text_width(g->lines[i].lead) : 0));
                total += widths[c];
        }
        for (size_t s = 0; s < ELEMENTSOF(steps) && total > g->width; s++) {
                size_t *width = &widths[steps[s].column], min = MIN(steps[s].min, *width);
                size_t cut = MIN(total - g->width, *width - min);

                *width -= cut;
                total -= cut;
        }
}

static size_t last_cell(const GridLine *line) {
        size_t last = GRID_COLUMNS - 1;

        while (last > 0 && (!line->cells[last] || !*line->cells[last]))
                last--;
        return last;
}

static void print_line(const Grid *g, const GridLine *line, const size_t widths[static GRID_COLUMNS]) {
        size_t last = last_cell(line), room = is_row(line) ? widths[0] : g->width, used = put_text(g, line->lead, room);
        const char *tint = g->colour ? tints[line->tint] : NULL;

        (void) fputs(tint ? tint : "", stdout);
        for (size_t c = 0; c <= last; c++) {
                size_t width = c == 0 ? room - used : widths[c];
                size_t n = put_text(g, line->cells[c], width);

                if (c < last)
                        printf("%*s", (int) (width - n + GAP), "");
        }
        puts(tint ? "\033[0m" : "");
}

int grid_print(const Grid *g) {
        size_t widths[GRID_COLUMNS];

        if (g->failed)
                return -ENOMEM;
        find_widths(g, widths);
        for (size_t i = 0; i < g->n; i++)
                print_line(g, &g->lines[i], widths);
        return 0;
}
