/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tries sets of NUMA nodes, and searches for the best devices for each set. */

#include <assert.h>
#include <errno.h>

#include "model/cores.h"
#include "plan-internal.h"

/* The work of trying a set of nodes, besides the search for devices, in comparisons. */
#define NODE_SET_WORK 64U

/* Stands for a missing SLIT distance. A SLIT has one byte for each distance, so none is larger. */
#define DISTANCE_UNTOLD 255U

static bool same_package(const Inventory *inv, const NodeChoice *choice, const NumaNode *node) {
        for (size_t i = 0; node->package >= 0 && i < choice->n_nodes; i++)
                if (inv->nodes[choice->nodes[i]].package == node->package)
                        return true;
        return false;
}

/* Returns the affinity of devices on a node outside of the set, or NODE_AFFINITY_REFUSED if the policy does not allow
 * them. */
static NodeAffinity judge_remote(const Planner *p, NumaPolicy policy, const NodeChoice *choice, size_t node) {
        const Inventory *inv = p->context->inventory;
        bool remote = numa_policy_allows_remote(policy) ||
                      (numa_policy_allows_socket(policy) && same_package(inv, choice, &inv->nodes[node]));

        return remote ? NODE_AFFINITY_REMOTE : NODE_AFFINITY_REFUSED;
}

NumaPolicy planner_policy(const Planner *p, size_t pool) {
        return p->lenient ? p->request->numa : numa_policy_stricter(p->request->numa, p->pools[pool].pool->numa);
}

static void judge_nodes(const Planner *p, NumaPolicy policy, const NodeChoice *choice, uint8_t *ret) {
        for (size_t i = 0; i < p->context->inventory->n_nodes; i++)
                ret[i] = (uint8_t) judge_remote(p, policy, choice, i);
        ret[SEARCH_NODE_UNKNOWN] = numa_policy_allows_unknown(policy) ? NODE_AFFINITY_UNKNOWN : NODE_AFFINITY_REFUSED;
        for (size_t i = 0; i < choice->n_nodes; i++)
                ret[choice->nodes[i]] = NODE_AFFINITY_LOCAL;
}

/* Counts the candidates in task->have, and sets two lower bounds, which leave out NICs of GPUs: task->off is the number
 * of wanted devices beyond the candidates on the guest's nodes; task->remote is the number of wanted devices beyond the
 * candidates on the guest's nodes and on an unknown node. Returns false if a pool has too few candidates in all. */
static bool count_off_node(const Planner *p, SearchTask *task) {
        for (size_t i = 0; i < p->request->n_pools; i++) {
                unsigned *have = task->have[i], wanted = p->pools[i].wanted;

                for (size_t n = 0; n < SEARCH_NODES_MAX; n++)
                        have[task->affinity[i][n]] += p->candidates[i][n];
                wanted -= MIN(wanted, have[NODE_AFFINITY_LOCAL]);
                task->off += p->pools[i].is_gpu_nic ? 0 : wanted;
                wanted -= MIN(wanted, have[NODE_AFFINITY_UNKNOWN]);
                task->remote += p->pools[i].is_gpu_nic ? 0 : wanted;
                if (wanted > have[NODE_AFFINITY_REMOTE])
                        return false;
        }
        return true;
}

/* Returns the largest distance within this proximity. */
static Distance distance_limit(Proximity proximity) {
        Distance d = DISTANCE_PIX;

        while (d < DISTANCE_SYS && proximity_allows(proximity, d + 1))
                d++;
        return d;
}

/* Makes the task for the nodes that task->affinity describes. 0; -ENOENT: a pool has too few candidates. */
static int make_task(const Planner *p, SearchTask *task) {
        task->limit = distance_limit(p->request->proximity);
        task->n_limits = p->request->n_limits;
        for (size_t i = 0; i < task->n_limits; i++)
                task->limits[i] = (SearchLimit) { .pools = { p->limits[i][0], p->limits[i][1] },
                                                  .limit = distance_limit(p->request->limits[i].limit) };
        return count_off_node(p, task) ? 0 : -ENOENT;
}

