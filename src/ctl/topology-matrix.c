/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl topology --matrix: the distances between GPUs and NICs, as the daemon reports them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "peerpath.h"
#include "report.h"
#include "table.h"
#include "topology.h"
#include "util/strings.h"

#define WORD_WIDTH 4U /* columns of "NODE", the longest distance word */

const DistanceWord distance_words[DISTANCE_WORDS] = {
        { "X", "the device itself" },
        { "PIX", "at most one PCIe switch between them" },
        { "PXB", "several switches below one root port" },
        { "PHB", "one host bridge, through the CPU" },
        { "NODE", "different host bridges of one NUMA node" },
        { "SYS", "different or unknown NUMA nodes" },
};

void members_done(Members *m) {
        free(m->all);
}

static const Item *find_item(const Items *items, const char *address) {
        for (const Item *i = items->all; i < items->all + items->n; i++)
                if (streq(i->address, address))
                        return i;
        return NULL;
}

static bool is_gpu(const Item *item) {
        return streq_ptr(reply_text(item->device, "kind"), "gpu");
}

static void member_find_pool(Member *m, const Items *items) {
        m->pool = reply_text(m->item->device, "pool");
        m->allocation = reply_text(m->item->device, "allocation");
        /* The VFs of a PF are listed directly after it. */
        for (const Item *vf = m->item + 1; vf < items->all + items->n && vf->above == m->item; vf++) {
                const char *pool = reply_text(vf->device, "pool");

                if (!pool)
                        continue;
                m->n_vfs++;
                m->available += streq_ptr(reply_text(vf->device, "state"), "available");
                m->pool = m->pool ? m->pool : pool;
                m->allocation = m->allocation ? m->allocation : reply_text(vf->device, "allocation");
        }
}

static void drop_members_without_pool(Members *m) {
        size_t n = 0;

        for (size_t i = 0; i < m->n; i++)
                n += !!m->all[i].pool;
        if (n == 0)
                return;
        m->skipped = m->n - n;
        n = 0;
        for (size_t i = 0; i < m->n; i++)
                if (m->all[i].pool)
                        m->all[n++] = m->all[i];
        m->n = n;
}

int members_init(Members *m, const Items *items, json_object *matrix, bool all) {
        size_t n = reply_length(matrix, "devices"), numbers[2] = { 0 };

        *m = (Members){ .all = calloc(n + 1, sizeof(Member)) };
        if (!m->all)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const char *address = json_object_get_string(reply_element(matrix, "devices", i));
                const Item *item = address ? find_item(items, address) : NULL;

                if (!item)
                        return -EBADMSG;
                m->all[m->n] = (Member){ .item = item, .at = i };
                member_find_pool(&m->all[m->n++], items);
        }
        if (!all)
                drop_members_without_pool(m);
        for (size_t i = 0; i < m->n; i++) {
                bool gpu = is_gpu(m->all[i].item);
                int width = snprintf(m->all[i].label, sizeof(m->all[i].label), "%s%zu", gpu ? "GPU" : "NIC",
                                     numbers[gpu]++);

                m->label_width = MAX(m->label_width, (size_t) width);
        }
        return 0;
}

const Member *members_find(const Members *m, const char *address) {
        for (size_t i = 0; i < m->n; i++)
                if (streq(m->all[i].item->address, address))
                        return &m->all[i];
        return NULL;
}

const char *matrix_distance(json_object *matrix, const Member *a, const Member *b) {
        json_object *row = reply_element(matrix, "distances", a->at);
        const char *word = json_object_is_type(row, json_type_array)
                                   ? json_object_get_string(json_object_array_get_idx(row, b->at))
                                   : NULL;

        return word && strlen(word) <= WORD_WIDTH && text_is_clean(word) ? word : "?";
}

bool pair_is_redirected(json_object *pair) {
        return pair && streq_ptr(reply_text(reply_member(pair, "path"), "peer_to_peer"), "redirected");
}

int pair_note(const Members *m, json_object *pair, char **ret) {
        const Member *gpu = members_find(m, reply_cell(pair, "gpu")), *peer = members_find(m, reply_cell(pair, "peer"));
        const char *access = reply_text(reply_member(pair, "path"), "peer_to_peer");
        _cleanup_free_ char *path = NULL;
        char *text = NULL;
        int r;

        *ret = NULL;
        if (!gpu || !peer || streq_ptr(access, "direct") || streq_ptr(access, "card"))
                return 0;
        path = peer_path_text(reply_member(pair, "path"), true);
        r = path ? string_replace(&text, "%s, %s: %s", gpu->label, peer->label, path) : -ENOMEM;
        if (r >= 0)
                *ret = text;
        return r;
}

