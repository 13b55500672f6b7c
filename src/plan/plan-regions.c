/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the nodes that give a guest its memory and shared memory. */

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

/* Returns the index of the node that gives memory to the node at this position of the choice. */
static size_t memory_node(const Planner *p, const NodeChoice *choice, size_t at) {
        return p->memory_node[choice->nodes[at]];
}

/* Returns how much memory, in pages of this size, the guest takes from the node that serves position `at`: the shares
 * of all positions that this node serves, and the sizes of those regions among the first n_regions that are placed on
 * it. */
static uint64_t taken(const Planner *p, const NodeChoice *choice, size_t at, uint64_t page_size, size_t n_regions) {
        const Request *r = p->request;
        size_t node = memory_node(p, choice, at);
        uint64_t sum = 0;

        for (size_t i = 0; i < choice->n_nodes && page_size == r->page_size; i++)
                sum += memory_node(p, choice, i) == node ? choice->memory[i] : 0;
        for (size_t i = 0; i < n_regions; i++)
                if (choice->places[i] < choice->n_nodes && memory_node(p, choice, choice->places[i]) == node &&
                    r->regions[i].page_size == page_size)
                        sum += r->regions[i].size;
        return sum;
}

/* Returns whether the node that serves position `at` has room for the region beside the guest's memory and the earlier
 * regions. */
static bool has_room(const Planner *p, const NodeChoice *choice, size_t at, size_t region) {
        const HostView *view = p->context;
        const Region *wanted = &p->request->regions[region];
        uint64_t have = ledger_memory_free(view->ledger, view->inventory, view->config,
                                           &view->inventory->nodes[memory_node(p, choice, at)], wanted->page_size);

        return have >= taken(p, choice, at, wanted->page_size, region) + wanted->size;
}

#define PLACE_IS_THERE SIZE_MAX

/* Returns whether the existing region is on a node that gives memory to the choice, or may be elsewhere by the NUMA
 * policy. */
static bool is_near(const Planner *p, const NodeChoice *choice, const Region *there) {
        for (size_t i = 0; i < choice->n_nodes; i++)
                if (p->context->inventory->nodes[memory_node(p, choice, i)].id == there->node)
                        return true;
        return !numa_policy_requires_nodes(p->request->numa);
}

/* Distributes the pages that are left after equal shares, one each to the lowest nodes with room. False: too few nodes
 * have room, and nothing is distributed. */
static bool place_rest(const Planner *p, NodeChoice *choice) {
        const Request *r = p->request;
        uint64_t page = request_page(r), rest = r->memory / page % choice->n_nodes;
        size_t nodes[ALLOCATION_CELLS_MAX], n = 0;

        for (size_t i = 0; i < choice->n_nodes && n < rest; i++) {
                if (p->free_memory[memory_node(p, choice, i)] < taken(p, choice, i, r->page_size, r->n_regions) + page)
                        continue;
                choice->memory[i] += page;
                nodes[n++] = i;
        }
        for (size_t i = 0; n < rest && i < n; i++)
                choice->memory[nodes[i]] -= page;
        return n == rest;
}

/* Places the regions from this one on, each on the lowest node possible, and then calls place_rest(). Backtracks, so it
 * finds a placement if there is any. */
static bool place(const Planner *p, NodeChoice *choice, size_t region) {
        const Request *r = p->request;
        const SharedRegion *s;

        if (region == r->n_regions)
                return place_rest(p, choice);
        choice->places[region] = PLACE_IS_THERE;
        s = ledger_find_region(p->context->ledger, r->regions[region].name);
        if (s)
                return is_near(p, choice, &s->region) && place(p, choice, region + 1);
        for (size_t i = 0; i < choice->n_nodes; i++) {
                choice->places[region] = i;
                if (has_room(p, choice, i, region) && place(p, choice, region + 1))
                        return true;
        }
        return false;
}

bool planner_place_memory(const Planner *p, NodeChoice *choice) {
        uint64_t page = request_page(p->request), least = p->request->memory / page / choice->n_nodes * page;

        for (size_t i = 0; i < choice->n_nodes; i++)
                choice->memory[i] = least;
        for (size_t i = 0; i < choice->n_nodes; i++)
                if (least == 0 ||
                    p->free_memory[memory_node(p, choice, i)] < taken(p, choice, i, p->request->page_size, 0))
                        return false;
        return place(p, choice, 0);
}

void planner_add_regions(const Planner *p, const NodeChoice *choice, Allocation *a) {
        for (size_t i = 0; i < p->request->n_regions; i++) {
                Region region = p->request->regions[i];
                const SharedRegion *s = ledger_find_region(p->context->ledger, region.name);

                region.node =
                        s ? s->region.node : p->context->inventory->nodes[memory_node(p, choice, choice->places[i])].id;
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