static int choose_devices(const Planner *p, NodeChoice *choice) {
        SearchTask task = { 0 };
        int r;

        choice->picks = (Picks) { 0 };
        if (p->request->n_pools == 0)
                return 0;
        for (size_t i = 0; i < p->request->n_pools; i++)
                judge_nodes(p, planner_policy(p, i), choice, task.affinity[i]);
        r = make_task(p, &task);
        return r < 0 ? r : search_devices(p->search, &task, p->work, &choice->picks);
}

/* Checks the limits as if the guest were on all NUMA nodes. -ENOENT: no devices satisfy them, so no set of nodes needs
 * to be tried. 0: some devices do, the request has no limits, or the check costs too much. Or -ENOMEM. */
static int check_limits(const Planner *p) {
        SearchTask task = { 0 };
        int r;

        if (p->request->n_pools == 0 || (p->request->proximity == PROXIMITY_ANY && p->request->n_limits == 0))
                return 0;
        for (size_t i = 0; i < p->request->n_pools; i++) {
                judge_nodes(p, planner_policy(p, i), &(NodeChoice) { 0 }, task.affinity[i]);
                memset(task.affinity[i], NODE_AFFINITY_LOCAL, p->context->inventory->n_nodes);
        }
        r = make_task(p, &task);
        if (r == 0)
                r = search_is_feasible(p->search, &task, p->work);
        return r == -E2BIG ? 0 : r;
}

/* Distributes the shares of CPUs: each node, from the lowest on, gets the largest remaining share for which it has
 * room. False: a node has no room for any remaining share. */
static bool share_cpus(const Planner *p, NodeChoice *choice) {
        unsigned shares[ALLOCATION_CELLS_MAX];

        cores_split(p->request->cpus, p->threads, choice->n_nodes, shares);
        for (size_t i = 0; i < choice->n_nodes; i++) {
                size_t largest = i;

                while (largest < choice->n_nodes && shares[largest] > p->n_free_cpus[choice->nodes[i]])
                        largest++;
                if (largest == choice->n_nodes)
                        return false;
                choice->cpus[i] = shares[largest];
                memmove(&shares[i + 1], &shares[i], (largest - i) * sizeof(shares[0]));
        }
        return true;
}

/* Distributes the guest's CPUs and memory over the nodes. False: there are more nodes than vCPUs, the nodes lack room
 * for the CPUs, or planner_place_memory() returned false. */
static bool share(const Planner *p, NodeChoice *choice) {
        if (p->request->cpus == 0)
                return true;
        return p->request->cpus >= choice->n_nodes && share_cpus(p, choice) && planner_place_memory(p, choice);
}

static void complete_score(const Planner *p, NodeChoice *choice) {
        const Inventory *inv = p->context->inventory;
        Score *score = &choice->picks.score;

        choice->partition = p->partition;
        score->broken = p->broken;
        score->numa_nodes = (unsigned) choice->n_nodes;
        for (size_t i = 0; i < choice->n_nodes; i++) {
                if (p->request->n_pools == 0)
                        score->spoiled += p->spoiled[choice->nodes[i]];
                for (size_t j = 0; j < i; j++)
                        score->node_distance +=
                                inv->nodes[choice->nodes[i]].distance[choice->nodes[j]] ?: DISTANCE_UNTOLD;
        }
}

static int choice_compare(const NodeChoice *a, const NodeChoice *b) {
        int c = score_compare(&a->picks.score, &b->picks.score);

        for (size_t i = 0; c == 0 && i < a->picks.n; i++)
                if (a->picks.devices[i] != b->picks.devices[i])
                        c = a->picks.devices[i] < b->picks.devices[i] ? -1 : 1;
        return c;
}

