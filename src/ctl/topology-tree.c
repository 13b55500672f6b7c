/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The devices of one NUMA node as a tree. Bridges above a single child are left out; the VFs of a PF share one line. */
#include <errno.h>
#include <stdio.h>

#include "topology.h"
#include "util/strings.h"

/* Deeper than any real machine; devices below this depth are not drawn. */
#define DEPTH_MAX 64U

static int64_t section_of(json_object *device) {
        int64_t node;

        if (streq_ptr(reply_text(device, "state"), "missing"))
                return SECTION_MISSING;
        return reply_number(device, "numa_node", &node) && node >= 0 ? node : SECTION_UNKNOWN;
}

/* Devices are listed depth first, so the parent is the previous device or one of its ancestors. */
static Item *find_above(Item *previous, const char *address) {
        while (previous && address && !streq(previous->address, address))
                previous = previous->above;
        return address ? previous : NULL;
}

/* A device on a root bus begins a new root complex when its "root" differs from that of the last root complex. */
static Item *find_root(Items *items, const Item *item) {
        Item *last = items->n_roots > 0 ? &items->roots[items->n_roots - 1] : NULL;
        const char *name = reply_text(item->device, "root");

        if (item->above)
                return item->above->root;
        if (!last || !streq_ptr(last->address, name)) {
                last = &items->roots[items->n_roots++];
                last->address = name;
        }
        return last;
}

int items_init(Items *items, json_object *node) {
        size_t n = reply_length(node, "devices");

        *items = (Items){ .all = calloc(n + 1, sizeof(Item)), .roots = calloc(n + 1, sizeof(Item)) };
        if (!items->all || !items->roots)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                Item *item = &items->all[i];

                item->device = reply_element(node, "devices", i);
                item->address = reply_cell(item->device, "address");
                item->section = section_of(item->device);
                item->is_bridge = streq_ptr(reply_text(item->device, "kind"), "bridge");
                item->is_vf = streq_ptr(reply_text(item->device, "type"), "vf");
                item->above = find_above(i > 0 ? item - 1 : NULL, reply_text(item->device, "above"));
                item->root = find_root(items, item);
                if (item->is_bridge && item->above)
                        item->above->has_bridges = true;
        }
        items->n = n;
        return 0;
}

void items_done(Items *items) {
        free(items->all);
        free(items->roots);
}

/* All items in the list are functions of one slot. */
static bool is_one_card(const Item *first) {
        size_t n = strcspn(first->address, ".");

        for (const Item *i = first; i; i = i->next)
                if (i->is_bridge || strncmp(i->address, first->address, n + 1) != 0)
                        return false;
        return true;
}

static bool is_of_interest(const Item *item) {
        return !item->is_bridge &&
               (!streq_ptr(reply_text(item->device, "kind"), "platform") || reply_text(item->device, "pool") ||
                !streq_ptr(reply_text(item->device, "state"), "host"));
}

/* Prepends a list of items, in its order, to the children. */
static void prepend_children(Item *above, Item *list) {
        Item *last = list;

        while (last->next)
                last = last->next;
        last->next = above->child;
        above->child = list;
}

/* Goes through the items in reverse, so that the children of a bridge are linked before the bridge. */
void items_link(Items *items, int64_t section, bool all) {
        for (size_t i = 0; i < items->n; i++)
                items->all[i].child = items->all[i].next = NULL;
        for (size_t i = 0; i < items->n_roots; i++)
                items->roots[i].child = NULL;
        for (size_t i = items->n; i-- > 0;) {
                Item *item = &items->all[i], *above = item->above ? item->above : item->root;
                bool wanted = item->section == section && (all || is_of_interest(item));

                if (!all && item->is_bridge && item->child && (!item->child->next || is_one_card(item->child)))
                        prepend_children(above, item->child);
                else if (wanted || item->child)
                        prepend_children(above, item);
        }
}

