/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Draws root complexes, switches and devices as nested boxes. The box of a PF contains one box for all its VFs. */
#include <stdio.h>

#include "topology-svg.h"
#include "util/strings.h"
#include "view.h"

#define COLUMN_MIN 300 /* the least width of a column of boxes */
#define HEADER     22  /* height of the title in a box with other boxes inside */
#define CARD_LEFT  14
#define CARD_BELOW 8 /* space below the last line of text */
#define BELOW      8 /* space below a box and between boxes */
#define INSET      8
#define LINE       15
/* Below this depth a bridge has no box for the devices below it, because the boxes would be too narrow. */
#define DEPTH_MAX  5U

const Font svg_title = { 20, true, ALIGN_LEFT, "#1f2328" };
const Font svg_heading = { 15, true, ALIGN_LEFT, "#1f2328" };
const Font svg_text = { 12, false, ALIGN_LEFT, "#1f2328" };
const Font svg_strong = { 12, true, ALIGN_LEFT, "#1f2328" };
const Font svg_small = { 11, false, ALIGN_LEFT, "#1f2328" };
const Font svg_small_strong = { 11, true, ALIGN_LEFT, "#1f2328" };
const Font svg_dim = { 12, false, ALIGN_LEFT, "#57606a" };

static const Look root_look = { "#f6f8fa", "#8c959f", 6 };
static const Look bridge_look = { "#e7ecf2", "#afb8c1", 4 };

const UseLook svg_use_looks[_USE_MAX] = {
        [USE_AVAILABLE] = { { "#dafbe1", "#4ac26b", 4 }, "#116329" },
        [USE_ALLOCATED] = { { "#fff8c5", "#d4a72c", 4 }, "#7d4e00" },
        [USE_HOST] = { { "#ffffff", "#d0d7de", 4 }, "#57606a" },
        [USE_NONE] = { { "#ffebe9", "#ff8182", 4 }, "#a40e26" },
};

static Spot inside(Spot s, int height) {
        return (Spot) { s.x + INSET, s.y + height, s.width - 2 * INSET, s.draw };
}

static bool is_allocated(const Item *vfs) {
        for (const Item *vf = vfs; vf; vf = vf->next)
                if (reply_text(vf->device, "allocation"))
                        return true;
        return false;
}

/* Returns the height of the box of the VFs. The box has a line with the number and the states of the VFs, and if some
 * VFs are in allocations, a line that names the allocations. */
static int vfs_height(const Item *vfs) {
        return is_allocated(vfs) ? 2 * LINE + 6 : LINE + 4;
}

static void draw_vfs(Drawing *d, const Item *vfs, Spot s) {
        _cleanup_free_ char *states = vfs_states(vfs), *holders = vfs_holders(vfs);
        bool held = is_allocated(vfs);
        size_t n = 0;

        for (const Item *vf = vfs; vf; vf = vf->next)
                n++;
        d->picture.failed = d->picture.failed || !states || !holders;
        picture_begin(&d->picture, "%zu VFs of %s, pool %s: %s%s%s", n, vfs->above->address, vfs_pool(vfs),
                      states ? states : "", held ? ", " : "", held && holders ? holders : "");
        picture_box(&d->picture, (Box) { s.x, s.y, s.width, vfs_height(vfs) }, &svg_use_looks[vfs_use(vfs)].look);
        picture_text(&d->picture, s.x + 6, s.y + 13, s.width - 12, &svg_small, "%zu VF%s \u00b7 %s \u00b7 %s", n,
                     PLURAL(n), vfs_pool(vfs), states ? states : "");
        if (held)
                picture_text(&d->picture, s.x + 6, s.y + 13 + LINE, s.width - 12,
                             &(Font) { svg_small_strong.size, true, ALIGN_LEFT, svg_use_looks[USE_ALLOCATED].strong },
                             "%s", holders ? holders : "");
        picture_end(&d->picture);
}

