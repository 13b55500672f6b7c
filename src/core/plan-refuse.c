/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why there is no plan. Asked only after the search came back empty; what is short is found by asking again for less. */

#include <stdio.h>

#include "core/cores.h"
#include "core/plan-internal.h"
#include "util/strings.h"

/* How many taken devices of a pool are named in the sentence. */
#define REASONS_MAX 3U

/* "0000:82:00.0 is held by 'vm1'." for the first few devices of the pool that are not free. */
static void append_reasons(const PlanContext *c, const Pool *pool, Refusal *ret) {
        unsigned named = 0;

        for (size_t i = 0; i < c->inventory->n_devices && named < REASONS_MAX; i++) {
                const PciDevice *dev = &c->inventory->devices[i];
                _cleanup_refusal_ Refusal why = { 0 };
                _cleanup_free_ char *longer = NULL;
                bool names_itself;

                if (policy_pool(c->policy, dev) != pool)
                        continue;
                if (ledger_check_device(c->ledger, c->inventory, dev, NULL, &why) == VERDICT_NONE &&
                    policy_check(c->policy, dev, &why) == VERDICT_NONE)
                        continue;
                names_itself = why.message && strncmp(why.message, PCI_ADDRESS_STR(dev->address), strlen(PCI_ADDRESS_STR(dev->address))) == 0;
                if (string_replace(&longer, "%s %s%s%s", ret->message, names_itself ? "" : PCI_ADDRESS_STR(dev->address),
                                   names_itself ? "" : ": ", why.message ?: "") < 0)
                        return;
                free(ret->message);
                ret->message = TAKE_PTR(longer);
                named++;
        }
}

static size_t pool_size(const PlanContext *c, const Pool *pool) {
        size_t n = 0;

        for (size_t i = 0; i < c->inventory->n_devices; i++)
                n += policy_pool(c->policy, &c->inventory->devices[i]) == pool;
        return n;
}

static Verdict check_counts(const Planner *p, Refusal *ret) {
        for (size_t i = 0; i < p->search.n_pools; i++) {
                const SearchPool *pool = &p->search.pools[i];

                if (pool->n >= pool->wanted)
                        continue;
                (void) refuse(ret, VERDICT_INSUFFICIENT_DEVICES, NULL, "Release an allocation that has some, or ask for fewer.",
                              "Pool '%s' has %zu of its %zu devices free, %u wanted.", p->pools[i]->name, pool->n,
                              pool_size(p->context, p->pools[i]), pool->wanted);
                if (ret && ret->message)
                        append_reasons(p->context, p->pools[i], ret);
                return VERDICT_INSUFFICIENT_DEVICES;
        }
        return VERDICT_NONE;
}

/* The same request with something left out: would it do? */
static bool would_do(const Planner *p, const Request *relaxed) {
        Planner again = *p;
        NodeChoice best, second;
        bool has_second;

        again.request = relaxed;
        again.search.n_pools = relaxed->n_pools;
        return planner_choose(&again, &best, &second, &has_second) == 0;
}

/* "node 0 has 8, node 1 none" */
static char *list_cpus(const Planner *p) {
        char *text = NULL;

        for (size_t i = 0; i < p->context->inventory->n_nodes; i++) {
                _cleanup_free_ char *before = text;

                text = NULL;
                (void) string_replace(&text, "%s%snode %d has %u", before ?: "", before ? ", " : "", p->context->inventory->nodes[i].id,
                                      p->n_free_cpus[i]);
        }
        return text;
}

static char *list_memory(const Planner *p) {
        char *text = NULL;

        for (size_t i = 0; i < p->context->inventory->n_nodes; i++) {
                _cleanup_free_ char *before = text;

                text = NULL;
                (void) string_replace(&text, "%s%snode %d has %s", before ?: "", before ? ", " : "", p->context->inventory->nodes[i].id,
                                      FORMAT_SIZE(p->free_memory[i]));
        }
        return text;
}

