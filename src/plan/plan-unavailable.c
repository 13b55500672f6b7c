/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Refuses a request that names devices, NUMA nodes or CPUs that it cannot have, or that wants more devices of a pool
 * than are free, and says why. */
#include <errno.h>
#include <stdio.h>

#include "plan-internal.h"
#include "plan/device-state.h"
#include "util/strings.h"

/* Named devices, NUMA nodes and CPUs. A plan has all named devices and host nodes; it takes CPUs and memory only from
 * the named CPUs and memory nodes. */

static Verdict check_named_device(const HostView *view, const RequestDevice *d, Refusal *ret) {
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

static Verdict check_named_node(const HostView *view, const Request *r, int id, Refusal *ret) {
        const NumaNode *node = inventory_find_node(view->inventory, id);

        if (!node)
                return refuse(ret, VERDICT_NUMA, NULL, "'passthroughctl topology' shows the NUMA nodes.",
                              "There is no NUMA node %d.", id);
        if (inventory_cpu_node(view->inventory, id) != id || (r->cpus > 0 && cpuset_is_empty(&node->cpus)))
                return refuse(ret, VERDICT_NUMA, NULL, "Name nodes with CPUs.", "NUMA node %d has no CPUs.", id);
        return VERDICT_NONE;
}

/* libvirt 8.10 to 9.2 lets QEMU allocate memory with threads that run on the CPUs of the memory's node. */
#define LIBVIRT_THREADS_FIRST 8010000U
#define LIBVIRT_THREADS_END   9003000U

static Verdict check_memory_node(const HostView *view, int id, Refusal *ret) {
        const NumaNode *node = inventory_find_node(view->inventory, id);
        const PciDevice *owner = node ? inventory_memory_owner(view->inventory, node) : NULL;
        unsigned libvirt = view->inventory->libvirt.libvirt;

        if (!node)
                return refuse(ret, VERDICT_NUMA, NULL, "'passthroughctl topology' shows the NUMA nodes.",
                              "There is no NUMA node %d.", id);
        if (node->memory == 0)
                return refuse(ret, VERDICT_NUMA, NULL, "Name nodes with memory.", "NUMA node %d has no memory.", id);
        if (owner)
                return refuse(ret, VERDICT_NUMA, &owner->address, "Name other nodes.",
                              "The memory of NUMA node %d belongs to GPU %s, and goes offline when the GPU is given to "
                              "a guest.",
                              id, PCI_ADDRESS_STR(owner->address));
        if (cpuset_is_empty(&node->cpus) && libvirt >= LIBVIRT_THREADS_FIRST && libvirt < LIBVIRT_THREADS_END)
                return refuse(ret, VERDICT_NOT_SUPPORTED, NULL,
                              "Update libvirt to 9.3 or later, or name nodes with CPUs.",
                              "libvirt %u.%u cannot start a guest with memory of NUMA node %d, which has no CPUs.",
                              libvirt / 1000000, libvirt / 1000 % 1000, id);
        return VERDICT_NONE;
}

static Verdict refuse_taken_cpu(const HostView *view, unsigned id, Refusal *ret) {
        return refuse(ret, VERDICT_INSUFFICIENT_CPUS, NULL, NULL, "CPU %u, which the request names, %s.", id,
                      !inventory_find_cpu(view->inventory, id)      ? "is not online"
                      : cpuset_has(&view->config->housekeeping, id) ? "is a housekeeping CPU"
                      : cpuset_has(&view->ledger->cpus, id)         ? "belongs to another allocation"
                                                                    : "shares its core with a housekeeping CPU");
}

/* Refuses named CPUs that are not free, and sets that split a core. */
static Verdict check_named_cpus(const HostView *view, const CpuSet *from, Refusal *ret) {
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
                v = check_named_device(view, &r->at[i], ret);
        for (size_t i = 0; v == VERDICT_NONE && i < r->n_host_nodes; i++)
                v = check_named_node(view, r, r->host_nodes[i], ret);
        for (int id = cpuset_next(&r->memory_from, 0); v == VERDICT_NONE && id >= 0;
             id = cpuset_next(&r->memory_from, (unsigned) id + 1))
                v = check_memory_node(view, id, ret);
        return v == VERDICT_NONE ? check_named_cpus(view, &r->cpus_from, ret) : v;
}

/* The most unavailable devices of a pool that a refusal names. */
#define REASONS_MAX 3U

/* Appends why some devices of the pool are unavailable: "0000:82:00.0 is held by 'vm1'. 5 more are not free." */
static void append_reasons(const HostView *view, const Pool *pool, Refusal *ret) {
        unsigned n = 0;

        for (size_t i = 0; i < view->inventory->n_devices; i++) {
                const PciDevice *dev = &view->inventory->devices[i];
                _cleanup_refusal_ Refusal why = { 0 };
                bool names_itself;

                if (policy_pool(view->policy, dev) != pool)
                        continue;
                if (planner_check_device(view, dev, n < REASONS_MAX ? &why : NULL) == VERDICT_NONE ||
                    n++ >= REASONS_MAX)
                        continue;
                names_itself = why.message && strncmp(why.message, PCI_ADDRESS_STR(dev->address),
                                                      strlen(PCI_ADDRESS_STR(dev->address))) == 0;
                (void) string_replace(&ret->message, "%s %s%s%s", ret->message,
                                      names_itself ? "" : PCI_ADDRESS_STR(dev->address), names_itself ? "" : ": ",
                                      why.message ?: "");
        }
        if (n > REASONS_MAX)
                (void) string_replace(&ret->message, "%s %u more %s not free.", ret->message, n - REASONS_MAX,
                                      ARE(n - REASONS_MAX));
}

/* Counts the devices of a pool. *ret_held: how many of them are not free because of an allocation, although the policy
 * permits them.
 */
static void count_pool(const Planner *p, const Pool *pool, unsigned *ret_all, unsigned *ret_held) {
        const HostView *view = p->context;

        *ret_all = *ret_held = 0;
        for (size_t i = 0; i < view->inventory->n_devices; i++) {
                const PciDevice *dev = &view->inventory->devices[i];
                Verdict v;

                if (policy_pool(view->policy, dev) != pool)
                        continue;
                (*ret_all)++;
                if (p->is_free[i] || policy_verdict(view->policy, dev) != VERDICT_NONE)
                        continue;
                v = ledger_check_device(view->ledger, view->status, view->inventory, dev, NULL, NULL);
                *ret_held += v == VERDICT_ALLOCATED || v == VERDICT_PF_ALLOCATED;
        }
}

static bool matches_vfs_only(const Pool *pool) {
        for (size_t i = 0; i < pool->n_matches; i++)
                if (pool->matches[i].type != PCI_TYPE_VF && !pool->matches[i].pf)
                        return false;
        return pool->n_matches > 0;
}

/* Counts the devices that the pool's Match= lines match, but which an earlier pool has. *ret: the pool that has the
 * first of these devices. */
static unsigned count_shadowed(const HostView *view, const Pool *pool, const Pool **ret) {
        unsigned n = 0;

        for (size_t i = 0; i < view->inventory->n_devices; i++) {
                const PciDevice *dev = &view->inventory->devices[i];
                const Pool *has = policy_pool(view->policy, dev);

                if (!has || !match_any(pool->matches, pool->n_matches, dev))
                        continue;
                if (n++ == 0)
                        *ret = has;
        }
        return n;
}

/* Returns VERDICT_NONE if the daemon will create the pool's VFs on the PF, or why not. */
static Verdict check_vfs_to_come(const HostView *view, const Pool *pool, const PciDevice *pf, Refusal *ret) {
        Verdict v = policy_check_vf_number(view->policy, pf, pool, ret);

        if (v != VERDICT_NONE || !mlx4_needs_options(view->policy, pf))
                return v;
        return mlx4_refuse(view->mlx4, view->policy, view->ledger, pf, pool->virtual_functions, ret);
}

/* Returns whether the daemon will create VFs of the pool on any PF. If not, *ret says why the first PF on which the
 * pool wants VFs gets none. *ret is empty if the pool wants VFs on no PF. */
static bool expects_vfs(const HostView *view, const Pool *pool, Refusal *ret) {
        const Inventory *inv = view->inventory;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *pf = &inv->devices[i];

                if (policy_asking_pool(view->policy, pf) != pool ||
                    check_vfs_to_come(view, pool, pf, ret->message ? NULL : ret) != VERDICT_NONE)
                        continue;
                refusal_done(ret);
                return true;
        }
        return false;
}

