/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Writes a picture as SVG: boxes, lines of text and groups. Uses only attributes, because many SVG viewers ignore style
 * sheets, scripts and embedded fonts. Coordinates are whole pixels, so that equal input gives equal bytes. */

#include <libxml/xmlwriter.h>
#include <stdbool.h>
#include <stdio.h>

#include "util/cleanup.h"

typedef struct Picture {
        xmlBuffer *elements;
        xmlTextWriter *writer; /* writes the elements */
        bool failed;           /* out of memory: picture_write() will fail */
} Picture;

/* Begins a picture. Returns 0 or -ENOMEM; the caller calls picture_done() in both cases. */
int picture_init(Picture *p);
void picture_done(Picture *p);
#define _cleanup_picture_ _cleanup_(picture_done)

typedef struct Box {
        int x, y, width, height; /* pixels */
} Box;

/* SVG colours of a box. line: of the border; NULL: no border. radius: of the corners, in pixels. */
typedef struct Look {
        const char *fill, *line;
        int radius;
} Look;

typedef enum Align {
        ALIGN_LEFT,
        ALIGN_MIDDLE,
        ALIGN_RIGHT,
} Align;

typedef struct Font {
        int size; /* pixels */
        bool bold;
        Align align; /* x is the left end, the middle, or the right end of the text */
        const char *colour;
} Font;

void picture_box(Picture *p, Box box, const Look *look);
/* Writes a line of text, whose baseline is at y. Text wider than width is cut, with an ellipsis at its end. */
void picture_text(Picture *p, int x, int y, int width, const Font *font, const char *format, ...) _printf_(6, 7);
/* Writes text that is wrapped at width; baselines are line_height apart. Returns the number of lines. If `draw` is
 * false, only counts the lines. */
int picture_paragraph(Picture *p, int x, int y, int width, int line_height, const Font *font, const char *text,
                      bool draw);

/* Begins a group, which picture_end() ends. Viewers show the title of the group, the formatted text, as a tooltip. */
void picture_begin(Picture *p, const char *format, ...) _printf_(2, 3);
void picture_end(Picture *p);

/* Writes the document to f. Afterwards only picture_done() may be called. Returns 0; -ENOMEM, and then nothing was
 * written; or another negative errno. */
int picture_write(Picture *p, FILE *f, int width, int height, const char *title);