static Verdict refuse_cpus(const Planner *p, Refusal *ret) {
        _cleanup_free_ char *list = list_cpus(p);

        return refuse(ret, VERDICT_INSUFFICIENT_CPUS, NULL, "Ask for fewer CPUs, or for more guest cells so that more nodes are used.",
                      "%u CPUs in whole cores are wanted, in equal shares from at most %u nodes; %s free.", p->request->cpus,
                      p->request->cells ?: REQUEST_CELLS_MAX, list ?: "there are none");
}

static Verdict refuse_memory(const Planner *p, Refusal *ret) {
        _cleanup_free_ char *list = list_memory(p);

        return refuse(ret, VERDICT_INSUFFICIENT_MEMORY, NULL,
                      p->request->page_size > 0 ? "Ask for less, or set aside more hugepages of that size on the node."
                                                : "Ask for less, or lower ReserveMemory=.",
                      "%s of %s are wanted in equal shares on the nodes that give the CPUs; %s left.", FORMAT_SIZE(p->request->memory),
                      p->request->page_size > 0 ? FORMAT_SIZE(p->request->page_size) : "ordinary memory", list ?: "there is none");
}

/* Without devices: is it the CPUs, the memory, or that no node has both? */
static Verdict check_room(const Planner *p, Refusal *ret) {
        uint64_t page = p->request->page_size ?: 4096;
        Request r = *p->request;
        Planner roomy = *p;

        r.n_pools = 0;
        if (p->request->cpus == 0 || would_do(p, &r))
                return VERDICT_NONE;
        if (p->request->cells > p->context->inventory->n_nodes)
                return refuse(ret, VERDICT_NUMA, NULL, "Ask for at most as many guest cells.", "%u guest cells are wanted, this node has %zu NUMA nodes.",
                              p->request->cells, p->context->inventory->n_nodes);
        for (size_t i = 0; i < p->context->inventory->n_nodes; i++)
                roomy.free_memory[i] = MAX(p->request->memory, page);
        return would_do(&roomy, &r) ? refuse_memory(p, ret) : refuse_cpus(p, ret);
}

static Verdict refuse_numa(const Planner *p, Refusal *ret) {
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < p->search.n_pools; i++)
                for (size_t j = 0; j < p->search.pools[i].n && j < REASONS_MAX; j++) {
                        const PciDevice *dev = &p->context->inventory->devices[p->search.pools[i].devices[j]];
                        _cleanup_free_ char *before = text;
                        char node[24] = "an unknown node";

                        if (dev->numa_node >= 0)
                                (void) snprintf(node, sizeof(node), "node %d", dev->numa_node);
                        text = NULL;
                        (void) string_replace(&text, "%s%s%s is on %s", before ?: "", before ? ", " : "", PCI_ADDRESS_STR(dev->address), node);
                }
        return refuse(ret, VERDICT_NUMA, NULL, "Release what occupies the device's node, or ask with the policy 'preferred'.",
                      "There are enough free devices, CPUs and memory, but not where the NUMA policy '%s' wants them: %s.",
                      numa_policy_to_string(p->request->numa), text ?: "");
}

Verdict planner_refuse(const Planner *p, Refusal *ret) {
        Request r = *p->request;
        Verdict v = check_counts(p, ret);

        if (v == VERDICT_NONE)
                v = check_room(p, ret);
        if (v != VERDICT_NONE)
                return v;
        r.proximity = PROXIMITY_ANY;
        if (p->request->proximity != PROXIMITY_ANY && would_do(p, &r))
                return refuse(ret, VERDICT_PROXIMITY, NULL, "Ask with a wider proximity, or release devices that are closer together.",
                              "There are enough free devices, but no GPU and NIC among them within the proximity '%s'.",
                              proximity_to_string(p->request->proximity));
        return refuse_numa(p, ret);
}
