/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Draws one NUMA node as a box: the use of its cores and memory, and its devices. */
#include <inttypes.h>
#include <stdio.h>

#include "topology-svg.h"
#include "util/strings.h"
#include "words.h"

#define HEAD          26
#define LINE          20
#define LABEL_WIDTH   96
#define BAR_WIDTH     140
#define BAR_HEIGHT    12
#define PARTS_MAX     4U
#define SECTION_SLACK 6 /* of the gap below the last box */

static const Look section_look = { "#ffffff", "#57606a", 8 };
static const Look bar_look = { "#ffffff", "#8c959f", 0 };

/* A coloured part of a bar, such as the free cores. */
typedef struct Part {
        const char *word;
        const char *fill;
        uint64_t amount;
        char shown[24]; /* the amount as text */
} Part;

typedef struct Gauge {
        char label[40];
        uint64_t total;
        Part parts[PARTS_MAX];
        size_t n;
} Gauge;

#define FREE      "#4ac26b"
#define ALLOCATED "#d4a72c"
#define HOST      "#afb8c1"
#define IN_PAGES  "#6e7781"

static void add_count(Gauge *g, const char *word, const char *fill, uint64_t amount) {
        Part *part = &g->parts[g->n++];

        *part = (Part) { .word = word, .fill = fill, .amount = amount };
        (void) snprintf(part->shown, sizeof(part->shown), "%" PRIu64, amount);
}

static void add_bytes(Gauge *g, const char *word, const char *fill, uint64_t amount) {
        Part *part = &g->parts[g->n++];

        *part = (Part) { .word = word, .fill = fill, .amount = amount };
        (void) snprintf(part->shown, sizeof(part->shown), "%s", size_round(amount).text);
}

static void draw_bar(Picture *p, const Gauge *g, int x, int y) {
        uint64_t before = 0;

        picture_box(p, (Box) { x, y, BAR_WIDTH, BAR_HEIGHT }, &bar_look);
        for (size_t i = 0; i < g->n && g->total > 0; i++) {
                uint64_t end = MIN(before + g->parts[i].amount, g->total);
                int from = (int) ((double) before / (double) g->total * BAR_WIDTH),
                    to = (int) ((double) end / (double) g->total * BAR_WIDTH);

                if (to > from)
                        picture_box(p, (Box) { x + from, y, to - from, BAR_HEIGHT },
                                    &(Look) { g->parts[i].fill, NULL, 0 });
                before = end;
        }
}

/* Draws a bar and the text "423 free, 200 allocated". The first two parts are shown even when they are 0. */
static int place_gauge(Drawing *d, const Gauge *g, Spot s) {
        _cleanup_free_ char *text = NULL;
        int x = s.x + LABEL_WIDTH + BAR_WIDTH + 12;

        if (!s.draw)
                return LINE;
        for (size_t i = 0; i < g->n; i++)
                if ((i < 2 || g->parts[i].amount > 0) &&
                    string_append(&text, ", ", "%s %s", g->parts[i].shown, g->parts[i].word) < 0)
                        d->picture.failed = true;
        picture_text(&d->picture, s.x, s.y + 11, LABEL_WIDTH - 4, &svg_text, "%s", g->label);
        draw_bar(&d->picture, g, s.x + LABEL_WIDTH, s.y + 1);
        picture_text(&d->picture, x, s.y + 11, s.x + s.width - x, &svg_small, "%s", g->total > 0 ? text : "none");
        return LINE;
}

static int place_cores(Drawing *d, json_object *node, Spot s) {
        json_object *cpus = reply_member(node, "cpus");
        Gauge g = { .total = number_of(reply_member(cpus, "total"), "cores") };

        (void) snprintf(g.label, sizeof(g.label), "%" PRIu64 " cores", g.total);
        add_count(&g, "free", FREE, number_of(reply_member(cpus, "free"), "cores"));
        add_count(&g, "allocated", ALLOCATED, number_of(reply_member(cpus, "allocated"), "cores"));
        add_count(&g, "housekeeping", HOST, number_of(reply_member(cpus, "housekeeping"), "cores"));
        return place_gauge(d, &g, s);
}

static int place_memory(Drawing *d, json_object *node, Spot s) {
        json_object *memory = reply_member(node, "memory");
        uint64_t ordinary = number_of(memory, "total"), available = number_of(memory, "free"),
                 allocated = number_of(memory, "allocated");
        Gauge g = { .total = number_of(node, "memory_total") };

        (void) snprintf(g.label, sizeof(g.label), "%s GiB", size_round(g.total).text);
        add_bytes(&g, "free", FREE, available);
        add_bytes(&g, "allocated", ALLOCATED, allocated);
        add_bytes(&g, "in hugepages", IN_PAGES, g.total - MIN(g.total, ordinary));
        add_bytes(&g, "for the host", HOST, ordinary - MIN(ordinary, available + allocated));
        return place_gauge(d, &g, s);
}

