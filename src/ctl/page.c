/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The width of the terminal, and wrapping text to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "page.h"
#include "util/strings.h"

#define WIDTH_DEFAULT 80U
#define WIDTH_MAX     4096U

static size_t width_of(FILE *f) {
        const char *columns = getenv("COLUMNS");
        struct winsize size = { 0 };
        uint64_t n;

        if (columns && parse_unsigned(columns, WIDTH_MAX, &n) >= 0 && n > 0)
                return (size_t) n;
        if (ioctl(fileno(f), TIOCGWINSZ, &size) >= 0 && size.ws_col > 0)
                return size.ws_col;
        return WIDTH_DEFAULT;
}

size_t page_width(void) {
        return width_of(stdout);
}

/* Returns the number of columns that n bytes of UTF-8 take. Every character counts as one column. */
static size_t count_columns(const char *s, size_t n) {
        size_t columns = 0;

        for (size_t i = 0; i < n; i++)
                columns += (s[i] & 0xc0) != 0x80;
        return columns;
}

void page_wrap(FILE *f, const char *text, size_t used, size_t indent) {
        size_t width = f == stderr && !isatty(STDERR_FILENO) ? SIZE_MAX : width_of(f), spaces, n;

        for (bool first = true; *text; text += n, first = false) {
                size_t columns;

                spaces = strspn(text, " ");
                text += spaces;
                n = strcspn(text, " ");
                columns = count_columns(text, n);
                if (n == 0)
                        break;
                if (!first && used + spaces + columns > width) {
                        fprintf(f, "\n%*s", (int) indent, "");
                        used = indent + columns;
                } else {
                        fprintf(f, "%*s", (int) spaces, "");
                        used += spaces + columns;
                }
                (void) fwrite(text, 1, n, f);
        }
        (void) fputc('\n', f);
}

void page_print(FILE *f, size_t indent, const char *format, ...) {
        _cleanup_free_ char *text = FORMAT_ARGUMENTS(format);

        page_wrap(f, text ?: "Out of memory.", 0, indent);
}
