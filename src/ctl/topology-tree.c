/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sections of a node, each with its devices as a tree. Without --all, a bridge above a single child or a single
 * card is left out, and the VFs of a PF share one line. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "model/cpuset.h"
#include "table.h"
#include "topology.h"
#include "util/strings.h"
#include "view.h"
#include "words.h"

#define POOLS_MAX 64U

typedef struct Offer {
        const char *pool;
        size_t total, available;
} Offer;

Size size_round(uint64_t bytes) {
        uint64_t whole = bytes >> 30, tenths = (bytes & ((UINT64_C(1) << 30) - 1)) * 10 >> 30;
        Size s;

        if (whole >= 10 || bytes == whole << 30)
                (void) snprintf(s.text, sizeof(s.text), "%" PRIu64, whole);
        else
                (void) snprintf(s.text, sizeof(s.text), "%" PRIu64 ".%" PRIu64, whole, tenths);
        return s;
}

static void add_part(Gauge *g, Share share, const char *word, uint64_t amount) {
        g->parts[g->n++] = (struct GaugePart) { share, word, amount };
}

static Gauge cores_gauge(json_object *node) {
        json_object *cpus = member(node, "cpus");
        Gauge g = { .key = "cores", .total = member_size(member(cpus, "total"), "cores"), .n_always = 2 };

        (void) snprintf(g.amount, sizeof(g.amount), "%" PRIu64, g.total);
        add_part(&g, SHARE_FREE, "free", member_size(member(cpus, "free"), "cores"));
        add_part(&g, SHARE_ALLOCATED, "allocated", member_size(member(cpus, "allocated"), "cores"));
        add_part(&g, SHARE_OTHER, "housekeeping", member_size(member(cpus, "housekeeping"), "cores"));
        return g;
}

static Gauge memory_gauge(json_object *node, bool is_far) {
        json_object *memory = member(node, "memory");
        uint64_t ordinary = member_size(memory, "total"), available = member_size(memory, "free"),
                 allocated = member_size(memory, "allocated");
        Gauge g = { .key = "memory", .total = member_size(node, "memory_total"), .is_bytes = true };

        g.n_always = is_far ? 1 : 3;
        (void) snprintf(g.amount, sizeof(g.amount), "%s GiB", size_round(g.total).text);
        if (!is_far)
                add_part(&g, SHARE_FREE, "free", available);
        add_part(&g, SHARE_ALLOCATED, "allocated", allocated);
        if (!is_far)
                add_part(&g, SHARE_OTHER, "for the host", ordinary - MIN(ordinary, available + allocated));
        add_part(&g, SHARE_PAGES, "in hugepages", g.total - MIN(g.total, ordinary));
        return g;
}

static Gauge pages_gauge(json_object *pages) {
        uint64_t available = member_size(pages, "free"), allocated = member_size(pages, "allocated");
        Gauge g = { .key = "hugepages", .total = member_size(pages, "total"), .n_always = 2 };

        (void) snprintf(g.amount, sizeof(g.amount), "%" PRIu64 " of %s", g.total,
                        FORMAT_SIZE(member_size(pages, "size")));
        add_part(&g, SHARE_FREE, "free", available);
        add_part(&g, SHARE_ALLOCATED, "allocated", allocated);
        add_part(&g, SHARE_OTHER, "used by others", g.total - MIN(g.total, available + allocated));
        return g;
}

size_t node_gauges(json_object *node, Gauge ret[static GAUGES_MAX]) {
        size_t n = 2;

        ret[0] = cores_gauge(node);
        ret[1] = memory_gauge(node, ret[0].total == 0);
        for (size_t i = 0; i < member_length(node, "pages") && n < GAUGES_MAX; i++) {
                ret[n] = pages_gauge(member_at(node, "pages", i));
                n += ret[n].total > 0;
        }
        return n;
}

char *gauge_text(const Gauge *g) {
        _cleanup_free_ char *text = g->total == 0 ? strdup("none") : NULL;

        for (const struct GaugePart *p = g->parts; g->total > 0 && p < g->parts + g->n; p++) {
                char number[24];

                if (p >= g->parts + g->n_always && p->amount == 0)
                        continue;
                (void) snprintf(number, sizeof(number), "%" PRIu64, p->amount);
                if (string_append(&text, ", ", "%s %s", g->is_bytes ? size_round(p->amount).text : number, p->word) < 0)
                        return NULL;
        }
        return TAKE_PTR(text);
}