static Verdict refuse_empty_pool(const HostView *view, const Pool *pool, unsigned wanted, Refusal *ret) {
        const Pool *earlier = NULL;
        unsigned shadowed = count_shadowed(view, pool, &earlier);
        _cleanup_refusal_ Refusal why = { 0 };
        bool to_come = expects_vfs(view, pool, &why);
        const char *remedy =
                pool->external ? "Create its VFs outside the daemon (VirtualFunctions=external)."
                : to_come      ? "passthroughd creates VFs in the seconds after a start or reload. Try again, or ask "
                                 "'passthroughctl check'."
                : matches_vfs_only(pool) && pool->virtual_functions == 0
                        ? "Set VirtualFunctions= of the pool, so that passthroughd creates VFs; or correct its Match= "
                          "lines."
                        : "Correct the Match= lines of the pool, or ask for another pool.";

        if (shadowed > 0)
                return refuse(ret, VERDICT_INSUFFICIENT_DEVICES, NULL,
                              "A device belongs to the first pool that matches it. Put the narrower pool first, or ask "
                              "for the earlier pool.",
                              "Pool '%s': %u wanted, 0 of 0 free. Its Match= lines match %u device%s, which %s in the "
                              "earlier pool '%s'.",
                              pool->name, wanted, shadowed, PLURAL(shadowed), ARE(shadowed), earlier->name);
        if (why.message)
                return refuse(ret, VERDICT_INSUFFICIENT_DEVICES, NULL, why.remedy,
                              "Pool '%s': %u wanted, 0 of 0 free. %s", pool->name, wanted, why.message);
        return refuse(ret, VERDICT_INSUFFICIENT_DEVICES, NULL, remedy,
                      "Pool '%s': %u wanted, 0 of 0 free. No device of this node matches its Match= lines.", pool->name,
                      wanted);
}

