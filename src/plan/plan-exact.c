/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices, NUMA nodes and CPUs that the caller has chosen: the plan has exactly these, or there is no plan. */

#include <errno.h>

#include "plan-internal.h"
#include "plan/device-state.h"
#include "util/strings.h"

static Verdict check_device(const HostView *view, const RequestDevice *d, Refusal *ret) {
        const PciDevice *dev = inventory_find(view->inventory, d->address);
        const Pool *pool = dev ? policy_pool(view->policy, dev) : NULL;
        Verdict v;

        if (!dev)
                return refuse(ret, VERDICT_NO_SUCH_DEVICE, &d->address, "'passthroughctl list' shows the devices.",
                              "%s is not on this node.", PCI_ADDRESS_STR(d->address));
        if (!pool || !streq(pool->name, d->pool))
                return refuse(ret, VERDICT_NOT_IN_POOL, &d->address,
                              "'passthroughctl list' shows the pools of devices.", "%s is not in pool '%s'.",
                              PCI_ADDRESS_STR(d->address), d->pool);
        v = planner_check_device(view, dev, ret);
        if (v == VERDICT_NONE && device_is_in_use(view, dev))
                v = refuse(ret, VERDICT_BUSY, &d->address, NULL, "%s is in use.", PCI_ADDRESS_STR(d->address));
        return v;
}

static Verdict check_node(const HostView *view, const Request *r, int id, Refusal *ret) {
        const NumaNode *node = inventory_find_node(view->inventory, id);

        if (!node)
                return refuse(ret, VERDICT_NUMA, NULL, "'passthroughctl topology' shows the NUMA nodes.",
                              "There is no NUMA node %d.", id);
        if (r->cpus > 0 && cpuset_is_empty(&node->cpus))
                return refuse(ret, VERDICT_NUMA, NULL, "Name nodes with CPUs.", "NUMA node %d has no CPUs.", id);
        return VERDICT_NONE;
}

static Verdict refuse_cpu(unsigned cpu, Refusal *ret, const char *why) {
        return refuse(ret, VERDICT_INSUFFICIENT_CPUS, NULL, NULL, "CPU %u, which the request names, %s.", cpu, why);
}

static Verdict refuse_taken_cpu(const HostView *view, unsigned id, Refusal *ret) {
        return refuse_cpu(id, ret,
                          !inventory_find_cpu(view->inventory, id)      ? "is not online"
                          : cpuset_has(&view->config->housekeeping, id) ? "is a housekeeping CPU"
                          : cpuset_has(&view->ledger->cpus, id)         ? "belongs to another allocation"
                                                                        : "shares its core with a housekeeping CPU");
}

/* Each CPU is free, and the set has whole cores. */
static Verdict check_cpus(const HostView *view, const CpuSet *from, Refusal *ret) {
        const Inventory *inv = view->inventory;
        CpuSet taken = *from, cores = { 0 };

        if (cpuset_is_empty(from))
                return VERDICT_NONE;
        for (size_t i = 0; i < inv->n_nodes; i++) {
                CpuSet free_cpus;

                ledger_cpus_free(view->ledger, inv, view->config, &inv->nodes[i], &free_cpus);
                cpuset_subtract(&taken, &free_cpus);
        }
        if (!cpuset_is_empty(&taken))
                return refuse_taken_cpu(view, (unsigned) cpuset_next(&taken, 0), ret);
        for (size_t i = 0; i < inv->n_cpus; i++)
                if (cpuset_has(from, inv->cpus[i].id))
                        cpuset_add(&cores, inv->cpus[i].core);
        for (size_t i = 0; i < inv->n_cpus; i++)
                if (cpuset_has(&cores, inv->cpus[i].core) && !cpuset_has(from, inv->cpus[i].id))
                        return refuse(ret, VERDICT_INSUFFICIENT_CPUS, NULL, "Name whole cores.",
                                      "The request names a CPU of a core without CPU %u of the same core.",
                                      inv->cpus[i].id);
        return VERDICT_NONE;
}

Verdict planner_check_exact(const HostView *view, const Request *r, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < r->n_at; i++)
                v = check_device(view, &r->at[i], ret);
        for (size_t i = 0; v == VERDICT_NONE && i < r->n_host_nodes; i++)
                v = check_node(view, r, r->host_nodes[i], ret);
        return v == VERDICT_NONE ? check_cpus(view, &r->cpus_from, ret) : v;
}

void planner_add_exact(const Request *r, Refusal *ret) {
        _cleanup_free_ char *named = NULL, *cpus = NULL;
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
        if (k >= 0)
                (void) string_replace(&ret->message, "%s The request names %s.", ret->message, named);
}