static void print_columns(const Members *m, json_object *matrix, size_t first, size_t end) {
        int width = (int) MAX(m->label_width, WORD_WIDTH);

        printf("%*s", (int) m->label_width, "");
        for (size_t i = first; i < end; i++)
                printf(" %-*s", i + 1 < end ? width : 0, m->all[i].label);
        putchar('\n');
        for (size_t row = 0; row < m->n; row++) {
                printf("%-*s", (int) m->label_width, m->all[row].label);
                for (size_t i = first; i < end; i++)
                        printf(" %-*s", i + 1 < end ? width : 0, matrix_distance(matrix, &m->all[row], &m->all[i]));
                putchar('\n');
        }
        putchar('\n');
}

/* When the terminal is too narrow for all columns, prints several blocks, each with only GPUs or only NICs. */
static void print_blocks(const Members *m, json_object *matrix) {
        size_t fit = (table_terminal_width() - m->label_width) / (MAX(m->label_width, WORD_WIDTH) + 1), end;

        for (size_t first = 0; first < m->n; first = end) {
                end = first + MIN(fit, m->n - first);
                for (size_t i = first + 1; m->n > fit && i < end; i++)
                        if (is_gpu(m->all[i].item) != is_gpu(m->all[first].item))
                                end = i;
                print_columns(m, matrix, first, end);
        }
}

static void add_member(Table *t, const Member *m) {
        _cleanup_free_ char *name = device_short_name(m->item->device);
        char node[24] = "-", vfs[64];

        if (m->item->section >= 0)
                (void) snprintf(node, sizeof(node), "%" PRId64, m->item->section);
        (void) snprintf(vfs, sizeof(vfs), "%zu of %zu VFs", m->available, m->n_vfs);
        table_add(t, (const char *[]){ m->label, m->item->address, node, m->pool ?: "-",
                                       m->n_vfs > 0 ? vfs : reply_cell(m->item->device, "state"), m->allocation ?: "-",
                                       name });
}

static int print_members(const Args *args, const Members *m) {
        static const Column columns[] = {
                { "" },
                { "DEVICE" },
                { "NODE", .right = true },
                { "POOL" },
                { "STATE" },
                { "ALLOCATION", .cut = true },
                { "NAME", .cut = true },
        };
        _cleanup_table_ Table t;

        table_init(&t, columns, ELEMENTSOF(columns));
        for (size_t i = 0; i < m->n; i++)
                add_member(&t, &m->all[i]);
        return table_print(&t, args, NULL);
}

/* Prints a line for each pair without direct peer-to-peer access, which the distance does not show. */
static int print_notes(const Members *m, json_object *matrix) {
        bool any = false;

        for (size_t i = 0; i < reply_length(matrix, "pairs"); i++) {
                _cleanup_free_ char *text = NULL;
                int r = pair_note(m, reply_element(matrix, "pairs", i), &text);

                if (r < 0)
                        return r;
                if (text)
                        printf("%s%s\n", any ? "" : "\n", text);
                any = any || text;
        }
        return 0;
}

static int print_legend(const Args *args, const Members *m, json_object *matrix) {
        int r = print_members(args, m);

        if (r < 0)
                return r;
        putchar('\n');
        for (size_t i = 0; i < DISTANCE_WORDS; i++)
                printf("%-4s  %s\n", distance_words[i].word, distance_words[i].meaning);
        r = print_notes(m, matrix);
        if (r < 0)
                return report_errno(args, r, "Cannot print");
        if (m->skipped > 0)
                printf("\n%zu more are in no pool; --all shows them.\n", m->skipped);
        return 0;
}

int matrix_print(const Args *args, json_object *node) {
        _cleanup_items_ Items items = { 0 };
        _cleanup_members_ Members members = { 0 };
        json_object *matrix = reply_member(node, "matrix");
        int r;

        if (!matrix)
                return report_failure(args, NULL, "There are too many GPUs and NICs on this node for a matrix.");
        r = items_init(&items, node);
        if (r >= 0)
                r = members_init(&members, &items, matrix, args_has(args, OPTION_ALL));
        if (r < 0)
                return report_errno(args, r, "Cannot print");
        if (members.n == 0) {
                fputs("This node has no GPUs and no NICs.\n", stderr);
                return 0;
        }
        print_blocks(&members, matrix);
        return print_legend(args, &members, matrix);
}