/* Returns the remedy for a pool with too few free devices. held: as ret_held of count_pool(). */
static const char *choose_count_remedy(const SearchPool *pool, unsigned n_free, unsigned held) {
        if (n_free + held >= pool->wanted)
                return "Release an allocation of these devices, or ask for fewer.";
        if (n_free > 0)
                return "Ask for fewer.";
        return held > 0 ? "Release an allocation of these devices, and ask for fewer."
                        : "'passthroughctl explain DEVICE' says what keeps a device from being free.";
}

Verdict planner_check_counts(const Planner *p, Refusal *ret) {
        for (size_t i = 0; i < p->request->n_pools; i++) {
                const SearchPool *pool = &p->pools[i];
                unsigned n_free = planner_count(p, i), all, held;

                if (n_free >= pool->wanted)
                        continue;
                count_pool(p, pool->pool, &all, &held);
                if (all == 0)
                        return refuse_empty_pool(p->context, pool->pool, pool->wanted, ret);
                (void) refuse(ret, VERDICT_INSUFFICIENT_DEVICES, NULL, choose_count_remedy(pool, n_free, held),
                              "Pool '%s': %u wanted, %u of %u free.", pool->pool->name, pool->wanted, n_free, all);
                if (ret && ret->message)
                        append_reasons(p->context, pool->pool, ret);
                return VERDICT_INSUFFICIENT_DEVICES;
        }
        return VERDICT_NONE;
}
