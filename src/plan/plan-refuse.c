/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Explains why there is no plan. Runs after a search found nothing, and plans relaxed requests to find what is short.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "model/cores.h"
#include "plan-internal.h"
#include "plan/proximity.h"
#include "util/strings.h"

/* The most allocations that a refusal names. */
#define NAMES_MAX 3U

/* Lists the free memory of the nodes that may give memory: "node 0 has 62 GiB, node 1 has 0". The caller frees. */
static char *list_memory(const Planner *p) {
        const Inventory *inv = p->context->inventory;
        char *text = NULL;

        for (size_t i = 0; i < inv->n_nodes; i++)
                if (planner_gives_memory(p, i))
                        (void) string_append(&text, ", ", "node %d has %s", inv->nodes[i].id,
                                             FORMAT_SIZE(p->free_memory[i]));
        return text;
}

/* Returns whether `a` has memory that the kernel has not allocated yet, in pages of the request's size and on this
 * node. */
static bool has_idle_memory(const Planner *p, const Allocation *a, int node) {
        for (size_t i = 0; !a->status.running && a->page_size == p->page_size && i < a->n_cells; i++)
                if (cell_memory_node(&a->cells[i]) == node)
                        return true;
        for (size_t i = 0; i < a->n_regions; i++)
                if (a->regions[i].node == node && a->regions[i].page_size == p->page_size && a->shared[i]->n_ready == 0)
                        return true;
        return false;
}

/* Lists the allocations for which has_idle_memory() is true: "'vm1', 'vm2', 'vm3' and 2 more". */
static char *list_idle_memory(const Planner *p, int node) {
        const Ledger *l = p->context->ledger;
        unsigned n = 0;
        char *text = NULL;

        for (size_t i = 0; i < l->n_allocations; i++)
                if (has_idle_memory(p, l->allocations[i], node) && n++ < NAMES_MAX)
                        (void) string_append(&text, ", ", "'%s'", l->allocations[i]->name);
        if (n > NAMES_MAX)
                (void) string_append(&text, "", "%s", AND_MORE(n - NAMES_MAX));
        return text;
}

/*
 * Appends " Node 0: 4 pages, 2 free, 2 promised to 'vm1' and not in use yet." Sets *used then, and *waiting if the
 * sentence names an allocation. Appends nothing if promised or reserved memory alone explains the shortage, if the node
 * gives no memory, or if its free memory is unknown.
 */
