/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl topology --matrix: prints the distances between GPUs, other accelerators and NICs that the daemon
 * reports. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "page.h"
#include "report.h"
#include "table.h"
#include "topology.h"
#include "util/strings.h"
#include "util/stringtable.h"
#include "words.h"

#define WORD_WIDTH 4U /* columns of "NODE", the longest distance word */

const DistanceWord distance_words[DISTANCE_WORDS] = {
        { "X", "the device itself" },
        { "NVL", "NVLink, in one partition" },
        { "PIX", "at most one PCIe switch between them" },
        { "PXB", "several switches below one root port" },
        { "PHB", "one host bridge, through the CPU" },
        { "NODE", "different host bridges of one NUMA node" },
        { "SYS", "different or unknown NUMA nodes" },
};

void members_done(Members *m) {
        for (size_t i = 0; i < m->n; i++)
                free(m->all[i].cpus);
        free(m->all);
}

static const Item *find_item(const Items *items, const char *address) {
        for (const Item *i = items->all; i < items->all + items->n; i++)
                if (streq(i->address, address))
                        return i;
        return NULL;
}

/* The kinds of devices in the matrix, in its order, and the label of each. A daemon of another version may have other
 * kinds, which kind_of() takes for the last one. */
static const char *const kind_table[] = { "gpu", "accelerator", "nic" };
static const char *const labels[] = { "GPU", "ACC", "NIC" };

