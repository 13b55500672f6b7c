/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Refusals for too little memory: how much each node has free, and which allocations have the rest. */

#include <inttypes.h>

#include "plan-internal.h"
#include "util/strings.h"

/* Most allocations that a refusal names. */
#define NAMES_MAX 3U

/* Nodes without CPUs are left out: guests get no memory from them. */
char *planner_list_memory(const Planner *p) {
        const Inventory *inv = p->context->inventory;
        char *text = NULL;

        for (size_t i = 0; i < inv->n_nodes; i++)
                if (!cpuset_is_empty(&inv->nodes[i].cpus))
                        (void) string_append(&text, ", ", "node %d has %s", inv->nodes[i].id,
                                             FORMAT_SIZE(p->free_memory[i]));
        return text;
}

/* True when a has memory on the node in this page size that the kernel has not allocated yet. */
static bool is_idle(const Planner *p, const Allocation *a, int node) {
        for (size_t i = 0; !a->running && a->page_size == p->page_size && i < a->n_cells; i++)
                if (a->cells[i].node == node)
                        return true;
        for (size_t i = 0; i < a->n_regions; i++)
                if (a->regions[i].node == node && a->regions[i].page_size == p->page_size && a->shared[i]->n_ready == 0)
                        return true;
        return false;
}

/* "'vm1', 'vm2', 'vm3' and 2 more" */
static char *list_idle(const Planner *p, int node) {
        const Ledger *l = p->context->ledger;
        unsigned n = 0;
        char *text = NULL;

        for (size_t i = 0; i < l->n_allocations; i++)
                if (is_idle(p, l->allocations[i], node) && n++ < NAMES_MAX)
                        (void) string_append(&text, ", ", "'%s'", l->allocations[i]->name);
        if (n > NAMES_MAX)
                (void) string_append(&text, "", "%s", AND_MORE(n - NAMES_MAX));
        return text;
}

/*
 * Appends " Node 0: 4 pages, 2 free, 2 promised to 'vm1' and not in use yet.", unless promised or reserved memory
 * explains why the node has too little.
 */
static void explain_node(const Planner *p, size_t index, char **text, bool *used, bool *waiting) {
        const HostView *view = p->context;
        const NumaNode *node = &view->inventory->nodes[index];
        const PagePool *pages = p->page_size > 0 ? numa_node_pages(node, p->page_size) : NULL;
        uint64_t idle = ledger_memory_idle(view->ledger, node->id, p->page_size);
        uint64_t free_now = pages ? pages->free * pages->size : node->available;
        _cleanup_free_ char *names = idle > 0 ? list_idle(p, node->id) : NULL;

        if (cpuset_is_empty(&node->cpus) || (p->page_size > 0 ? !pages : !node->available_known) ||
            free_now - MIN(free_now, idle) > p->free_memory[index])
                return;
        *used = true;
        *waiting = *waiting || names;
        if (pages)
                (void) string_append(text, "", " Node %d: %" PRIu64 " page%s, %" PRIu64 " free", node->id, pages->total,
                                     PLURAL(pages->total), pages->free);
        else
                (void) string_append(text, "", " Node %d: %s, %s free", node->id,
                                     FORMAT_SIZE(numa_node_base_memory(node)), FORMAT_SIZE(free_now));
        if (pages && names)
                (void) string_append(text, "", ", %" PRIu64 " promised to %s and not in use yet", idle / pages->size,
                                     names);
        else if (names)
                (void) string_append(text, "", ", %s promised to %s and not in use yet", FORMAT_SIZE_WANTED(idle),
                                     names);
        (void) string_append(text, "", ".");
}

static const char *choose_remedy(const Planner *p, bool used, bool idle) {
        if (p->page_size > 0)
                return idle ? "Ask for less, release one of these, or reserve more hugepages of that size on the "
                              "node."
                            : "Ask for less, or reserve more hugepages of that size on the node.";
        if (idle)
                return "Ask for less, release one of these, or stop processes that use the memory of the node.";
        return used ? "Ask for less, or stop processes that use the memory of the node."
                    : "Ask for less, or lower ReserveMemory=.";
}

Verdict planner_refuse_memory(const Planner *p, Refusal *ret) {
        _cleanup_free_ char *list = planner_list_memory(p), *details = NULL;
        bool idle = false, used = false;

        for (size_t i = 0; i < p->context->inventory->n_nodes; i++)
                explain_node(p, i, &details, &used, &idle);
        return refuse(
                ret, VERDICT_INSUFFICIENT_MEMORY, NULL, choose_remedy(p, used, idle),
                "%s of memory in %s pages wanted, in equal shares on the nodes of the CPUs. Left for guests: %s.%s",
                FORMAT_SIZE_WANTED(p->request->memory), p->page_size > 0 ? FORMAT_SIZE(p->page_size) : "ordinary",
                list ?: "none", details ?: "");
}