/* Advances nodes to the next set of k of the numbers below n, in lexicographic order. False: the set was the last. */
static bool next_set(size_t *nodes, size_t k, size_t n) {
        for (size_t i = k; i-- > 0;)
                if (nodes[i] < n - k + i) {
                        nodes[i]++;
                        for (size_t j = i + 1; j < k; j++)
                                nodes[j] = nodes[j - 1] + 1;
                        return true;
                }
        return false;
}

typedef struct Contest {
        NodeChoice *best, *second;
        unsigned found;
        bool any; /* any choice will do: stop at the first */
} Contest;

/* Of two equal choices the earlier one stays: its nodes have lower ids. */
static void contest_enter(Contest *c, const NodeChoice *choice) {
        if (c->found == 0 || choice_compare(choice, c->best) < 0) {
                if (c->found > 0)
                        *c->second = *c->best;
                *c->best = *choice;
        } else if (c->found == 1 || choice_compare(choice, c->second) < 0)
                *c->second = *choice;
        c->found++;
}

/* Enters the best choice for this set of nodes in the contest. -ENOENT: there is none. */
static int try_nodes(const Planner *p, NodeChoice *choice, Contest *contest) {
        int r = share(p, choice) ? choose_devices(p, choice) : -ENOENT;

        if (r < 0)
                return r;
        complete_score(p, choice);
        contest_enter(contest, choice);
        return 0;
}

/* Tries all sets of k nodes, or stops at the first choice if contest->any. */
static int choose_among(const Planner *p, size_t k, Contest *contest) {
        NodeChoice choice = { .n_nodes = k };
        size_t set[ALLOCATION_CELLS_MAX]; /* positions in Planner.nodes */

        assert(k > 0 && k <= ELEMENTSOF(set) && k <= p->n_nodes);
        for (size_t i = 0; i < k; i++)
                set[i] = i;
        do {
                int r;

                if (*p->work < NODE_SET_WORK)
                        return -E2BIG;
                *p->work -= NODE_SET_WORK;
                for (size_t i = 0; i < k; i++)
                        choice.nodes[i] = p->nodes[set[i]];
                r = try_nodes(p, &choice, contest);
                if (r < 0 && r != -ENOENT)
                        return r;
        } while (!(contest->any && contest->found > 0) && next_set(set, k, p->n_nodes));
        return 0;
}

/* Returns how many devices of the pool k nodes can have at most. Devices on unknown nodes count if the policy allows
 * them. */
static unsigned most_local(const Planner *p, size_t pool, size_t k) {
        bool unknown = numa_policy_allows_unknown(planner_policy(p, pool));
        unsigned left[SEARCH_NODES_MAX], sum = unknown ? p->candidates[pool][SEARCH_NODE_UNKNOWN] : 0;

        memcpy(left, p->candidates[pool], sizeof(left));
        while (k-- > 0) {
                size_t most = 0;

                for (size_t i = 1; i < p->context->inventory->n_nodes; i++)
                        if (left[i] > left[most])
                                most = i;
                sum += left[most];
                left[most] = 0;
        }
        return sum;
}

/* Returns false if no k nodes can suffice: the request has fewer than k vCPUs; fewer than k nodes have memory and room
 * for the smallest share of CPUs; or a pool has too few devices, even on the k nodes with the most of them or, if its
 * policy allows nodes outside of the set, on all nodes. */
static bool may_do(const Planner *p, size_t k) {
        unsigned shares[ALLOCATION_CELLS_MAX];
        size_t roomy = 0;

        for (size_t i = 0; i < p->request->n_pools; i++)
                if ((numa_policy_allows_socket(planner_policy(p, i)) ? planner_count(p, i) : most_local(p, i, k)) <
                    p->pools[i].wanted)
                        return false;
        if (p->request->cpus == 0)
                return true;
        if (p->request->cpus < k)
                return false;
        cores_split(p->request->cpus, p->threads, k, shares);
        for (size_t i = 0; i < p->context->inventory->n_nodes; i++)
                roomy += p->n_free_cpus[i] >= shares[k - 1] && p->free_memory[p->memory_node[i]] > 0;
        return roomy >= k;
}