/* Skips the vendor, with which names begin: "Advanced Micro Devices, Inc. [AMD] ". */
static const char *skip_vendor(const char *name) {
        static const char *const ends[] = {
                " Corporation ", " Technologies ", " Inc. ", " Ltd. ", " Ltd ", " and subsidiaries ",
        };
        const char *after;

        for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
                const char *at = strstr(name, ends[i]);

                /* Keep the last space of the match: the next one may begin with it. */
                if (at)
                        name = at + strlen(ends[i]) - 1;
        }
        name += *name == ' ';
        after = *name == '[' ? strstr(name, "] ") : NULL;
        return after ? after + 2 : name;
}

char *device_short_name(json_object *device) {
        const char *name = reply_text(device, "name"), *kind = reply_text(device, "kind"), *open;
        char *text = NULL;
        size_t n;

        if (!name) {
                (void) string_replace(&text, "%s:%s", reply_cell(device, "vendor"), reply_cell(device, "device"));
                return text;
        }
        name = skip_vendor(name);
        n = strlen(name);
        open = strrchr(name, '[');
        /* For a GPU or NIC the brackets have the product, "GH100 [H100 SXM5 80GB]"; for others a mode, for example. */
        if (open && name[n - 1] == ']' && (streq_ptr(kind, "gpu") || streq_ptr(kind, "nic")))
                return strndup(open + 1, n - 2 - (size_t) (open - name));
        return strdup(name);
}

static Tint tint_of(const char *state, const char *pool) {
        if (streq(state, "available"))
                return TINT_GREEN;
        if (streq(state, "allocated"))
                return TINT_YELLOW;
        if (streq(state, "host"))
                return pool ? TINT_NONE : TINT_DIM;
        return TINT_RED;
}

static void draw_device(const Item *item, const char *lead, Grid *g) {
        _cleanup_free_ char *name = device_short_name(item->device);
        const char *state = reply_cell(item->device, "state");
        const char *cells[GRID_COLUMNS] = {
                item->address, reply_cell(item->device, "pool"), state, reply_cell(item->device, "allocation"), name,
        };

        if (!name)
                g->failed = true;
        else
                grid_row(g, tint_of(state, reply_text(item->device, "pool")), lead, cells);
}

/* Counts the VFs in that state that are in no allocation; write_holders() counts the others. */
static size_t count_state(const Item *vfs, const char *state) {
        size_t n = 0;

        for (const Item *vf = vfs; vf; vf = vf->next)
                n += !reply_text(vf->device, "allocation") && streq_ptr(reply_text(vf->device, "state"), state);
        return n;
}

/* Writes "12 available, 1 stuck". */
static void write_states(FILE *f, const Item *vfs) {
        size_t available = count_state(vfs, "available"), others = 0;

        if (available > 0)
                fprintf(f, "%zu available", available);
        for (const Item *vf = vfs; vf; vf = vf->next) {
                const char *state = reply_text(vf->device, "state");

                /* Write each state once, at its last VF. */
                if (!state || streq(state, "available") || reply_text(vf->device, "allocation") ||
                    count_state(vf->next, state) > 0)
                        continue;
                fprintf(f, "%s%zu %s", available + others++ > 0 ? ", " : "", count_state(vfs, state), state);
        }
        if (available + others == 0)
                fputs("0 available", f);
}

/* Writes "4 in vm7, vm9". */
static void write_holders(FILE *f, const Item *vfs) {
        size_t n = 0, named = 0;

        for (const Item *vf = vfs; vf; vf = vf->next)
                n += !!reply_text(vf->device, "allocation");
        if (n == 0) {
                fputs("-", f);
                return;
        }
        fprintf(f, "%zu in ", n);
        for (const Item *vf = vfs; vf; vf = vf->next) {
                const char *holder = reply_text(vf->device, "allocation");
                bool seen = !holder;

                for (const Item *v = vfs; v != vf && !seen; v = v->next)
                        seen = streq_ptr(reply_text(v->device, "allocation"), holder);
                if (!seen)
                        fprintf(f, "%s%s", named++ > 0 ? ", " : "", holder);
        }
}

