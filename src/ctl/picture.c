/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes SVG elements. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "picture.h"
#include "util/strings.h"

#define FAMILY   "DejaVu Sans, Verdana, Arial, sans-serif"
#define ELLIPSIS "\u2026"

int picture_init(Picture *p) {
        *p = (Picture) { 0 };
        p->f = open_memstream(&p->body, &p->size);
        return p->f ? 0 : -ENOMEM;
}

void picture_done(Picture *p) {
        if (p->f)
                (void) fclose(p->f);
        free(p->body);
}

/* Checks for U+FFFE and U+FFFF, which are valid UTF-8 but not allowed in XML. */
static bool is_noncharacter(const char *s) {
        return strncmp(s, "\xef\xbf\xbe", 3) == 0 || strncmp(s, "\xef\xbf\xbf", 3) == 0;
}

static void put_escaped(FILE *f, const char *s, size_t n) {
        for (const char *end = s + n; s < end; s++)
                switch (*s) {
                case '&':
                        fputs("&amp;", f);
                        break;
                case '<':
                        fputs("&lt;", f);
                        break;
                case '>':
                        fputs("&gt;", f);
                        break;
                case '"':
                        fputs("&quot;", f);
                        break;
                default:
                        if (is_noncharacter(s)) {
                                fputc('?', f);
                                s += 2;
                        } else
                                fputc(*s, f);
                }
}

void picture_box(Picture *p, Box box, const Look *look) {
        fprintf(p->f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"", box.x, box.y, box.width,
                box.height, look->fill);
        if (look->line)
                fprintf(p->f, " stroke=\"%s\"", look->line);
        if (look->radius > 0)
                fprintf(p->f, " rx=\"%d\"", look->radius);
        fputs("/>\n", p->f);
}

static size_t character_size(const char *s) {
        size_t n = 1;

        while ((s[n] & 0xc0) == 0x80)
                n++;
        return n;
}

/* Returns the width in hundredths of a pixel, an upper estimate, because the viewer chooses the font. */
static int character_width(const char *s, const Font *font) {
        int each = font->bold ? 68 : 61;

        /* UTF-8 characters with a lead byte from 0xe3 on (CJK and later) count as double width. */
        return font->size * ((unsigned char) *s >= 0xe3 ? 2 * each : each);
}

/* Returns how many bytes of s, in whole characters, fit into width pixels; if s is cut, with room for an ellipsis. */
static size_t fitting_size(const char *s, int width, const Font *font) {
        int used = 0, with_ellipsis = width * 100 - character_width(ELLIPSIS, font);
        size_t n = 0, cut = 0;

        while (s[n]) {
                used += character_width(s + n, font);
                if (used > width * 100)
                        return cut;
                n += character_size(s + n);
                if (used <= with_ellipsis)
                        cut = n;
        }
        return n;
}

static void put_line(Picture *p, int x, int y, const Font *font, const char *s, size_t n) {
        static const char *const anchors[] = {
                [ALIGN_LEFT] = "",
                [ALIGN_MIDDLE] = " text-anchor=\"middle\"",
                [ALIGN_RIGHT] = " text-anchor=\"end\"",
        };

        fprintf(p->f, "<text x=\"%d\" y=\"%d\" font-size=\"%d\" fill=\"%s\"%s%s>", x, y, font->size, font->colour,
                font->bold ? " font-weight=\"bold\"" : "", anchors[font->align]);
        put_escaped(p->f, s, n);
        fputs(s[n] ? ELLIPSIS "</text>\n" : "</text>\n", p->f);
}

/* Formats a text. NULL when out of memory, which sets p->failed. */
static _printf_(2, 0) char *format_text(Picture *p, const char *format, va_list ap) {
        char *text = string_vformat(format, ap);

        if (!text)
                p->failed = true;
        return text;
}

void picture_text(Picture *p, int x, int y, int width, const Font *font, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list ap;

        va_start(ap, format);
        text = format_text(p, format, ap);
        va_end(ap);
        if (text)
                put_line(p, x, y, font, text, fitting_size(text, width, font));
}

/* Returns the number of bytes in the first line: up to the last space that fits. Breaks a word that is longer than the
 * line. */
static size_t line_size(const char *s, int width, const Font *font) {
        size_t n = 0, space = 0;
        int used = 0;

        while (s[n]) {
                used += character_width(s + n, font);
                if (used > width * 100 && n > 0)
                        return space > 0 ? space : n;
                if (s[n] == ' ')
                        space = n;
                n += character_size(s + n);
        }
        return n;
}

int picture_paragraph(Picture *p, int x, int y, int width, int line_height, const Font *font, const char *text,
                      bool draw) {
        int lines = 0;

        while (*text) {
                size_t n = line_size(text, width, font);
                _cleanup_free_ char *line = strndup(text, n);

                if (!line)
                        p->failed = true;
                else if (draw)
                        put_line(p, x, y + lines * line_height, font, line, n);
                lines++;
                text += n;
                text += strspn(text, " ");
        }
        return lines;
}

void picture_begin(Picture *p, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list ap;

        va_start(ap, format);
        text = format_text(p, format, ap);
        va_end(ap);
        fputs("<g><title>", p->f);
        put_escaped(p->f, text ? text : "", text ? strlen(text) : 0);
        fputs("</title>\n", p->f);
}

void picture_end(Picture *p) {
        fputs("</g>\n", p->f);
}

int picture_write(Picture *p, FILE *f, int width, int height, const char *title) {
        bool failed = p->failed || ferror(p->f) || fflush(p->f) != 0;

        if (failed)
                return -ENOMEM;
        fprintf(f,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                "role=\"img\" font-family=\"" FAMILY "\">\n<title>",
                width, height, width, height);
        put_escaped(f, title, strlen(title));
        fprintf(f, "</title>\n<rect x=\"0\" y=\"0\" width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width, height);
        (void) fwrite(p->body, 1, p->size, f);
        fputs("</svg>\n", f);
        return fflush(f) != 0 ? -errno : 0;
}