static int node_compare(const void *a, const void *b) {
        const size_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* Returns the most nodes on which the guest may be by the NUMA policies of the request and its pools. */
static size_t most_nodes(const Planner *p) {
        bool several = numa_policy_allows_several(p->request->numa);

        for (size_t i = 0; i < p->request->n_pools; i++)
                several = several && numa_policy_allows_several(planner_policy(p, i));
        return several ? ALLOCATION_CELLS_MAX : 1;
}

/* Tries the nodes that the request names. planner_check_exact() has checked that they exist. */
static int choose_named(const Planner *p, Contest *contest) {
        NodeChoice choice = { .n_nodes = p->request->n_host_nodes };
        int r;

        if (choice.n_nodes > most_nodes(p))
                return 0;
        for (size_t i = 0; i < choice.n_nodes; i++) {
                int node = inventory_node_index(p->context->inventory, p->request->host_nodes[i]);

                assert(node >= 0);
                choice.nodes[i] = (size_t) node;
        }
        qsort(choice.nodes, choice.n_nodes, sizeof(choice.nodes[0]), node_compare);
        r = try_nodes(p, &choice, contest);
        return r == -ENOENT ? 0 : r;
}

/* Tries the nodes that the request names or, if it names none, one node, then two, and so on, up to the first number
 * with a choice. With Request.cells, tries only this number. */
static int choose(const Planner *p, Contest *contest) {
        size_t least = p->request->cells ?: 1, most = MIN(p->request->cells ?: ALLOCATION_CELLS_MAX, most_nodes(p));
        int r = check_limits(p);

        if (r == 0 && p->request->n_host_nodes > 0)
                return choose_named(p, contest);

        for (size_t k = least; r == 0 && k <= MIN(most, p->n_nodes) && contest->found == 0; k++)
                r = may_do(p, k) ? choose_among(p, k, contest) : 0;
        return r == -ENOENT ? 0 : r;
}

/* Tries all NVLink partitions, and enters the two best choices of each in the contest. */
static int choose_partition(const Planner *p, Contest *contest) {
        const FabricTable *table = &p->context->config->fabric;

        for (size_t i = 0; i < table->n; i++) {
                NodeChoice best, second;
                Contest own = { .best = &best, .second = &second, .any = contest->any };
                Planner part = *p;
                int r = planner_narrow(&part, &table->partitions[i]) ? choose(&part, &own) : 0;

                if (r < 0)
                        return r;
                if (own.found > 0)
                        contest_enter(contest, &best);
                if (own.found > 1)
                        contest_enter(contest, &second);
        }
        return 0;
}

static int choose_all(const Planner *p, Contest *contest) {
        return planner_wants_partition(p) ? choose_partition(p, contest) : choose(p, contest);
}

int planner_choose(const Planner *p, NodeChoice *ret, NodeChoice *ret_second, bool *ret_has_second) {
        Contest contest = { .best = ret, .second = ret_second };
        int r = choose_all(p, &contest);

        if (r < 0)
                return r;
        *ret_has_second = contest.found > 1;
        return contest.found > 0 ? 0 : -ENOENT;
}

int planner_is_feasible(const Planner *p, size_t *ret_n_nodes) {
        NodeChoice best, second;
        Contest contest = { .best = &best, .second = &second, .any = true };
        int r = choose_all(p, &contest);

        if (r < 0 || contest.found == 0)
                return r;
        *ret_n_nodes = best.n_nodes;
        return 1;
}

void planner_ignore_memory(Planner *p) {
        for (size_t i = 0; i < p->context->inventory->n_nodes; i++)
                p->free_memory[i] = UINT64_MAX;
}