static int place_pages(Drawing *d, json_object *node, Spot s) {
        int height = 0;

        for (size_t i = 0; i < reply_length(node, "pages"); i++) {
                json_object *pages = reply_element(node, "pages", i);
                Gauge g = { .total = number_of(pages, "total") };
                uint64_t available = number_of(pages, "free"), allocated = number_of(pages, "allocated");

                if (g.total == 0)
                        continue;
                (void) snprintf(g.label, sizeof(g.label), "%" PRIu64 " \u00d7 %s", g.total,
                                FORMAT_SIZE(number_of(pages, "size")));
                add_count(&g, "free", FREE, available);
                add_count(&g, "allocated", ALLOCATED, allocated);
                add_count(&g, "used by others", HOST, g.total - MIN(g.total, available + allocated));
                height += place_gauge(d, &g, (Spot) { s.x, s.y + height, s.width, s.draw });
        }
        return height;
}

/* Text that is wrapped, not cut. */
static int place_paragraph(Drawing *d, const char *text, const Font *font, Spot s) {
        return picture_paragraph(&d->picture, s.x, s.y + 11, s.width, LINE - 4, font, text, s.draw) * (LINE - 4) + 4;
}

static int place_cpus(Drawing *d, json_object *node, Spot s) {
        const char *cpus = reply_text(reply_member(reply_member(node, "cpus"), "total"), "cpus");
        _cleanup_free_ char *list = cpus_shorten(cpus ?: ""), *text = NULL;

        if (!list || string_append(&text, "", "CPUs %s", cpus && *cpus ? list : "none") < 0)
                d->picture.failed = true;
        return text ? place_paragraph(d, text, &svg_text, s) : 0;
}

static int place_distances(Drawing *d, json_object *node, const char *id, Spot s) {
        _cleanup_free_ char *list = NULL, *text = NULL;

        if (node_distances(node, id, &list) < 0 || (list && string_append(&text, "", "distance %s", list) < 0))
                d->picture.failed = true;
        return text ? place_paragraph(d, text, &svg_dim, s) : 0;
}

/* The head of the box: name, CPUs, and distances to the other nodes. */
static int place_head(Drawing *d, json_object *node, Spot s) {
        char id[24], package[40] = "";
        int at = HEAD;
        int64_t n;

        (void) snprintf(id, sizeof(id), "%" PRIu64, number_of(node, "id"));
        if (reply_number(node, "package", &n))
                (void) snprintf(package, sizeof(package), ", socket %" PRId64, n);
        if (s.draw)
                picture_text(&d->picture, s.x, s.y + 14, s.width, &svg_heading, "NUMA node %s%s", id, package);
        at += place_cpus(d, node, svg_below(s, at));
        return at + place_distances(d, node, id, svg_below(s, at));
}

static int place_offers(Drawing *d, int64_t section, Spot s) {
        _cleanup_free_ char *text = NULL;

        if (items_offers(&d->items, section, &text) < 0)
                d->picture.failed = true;
        if (!text)
                return 0;
        if (s.draw)
                picture_text(&d->picture, s.x, s.y + 11, s.width, &svg_strong, "Available: %s", text);
        return LINE + 4;
}

/* The content of a section, in its box. */
static int place_content(Drawing *d, json_object *node, int64_t section, Spot s) {
        char title[SECTION_TITLE_MAX];
        int at = 28;

        if (node) {
                at = place_head(d, node, s);
                at += place_cores(d, node, svg_below(s, at));
                at += place_memory(d, node, svg_below(s, at));
                at += place_pages(d, node, svg_below(s, at));
                at += 4;
        } else if (s.draw)
                picture_text(&d->picture, s.x, s.y + 14, s.width, &svg_heading, "%s", section_title(section, title));
        at += place_offers(d, section, svg_below(s, at));
        return at + svg_devices(d, section, svg_below(s, at));
}

int svg_section(Drawing *d, json_object *node, int64_t section, Spot s) {
        int width = s.width - 2 * SVG_PAD, height = place_content(d, node, section, (Spot) { .width = width });

        height += 2 * SVG_PAD - SECTION_SLACK;
        if (s.draw) {
                picture_box(&d->picture, (Box) { s.x, s.y, s.width, height }, &section_look);
                (void) place_content(d, node, section, (Spot) { s.x + SVG_PAD, s.y + SVG_PAD, width, true });
        }
        return height;
}
