/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared memory regions in the ledger: which allocations use them, and the checks before a claim. */

#include <assert.h>
#include <errno.h>

#include "ledger-internal.h"
#include "util/strings.h"

/* Returns the position of the region of this name, or where to insert it. */
static size_t find_region(const Ledger *l, const char *name, bool *ret_found) {
        size_t i = 0;

        while (i < l->n_regions && strcmp(l->regions[i]->region.name, name) < 0)
                i++;
        *ret_found = i < l->n_regions && streq(l->regions[i]->region.name, name);
        return i;
}

const SharedRegion *ledger_find_region(const Ledger *l, const char *name) {
        bool found;
        size_t i = find_region(l, name, &found);

        return found ? l->regions[i] : NULL;
}

void ledger_set_region_removed(Ledger *l, const char *name, bool removed) {
        bool found;
        size_t i = find_region(l, name, &found);

        if (found)
                l->regions[i]->removed = removed;
}

static void region_free(SharedRegion *s) {
        free(s->members);
        free(s);
}

/* Removes the regions that no allocation uses. */
static void free_unused_regions(Ledger *l) {
        size_t n = 0;

        for (size_t i = 0; i < l->n_regions; i++)
                if (l->regions[i]->n_members > 0)
                        l->regions[n++] = l->regions[i];
                else
                        region_free(l->regions[i]);
        l->n_regions = n;
}

static int reserve(Ledger *l, const Allocation *a, const Region *r) {
        bool found;
        size_t i = find_region(l, r->name, &found);

        if (!found) {
                SharedRegion *s = ARRAY_RESERVE(l->regions, l->n_regions) < 0 ? NULL : calloc(1, sizeof(*s));

                if (!s)
                        return -ENOMEM;
                s->region = *r;
                s->owner = a->owner;
                memmove(&l->regions[i + 1], &l->regions[i], (l->n_regions++ - i) * sizeof(SharedRegion *));
                l->regions[i] = s;
        }
        return ARRAY_RESERVE(l->regions[i]->members, l->regions[i]->n_members);
}

int ledger_reserve_regions(Ledger *l, const Allocation *a) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < a->n_regions; i++)
                r = reserve(l, a, &a->regions[i]);
        if (r < 0)
                free_unused_regions(l);
        return r;
}

void ledger_count_ready(Ledger *l, const Allocation *a, bool ready) {
        for (size_t i = 0; i < a->n_regions; i++) {
                const Region *r = &a->regions[i];
                bool found;
                SharedRegion *s = l->regions[find_region(l, r->name, &found)];

                assert(found && (ready || s->n_ready > 0));
                if (ready && s->n_ready++ == 0)
                        ledger_memory_claim(l, r->node, r->page_size)->backed += r->size;
                if (!ready && --s->n_ready == 0)
                        ledger_memory_claim(l, r->node, r->page_size)->backed -= r->size;
        }
}

void ledger_enter_regions(Ledger *l, Allocation *a) {
        for (size_t i = 0; i < a->n_regions; i++) {
                const Region *r = &a->regions[i];
                bool found;
                SharedRegion *s = l->regions[find_region(l, r->name, &found)];
                size_t at = 0;

                assert(found);
                if (s->n_members == 0)
                        ledger_memory_claim(l, r->node, r->page_size)->bytes += r->size;
                while (at < s->n_members && strcmp(s->members[at]->name, a->name) < 0)
                        at++;
                memmove(&s->members[at + 1], &s->members[at], (s->n_members++ - at) * sizeof(*s->members));
                s->members[at] = a;
                a->shared[i] = s;
        }
        if (a->state == ALLOCATION_READY)
                ledger_count_ready(l, a, true);
}

