/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sections of a drawing, which are NUMA nodes and devices without one: titles, distances, available devices. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "topology.h"
#include "util/strings.h"

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

uint64_t number_of(json_object *o, const char *key) {
        int64_t n;

        return reply_number(o, key, &n) && n > 0 ? (uint64_t) n : 0;
}

int node_distances(json_object *node, const char *id, char **ret) {
        json_object *distances = reply_object(node, "distances");
        _cleanup_free_ char *text = NULL;

        if (distances) {
                json_object_object_foreach(distances, other, distance) {
                        if (streq(other, id) || !text_is_clean(other))
                                continue;
                        if (string_append(&text, ", ", "%" PRId64 " to node %s", json_object_get_int64(distance),
                                          other) < 0)
                                return -ENOMEM;
                }
        }
        *ret = TAKE_PTR(text);
        return 0;
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
        for (size_t i = 0; i < reply_length(node, "nodes"); i++)
                if ((int64_t) number_of(reply_element(node, "nodes", i), "id") == section)
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
                return "NUMA node unknown: the machine reports none for these devices";
        (void) snprintf(buf, SECTION_TITLE_MAX, "NUMA node %" PRId64 ": the machine lists no such node", section);
        return buf;
}
