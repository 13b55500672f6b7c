/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl topology --svg: writes a picture of the node. The page has a title, a key to the colours, the NUMA
 * nodes in two columns, below them the other sections, and the matrix. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "report.h"
#include "topology-svg.h"
#include "util/strings.h"
#include "words.h"

#define HEAD          26
#define LINE          20
#define LABEL_WIDTH   104
#define BAR_WIDTH     120
#define BAR_HEIGHT    12
#define SECTION_SLACK 6 /* subtracted from a section's height, because a gap is below the last box in it */

static const Look section_look = { "#ffffff", "#57606a", 8 };
static const Look bar_look = { "#ffffff", "#8c959f", 0 };

static const char *const share_colours[] = {
        [SHARE_FREE] = "#4ac26b", [SHARE_ALLOCATED] = "#d4a72c", [SHARE_OTHER] = "#afb8c1", [SHARE_PAGES] = "#6e7781"
};

Spot svg_below(Spot s, int height) {
        s.y += height;
        return s;
}

Columns columns_of(Spot s, int min, int gap) {
        int n = MIN(MAX((s.width + gap) / (min + gap), 1), SVG_COLUMNS_MAX);

        return (Columns) { .all = s, .n = n, .width = (s.width - (n - 1) * gap) / n, .gap = gap };
}

Spot columns_next(Columns *c) {
        c->column = 0;
        for (int i = 1; i < c->n; i++)
                if (c->heights[i] < c->heights[c->column])
                        c->column = i;
        return (Spot) { c->all.x + c->column * (c->width + c->gap), c->all.y + c->heights[c->column], c->width,
                        c->all.draw };
}

void columns_grow(Columns *c, int height) {
        c->heights[c->column] += height;
}

int columns_height(const Columns *c) {
        int height = 0;

        for (int i = 0; i < c->n; i++)
                height = MAX(height, c->heights[i]);
        return height;
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
                                    &(Look) { share_colours[g->parts[i].share], NULL, 0 });
                before = end;
        }
}

/* Places the gauges, each with a label, a bar and a text. Returns the height. */
static int place_gauges(Drawing *d, json_object *node, Spot s) {
        int x = s.x + LABEL_WIDTH + BAR_WIDTH + 12, at = 0;
        Gauge gauges[GAUGES_MAX];
        size_t n = node_gauges(node, gauges);

        for (const Gauge *g = gauges; g < gauges + n; g++, at += LINE) {
                _cleanup_free_ char *text = gauge_text(g);
                int y = s.y + at;

                d->picture.failed = d->picture.failed || !text;
                if (!s.draw)
                        continue;
                picture_text(&d->picture, s.x, y + 11, LABEL_WIDTH - 4, &svg_text, "%s%s", g->amount,
                             g == gauges ? " cores" : "");
                draw_bar(&d->picture, g, s.x + LABEL_WIDTH, y + 1);
                picture_text(&d->picture, x, y + 11, s.x + s.width - x, &svg_small, "%s", text);
        }
        return at;
}

/* Places text, which is wrapped and not cut. Returns the height. */
static int place_paragraph(Drawing *d, const char *text, const Font *font, Spot s) {
        return picture_paragraph(&d->picture, s.x, s.y + 11, s.width, LINE - 4, font, text, s.draw) * (LINE - 4) + 4;
}

