/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "ledger/region.h"

#include <assert.h>
#include <stdio.h>

#include "ledger/allocation.h"
#include "util/strings.h"

#define SMALLEST_HUGEPAGE (64ULL << 10)

const char *region_file(const Region *r, char buf[static REGION_FILE_MAX]) {
        (void) snprintf(buf, REGION_FILE_MAX, REGION_FILE_PREFIX "%s", r->name);
        return buf;
}

char *region_server(const Region *r, const char *pattern) {
        const char *at = strstr(pattern, "%n");

        assert(at); /* the configuration accepts only patterns with %n */
        return string_format("%.*s%s%s", (int) (at - pattern), pattern, r->name, at + 2);
}

Verdict region_name(Region *r, const char *name, Refusal *ret) {
        _Static_assert(REGION_NAME_MAX == ALLOCATION_NAME_MAX, "the same rule for both");

        if (!allocation_name_is_valid(name))
                return refuse_request(
                        ret, "Use up to 63 letters, digits, '_', '.' and '-', beginning with a letter or digit.",
                        "'%s' cannot be the name of shared memory, because it is not a valid file name.",
                        QUOTABLE(name));
        (void) snprintf(r->name, sizeof(r->name), "%s", name);
        return VERDICT_NONE;
}

static bool is_power_of_two(uint64_t n) {
        return n > 0 && (n & (n - 1)) == 0;
}

Verdict region_check(const Region *r, Refusal *ret) {
        if (!is_power_of_two(r->size))
                return refuse_request(ret, "Round it up to 1M, 2M, 4M and so on.",
                                      "The shared memory '%s' cannot have %s: the size must be a power of two, because "
                                      "the guest sees it as a PCI BAR.",
                                      r->name, FORMAT_SIZE_EXACT(r->size));
        if (r->size < REGION_SIZE_MIN || r->size > REGION_SIZE_MAX)
                return refuse_request(ret, NULL, "The shared memory '%s' cannot have %s: the size must be %s to %s.",
                                      r->name, FORMAT_SIZE_EXACT(r->size), FORMAT_SIZE_EXACT(REGION_SIZE_MIN),
                                      FORMAT_SIZE_EXACT(REGION_SIZE_MAX));
        if (r->page_size == 0)
                return VERDICT_NONE;
        if (!is_power_of_two(r->page_size) || r->page_size < SMALLEST_HUGEPAGE)
                return refuse_request(ret, "Use a size of hugepages of this node, such as 2M, or leave it out.",
                                      "The shared memory '%s' cannot have pages of %s.", r->name,
                                      FORMAT_SIZE_EXACT(r->page_size));
        if (r->size < r->page_size)
                return refuse_request(ret, "Ask for at least one page.",
                                      "The shared memory '%s' has %s, which is less than one page of %s.", r->name,
                                      FORMAT_SIZE_EXACT(r->size), FORMAT_SIZE_EXACT(r->page_size));
        return VERDICT_NONE;
}

bool region_is_among(const Region *regions, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (streq(regions[i].name, name))
                        return true;
        return false;
}
