/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The width of standard output, and text wrapped at it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "page.h"
#include "util/strings.h"

#define WIDTH_DEFAULT 80U
#define WIDTH_MAX     4096U

size_t page_width(void) {
        const char *columns = getenv("COLUMNS");
        struct winsize size = { 0 };
        uint64_t n;

        if (columns && parse_unsigned(columns, WIDTH_MAX, &n) >= 0 && n > 0)
                return (size_t) n;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) >= 0 && size.ws_col > 0)
                return size.ws_col;
        return WIDTH_DEFAULT;
}

/* The columns of n bytes of UTF-8; each character counts as one. */
static size_t count_columns(const char *s, size_t n) {
        size_t columns = 0;

        for (size_t i = 0; i < n; i++)
                columns += (s[i] & 0xc0) != 0x80;
        return columns;
}

void page_wrap(const char *text, size_t used, size_t indent) {
        size_t width = page_width(), n;
        bool first = true;

        for (; *text; text += n + strspn(text + n, " ")) {
                size_t columns;

                n = strcspn(text, " ");
                columns = count_columns(text, n);
                if (!first && used + 1 + columns > width) {
                        printf("\n%*s", (int) indent, "");
                        used = indent;
                } else if (!first) {
                        putchar(' ');
                        used++;
                }
                (void) fwrite(text, 1, n, stdout);
                used += columns;
                first = false;
        }
        putchar('\n');
}
