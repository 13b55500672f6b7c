/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables and trees on stdout: a thin layer over libsmartcols. */
#include <errno.h>
#include <stdio.h>

#include "page.h"
#include "report.h"
#include "table.h"
#include "view.h"

/* Returns true when colours may be used. A NO_COLOR that is not empty forbids them (https://no-color.org/). */
static bool wants_colour(void) {
        const char *no_colour = getenv("NO_COLOR");

        return isatty(STDOUT_FILENO) && (!no_colour || !*no_colour);
}

#define WIDE_MIN 100U

bool table_is_narrow(void) {
        return isatty(STDOUT_FILENO) && page_width() < WIDE_MIN;
}

/* Returns how many columns a byte of UTF-8 adds. If the locale has no multibyte characters, libsmartcols prints a byte
 * that is not ASCII as "\xc3". */
static size_t count_columns(char c) {
        if ((unsigned char) c < 0x80)
                return 1;
        return MB_CUR_MAX == 1 ? strlen("\\xc3") : (c & 0xc0) != 0x80;
}

static size_t cell_width(const struct libscols_column *column _unused_, const char *data, void *userdata _unused_) {
        size_t columns = 0;

        for (; *data; data++)
                columns += count_columns(*data);
        return columns;
}

/* Ends the line at the last space that fits into the column, or if there is none, at the last comma. A NUL replaces
 * that character, so it is lost. Returns the start of the next line; NULL at the end. libsmartcols 2.41 also calls this
 * before the column has a width, to measure the text. Then the whole text counts as one line. */
static char *next_line(const struct libscols_column *column, char *data, void *userdata _unused_) {
        size_t width = scols_column_get_width(column), used = 0;
        char *space = NULL, *comma = NULL;

        if (width == 0)
                return NULL;
        for (char *c = data; c && *c; c++) {
                if (*c == ' ')
                        space = c;
                else if (*c == ',')
                        comma = c;
                used += count_columns(*c);
                if (used > width && (space || comma)) {
                        char *end = space ?: comma;

                        *end = '\0';
                        return end + 1;
                }
        }
        return NULL;
}

/* Returns true when the column is wrapped. Columns are wrapped only on a terminal, because since 2.40 libsmartcols
 * narrows a wrapped column for other outputs too. */
static bool is_wrapped(const Column *c) {
        return c->wrapped && isatty(STDOUT_FILENO);
}

static int column_flags(const Column *c) {
        bool hidden = c->wide && table_is_narrow();

        /* Before 2.40, libsmartcols narrows a column with a wrap function only if the column has SCOLS_FL_TRUNC. */
        return (c->right ? SCOLS_FL_RIGHT : 0) | (c->cut || is_wrapped(c) ? SCOLS_FL_TRUNC : 0) |
               (is_wrapped(c) ? SCOLS_FL_WRAP : 0) | (c->tree ? SCOLS_FL_TREE : 0) | (hidden ? SCOLS_FL_HIDDEN : 0);
}

void table_init(Table *t, const Column *columns, size_t n) {
        *t = (Table) { .scols = scols_new_table(), .columns = columns };
        t->failed = !t->scols || scols_table_enable_colors(t->scols, wants_colour()) < 0 ||
                    scols_table_set_termwidth(t->scols, page_width()) < 0;
        for (size_t i = 0; !t->failed && i < n; i++) {
                struct libscols_column *c =
                        scols_table_new_column(t->scols, columns[i].name, 0, column_flags(&columns[i]));

                t->failed = !c ||
                            (is_wrapped(&columns[i]) && scols_column_set_wrapfunc(c, cell_width, next_line, NULL) < 0);
        }
}

void table_done(Table *t) {
        scols_unref_table(t->scols);
}

struct libscols_line *table_add_below(Table *t, struct libscols_line *above, const char *colour,
                                      const char *const *cells) {
        struct libscols_line *line = t->failed ? NULL : scols_table_new_line(t->scols, above);

        t->failed = !line || scols_line_set_color(line, colour) < 0;
        for (size_t i = 0; !t->failed && i < scols_table_get_ncols(t->scols); i++)
                t->failed = !cells[i] || scols_line_set_data(line, i, cells[i]) < 0;
        t->n++;
        return t->failed ? NULL : line;
}

void table_add(Table *t, const char *const *cells) {
        (void) table_add_below(t, NULL, NULL, cells);
}

/* Sets a cell to the value of the column's member in o, or to the result of its text(). Elements of an array are
 * separated by spaces. Returns 0 or a negative errno. */
static int set_cell(struct libscols_line *line, size_t i, json_object *o, const Column *column) {
        const char *key = column->key;
        _cleanup_free_ char *words = NULL;

        if (!key) {
                words = column->text(o);
                return words ? scols_line_set_data(line, i, words) : -ENOMEM;
        }
        if (member_length(o, key) == 0)
                return scols_line_set_data(
                        line, i, json_object_is_type(member(o, key), json_type_array) ? "-" : reply_cell(o, key));
        words = view_join(o, key, " ");
        return words ? scols_line_set_data(line, i, words) : -ENOMEM;
}

void table_add_object(Table *t, json_object *o) {
        struct libscols_line *line = t->failed ? NULL : scols_table_new_line(t->scols, NULL);

        t->failed = !line;
        for (size_t i = 0; !t->failed && i < scols_table_get_ncols(t->scols); i++)
                t->failed = set_cell(line, i, o, &t->columns[i]) < 0;
        t->n++;
}

int table_print(Table *t, const Args *args, const char *empty) {
        if (t->failed)
                return report_errno(args, -ENOMEM, "Cannot print");
        if (t->n == 0) {
                if (empty)
                        page_wrap(stderr, empty, 0, 0);
                return 0;
        }
        return scols_print_table(t->scols) < 0 ? report_errno(args, -EIO, "Cannot print") : 0;
}

int table_print_array(const Args *args, const Column *columns, size_t n, json_object *array, const char *empty) {
        _cleanup_table_ Table t;

        table_init(&t, columns, n);
        for (size_t i = 0; i < json_length(array); i++)
                table_add_object(&t, json_at(array, i));
        return table_print(&t, args, empty);
}