static size_t kind_of(const Item *item) {
        int kind = string_table_find(kind_table, ELEMENTSOF(kind_table), reply_text(item->device, "kind"));

        return kind < 0 ? ELEMENTSOF(kind_table) - 1 : (size_t) kind;
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

static int member_find_affinity(Member *m, json_object *node) {
        const char *cpus = NULL;
        json_object *device = m->item->device;

        (void) snprintf(m->numa, sizeof(m->numa), "-");
        for (size_t i = 0; m->item->section >= 0 && i < member_length(node, "nodes"); i++) {
                json_object *numa = member_at(node, "nodes", i);

                if (member(device, "cpu_node") && member_size(numa, "id") == member_size(device, "cpu_node"))
                        cpus = reply_text(member(member(numa, "cpus"), "total"), "cpus");
        }
        if (m->item->section >= 0)
                (void) snprintf(m->numa, sizeof(m->numa), "%" PRId64, m->item->section);
        m->cpus = cpus_shorten(cpus ?: "");
        return m->cpus ? 0 : -ENOMEM;
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

int members_init(Members *m, const Items *items, json_object *node, bool all) {
        json_object *matrix = member(node, "matrix");
        size_t n = member_length(matrix, "devices"), numbers[ELEMENTSOF(labels)] = { 0 };

        *m = (Members) { .all = calloc(n + 1, sizeof(Member)), .cpus_width = strlen(CPU_AFFINITY) };
        if (!m->all)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const char *address = json_object_get_string(member_at(matrix, "devices", i));
                const Item *item = address ? find_item(items, address) : NULL;
                Member *member = &m->all[m->n];

                if (!item)
                        return -EBADMSG;
                *member = (Member) { .item = item, .at = i };
                m->n++;
                member_find_pool(member, items);
                (void) snprintf(member->label, sizeof(member->label), "%s%zu", labels[kind_of(item)],
                                numbers[kind_of(item)]++);
        }
        if (!all)
                drop_members_without_pool(m);
        for (size_t i = 0; i < m->n; i++) {
                if (member_find_affinity(&m->all[i], node) < 0)
                        return -ENOMEM;
                m->label_width = MAX(m->label_width, strlen(m->all[i].label));
                m->cpus_width = MAX(m->cpus_width, strlen(m->all[i].cpus));
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
        const char *word = json_object_get_string(json_at(member_at(matrix, "distances", a->at), b->at));

        return word && strlen(word) <= WORD_WIDTH && text_is_clean(word) ? word : "?";
}

static size_t cell_width(const Members *m) {
        return MAX(m->label_width, WORD_WIDTH);
}

/* Prints the columns from index `first` up to, but not including, `end`; if `affinity` is set, also the two columns
 * about affinity. Without these, the last cell of a row has no spaces after it. */
static void print_columns(const Members *m, json_object *matrix, size_t first, size_t end, bool affinity) {
        int label = (int) m->label_width, width = (int) cell_width(m), cpus = (int) m->cpus_width;

        printf("%*s", label, "");
        for (size_t i = first; i < end; i++)
                printf(" %-*s", i + 1 < end || affinity ? width : 0, m->all[i].label);
        if (affinity)
                printf(" %-*s %s", cpus, CPU_AFFINITY, NUMA_AFFINITY);
        putchar('\n');
        for (size_t row = 0; row < m->n; row++) {
                printf("%-*s", label, m->all[row].label);
                for (size_t i = first; i < end; i++)
                        printf(" %-*s", i + 1 < end || affinity ? width : 0,
                               matrix_distance(matrix, &m->all[row], &m->all[i]));
                if (affinity)
                        printf(" %-*s %s", cpus, m->all[row].cpus, m->all[row].numa);
                putchar('\n');
        }
        putchar('\n');
}

/* Prints the matrix, in several blocks when not all columns fit. Each block then has columns of one kind of devices.
 * The columns about affinity are at the end of the last block, or are a block by themselves. */
static void print_blocks(const Members *m, json_object *matrix) {
        size_t width = page_width(), each = cell_width(m) + 1, affinity = 1 + m->cpus_width + 1 + strlen(NUMA_AFFINITY),
               first = 0, end;
        size_t room = width > m->label_width ? width - m->label_width : 0, fit = MAX(room / each, 1U);

        for (; first < m->n; first = end) {
                bool ends;

                end = first + MIN(fit, m->n - first);
                for (size_t i = first + 1; m->n > fit && i < end; i++)
                        if (kind_of(m->all[i].item) != kind_of(m->all[first].item))
                                end = i;
                ends = end == m->n && (end - first) * each + affinity <= room;
                print_columns(m, matrix, first, end, ends);
                if (end == m->n && !ends)
                        print_columns(m, matrix, 0, 0, true);
        }
}

static void add_member(Table *t, const Member *m) {
        _cleanup_free_ char *name = device_short_name(m->item->device);
        char vfs[64];

        (void) snprintf(vfs, sizeof(vfs), "%zu of %zu VFs", m->available, m->n_vfs);
        table_add(t, (const char *[]) { m->label, m->item->address, m->numa, m->pool ?: "-",
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

static int print_notes(const Members *m, json_object *matrix) {
        _cleanup_notes_ Notes notes;
        int r = notes_init(&notes, m, matrix);

        if (r < 0)
                return r;
        for (size_t i = 0; i < notes.n; i++) {
                _cleanup_free_ char *text = string_format("%s: %s", notes.all[i].pairs, notes.all[i].text);

                if (!text)
                        return -ENOMEM;
                fputs(i == 0 ? "\n" : "", stdout);
                page_wrap(stdout, text, 0, 2);
        }
        return r;
}

int matrix_print(const Args *args, json_object *node) {
        _cleanup_items_ Items items = { 0 };
        _cleanup_members_ Members members = { 0 };
        json_object *matrix = member(node, "matrix");
        int r;

        if (!matrix)
                return report_failure(args, NULL,
                                      "There are too many GPUs, accelerators and NICs on this node for a matrix.");
        r = items_init(&items, node);
        if (r >= 0)
                r = members_init(&members, &items, node, args_has(args, OPTION_ALL));
        if (r < 0)
                return report_errno(args, r, "Cannot print");
        if (members.n == 0) {
                fputs("This node has no GPUs, no other accelerators and no NICs.\n", stderr);
                return 0;
        }
        print_blocks(&members, matrix);
        r = print_members(args, &members);
        if (r < 0)
                return r;
        putchar('\n');
        for (size_t i = 0; i < DISTANCE_WORDS; i++)
                printf("%-4s  %s\n", distance_words[i].word, distance_words[i].meaning);
        r = print_notes(&members, matrix);
        if (r < 0)
                return report_errno(args, r, "Cannot print");
        if (members.skipped > 0)
                printf("\n%zu more are in no pool; --all shows them.\n", members.skipped);
        return 0;
}

/* The notes below the matrix: pairs without direct peer-to-peer access. The distance does not show whether access is
 * direct. */

bool pair_is_redirected(json_object *pair) {
        return pair && streq_ptr(reply_text(member(pair, "path"), "peer_to_peer"), "redirected");
}

static Note *find_note(Notes *notes, const char *text) {
        for (size_t i = 0; i < notes->n; i++)
                if (streq(notes->all[i].text, text))
                        return &notes->all[i];
        return NULL;
}

static int add_pair(Notes *notes, const Members *m, json_object *pair) {
        const Member *gpu = members_find(m, reply_cell(pair, "gpu")), *peer = members_find(m, reply_cell(pair, "peer"));
        const char *access = reply_text(member(pair, "path"), "peer_to_peer");
        _cleanup_free_ char *text = NULL;
        Note *note;

        if (!gpu || !peer || streq_ptr(access, "direct") || streq_ptr(access, "card"))
                return 0;
        text = peer_path_text(member(pair, "path"), true);
        if (!text)
                return -ENOMEM;
        note = find_note(notes, text);
        if (!note) {
                note = &notes->all[notes->n++];
                *note = (Note) { .text = TAKE_PTR(text), .redirected = pair_is_redirected(pair) };
        }
        return string_append(&note->pairs, ", ", "%s-%s", gpu->label, peer->label);
}

int notes_init(Notes *notes, const Members *m, json_object *matrix) {
        size_t n = member_length(matrix, "pairs");
        int r = 0;

        *notes = (Notes) { .all = calloc(n + 1, sizeof(Note)) };
        if (!notes->all)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = add_pair(notes, m, member_at(matrix, "pairs", i));
        return r;
}

void notes_done(Notes *notes) {
        for (size_t i = 0; i < notes->n; i++) {
                free(notes->all[i].pairs);
                free(notes->all[i].text);
        }
        free(notes->all);
}