static void draw_title(Drawing *d, const Item *item, const char *state, const char *pool) {
        const char *holder = reply_text(item->device, "allocation"), *driver = reply_text(item->device, "driver");

        picture_begin(&d->picture, "%s %s, pool %s, %s%s%s%s%s", item->address, reply_cell(item->device, "name"),
                      pool ? pool : "none", state, holder ? ", in allocation " : "", holder ? holder : "",
                      driver ? ", driver " : "", driver ? driver : "");
}

/* Returns the device's name and link: "H100 SXM5 80GB (nvidia0), PCIe 4x8 of 5x16". A line does not break within the
 * link. Returns only the name if the link is unknown. The caller frees; NULL when out of memory. */
static char *name_and_link(json_object *device) {
        _cleanup_free_ char *name = device_short_name(device), *link = view_link_short(device), *text = NULL;

        if (!name || !link || streq(link, "-"))
                return link ? TAKE_PTR(name) : NULL;
        if (string_replace(&text, "%s, PCIe", name) < 0)
                return NULL;
        for (char *rest = link, *word; (word = strsep(&rest, " "));)
                if (string_append(&text, "\u00a0", "%s", word) < 0)
                        return NULL;
        return TAKE_PTR(text);
}

/* Places the text of a card: the address, the name with the link, which is wrapped, and the state. Returns the y below
 * the text, which is the height if s.y is 0. */
static int place_lines(Drawing *d, const Item *item, Spot s) {
        _cleanup_free_ char *name = name_and_link(item->device);
        const char *state = reply_cell(item->device, "state"), *pool = reply_text(item->device, "pool"),
                   *holder = reply_text(item->device, "allocation");
        const Member *member = members_find(&d->members, item->address);
        Font strong = { svg_small_strong.size, true, ALIGN_LEFT, svg_use_looks[use_from_state(state)].strong };
        int y = s.y + 16 + LINE;

        d->picture.failed = d->picture.failed || !name;
        if (s.draw)
                picture_text(&d->picture, s.x, s.y + 16, s.width * 3 / 4, &svg_strong, "%s", item->address);
        y += LINE * picture_paragraph(&d->picture, s.x, y, s.width, LINE, &svg_small, name ?: "", s.draw);
        if (!s.draw)
                return y + CARD_BELOW;
        picture_text(&d->picture, s.x, y, holder ? s.width / 2 : s.width, &strong, "%s%s%s", pool ?: "",
                     pool ? " \u00b7 " : "", state);
        strong.align = ALIGN_RIGHT;
        if (holder)
                picture_text(&d->picture, s.x + s.width, y, s.width / 2, &strong, "%s", holder);
        strong.colour = svg_dim.colour;
        if (member)
                picture_text(&d->picture, s.x + s.width, s.y + 16, s.width / 4, &strong, "%s", member->label);
        return y + CARD_BELOW;
}

/* Draws the card of a device. lines: height of its text; height: of the whole card, with the box of its VFs. */
static void draw_card(Drawing *d, const Item *item, int lines, int height, Spot s) {
        const char *state = reply_cell(item->device, "state");
        const UseLook *look = &svg_use_looks[use_from_state(state)];

        draw_title(d, item, state, reply_text(item->device, "pool"));
        picture_box(&d->picture, (Box) { s.x, s.y, s.width, height }, &look->look);
        picture_box(&d->picture, (Box) { s.x + 3, s.y + 5, 4, lines - 12 }, &(Look) { look->strong, NULL, 2 });
        (void) place_lines(d, item, (Spot) { s.x + CARD_LEFT, s.y, s.width - CARD_LEFT - INSET, true });
        picture_end(&d->picture);
}

static int place_list(Drawing *d, const Item *list, unsigned depth, Spot s);

