/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A picture as SVG text: boxes, lines of text and groups. All in attributes, no style sheet, no script, no font of its
 * own: many programs that show pictures leave such things out. Whole pixels, so that the same is always the same.
 */

#include <stdbool.h>
#include <stdio.h>

#include "util/cleanup.h"

typedef struct Picture {
        FILE *f;    /* of the body */
        char *body; /* whole when f is closed */
        size_t size;
        bool failed; /* out of memory: something is missing */
} Picture;

/* 0 or -ENOMEM. */
int picture_init(Picture *p);
void picture_done(Picture *p);
#define _cleanup_picture_ _cleanup_(picture_done)

typedef struct Box {
        int x, y, width, height;
} Box;

/* Colours as SVG names them. line NULL: no border. */
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
        int size;
        bool bold;
        Align align; /* what x means */
        const char *colour;
} Font;

void picture_box(Picture *p, Box box, const Look *look);
/* y is the line that letters stand on. What is wider than width is cut, with an ellipsis. */
void picture_text(Picture *p, int x, int y, int width, const Font *font, const char *format, ...) _printf_(6, 7);
/* Text in as many lines as it takes, line_height apart. Returns how many. draw false: only counts. */
int picture_paragraph(Picture *p, int x, int y, int width, int line_height, const Font *font, const char *text,
                      bool draw);

/* What is drawn until picture_end() belongs together; title is what a viewer says of it, in full. */
void picture_begin(Picture *p, const char *format, ...) _printf_(2, 3);
void picture_end(Picture *p);

/* The whole document, NUL-terminated, which the caller frees; the picture ends with it. 0 or -ENOMEM. */
int picture_finish(Picture *p, int width, int height, const char *title, char **ret, size_t *ret_size);