/* NULL when out of memory. */
static char *vfs_text(const Item *vfs, void (*write)(FILE *f, const Item *vfs)) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        write(f, vfs);
        if (fclose(f) == 0)
                return text;
        free(text);
        return NULL;
}

char *vfs_states(const Item *vfs) {
        return vfs_text(vfs, write_states);
}

char *vfs_holders(const Item *vfs) {
        return vfs_text(vfs, write_holders);
}

const char *vfs_pool(const Item *vfs) {
        const char *pool = reply_cell(vfs->device, "pool");

        for (const Item *vf = vfs; vf; vf = vf->next)
                if (!streq(reply_cell(vf->device, "pool"), pool))
                        return "several";
        return pool;
}

bool item_begins_vfs(const Item *item) {
        return item->is_vf && item->above && !item->above->is_bridge;
}

static void draw_vfs(const Item *vfs, const char *lead, Grid *g) {
        _cleanup_free_ char *states = vfs_states(vfs), *holders = vfs_holders(vfs);
        bool available = false;
        char label[32];
        size_t n = 0;

        for (const Item *vf = vfs; vf; vf = vf->next, n++)
                available = available || streq_ptr(reply_text(vf->device, "state"), "available");
        (void) snprintf(label, sizeof(label), "%zu VF%s", n, PLURAL(n));
        if (!states || !holders)
                g->failed = true;
        else
                grid_row(g,
                         available           ? TINT_GREEN
                         : holders[0] != '-' ? TINT_YELLOW
                                             : TINT_DIM,
                         lead, (const char *const[GRID_COLUMNS]){ label, vfs_pool(vfs), states, holders, "" });
}

static void draw_list(const Item *list, bool all, const char *lead, unsigned depth, Grid *g);

const char *bridge_word(const Item *item) {
        if (!item->above)
                return "root port";
        return item->has_bridges ? "switch" : "bridge";
}

static void draw_item(const Item *item, bool all, bool last, const char *lead, unsigned depth, Grid *g) {
        _cleanup_free_ char *here = grid_branch(g, lead, last, false), *below = grid_branch(g, lead, last, true);

        if (!here || !below) {
                g->failed = true;
                return;
        }
        if (item->is_bridge && !all)
                grid_text(g, TINT_NONE, here, "%s %s", bridge_word(item), item->address);
        else
                draw_device(item, here, g);
        if (item->child && depth < DEPTH_MAX)
                draw_list(item->child, all, below, depth + 1, g);
}

static void draw_list(const Item *list, bool all, const char *lead, unsigned depth, Grid *g) {
        for (const Item *item = list; item; item = item->next) {
                if (item_begins_vfs(item) && !all) {
                        _cleanup_free_ char *here = grid_branch(g, lead, true, false);

                        if (here)
                                draw_vfs(item, here, g);
                        g->failed = g->failed || !here;
                        return;
                }
                draw_item(item, all, !item->next, lead, depth, g);
        }
}

const char *root_name(const Item *root) {
        const char *slash = root->address ? strrchr(root->address, '/') : NULL;

        return slash ? slash + 1 : root->address ? root->address : "root complex unknown";
}

static void draw_root(const Item *root, bool all, Grid *g) {
        const Item *only = root->child->next ? NULL : root->child;

        if (only && only->is_bridge && !all) {
                grid_text(g, TINT_NONE, "", "%s, %s %s", root_name(root), only->has_bridges ? "switch" : "bridge",
                          only->address);
                draw_list(only->child, all, "", 0, g);
        } else {
                grid_text(g, TINT_NONE, "", "%s", root_name(root));
                draw_list(root->child, all, "", 0, g);
        }
}

void items_draw(Items *items, int64_t section, bool all, Grid *g) {
        bool any = false;

        items_link(items, section, all);
        for (size_t i = 0; i < items->n_roots; i++) {
                const Item *root = &items->roots[i];

                if (!root->child)
                        continue;
                if (!any)
                        grid_header(g);
                any = true;
                if (section == SECTION_MISSING)
                        draw_list(root->child, all, "", 0, g);
                else
                        draw_root(root, all, g);
        }
}
