/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Draws the matrix of distances: a table of coloured words, its legend, and notes on peer-to-peer access. */
#include <stdio.h>

#include "topology-svg.h"
#include "util/strings.h"

#define MATRIX_MAX  64U
#define LABEL_WIDTH 52
#define CELL_WIDTH  44
#define CELL_HEIGHT 20
#define NUMA_WIDTH  100
#define DIGIT_WIDTH 7 /* estimated width of a digit in a list of CPUs */
#define LINE        17
#define NOTES_WIDTH 320
#define NOTE_WIDTH  604 /* the least width of a column of notes, if there are several columns */

static const Font cell_font = { 11, false, ALIGN_MIDDLE, "#1f2328" };
static const Font head_font = { 10, true, ALIGN_MIDDLE, "#1f2328" };

static const char *colour_of(const char *word) {
        static const struct {
                const char *word, *colour;
        } colours[] = {
                { "NVL", "#8fd9e8" }, { "PIX", "#aceebb" },  { "PXB", "#d2f4d9" },
                { "PHB", "#fff1b8" }, { "NODE", "#ffe2c2" }, { "SYS", "#f5d3d3" },
        };

        for (size_t i = 0; i < ELEMENTSOF(colours); i++)
                if (streq(word, colours[i].word))
                        return colours[i].colour;
        return "#eaeef2";
}

/* Returns the pair of these two devices, in either order; NULL when the matrix has none. */
static json_object *pair_of(json_object *matrix, const Member *a, const Member *b) {
        for (size_t i = 0; i < member_length(matrix, "pairs"); i++) {
                json_object *pair = member_at(matrix, "pairs", i);
                const char *gpu = reply_cell(pair, "gpu"), *peer = reply_cell(pair, "peer");

                if ((streq(gpu, a->item->address) && streq(peer, b->item->address)) ||
                    (streq(gpu, b->item->address) && streq(peer, a->item->address)))
                        return pair;
        }
        return NULL;
}

static void draw_cell(Drawing *d, const Member *a, const Member *b, Box box) {
        const char *word = matrix_distance(d->matrix, a, b);
        bool near = streq(word, "PIX") || streq(word, "PXB");

        picture_box(&d->picture, box, &(Look) { colour_of(word), "#ffffff", 0 });
        picture_text(&d->picture, box.x + box.width / 2, box.y + 14, box.width, &cell_font, "%s%s", a == b ? "" : word,
                     near && pair_is_redirected(pair_of(d->matrix, a, b)) ? "*" : "");
}

static int cpus_width(const Members *m) {
        return (int) m->cpus_width * DIGIT_WIDTH + 16;
}

/* Draws the two cells about affinity in one row. nvidia-smi topo -m also has them after the distances. */
static void draw_affinity(Drawing *d, const char *cpus, const char *numa, const Font *font, int x, int y) {
        int width = cpus_width(&d->members);

        picture_text(&d->picture, x + width / 2, y + 14, width, font, "%s", cpus);
        picture_text(&d->picture, x + width + NUMA_WIDTH / 2, y + 14, NUMA_WIDTH, font, "%s", numa);
}

static void draw_table(Drawing *d, Spot s) {
        const Members *m = &d->members;
        int affinity = s.x + LABEL_WIDTH + (int) m->n * CELL_WIDTH;

        draw_affinity(d, CPU_AFFINITY, NUMA_AFFINITY, &head_font, affinity, s.y);
        for (size_t i = 0; i < m->n; i++) {
                int y = s.y + ((int) i + 1) * CELL_HEIGHT;

                picture_text(&d->picture, s.x + LABEL_WIDTH + (int) i * CELL_WIDTH + CELL_WIDTH / 2, s.y + 14,
                             CELL_WIDTH, &head_font, "%s", m->all[i].label);
                picture_text(&d->picture, s.x + LABEL_WIDTH / 2, y + 14, LABEL_WIDTH, &head_font, "%s",
                             m->all[i].label);
                for (size_t j = 0; j < m->n; j++)
                        draw_cell(d, &m->all[i], &m->all[j],
                                  (Box) { s.x + LABEL_WIDTH + (int) j * CELL_WIDTH, y, CELL_WIDTH, CELL_HEIGHT });
                draw_affinity(d, m->all[i].cpus, m->all[i].numa, &cell_font, affinity, y);
        }
}

