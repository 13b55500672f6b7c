/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Places shared memory on the nodes of a plan. */

#include "plan-internal.h"
#include "util/strings.h"

Verdict planner_check_regions(const HostView *view, const Request *r, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        if (r->n_regions > 0 && view->config->hypervisor == HYPERVISOR_XEN)
                return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, "Ask without shared memory.",
                              "A guest of Xen cannot have the shared memory '%s': QEMU's ivshmem device makes it.",
                              r->regions[0].name);
        for (size_t i = 0; v == VERDICT_NONE && i < r->n_regions; i++) {
                if (r->has_owner)
                        v = ledger_check_region_owner(view->ledger, &r->regions[i], r->owner, ret);
                if (v == VERDICT_NONE)
                        v = ledger_check_region_kind(view->ledger, &r->regions[i], ret);
        }
        return v;
}

/*
 * The memory that a node has free for the region, besides its share of the guest's memory and the regions placed
 * before.
 */
static uint64_t room(const Planner *p, const NodeChoice *choice, size_t at, const uint64_t *shares, size_t region,
                     const size_t *places) {
        const HostView *view = p->context;
        const Region *regions = p->request->regions;
        const NumaNode *node = &view->inventory->nodes[choice->nodes[at]];
        uint64_t have =
                ledger_memory_free(view->ledger, view->inventory, view->config, node, regions[region].page_size);
        uint64_t taken = regions[region].page_size == p->request->page_size ? shares[at] : 0;

        for (size_t i = 0; i < region; i++)
                if (places[i] == at && regions[i].page_size == regions[region].page_size)
                        taken += regions[i].size;
        return have - MIN(have, taken);
}

#define PLACE_IS_THERE SIZE_MAX

/* True when the existing region is on one of the nodes, or the NUMA policy allows it elsewhere. */
static bool is_near(const Planner *p, const NodeChoice *choice, const Region *there) {
        for (size_t i = 0; i < choice->n_nodes; i++)
                if (p->context->inventory->nodes[choice->nodes[i]].id == there->node)
                        return true;
        return !numa_policy_requires_nodes(p->request->numa);
}

/*
 * Places all regions, on the lowest nodes possible. Backtracks over all nodes, so that a possible placement is always
 * found.
 */
static bool place(const Planner *p, const NodeChoice *choice, const uint64_t *shares, size_t region, size_t *places) {
        const Request *r = p->request;
        const SharedRegion *s;

        if (region == r->n_regions)
                return true;
        places[region] = PLACE_IS_THERE;
        s = ledger_find_region(p->context->ledger, r->regions[region].name);
        if (s)
                return is_near(p, choice, &s->region) && place(p, choice, shares, region + 1, places);
        for (size_t i = 0; i < choice->n_nodes; i++) {
                places[region] = i;
                if (room(p, choice, i, shares, region, places) >= r->regions[region].size &&
                    place(p, choice, shares, region + 1, places))
                        return true;
        }
        return false;
}

bool planner_has_room_to_share(const Planner *p, const NodeChoice *choice, const uint64_t *shares) {
        size_t places[ALLOCATION_REGIONS_MAX];

        return p->request->n_regions == 0 || place(p, choice, shares, 0, places);
}

void planner_add_regions(const Planner *p, const NodeChoice *choice, Allocation *a) {
        size_t places[ALLOCATION_REGIONS_MAX] = { 0 };
        uint64_t shares[ALLOCATION_CELLS_MAX] = { 0 };

        if (p->request->n_regions == 0)
                return;
        for (size_t i = 0; i < a->n_cells; i++)
                shares[i] = a->cells[i].memory;
        /* Cannot fail: planner_has_room_to_share() accepted the choice. */
        (void) place(p, choice, shares, 0, places);
        for (size_t i = 0; i < p->request->n_regions; i++) {
                Region region = p->request->regions[i];
                const SharedRegion *s = ledger_find_region(p->context->ledger, region.name);

                region.node = s ? s->region.node : p->context->inventory->nodes[choice->nodes[places[i]]].id;
                a->regions[a->n_regions++] = region;
        }
}

Verdict planner_refuse_regions(const Planner *p, Refusal *ret) {
        const Request *r = p->request;
        _cleanup_free_ char *list = NULL;

        for (size_t i = 0; i < r->n_regions; i++)
                if (!ledger_find_region(p->context->ledger, r->regions[i].name) &&
                    string_append(&list, ", ", "'%s' of %s", r->regions[i].name,
                                  FORMAT_SIZE_WANTED(r->regions[i].size)) < 0)
                        break;
        return refuse(ret, VERDICT_INSUFFICIENT_MEMORY, NULL, "Ask for less, or for another page size.",
                      "No NUMA node with enough CPUs and memory for the guest also has room for the shared memory: "
                      "%s.",
                      list ?: "");
}

Verdict planner_refuse_region_nodes(const Planner *p, Refusal *ret) {
        const Request *r = p->request;
        _cleanup_free_ char *list = NULL;

        for (size_t i = 0; i < r->n_regions; i++) {
                const SharedRegion *s = ledger_find_region(p->context->ledger, r->regions[i].name);

                if (s && string_append(&list, ", ", "'%s' is on node %d", s->region.name, s->region.node) < 0)
                        break;
        }
        return refuse(ret, VERDICT_NUMA, NULL,
                      "Ask with another NUMA policy: the guest can also use shared memory of another node.",
                      "The NUMA policy '%s' requires the guest to be on the nodes of its shared memory, which do not "
                      "have the CPUs and the memory: %s.",
                      numa_policy_to_string(r->numa), list ?: "");
}