/* Adds the nodes at this distance to *ret. Returns the next larger distance; INT64_MAX when there is none. */
static int64_t nodes_at(json_object *distances, const char *id, int64_t distance, CpuSet *ret) {
        int64_t next = INT64_MAX;

        json_object_object_foreach(distances, other, value) {
                int64_t d = json_object_get_int64(value);
                uint64_t node;

                if (streq(other, id) || parse_unsigned(other, CPUSET_MAX - 1, &node) < 0)
                        continue;
                if (d == distance)
                        cpuset_add(ret, (unsigned) node);
                else if (d > distance && d < next)
                        next = d;
        }
        return next;
}

int node_distances(json_object *node, const char *id, char **ret) {
        json_object *distances = member_object(node, "distances");
        _cleanup_free_ char *text = NULL;

        for (int64_t next, distance = distances ? -1 : INT64_MAX; distance < INT64_MAX; distance = next) {
                _cleanup_free_ char *list = NULL;
                CpuSet nodes = { 0 };

                next = nodes_at(distances, id, distance, &nodes);
                list = cpuset_format(&nodes);
                if (!list ||
                    (!cpuset_is_empty(&nodes) && string_append(&text, ", ", "%" PRId64 " to node%s %s", distance,
                                                               PLURAL(cpuset_count(&nodes)), list) < 0))
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(text);
        return 0;
}

bool node_is_empty(const Items *items, json_object *node) {
        if (member_size(member(member(node, "cpus"), "total"), "cores") > 0 || member_size(node, "memory_total") > 0)
                return false;
        for (const Item *item = items->all; item < items->all + items->n; item++)
                if (item->section == (int64_t) member_size(node, "id"))
                        return false;
        return true;
}

int node_lends(json_object *node, char **ret) {
        const char *id = reply_cell(node, "id"), *cpu_node = reply_text(node, "cpu_node"),
                   *memory_node = reply_text(node, "memory_node"), *owner = reply_text(node, "memory_of");
        _cleanup_free_ char *text = NULL;
        int r = 0;

        if (cpu_node && !streq(cpu_node, id))
                r = string_append(&text, " ", "Guests with its devices get CPUs of node %s.", cpu_node);
        else if (memory_node && !streq(memory_node, id))
                r = string_append(&text, " ", "Guests on its CPUs get memory of node %s.", memory_node);
        if (r >= 0 && cpu_node && !streq(cpu_node, id) && member_size(node, "memory_total") > 0)
                r = owner ? string_append(&text, " ", "Its memory is that of GPU %s.", owner)
                          : string_append(&text, " ", "Its memory is given only to requests with --memory-from %s.",
                                          id);
        if (r >= 0)
                *ret = TAKE_PTR(text);
        return r;
}

static size_t count_offers(const Items *items, int64_t section, Offer offers[static POOLS_MAX]) {
        size_t n = 0;

        for (const Item *item = items->all; item < items->all + items->n; item++) {
                const char *pool = item->section == section ? reply_text(item->device, "pool") : NULL;
                size_t i = 0;

                while (pool && i < n && !streq(offers[i].pool, pool))
                        i++;
                if (!pool || i == POOLS_MAX)
                        continue;
                if (i == n)
                        offers[n++] = (Offer) { .pool = pool };
                offers[i].total++;
                offers[i].available += streq_ptr(reply_text(item->device, "state"), "available");
        }
        return n;
}

int items_offers(const Items *items, int64_t section, char **ret) {
        _cleanup_free_ char *text = NULL;
        Offer offers[POOLS_MAX];
        size_t n = count_offers(items, section, offers);

        for (size_t i = 0; i < n; i++)
                if (string_append(&text, ", ", "%zu of %zu %s", offers[i].available, offers[i].total, offers[i].pool) <
                    0)
                        return -ENOMEM;
        *ret = TAKE_PTR(text);
        return 0;
}

static bool is_listed(json_object *node, int64_t section) {
        for (size_t i = 0; i < member_length(node, "nodes"); i++)
                if ((int64_t) member_size(member_at(node, "nodes", i), "id") == section)
                        return true;
        return false;
}

bool items_next_section(const Items *items, json_object *node, int64_t *section) {
        int64_t best = INT64_MAX;

        for (const Item *item = items->all; item < items->all + items->n; item++)
                if (item->section > *section && item->section < best && !is_listed(node, item->section))
                        best = item->section;
        *section = best;
        return best != INT64_MAX;
}

const char *section_title(int64_t section, char buf[static SECTION_TITLE_MAX]) {
        if (section == SECTION_MISSING)
                return "Missing: in allocations, but no longer on this node";
        if (section == SECTION_UNKNOWN)
                return "NUMA node unknown: the machine reports none of its nodes for these devices";
        (void) snprintf(buf, SECTION_TITLE_MAX, "NUMA node %" PRId64, section);
        return buf;
}

/* The devices of one section as a tree. */

static const Column columns[] = {
        { "DEVICE", .tree = true },    { "POOL" }, { "STATE" },
        { "ALLOCATION", .cut = true }, { "PCIE" }, { "NAME", .cut = true },
};

/* Devices below this depth are not drawn. No real machine has so many bridges above a device. */
#define DEPTH_MAX 64U

static int64_t section_of(json_object *device) {
        int64_t node;

        if (streq_ptr(reply_text(device, "state"), "missing"))
                return SECTION_MISSING;
        return JSON_READ_INTEGER(device, "numa_node", INT64_MAX, &node) >= 0 ? node : SECTION_UNKNOWN;
}

/* Returns the item with this address, which is above the device that is listed after `previous`. Devices are listed
 * depth first, so the item is `previous` or an ancestor of it. NULL: no item is above the device. */
static Item *find_above(Item *previous, const char *address) {
        while (previous && address && !streq(previous->address, address))
                previous = previous->above;
        return address ? previous : NULL;
}

/* Returns the root complex of the item. Devices are listed by root complex, so a device on a root bus has the last root
 * complex of items, or if that is not the device's "root", a new one. */
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
        size_t n = member_length(node, "devices");

        *items = (Items) { .all = calloc(n + 1, sizeof(Item)), .roots = calloc(n + 1, sizeof(Item)) };
        if (!items->all || !items->roots)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                Item *item = &items->all[i];

                item->device = member_at(node, "devices", i);
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

/* Returns true when no item of the list is a bridge, and all are functions of one slot. */
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

/* Puts a list of items in front of the children of `above`. The order of the list stays. */
static void prepend_children(Item *above, Item *list) {
        Item *last = list;

        while (last->next)
                last = last->next;
        last->next = above->child;
        above->child = list;
}

/* Goes through the items backwards, so that the children of a bridge are linked before the bridge. */
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

char *device_short_name(json_object *device) {
        _cleanup_free_ char *name = device_product(device), *kernel = view_join(device, "kernel_names", " ");
        const char *module = reply_text(device, "module"), *partition = reply_text(device, "partition");

        if (name && kernel && string_append(&name, " ", "(%s)", kernel) < 0)
                return NULL;
        if (name && module && string_append(&name, ", ", "module %s", module) < 0)
                return NULL;
        if (name && module && partition && string_append(&name, " ", "of partition %s", partition) < 0)
                return NULL;
        return TAKE_PTR(name);
}

#define COLOUR_DIM "\033[2m"

Use use_from_state(const char *state) {
        if (streq(state, "available"))
                return USE_AVAILABLE;
        if (streq(state, "allocated") || streq(state, "reserved"))
                return USE_ALLOCATED;
        return streq(state, "host") ? USE_HOST : USE_NONE;
}

Use vfs_use(const Item *vfs) {
        Use use = USE_NONE;

        for (const Item *vf = vfs; vf; vf = vf->next)
                use = MIN(use, use_from_state(reply_cell(vf->device, "state")));
        return use;
}

static const char *colour_of(Use use, const char *pool) {
        static const char *const colours[_USE_MAX] = { "green", "yellow", NULL, "red" };

        return use == USE_HOST && !pool ? COLOUR_DIM : colours[use];
}

static struct libscols_line *add_device_line(Table *t, struct libscols_line *above, const Item *item) {
        _cleanup_free_ char *name = device_short_name(item->device), *link = view_link_short(item->device);
        const char *state = reply_cell(item->device, "state"), *pool = reply_cell(item->device, "pool");

        return table_add_below(
                t, above, colour_of(use_from_state(state), reply_text(item->device, "pool")),
                (const char *[]) { item->address, pool, state, reply_cell(item->device, "allocation"), link, name });
}

/* Counts the VFs in this state without an allocation. vfs_holders() counts the VFs with an allocation. */
static size_t count_state(const Item *vfs, const char *state) {
        size_t n = 0;

        for (const Item *vf = vfs; vf; vf = vf->next)
                n += !reply_text(vf->device, "allocation") && streq_ptr(reply_text(vf->device, "state"), state);
        return n;
}

char *vfs_states(const Item *vfs) {
        size_t available = count_state(vfs, "available");
        _cleanup_free_ char *text = NULL;

        if (available > 0 && string_append(&text, "", "%zu available", available) < 0)
                return NULL;
        for (const Item *vf = vfs; vf; vf = vf->next) {
                const char *state = reply_text(vf->device, "state");

                /* Name each state once, at the last VF in this state. */
                if (!state || streq(state, "available") || reply_text(vf->device, "allocation") ||
                    count_state(vf->next, state) > 0)
                        continue;
                if (string_append(&text, ", ", "%zu %s", count_state(vfs, state), state) < 0)
                        return NULL;
        }
        return text ? TAKE_PTR(text) : strdup("0 available");
}

char *vfs_holders(const Item *vfs) {
        _cleanup_free_ char *names = NULL;
        size_t n = 0;

        for (const Item *vf = vfs; vf; vf = vf->next) {
                const char *holder = reply_text(vf->device, "allocation");
                bool seen = !holder;

                n += !!holder;
                for (const Item *v = vfs; v != vf && !seen; v = v->next)
                        seen = streq_ptr(reply_text(v->device, "allocation"), holder);
                if (!seen && string_append(&names, ", ", "%s", holder) < 0)
                        return NULL;
        }
        return names ? string_format("%zu in %s", n, names) : strdup("-");
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

static void add_vfs(Table *t, struct libscols_line *above, const Item *vfs) {
        _cleanup_free_ char *states = vfs_states(vfs), *holders = vfs_holders(vfs);
        char label[32];
        size_t n = 0;

        for (const Item *vf = vfs; vf; vf = vf->next)
                n++;
        (void) snprintf(label, sizeof(label), "%zu VF%s", n, PLURAL(n));
        (void) table_add_below(t, above, colour_of(vfs_use(vfs), NULL),
                               (const char *[]) { label, vfs_pool(vfs), states, holders, "", "" });
}

const char *bridge_word(const Item *item) {
        if (!item->above)
                return "root port";
        return item->has_bridges ? "switch" : "bridge";
}

/* Adds a row that has no pool, state and allocation: of a root complex, or without --all of a bridge. */
static struct libscols_line *add_bridge(Table *t, struct libscols_line *above, const char *label, const char *name) {
        return table_add_below(t, above, NULL, (const char *[]) { label, "", "", "", "", name });
}

static void add_list(Table *t, struct libscols_line *above, const Item *list, bool all, unsigned depth) {
        if (depth > DEPTH_MAX)
                return;
        for (const Item *item = list; item; item = item->next) {
                struct libscols_line *line;

                if (item_begins_vfs(item) && !all) {
                        add_vfs(t, above, item);
                        return;
                }
                line = item->is_bridge && !all ? add_bridge(t, above, item->address, bridge_word(item))
                                               : add_device_line(t, above, item);
                add_list(t, line, item->child, all, depth + 1);
        }
}

const char *root_name(const Item *root) {
        const char *slash = root->address ? strrchr(root->address, '/') : NULL;

        return slash ? slash + 1 : root->address ? root->address : "root complex unknown";
}

/* Adds the row of a root complex and the rows below it. Without --all, if nothing but one bridge is directly below the
 * root complex, the row also names that bridge. */
static void add_root(Table *t, const Item *root, bool all) {
        const Item *only = root->child->next || !root->child->is_bridge || all ? NULL : root->child;
        char name[64] = "";

        if (only)
                (void) snprintf(name, sizeof(name), "%s %s", only->has_bridges ? "switch" : "bridge", only->address);
        add_list(t, add_bridge(t, NULL, root_name(root), name), only ? only->child : root->child, all, 0);
}

int items_print(Items *items, int64_t section, const Args *args) {
        bool all = args_has(args, OPTION_ALL);
        _cleanup_table_ Table t;

        table_init(&t, columns, ELEMENTSOF(columns));
        items_link(items, section, all);
        for (size_t i = 0; i < items->n_roots; i++) {
                const Item *root = &items->roots[i];

                if (root->child && section == SECTION_MISSING)
                        add_list(&t, NULL, root->child, all, 0);
                else if (root->child)
                        add_root(&t, root, all);
        }
        return table_print(&t, args, NULL);
}