static void explain_memory(const Planner *p, size_t index, char **text, bool *used, bool *waiting) {
        const HostView *view = p->context;
        const NumaNode *node = &view->inventory->nodes[index];
        const PagePool *pages = p->page_size > 0 ? numa_node_pages(node, p->page_size) : NULL;
        uint64_t idle = ledger_memory_idle(view->ledger, node->id, p->page_size);
        uint64_t free_now = pages ? pages->free * pages->size : node->available;
        _cleanup_free_ char *names = idle > 0 ? list_idle_memory(p, node->id) : NULL;

        if (!planner_gives_memory(p, index) || (p->page_size > 0 ? !pages : !node->available_known) ||
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

/* Appends " Memory of NUMA nodes 2-3, without CPUs, is given only by memory-from." if there are such nodes. */
static void explain_far_memory(const Planner *p, char **text) {
        const Inventory *inv = p->context->inventory;
        _cleanup_free_ char *list = NULL;
        CpuSet nodes = { 0 };

        for (size_t i = 0; i < inv->n_nodes; i++)
                if (inv->nodes[i].memory > 0 && cpuset_is_empty(&inv->nodes[i].cpus) && !planner_gives_memory(p, i) &&
                    !inventory_memory_owner(inv, &inv->nodes[i]))
                        cpuset_add(&nodes, (unsigned) inv->nodes[i].id);
        list = cpuset_is_empty(&nodes) ? NULL : cpuset_format(&nodes);
        if (list)
                (void) string_append(text, "", " Memory of NUMA node%s %s, without CPUs, is given only by memory-from.",
                                     PLURAL(cpuset_count(&nodes)), list);
}

static const char *choose_memory_remedy(const Planner *p, bool used, bool idle) {
        if (p->page_size > 0)
                return idle ? "Ask for less, release one of these, or reserve more hugepages of that size on the "
                              "node."
                            : "Ask for less, or reserve more hugepages of that size on the node.";
        if (idle)
                return "Ask for less, release one of these, or stop processes that use the memory of the node.";
        return used ? "Ask for less, or stop processes that use the memory of the node."
                    : "Ask for less, or lower ReserveMemory=.";
}

static Verdict refuse_requested_memory(const Planner *p, Refusal *ret) {
        _cleanup_free_ char *list = list_memory(p), *details = NULL;
        bool idle = false, used = false;

        for (size_t i = 0; i < p->context->inventory->n_nodes; i++)
                explain_memory(p, i, &details, &used, &idle);
        explain_far_memory(p, &details);
        return refuse(
                ret, VERDICT_INSUFFICIENT_MEMORY, NULL, choose_memory_remedy(p, used, idle),
                "%s of memory in %s pages wanted, in equal shares on the nodes of the CPUs. Left for guests: %s.%s",
                FORMAT_SIZE_WANTED(p->request->memory), p->page_size > 0 ? FORMAT_SIZE(p->page_size) : "ordinary",
                list ?: "none", details ?: "");
}

/* The most devices of a pool that a refusal names. */
#define REASONS_MAX 3U

/* Returns 1 if the relaxed request has a plan, 0 if not, or a negative errno if that is unknown. */
static int is_feasible(const Planner *p, const Request *relaxed) {
        Planner again = *p;
        size_t n_nodes;

        again.request = relaxed;
        return planner_is_feasible(&again, &n_nodes);
}

/* Lists the free CPUs of the nodes that have CPUs: "node 0 has 8, node 1 has 0". */
static char *list_cpus(const Planner *p) {
        char *text = NULL;

        for (size_t i = 0; i < p->context->inventory->n_nodes; i++)
                if (!cpuset_is_empty(&p->context->inventory->nodes[i].cpus))
                        (void) string_append(&text, ", ", "node %d has %u", p->context->inventory->nodes[i].id,
                                             p->n_free_cpus[i]);
        return text;
}

static size_t count_cpu_nodes(const Inventory *inv) {
        size_t n = 0;

        for (size_t i = 0; i < inv->n_nodes; i++)
                n += !cpuset_is_empty(&inv->nodes[i].cpus);
        return n;
}

/* Formats the size of the shares, " of 4 to 5", if the CPUs are divided among n_nodes nodes. "" for 0 or 1 node. */
static char *describe_shares(const Planner *p, const Request *r, size_t n_nodes) {
        unsigned shares[ALLOCATION_CELLS_MAX];

        if (n_nodes <= 1)
                return strdup("");
        cores_split(r->cpus, p->threads, n_nodes, shares);
        if (shares[n_nodes - 1] == shares[0])
                return string_format(" of %u", shares[0]);
        return string_format(" of %u to %u", shares[n_nodes - 1], shares[0]);
}

/* Suggests another number of guest cells only if the request has a number, and others have room. Without a number, the
 * planner has tried all numbers. */
static Verdict refuse_cpus(const Planner *p, const Request *r, Refusal *ret) {
        size_t exactly = r->cells ?: r->n_host_nodes,
               most = numa_policy_allows_several(r->numa) ? ALLOCATION_CELLS_MAX : 1,
               n_nodes = exactly ?: MIN(count_cpu_nodes(p->context->inventory), most);
        _cleanup_free_ char *list = list_cpus(p), *shares = describe_shares(p, r, exactly);
        Request any_cells = *r;
        int fewer;

        any_cells.cells = 0;
        fewer = r->cells > 0 ? is_feasible(p, &any_cells) : 0;
        if (fewer < 0)
                return planner_give_up(fewer, ret);
        return refuse(ret, VERDICT_INSUFFICIENT_CPUS, NULL,
                      fewer ? "Ask for fewer CPUs, for another number of guest cells, or for no number of cells."
                      : r->n_host_nodes > 0 ? "Ask for fewer CPUs, or name other host nodes."
                                            : "Ask for fewer CPUs.",
                      "%u CPU%s wanted, as whole cores in equal shares%s from %s%zu node%s. Free CPUs: %s.", r->cpus,
                      PLURAL(r->cpus), shares ?: "", exactly || most == 1 ? "" : "at most ", n_nodes, PLURAL(n_nodes),
                      list ?: "none");
}

/* Refuses r, which is without devices, if only its shared memory does not fit. Otherwise removes the shared memory from
 * r. */
static Verdict check_sharing(const Planner *p, Request *r, Refusal *ret) {
        Request anywhere = *r;
        int does = 0;

        if (r->n_regions == 0)
                return VERDICT_NONE;
        if (numa_policy_requires_nodes(r->numa)) {
                anywhere.cells = numa_policy_allows_several(r->numa) ? r->cells : 1;
                anywhere.numa = NUMA_POLICY_PREFERRED;
                does = is_feasible(p, &anywhere);
        }
        if (does != 0)
                return does < 0 ? planner_give_up(does, ret) : planner_refuse_region_nodes(p, ret);
        r->n_regions = 0;
        does = is_feasible(p, r);
        return does == 0 ? VERDICT_NONE : does < 0 ? planner_give_up(does, ret) : planner_refuse_regions(p, ret);
}

/* Refuses r, which is without devices and shared memory, if its policy allows only one NUMA node, and r fits only on
 * several. */
static Verdict check_single(const Planner *p, const Request *r, Refusal *ret) {
        _cleanup_free_ char *cpus = NULL, *memory = NULL;
        Request several = *r;
        int does;

        if (numa_policy_allows_several(r->numa))
                return VERDICT_NONE;
        several.numa = NUMA_POLICY_REQUIRED;
        does = is_feasible(p, &several);
        if (does <= 0)
                return does < 0 ? planner_give_up(does, ret) : VERDICT_NONE;
        cpus = list_cpus(p);
        memory = list_memory(p);
        return refuse(ret, VERDICT_NUMA, NULL,
                      "Ask for less, or with the policy 'required', which allows several nodes.",
                      "No NUMA node alone has %u CPUs and %s of memory free, but the NUMA policy '%s' allows one node. "
                      "Free CPUs: %s. Free memory: %s.",
                      r->cpus, FORMAT_SIZE_WANTED(r->memory), numa_policy_to_string(r->numa), cpus ?: "none",
                      memory ?: "none");
}

/* Refuses if the request does not fit even without devices: for lack of CPUs, of memory, of shared memory, or of nodes
 * with enough of each. */
static Verdict check_room(const Planner *p, Refusal *ret) {
        Request r = *p->request;
        Planner roomy = *p;
        Verdict v;
        int does;

        r.n_pools = 0;
        does = p->request->cpus == 0 ? 1 : is_feasible(p, &r);
        if (does != 0)
                return does < 0 ? planner_give_up(does, ret) : VERDICT_NONE;
        if (p->request->cells > count_cpu_nodes(p->context->inventory))
                return refuse(ret, VERDICT_NUMA, NULL,
                              "Ask for no more guest cells than there are NUMA nodes with CPUs.",
                              "%u guest cells wanted, but this host has %zu NUMA nodes with CPUs.", p->request->cells,
                              count_cpu_nodes(p->context->inventory));
        v = check_sharing(p, &r, ret);
        if (v == VERDICT_NONE)
                v = check_single(p, &r, ret);
        if (v != VERDICT_NONE)
                return v;
        planner_ignore_memory(&roomy);
        does = is_feasible(&roomy, &r);
        return does < 0 ? planner_give_up(does, ret)
               : does   ? refuse_requested_memory(p, ret)
                        : refuse_cpus(&roomy, &r, ret);
}

/* Lists up to REASONS_MAX free devices of each pool: "0000:01:00.0 is on node 0, 0000:81:00.0 is on an unknown node",
 * and how many others there are: " and 5 more of pool 'gpu'". */
static char *list_devices(const Planner *p) {
        const Inventory *inv = p->context->inventory;
        char *text = NULL;

        for (size_t i = 0; i < p->request->n_pools; i++) {
                size_t n = 0;

                for (size_t j = 0; j < inv->n_devices; j++) {
                        char node[24] = "an unknown node";

                        if (!p->is_free[j] || policy_pool(p->context->policy, &inv->devices[j]) != p->pools[i].pool ||
                            n++ >= REASONS_MAX)
                                continue;
                        if (inv->devices[j].numa_node >= 0)
                                (void) snprintf(node, sizeof(node), "node %d", inv->devices[j].numa_node);
                        (void) string_append(&text, ", ", "%s is on %s", PCI_ADDRESS_STR(inv->devices[j].address),
                                             node);
                }
                if (n > REASONS_MAX)
                        (void) string_append(&text, "", "%s of pool '%s'", AND_MORE(n - REASONS_MAX),
                                             p->pools[i].pool->name);
        }
        return text;
}

/* Lists the pools' NUMA policies that are stricter than 'preferred': "the NUMA policy 'required' of pool 'gpu'". */
static char *list_policies(const Planner *p) {
        char *text = NULL;

        for (size_t i = 0; i < p->request->n_pools; i++) {
                const Pool *pool = p->pools[i].pool;

                if (pool->numa != NUMA_POLICY_PREFERRED)
                        (void) string_append(&text, " and ", "the NUMA policy '%s' of pool '%s'",
                                             numa_policy_to_string(pool->numa), pool->name);
        }
        return text;
}

/* Returns whether the request has CPUs, and a plan if every node is taken to have enough memory. */
static bool only_memory_is_short(const Planner *p) {
        Planner roomy = *p;

        planner_ignore_memory(&roomy);
        return p->request->cpus > 0 && is_feasible(&roomy, p->request) > 0;
}

static const char *nodes_text(const Planner *p) {
        return numa_policy_allows_several(p->request->numa) ? "NUMA nodes" : "one NUMA node";
}

static Verdict refuse_numa_memory(const Planner *p, const char *by, bool several, const char *remedy, Refusal *ret) {
        _cleanup_free_ char *devices = list_devices(p), *memory = list_memory(p);

        return refuse(ret, VERDICT_NUMA, NULL, remedy,
                      "Enough devices and CPUs are free, but not enough memory on the %s that %s allow%s. Free "
                      "devices: %s. Free memory: %s.",
                      nodes_text(p), by, several ? "" : "s", devices ?: "", memory ?: "");
}

/* Refuses with VERDICT_NUMA. `by`: the policies and the proximity that free devices do not satisfy. `several`: `by` is
 * a plural. */
static Verdict refuse_numa(const Planner *p, const char *by, bool several, const char *remedy, Refusal *ret) {
        _cleanup_free_ char *list = list_devices(p), *cpus = p->request->cpus > 0 ? list_cpus(p) : NULL;

        if (only_memory_is_short(p))
                return refuse_numa_memory(p, by, several, remedy, ret);
        return refuse(ret, VERDICT_NUMA, NULL, remedy,
                      "Enough devices, CPUs and memory are free, but not on the %s that %s allow%s. Free "
                      "devices: %s.%s%s%s",
                      nodes_text(p), by, several ? "" : "s", list ?: "", cpus ? " Free CPUs: " : "", cpus ?: "",
                      cpus ? "." : "");
}

/* Returns the policy to suggest: 'required' if the request's policy allows only one node and 'required' suffices, else
 * 'preferred'. */
static NumaPolicy weaker_policy(const Planner *p) {
        Request r = *p->request;

        r.numa = NUMA_POLICY_REQUIRED;
        return !numa_policy_allows_several(p->request->numa) && is_feasible(p, &r) > 0 ? NUMA_POLICY_REQUIRED
                                                                                       : NUMA_POLICY_PREFERRED;
}

/* Blames the NUMA policy of the request, together with a limited proximity, in two cases: the request fits with the
 * policy 'preferred', or no pool has a policy stricter than that. Else blames the policies of the pools if the request
 * fits without them. Otherwise blames the policies of request and pools, and a limited proximity. */
static Verdict check_numa(const Planner *p, Refusal *ret) {
        _cleanup_free_ char *own = NULL, *pools = list_policies(p), *all = NULL, *remedy = NULL,
                            *proximity = request_proximity_format(p->request);
        bool close = p->request->proximity != PROXIMITY_ANY || p->request->n_limits > 0;
        const char *release = p->context->ledger->n_allocations > 0
                                      ? "Release an allocation on the NUMA node of the devices, or "
                                      : "";
        Planner lenient = *p;
        Request r = *p->request;
        int does;

        (void) string_replace(&own, "the NUMA policy '%s'%s%s%s", numa_policy_to_string(r.numa),
                              close ? " and the proximity '" : "", close ? proximity ?: "" : "", close ? "'" : "");
        r.numa = NUMA_POLICY_PREFERRED;
        does = is_feasible(p, &r);
        if (does > 0 || (does == 0 && !pools)) {
                (void) string_replace(&remedy, "%s%s with the policy '%s'%s.", release, *release ? "ask" : "Ask",
                                      numa_policy_to_string(weaker_policy(p)),
                                      does > 0 ? "" : " and a wider proximity");
                return refuse_numa(p, own ?: "the NUMA policy", close, remedy, ret);
        }
        lenient.lenient = true;
        if (does == 0)
                does = is_feasible(&lenient, p->request);
        if (does < 0)
                return planner_give_up(does, ret);
        (void) string_replace(&all, "%s%s%s", does > 0 ? "" : own ?: "", does > 0 ? "" : " and ", pools ?: "");
        return refuse_numa(p, all ?: "the NUMA policies", does == 0 || strstr(all ?: "", " and "),
                           "Release an allocation on the NUMA node of the devices, or change NumaPolicy= of the pool.",
                           ret);
}

/* Returns the index of the limit without which the request fits, or n_limits if that is the GPU-NIC proximity. Returns
 * n_limits + 1 if the request does not fit without any single one, or a negative errno if that is unknown. */
static int find_limit(const Planner *p) {
        for (size_t i = 0; i <= p->request->n_limits; i++) {
                Request r = *p->request;
                int does;

                if (i < r.n_limits)
                        r.limits[i].limit = PROXIMITY_ANY;
                else
                        r.proximity = PROXIMITY_ANY;
                does = is_feasible(p, &r);
                if (does != 0)
                        return does < 0 ? does : (int) i;
        }
        return (int) p->request->n_limits + 1;
}

#define NOT_CLOSE "Enough devices are free, but "

static Verdict refuse_limit_of_pools(const Planner *p, size_t index, const char *remedy, Refusal *ret) {
        const RequestLimit *l = &p->request->limits[index];
        const SearchPool *pools[] = { &p->pools[p->limits[index][0]], &p->pools[p->limits[index][1]] };
        bool swap = pools[0]->wanted < pools[1]->wanted;

        if (pools[0] == pools[1])
                return refuse(ret, VERDICT_PROXIMITY, NULL, remedy,
                              NOT_CLOSE "no %u devices of pool '%s' are within '%s' of each other.", pools[0]->wanted,
                              l->pools[0], proximity_to_string(l->limit));
        return refuse(ret, VERDICT_PROXIMITY, NULL, remedy,
                      NOT_CLOSE "not every device of pool '%s' can be paired with a device of pool '%s' within '%s'.",
                      l->pools[swap], l->pools[!swap], proximity_to_string(l->limit));
}

static Verdict refuse_proximity(const Planner *p, Refusal *ret) {
        static const char remedy[] = "Ask with a wider proximity, or for fewer devices.";
        _cleanup_free_ char *all = request_proximity_format(p->request);
        int culprit = find_limit(p), n = (int) p->request->n_limits;

        if (culprit < 0)
                return planner_give_up(culprit, ret);
        if (culprit < n)
                return refuse_limit_of_pools(p, (size_t) culprit, remedy, ret);
        if (culprit == n)
                return refuse(ret, VERDICT_PROXIMITY, NULL, remedy,
                              NOT_CLOSE "not every GPU and NIC can be paired within '%s'.",
                              proximity_to_string(p->request->proximity));
        return refuse(ret, VERDICT_PROXIMITY, NULL, remedy,
                      NOT_CLOSE "they cannot satisfy all limits of '%s' together.", all ?: "the proximity");
}

/* Refuses because of the proximity or the NUMA policy: devices, CPUs and memory each suffice. */
static Verdict check_places(const Planner *p, Refusal *ret) {
        Request r = *p->request;
        int does;

        r.proximity = PROXIMITY_ANY;
        r.n_limits = 0;
        does = p->request->proximity != PROXIMITY_ANY || p->request->n_limits > 0 ? is_feasible(p, &r) : 0;
        if (does < 0)
                return planner_give_up(does, ret);
        return does > 0 ? refuse_proximity(p, ret) : check_numa(p, ret);
}

/* Appends the devices, nodes, CPUs and memory nodes that the request names, because these rule out other plans. */
static void add_named(const Request *r, Refusal *ret) {
        _cleanup_free_ char *named = NULL, *cpus = NULL, *nodes = NULL;
        int k = 0;

        if (!ret || !ret->message)
                return;
        for (size_t i = 0; i < r->n_at && k >= 0; i++)
                k = string_append(&named, ", ", "%s", PCI_ADDRESS_STR(r->at[i].address));
        for (size_t i = 0; i < r->n_host_nodes && k >= 0; i++)
                k = string_append(&named, ", ", "NUMA node %d", r->host_nodes[i]);
        if (!cpuset_is_empty(&r->cpus_from)) {
                cpus = cpuset_format(&r->cpus_from);
                k = cpus ? string_append(&named, ", ", "CPUs %s", cpus) : -ENOMEM;
        }
        if (!cpuset_is_empty(&r->memory_from)) {
                nodes = cpuset_format(&r->memory_from);
                k = nodes ? string_append(&named, ", ", "memory of NUMA nodes %s", nodes) : -ENOMEM;
        }
        if (k >= 0)
                (void) string_replace(&ret->message, "%s The request names %s.", ret->message, named);
}

Verdict planner_refuse(const Planner *p, Refusal *ret) {
        Verdict v = planner_check_counts(p, ret);

        if (v == VERDICT_NONE)
                v = planner_check_fabric(p, ret);
        if (v == VERDICT_NONE)
                v = check_room(p, ret);
        if (v == VERDICT_NONE)
                v = check_places(p, ret);
        if (request_is_exact(p->request))
                add_named(p->request, ret);
        else
                planner_nearest(p, v, ret);
        return v;
}
