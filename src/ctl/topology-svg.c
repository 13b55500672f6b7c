/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl topology --svg: writes a picture of the node. The page has a title, a key of the colours, the NUMA
 * nodes in two columns, and the matrix. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "report.h"
#include "topology-svg.h"
#include "util/strings.h"

#define COLUMNS     2
#define HEADER      66
#define FOOTER      20
#define TITLE_MAX   256U
#define DEVICES_MAX 4096U

/* Places the NUMA nodes; each takes the column that is shortest so far. */
static int place_nodes(Drawing *d, int y) {
        int ends[COLUMNS];

        for (size_t i = 0; i < COLUMNS; i++)
                ends[i] = y;
        for (size_t i = 0; i < reply_length(d->node, "nodes"); i++) {
                json_object *node = reply_element(d->node, "nodes", i);
                size_t column = 0;

                for (size_t j = 1; j < COLUMNS; j++)
                        if (ends[j] < ends[column])
                                column = j;
                ends[column] += SVG_GAP + svg_section(d, node, (int64_t) number_of(node, "id"),
                                                      (Spot) { SVG_MARGIN + (int) column * (SVG_NODE_WIDTH + SVG_GAP),
                                                               ends[column], SVG_NODE_WIDTH, true });
        }
        for (size_t i = 0; i < COLUMNS; i++)
                y = MAX(y, ends[i]);
        return y;
}

/* Places the devices that are on none of these nodes. */
static int place_others(Drawing *d, int width, int y) {
        int64_t section = INT64_MIN;

        while (items_next_section(&d->items, d->node, &section))
                y += SVG_GAP + svg_section(d, NULL, section, (Spot) { SVG_MARGIN, y, width, true });
        return y;
}

static void draw_key(Picture *p, int x, int y) {
        static const char *const states[] = { "available", "allocated", "host", "not usable now" };

        for (size_t i = 0; i < ELEMENTSOF(states); i++) {
                const StateLook *look = svg_state_look(states[i]);

                picture_box(p, (Box) { x, y, 16, 16 }, &look->look);
                picture_box(p, (Box) { x + 3, y + 3, 4, 10 }, &(Look) { look->strong, NULL, 2 });
                picture_text(p, x + 22, y + 12, 120, &svg_text, "%s", states[i]);
                x += 110;
        }
}

/* Sets the title: the node that --node names, else this host. */
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

/* As wide as one NUMA node, if that is all that there is. */
static int sections_width(Drawing *d) {
        int64_t section = INT64_MIN;

        return reply_length(d->node, "nodes") < COLUMNS && !items_next_section(&d->items, d->node, &section)
                       ? SVG_NODE_WIDTH
                       : COLUMNS * SVG_NODE_WIDTH + SVG_GAP;
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

        *d = (Drawing) { .node = node, .matrix = reply_member(node, "matrix"), .all = args_has(args, OPTION_ALL) };
        r = picture_init(&d->picture);
        if (r >= 0)
                r = items_init(&d->items, node);
        if (r >= 0 && d->matrix)
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
        /* main() reports a failure to write to standard output. */
        if (streq(file, "-")) {
                r = picture_write(&d.picture, stdout, width, height, name);
                return r == -ENOMEM ? report_errno(args, r, "Cannot draw") : 0;
        }
        r = write_file(&d, file, width, height, name);
        return r < 0 ? report_failure(args, NULL, "Cannot write %s: %s.", file, strerror(-r)) : 0;
}
