/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes SVG elements. */
#include <errno.h>
#include <libxml/entities.h>
#include <stdarg.h>
#include <string.h>

#include "picture.h"
#include "util/strings.h"

#define FAMILY   "DejaVu Sans, Verdana, Arial, sans-serif"
#define ELLIPSIS "\u2026"

int picture_init(Picture *p) {
        *p = (Picture) { .elements = xmlBufferCreate() };
        p->writer = p->elements ? xmlNewTextWriterMemory(p->elements, 0) : NULL;
        /* Begin a line for each element, without indentation. */
        if (!p->writer || xmlTextWriterSetIndent(p->writer, 1) < 0 ||
            xmlTextWriterSetIndentString(p->writer, (const xmlChar *) "") < 0)
                return -ENOMEM;
        return 0;
}

void picture_done(Picture *p) {
        xmlFreeTextWriter(p->writer);
        xmlBufferFree(p->elements);
}

static void begin(Picture *p, const char *element) {
        p->failed |= xmlTextWriterStartElement(p->writer, (const xmlChar *) element) < 0;
}

static void end(Picture *p) {
        p->failed |= xmlTextWriterEndElement(p->writer) < 0;
}

static _printf_(3, 4) void set(Picture *p, const char *attribute, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        p->failed |= xmlTextWriterWriteVFormatAttribute(p->writer, (const xmlChar *) attribute, format, ap) < 0;
        va_end(ap);
}

/* Escapes the first n bytes, and writes them as content of the element. xmlTextWriterWriteString() is not used, because
 * it would drop them without an error when out of memory. */
static void put(Picture *p, const char *s, size_t n) {
        _cleanup_free_ char *text = strndup(s, n);
        xmlChar *escaped = text ? xmlEncodeSpecialChars(NULL, (const xmlChar *) text) : NULL;

        p->failed |= !escaped || xmlTextWriterWriteRaw(p->writer, escaped) < 0;
        xmlFree(escaped);
}

void picture_box(Picture *p, Box box, const Look *look) {
        begin(p, "rect");
        set(p, "x", "%d", box.x);
        set(p, "y", "%d", box.y);
        set(p, "width", "%d", box.width);
        set(p, "height", "%d", box.height);
        set(p, "fill", "%s", look->fill);
        if (look->line)
                set(p, "stroke", "%s", look->line);
        if (look->radius > 0)
                set(p, "rx", "%d", look->radius);
        end(p);
}

static size_t character_size(const char *s) {
        size_t n = 1;

        while ((s[n] & 0xc0) == 0x80)
                n++;
        return n;
}

/* Returns the width of a character in hundredths of a pixel. It is an estimate, because the viewer chooses the font. */
static int character_width(const char *s, const Font *font) {
        int each = font->bold ? 68 : 61;

        /* Characters from U+3000 on (CJK and later; lead byte 0xe3) count as double width. */
        return font->size * ((unsigned char) *s >= 0xe3 ? 2 * each : each);
}

/* Returns how many bytes of s, in whole characters, fit into width pixels. If not all fit, leaves room for an
 * ellipsis. */
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

/* Writes the first n bytes of s as a line of text. cut: an ellipsis follows. */
static void put_line(Picture *p, int x, int y, const Font *font, const char *s, size_t n, bool cut) {
        static const char *const anchors[] = { [ALIGN_MIDDLE] = "middle", [ALIGN_RIGHT] = "end" };

        begin(p, "text");
        set(p, "x", "%d", x);
        set(p, "y", "%d", y);
        set(p, "font-size", "%d", font->size);
        set(p, "fill", "%s", font->colour);
        if (font->bold)
                set(p, "font-weight", "bold");
        if (font->align != ALIGN_LEFT)
                set(p, "text-anchor", "%s", anchors[font->align]);
        put(p, s, n);
        if (cut)
                put(p, ELLIPSIS, strlen(ELLIPSIS));
        end(p);
}

void picture_text(Picture *p, int x, int y, int width, const Font *font, const char *format, ...) {
        _cleanup_free_ char *text = FORMAT_ARGUMENTS(format);
        size_t n = text ? fitting_size(text, width, font) : 0;

        p->failed |= !text;
        if (text)
                put_line(p, x, y, font, text, n, text[n]);
}

/* Returns how many bytes of s make the first line. If s is wider than width pixels, the line ends before the last space
 * that fits. A word that is longer than a line is broken. */
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

                if (draw)
                        put_line(p, x, y + lines * line_height, font, text, n, false);
                lines++;
                text += n;
                text += strspn(text, " ");
        }
        return lines;
}

static void put_title(Picture *p, const char *title) {
        begin(p, "title");
        put(p, title, strlen(title));
        end(p);
}

void picture_begin(Picture *p, const char *format, ...) {
        _cleanup_free_ char *text = FORMAT_ARGUMENTS(format);

        p->failed |= !text;
        begin(p, "g");
        put_title(p, text ?: "");
}

void picture_end(Picture *p) {
        end(p);
}

/* Makes in `page` the whole document, with the elements of p. Returns 0 or -ENOMEM; the caller calls picture_done(page)
 * in both cases. */
static int make_page(Picture *page, Picture *p, int width, int height, const char *title) {
        int r = picture_init(page);

        if (r < 0)
                return r;
        page->failed |= xmlTextWriterStartDocument(page->writer, NULL, "UTF-8", NULL) < 0;
        begin(page, "svg");
        set(page, "xmlns", "http://www.w3.org/2000/svg");
        set(page, "width", "%d", width);
        set(page, "height", "%d", height);
        set(page, "viewBox", "0 0 %d %d", width, height);
        set(page, "role", "img");
        set(page, "font-family", FAMILY);
        put_title(page, title);
        picture_box(page, (Box) { 0, 0, width, height }, &(Look) { "#ffffff", NULL, 0 });
        p->failed |= xmlTextWriterFlush(p->writer) < 0;
        page->failed |= xmlTextWriterWriteRaw(page->writer, xmlBufferContent(p->elements)) < 0;
        end(page); /* also fails if an xmlTextWriterStartElement() ran out of memory, which does not return an error */
        page->failed |= xmlTextWriterEndDocument(page->writer) < 0;
        return !p->failed && !page->failed ? 0 : -ENOMEM;
}

int picture_write(Picture *p, FILE *f, int width, int height, const char *title) {
        _cleanup_picture_ Picture page;
        int r = make_page(&page, p, width, height, title);

        if (r < 0)
                return r;
        return fputs((const char *) xmlBufferContent(page.elements), f) < 0 || fflush(f) != 0 ? -errno : 0;
}