static int place_device(Drawing *d, const Item *item, Spot s) {
        const Item *vfs = item->child && item_begins_vfs(item->child) ? item->child : NULL;
        int lines = place_lines(d, item, (Spot) { .width = s.width - CARD_LEFT - INSET }),
            height = lines + (vfs ? vfs_height(vfs) + 4 : 0);

        if (s.draw)
                draw_card(d, item, lines, height, s);
        if (s.draw && vfs)
                draw_vfs(d, vfs, inside(s, lines));
        return height + BELOW;
}

static int place_bridge(Drawing *d, const Item *item, unsigned depth, Spot s) {
        int height = HEADER + place_list(d, item->child, depth + 1, (Spot) { .width = s.width - 2 * INSET });

        if (s.draw) {
                /* The title is the kind and the address of the bridge. */
                picture_box(&d->picture, (Box) { s.x, s.y, s.width, height }, &bridge_look);
                picture_text(&d->picture, s.x + INSET, s.y + 15, s.width - 2 * INSET, &svg_small_strong, "%s %s",
                             item->is_bridge ? bridge_word(item) : "device", item->address);
                (void) place_list(d, item->child, depth + 1, inside(s, HEADER));
        }
        return height + BELOW;
}

/* Places a bridge as a device, and the devices below the bridge under it. Returns the height. */
static int place_flat(Drawing *d, const Item *item, unsigned depth, Spot s) {
        int height = place_device(d, item, s);

        return height + place_list(d, item->child, depth, svg_below(s, height));
}

static int place_item(Drawing *d, const Item *item, unsigned depth, Spot s) {
        if (!item->child || item_begins_vfs(item->child))
                return place_device(d, item, s);
        return depth < DEPTH_MAX ? place_bridge(d, item, depth, s) : place_flat(d, item, depth, s);
}

/* Places the items one below the other. Returns the height. */
static int place_list(Drawing *d, const Item *list, unsigned depth, Spot s) {
        int height = 0;

        for (const Item *item = list; item; item = item->next)
                height += place_item(d, item, depth, svg_below(s, height));
        return height;
}

static int place_wide_list(Drawing *d, const Item *list, Spot s) {
        Columns c = columns_of(s, COLUMN_MIN, BELOW);

        for (const Item *item = list; item; item = item->next)
                columns_grow(&c, place_item(d, item, 0, columns_next(&c)));
        return columns_height(&c);
}

static int place_below_root(Drawing *d, const Item *root, bool wide, Spot s) {
        return wide ? place_wide_list(d, root->child, s) : place_list(d, root->child, 0, s);
}

static int place_root(Drawing *d, const Item *root, bool wide, Spot s) {
        int height = HEADER + place_below_root(d, root, wide, (Spot) { .width = s.width - 2 * INSET });

        if (s.draw) {
                picture_box(&d->picture, (Box) { s.x, s.y, s.width, height }, &root_look);
                picture_text(&d->picture, s.x + INSET, s.y + 15, s.width - 2 * INSET, &svg_small_strong,
                             root->address ? "root complex %s" : "%s", root_name(root));
                (void) place_below_root(d, root, wide, inside(s, HEADER));
        }
        return height + BELOW;
}

/* Returns the only root complex that has devices in the current section; NULL when there are several, or none. */
static const Item *only_root(const Items *items) {
        const Item *found = NULL;

        for (size_t i = 0; i < items->n_roots; i++) {
                if (!items->roots[i].child)
                        continue;
                if (found)
                        return NULL;
                found = &items->roots[i];
        }
        return found;
}

int svg_devices(Drawing *d, int64_t section, Spot s) {
        Columns c = columns_of(s, COLUMN_MIN, BELOW);
        const Item *only;

        items_link(&d->items, section, d->all);
        only = only_root(&d->items);
        /* A single root complex with several children gets the full width. */
        if (only && only->child->next)
                return place_root(d, only, true, s);
        for (size_t i = 0; i < d->items.n_roots; i++)
                if (d->items.roots[i].child)
                        columns_grow(&c, place_root(d, &d->items.roots[i], false, columns_next(&c)));
        return columns_height(&c);
}