static int place_words(Drawing *d, Spot s) {
        /* Leave out the word "X", the distance of a device to itself, because such a cell stays empty. */
        for (size_t i = 1; s.draw && i < DISTANCE_WORDS; i++) {
                int y = s.y + ((int) i - 1) * (CELL_HEIGHT + 2);

                picture_box(&d->picture, (Box) { s.x, y, CELL_WIDTH, CELL_HEIGHT },
                            &(Look) { colour_of(distance_words[i].word), NULL, 0 });
                picture_text(&d->picture, s.x + CELL_WIDTH / 2, y + 14, CELL_WIDTH, &cell_font, "%s",
                             distance_words[i].word);
                picture_text(&d->picture, s.x + CELL_WIDTH + 10, y + 14, s.width - CELL_WIDTH - 10, &svg_text, "%s",
                             distance_words[i].meaning);
        }
        return ((int) DISTANCE_WORDS - 1) * (CELL_HEIGHT + 2) + 10;
}

static int place_line(Drawing *d, const char *text, Spot s) {
        return picture_paragraph(&d->picture, s.x, s.y + 11, s.width, LINE - 2, &svg_small, text, s.draw) * (LINE - 2) +
               4;
}

/* Places the notes on pairs without direct peer-to-peer access. Returns the height. */
static int place_pairs(Drawing *d, const Notes *notes, Spot s) {
        Columns c = columns_of(s, NOTE_WIDTH, SVG_GAP);

        for (size_t i = 0; i < notes->n; i++) {
                const Note *note = &notes->all[i];
                _cleanup_free_ char *text =
                        string_format("%s%s: %s", note->redirected ? "* " : "", note->pairs, note->text);

                if (text)
                        columns_grow(&c, place_line(d, text, columns_next(&c)));
                d->picture.failed = d->picture.failed || !text;
        }
        return columns_height(&c);
}

/* Places the legend and then the notes. Returns the height. */
static int place_notes(Drawing *d, Spot s) {
        _cleanup_notes_ Notes notes;
        int at = place_words(d, s);

        if (notes_init(&notes, &d->members, d->matrix) < 0)
                d->picture.failed = true;
        if (notes.n == 0)
                return at;
        at += place_pairs(d, &notes, svg_below(s, at));
        return at + place_line(d, "Settings for direct access: passthroughctl topology --json.", svg_below(s, at));
}

int svg_matrix_width(const Drawing *d) {
        const Members *m = &d->members;

        return m->n < 2 || m->n > MATRIX_MAX ? 0 : LABEL_WIDTH + (int) m->n * CELL_WIDTH + cpus_width(m) + NUMA_WIDTH;
}

int svg_matrix(Drawing *d, Spot s) {
        const Members *m = &d->members;
        int table = svg_matrix_width(d), notes_x = s.x + table + SVG_GAP, height = ((int) m->n + 1) * CELL_HEIGHT;
        bool beside = s.x + s.width - notes_x >= NOTES_WIDTH;
        Spot notes = { beside ? notes_x : s.x, s.y + 30, 0, s.draw };

        if (m->n < 2)
                return 0;
        if (s.draw)
                picture_text(&d->picture, s.x, s.y + 14, s.width, &svg_heading, "Distances");
        if (m->n > MATRIX_MAX) {
                if (s.draw)
                        picture_text(&d->picture, s.x, s.y + 40, s.width, &svg_text,
                                     "%zu GPUs, accelerators and NICs are too many for a table here: passthroughctl "
                                     "topology --matrix prints it.",
                                     m->n);
                return 50;
        }
        notes.width = beside ? s.x + s.width - notes_x : s.width;
        notes.y += beside ? 0 : height + SVG_GAP;
        if (s.draw)
                draw_table(d, (Spot) { s.x, s.y + 26, table, true });
        return 30 + (beside ? MAX(height, place_notes(d, notes)) : height + SVG_GAP + place_notes(d, notes));
}