static int place_cpus(Drawing *d, json_object *node, Spot s) {
        const char *cpus = reply_text(member(member(node, "cpus"), "total"), "cpus");
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

/* Places the head of a NUMA node: its name, its CPUs, and the distances to other nodes. Returns the height. */
static int place_head(Drawing *d, json_object *node, Spot s) {
        char id[24], package[40] = "";
        int at = HEAD;
        int64_t n;

        (void) snprintf(id, sizeof(id), "%" PRIu64, member_size(node, "id"));
        if (JSON_READ_INTEGER(node, "package", INT64_MAX, &n) >= 0)
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

/* Places the content of a section's box. node: the NUMA node of the section, or NULL. Returns the height. */
static int place_content(Drawing *d, json_object *node, int64_t section, Spot s) {
        char title[SECTION_TITLE_MAX];
        int at = 28;

        if (node) {
                at = place_head(d, node, s);
                at += place_gauges(d, node, svg_below(s, at)) + 4;
        } else if (s.draw)
                picture_text(&d->picture, s.x, s.y + 14, s.width, &svg_heading, "%s", section_title(section, title));
        at += place_offers(d, section, svg_below(s, at));
        return at + svg_devices(d, section, svg_below(s, at));
}

/* Places the box of a section, which is as high as its content. node: the NUMA node of the section, or NULL. Returns
 * the height. */
static int place_section(Drawing *d, json_object *node, int64_t section, Spot s) {
        int width = s.width - 2 * SVG_PAD, height = place_content(d, node, section, (Spot) { .width = width });

        height += 2 * SVG_PAD - SECTION_SLACK;
        if (s.draw) {
                picture_box(&d->picture, (Box) { s.x, s.y, s.width, height }, &section_look);
                (void) place_content(d, node, section, (Spot) { s.x + SVG_PAD, s.y + SVG_PAD, width, true });
        }
        return height;
}

#define COLUMNS        2
#define SECTIONS_WIDTH (COLUMNS * SVG_NODE_WIDTH + SVG_GAP)
#define HEADER         66
#define FOOTER         20
#define TITLE_MAX      256U
#define DEVICES_MAX    4096U

static int place_nodes(Drawing *d, int y) {
        Columns c = columns_of((Spot) { SVG_MARGIN, y, SECTIONS_WIDTH, true }, SVG_NODE_WIDTH, SVG_GAP);

        for (size_t i = 0; i < member_length(d->node, "nodes"); i++) {
                json_object *node = member_at(d->node, "nodes", i);

                if (!node_is_empty(&d->items, node))
                        columns_grow(&c, place_section(d, node, (int64_t) member_size(node, "id"), columns_next(&c)) +
                                                 SVG_GAP);
        }
        return y + columns_height(&c);
}

/* Places the sections that are not NUMA nodes. Returns the y below them. */
static int place_others(Drawing *d, int width, int y) {
        int64_t section = INT64_MIN;

        while (items_next_section(&d->items, d->node, &section))
                y += SVG_GAP + place_section(d, NULL, section, (Spot) { SVG_MARGIN, y, width, true });
        return y;
}

static void draw_key(Picture *p, int x, int y) {
        static const char *const uses[_USE_MAX] = { "available", "allocated", "host", "not usable now" };

        for (Use use = 0; use < _USE_MAX; use++) {
                const UseLook *look = &svg_use_looks[use];

                picture_box(p, (Box) { x, y, 16, 16 }, &look->look);
                picture_box(p, (Box) { x + 3, y + 3, 4, 10 }, &(Look) { look->strong, NULL, 2 });
                picture_text(p, x + 22, y + 12, 120, &svg_text, "%s", uses[use]);
                x += 110;
        }
}

/* Formats the title of the page: "Topology of NAME", where NAME is the recorded node (--node), else this host. Leaves
 * out a NAME that is not printable. */
static void name_node(const Args *args, char name[static TITLE_MAX]) {
        const char *node = args->text[OPTION_NODE];

        if (node) {
                const char *slash = strrchr(node, '/');

                (void) snprintf(name, TITLE_MAX, "Topology of %s", slash && slash[1] ? slash + 1 : node);
        } else {
                char self[128] = "";

                (void) gethostname(self, sizeof(self) - 1);
                (void) snprintf(name, TITLE_MAX, "Topology of %s", self);
        }
        if (!text_is_clean(name))
                (void) snprintf(name, TITLE_MAX, "Topology");
}

/* Returns the width of the sections: that of one NUMA node if the host has no second node and no other section, else
 * that of two columns. */
static int sections_width(Drawing *d) {
        int64_t section = INT64_MIN;

        return member_length(d->node, "nodes") < COLUMNS && !items_next_section(&d->items, d->node, &section)
                       ? SVG_NODE_WIDTH
                       : SECTIONS_WIDTH;
}

static void draw_page(Drawing *d, const char *name, int *ret_width, int *ret_height) {
        int sections = sections_width(d), width = MAX(sections, svg_matrix_width(d)), y;

        picture_text(&d->picture, SVG_MARGIN, SVG_MARGIN + 12, width, &svg_title, "%s", name);
        draw_key(&d->picture, SVG_MARGIN, SVG_MARGIN + 24);
        y = place_nodes(d, SVG_MARGIN + HEADER - 10);
        y = place_others(d, sections, y);
        y += svg_matrix(d, (Spot) { SVG_MARGIN, y, width, true });
        *ret_width = width + 2 * SVG_MARGIN;
        *ret_height = y + FOOTER;
}

static size_t count_devices(const Items *items) {
        size_t n = 0;

        for (size_t i = 0; i < items->n; i++)
                n += !items->all[i].is_vf;
        return n;
}

static int drawing_init(Drawing *d, const Args *args, json_object *node) {
        int r;

        *d = (Drawing) { .node = node, .matrix = member(node, "matrix"), .all = args_has(args, OPTION_ALL) };
        r = picture_init(&d->picture);
        if (r < 0)
                return r;
        r = items_init(&d->items, node);
        if (r < 0)
                return r;
        if (d->matrix)
                r = members_init(&d->members, &d->items, node, d->all);
        return r;
}

static void drawing_done(Drawing *d) {
        picture_done(&d->picture);
        members_done(&d->members);
        items_done(&d->items);
}

static int write_file(Drawing *d, const char *file, int width, int height, const char *name) {
        FILE *f = fopen(file, "we");
        int r;

        if (!f)
                return -errno;
        r = picture_write(&d->picture, f, width, height, name);
        return fclose(f) != 0 && r >= 0 ? -errno : r;
}

int svg_print(const Args *args, json_object *node) {
        const char *file = args->text[OPTION_SVG];
        _cleanup_(drawing_done) Drawing d;
        char name[TITLE_MAX];
        int r = drawing_init(&d, args, node), width, height;

        if (r < 0)
                return report_errno(args, r, "Cannot draw");
        if (count_devices(&d.items) > DEVICES_MAX)
                return report_failure(
                        args, NULL,
                        "There are %zu devices, not counting VFs: too many for a picture. 'passthroughctl "
                        "topology' prints them.",
                        count_devices(&d.items));
        name_node(args, name);
        draw_page(&d, name, &width, &height);
        /* A failure to write to standard output is reported by main(). */
        if (streq(file, "-")) {
                r = picture_write(&d.picture, stdout, width, height, name);
                return r == -ENOMEM ? report_errno(args, r, "Cannot draw") : 0;
        }
        r = write_file(&d, file, width, height, name);
        return r < 0 ? report_failure(args, NULL, "Cannot write %s: %s.", file, strerror(-r)) : 0;
}