void ledger_leave_regions(Ledger *l, Allocation *a) {
        if (a->state == ALLOCATION_READY)
                ledger_count_ready(l, a, false);
        for (size_t i = 0; i < a->n_regions; i++) {
                const Region *r = &a->regions[i];
                bool found;
                SharedRegion *s = l->regions[find_region(l, r->name, &found)];
                size_t n = 0;

                assert(found);
                for (size_t j = 0; j < s->n_members; j++)
                        if (s->members[j] != a)
                                s->members[n++] = s->members[j];
                assert(n + 1 == s->n_members);
                s->n_members = n;
                if (n == 0)
                        ledger_memory_claim(l, r->node, r->page_size)->bytes -= r->size;
                a->shared[i] = NULL;
        }
        if (a->n_regions > 0)
                free_unused_regions(l);
}

void ledger_free_regions(Ledger *l) {
        for (size_t i = 0; i < l->n_regions; i++)
                region_free(l->regions[i]);
        free(l->regions);
}

uint64_t ledger_new_regions(const Ledger *l, const Allocation *a, int node, uint64_t page_size) {
        uint64_t sum = 0;

        for (size_t i = 0; i < a->n_regions; i++)
                if (a->regions[i].node == node && a->regions[i].page_size == page_size &&
                    !ledger_find_region(l, a->regions[i].name))
                        sum += a->regions[i].size;
        return sum;
}

static bool same_pages(const Region *a, const Region *b) {
        return a->page_size == b->page_size;
}

Verdict ledger_check_region_kind(const Ledger *l, const Region *r, Refusal *ret) {
        const SharedRegion *s = ledger_find_region(l, r->name);

        if (!s || (s->region.size == r->size && same_pages(&s->region, r)))
                return VERDICT_NONE;
        return refuse(ret, VERDICT_SHARED_MEMORY_TAKEN, NULL,
                      "Ask for the existing size and pages, or choose another name.",
                      "The shared memory '%s' exists already, with %s%s%s, not %s%s%s.", r->name,
                      FORMAT_SIZE(s->region.size), s->region.page_size > 0 ? " in pages of " : "",
                      s->region.page_size > 0 ? FORMAT_SIZE(s->region.page_size) : "", FORMAT_SIZE(r->size),
                      r->page_size > 0            ? " in pages of "
                      : same_pages(&s->region, r) ? ""
                                                  : " in ordinary pages",
                      r->page_size > 0 ? FORMAT_SIZE(r->page_size) : "");
}

Verdict ledger_check_region_owner(const Ledger *l, const Region *r, uint32_t owner, Refusal *ret) {
        const SharedRegion *s = ledger_find_region(l, r->name);

        if (!s || s->owner == owner)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_SHARED_MEMORY_TAKEN, NULL, "Choose another name.",
                      "The shared memory '%s' belongs to uid %u, not to uid %u: only guests of one owner share.",
                      r->name, s->owner, owner);
}

static Verdict check_region(const Ledger *l, const Allocation *a, const Region *r, Refusal *ret) {
        const SharedRegion *s = ledger_find_region(l, r->name);
        Verdict v = ledger_check_region_owner(l, r, a->owner, ret);

        if (!s || v != VERDICT_NONE)
                return v;
        if (s->region.node != r->node)
                return refuse(ret, VERDICT_SHARED_MEMORY_TAKEN, NULL, NULL,
                              "The shared memory '%s' is on NUMA node %d, not %d.", r->name, s->region.node, r->node);
        return ledger_check_region_kind(l, r, ret);
}

Verdict ledger_check_regions(const Ledger *l, const Allocation *a, Refusal *ret) {
        size_t fresh = 0;
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_regions; i++) {
                fresh += !ledger_find_region(l, a->regions[i].name);
                v = check_region(l, a, &a->regions[i], ret);
        }
        if (v == VERDICT_NONE && l->n_regions + fresh > LEDGER_REGIONS_MAX)
                v = refuse(ret, VERDICT_LIMIT, NULL, "Release an allocation with shared memory first.",
                           "There are already %zu regions of shared memory; the limit is %u.", l->n_regions,
                           LEDGER_REGIONS_MAX);
        return v;
}
