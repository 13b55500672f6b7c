/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NVLink partitions: the GPUs that a guest gets from pools with Fabric=yes form one partition of Fabric Manager, unless
 * the request has no_fabric. */

#include "plan-internal.h"
#include "util/strings.h"

/* Returns how many GPUs the request wants from pools with Fabric=yes. */
static unsigned count_wanted(const Planner *p) {
        unsigned n = 0;

        for (size_t i = 0; i < p->request->n_pools; i++)
                n += p->pools[i].pool->fabric ? p->pools[i].wanted : 0;
        return n;
}

bool planner_wants_partition(const Planner *p) {
        return !p->request->no_fabric && count_wanted(p) > 0;
}

/* Returns whether for each module of the partition a GPU in a pool with Fabric=yes is known. */
static bool is_known(const Planner *p, const FabricPartition *partition) {
        for (unsigned m = 1; m <= FABRIC_MODULE_MAX; m++)
                if (partition->modules & fabric_bit(m) && p->modules[m] == 0)
                        return false;
        return true;
}

/* Returns whether Fabric Manager reports the partition, or it is unknown which partitions Fabric Manager has. */
static bool is_supported(const Planner *p, const FabricPartition *partition) {
        return !p->context->fabric || fabric_table_has(p->context->fabric, partition);
}

/* Returns whether all GPUs of the partition are free, Fabric Manager is not known to lack the partition, and no
 * allocation has a partition with one of its GPUs. */
static bool is_whole(const Planner *p, const FabricPartition *partition) {
        if (!is_supported(p, partition) || partition->modules & p->held)
                return false;
        for (unsigned m = 1; m <= FABRIC_MODULE_MAX; m++)
                if (partition->modules & fabric_bit(m) && (p->modules[m] == 0 || !p->is_free[p->modules[m] - 1]))
                        return false;
        return true;
}

/* Returns Score.broken of the partition: the sum of the sizes of larger whole partitions that share a GPU with it. */
static unsigned count_broken(const Planner *p, const FabricPartition *partition) {
        const FabricTable *table = &p->context->config->fabric;
        unsigned n = 0, size = fabric_count(partition->modules);

        for (size_t i = 0; i < table->n; i++) {
                const FabricPartition *other = &table->partitions[i];

                if (fabric_count(other->modules) > size && other->modules & partition->modules && is_whole(p, other))
                        n += fabric_count(other->modules);
        }
        return n;
}

/* Returns the index of the request's pool that has the device, or n_pools if none has it. */
static size_t find_pool(const Planner *p, const PciDevice *dev) {
        const Pool *pool = policy_pool(p->context->policy, dev);
        size_t i = 0;

        while (i < p->request->n_pools && p->pools[i].pool != pool)
                i++;
        return i;
}

bool planner_narrow(Planner *p, const FabricPartition *partition) {
        const Inventory *inv = p->context->inventory;
        uint32_t devices[FABRIC_MODULE_MAX];
        size_t n = 0;

        if (fabric_count(partition->modules) != count_wanted(p) || !is_whole(p, partition))
                return false;
        for (size_t i = 0; i < p->request->n_pools; i++)
                if (p->pools[i].pool->fabric)
                        memset(p->candidates[i], 0, sizeof(p->candidates[i]));
        for (unsigned m = 1; m <= FABRIC_MODULE_MAX; m++) {
                const PciDevice *dev;
                size_t pool;

                if (!(partition->modules & fabric_bit(m)))
                        continue;
                devices[n] = p->modules[m] - 1;
                dev = &inv->devices[devices[n++]];
                pool = find_pool(p, dev);
                if (pool == p->request->n_pools)
                        return false;
                p->candidates[pool][search_node(inv, dev)]++;
        }
        for (size_t i = 0; i < p->request->n_pools; i++)
                if (p->pools[i].pool->fabric && planner_count(p, i) != p->pools[i].wanted)
                        return false;
        search_narrow(p->search, devices, n);
        p->partition = partition;
        p->broken = count_broken(p, partition);
        return true;
}

/* Formats "Pool 'gpu'" or "Pools 'a' and 'b'". */
static char *list_pools(const Planner *p) {
        char *text = NULL;
        size_t n = 0;

        for (size_t i = 0; i < p->request->n_pools; i++)
                if (p->pools[i].pool->fabric) {
                        (void) string_append(&text, " and ", "'%s'", p->pools[i].pool->name);
                        n++;
                }
        if (text)
                (void) string_replace(&text, "Pool%s %s", PLURAL(n), text);
        return text;
}

/* Formats the sizes of partitions: "1, 2, 4 or 8". */
static char *list_sizes(const FabricTable *table) {
        _cleanup_free_ char *text = NULL;
        unsigned last = 0;

        for (unsigned size = 1; size <= FABRIC_MODULE_MAX; size++)
                for (size_t i = 0; i < table->n; i++)
                        if (fabric_count(table->partitions[i].modules) == size) {
                                if (last > 0 && string_append(&text, ", ", "%u", last) < 0)
                                        return NULL;
                                last = size;
                                break;
                        }
        return text ? string_format("%s or %u", text, last) : string_format("%u", last);
}

/* Returns an allocation whose partition shares a GPU with this partition, or NULL. */
static const Allocation *find_holder(const Planner *p, const FabricPartition *partition) {
        const Ledger *l = p->context->ledger;

        for (size_t i = 0; i < l->n_allocations; i++) {
                const FabricPartition *held = planner_partition(p->context, l->allocations[i]);

                if (held && held->modules & partition->modules)
                        return l->allocations[i];
        }
        return NULL;
}

/* Explains why a GPU is not free: "'vm1' has 0000:1b:00.0". */
static char *explain_gpu(const Planner *p, const PciDevice *dev, const Allocation *holder) {
        const HostView *view = p->context;
        _cleanup_refusal_ Refusal why = { 0 };

        if (holder)
                return string_format("'%s' has %s", holder->name, PCI_ADDRESS_STR(dev->address));
        (void) planner_check_device(view, dev, &why);
        return string_format("%s is not free%s%s", PCI_ADDRESS_STR(dev->address), why.message ? ": " : "",
                             why.message ?: "");
}

/* Appends " Partition 1: 'vm1' has 0000:1b:00.0, 'vm2' has 0000:2b:00.0." Names the first GPU of each allocation. */
static void append_broken(const Planner *p, const FabricPartition *partition, Refusal *ret) {
        const Allocation *holders[FABRIC_MODULE_MAX] = { 0 }, *other;
        _cleanup_free_ char *text = NULL;
        size_t n = 0, len;

        if (!is_supported(p, partition))
                text = strdup(PARTITION_UNSUPPORTED);
        for (unsigned m = 1; m <= FABRIC_MODULE_MAX; m++) {
                const PciDevice *dev =
                        partition->modules & fabric_bit(m) ? &p->context->inventory->devices[p->modules[m] - 1] : NULL;
                const Allocation *holder = dev ? ledger_holder(p->context->ledger, dev->address) : NULL;
                _cleanup_free_ char *why = NULL;
                bool seen = !dev || !is_supported(p, partition) || p->is_free[p->modules[m] - 1];

                for (size_t i = 0; holder && i < n; i++)
                        seen = seen || holders[i] == holder;
                if (seen)
                        continue;
                if (holder)
                        holders[n++] = holder;
                why = explain_gpu(p, dev, holder);
                if (!why || string_append(&text, ", ", "%s", why) < 0)
                        return;
        }
        other = text ? NULL : find_holder(p, partition);
        if (other)
                text = string_format("'%s' has partition %d", other->name, other->partition);
        len = text ? strlen(text) : 0;
        if (len > 0)
                (void) string_replace(&ret->message, "%s Partition %u: %s%s", ret->message, partition->id, text,
                                      text[len - 1] == '.' ? "" : ".");
}

/* Returns whether the request names a GPU of a pool with Fabric=yes that the partition lacks. */
static bool lacks_named(const Planner *p, const FabricPartition *partition) {
        for (size_t i = 0; i < p->request->n_at; i++) {
                const PciDevice *dev = inventory_find(p->context->inventory, p->request->at[i].address);
                unsigned module = dev ? config_module(p->context->config, dev) : 0;

                if (dev && policy_has_fabric(p->context->policy, dev) &&
                    (module == 0 || !(partition->modules & fabric_bit(module))))
                        return true;
        }
        return false;
}

/* Returns whether the partition has exactly as many GPUs as the request wants. */
static bool has_size(const Planner *p, const FabricPartition *partition) {
        return fabric_count(partition->modules) == count_wanted(p);
}

/* Returns whether the request could have the partition if all its GPUs were free and Fabric Manager had it. */
static bool is_candidate(const Planner *p, const FabricPartition *partition) {
        return has_size(p, partition) && is_known(p, partition) && !lacks_named(p, partition);
}

static unsigned count_partitions(const Planner *p, bool (*is)(const Planner *, const FabricPartition *)) {
        const FabricTable *table = &p->context->config->fabric;
        unsigned n = 0;

        for (size_t i = 0; i < table->n; i++)
                n += has_size(p, &table->partitions[i]) && is(p, &table->partitions[i]);
        return n;
}

static bool can_narrow(const Planner *p, const FabricPartition *partition) {
        Planner part = *p;

        return is_candidate(p, partition) && planner_narrow(&part, partition);
}

Verdict planner_check_fabric(const Planner *p, Refusal *ret) {
        static const Verdict v = VERDICT_INSUFFICIENT_DEVICES;
        const FabricTable *table = &p->context->config->fabric;
        unsigned wanted = count_wanted(p);
        _cleanup_free_ char *pools = NULL, *sizes = NULL;

        if (!planner_wants_partition(p) || count_partitions(p, can_narrow) > 0)
                return VERDICT_NONE;
        pools = list_pools(p);
        sizes = list_sizes(table);
        if (!pools || !sizes)
                return refuse_no_memory(ret);
        if (table->n == 0)
                return refuse(ret, v, NULL, "Set Partitions= in [Fabric] of the configuration, or ask with fabric=off.",
                              "%s: %u wanted as an NVLink partition, but the partitions of this node are unknown.",
                              pools, wanted);
        if (count_partitions(p, has_size) == 0)
                return refuse(ret, v, NULL, "Ask for as many GPUs as a partition has, or with fabric=off.",
                              "%s: %u wanted, but the NVLink partitions of this node have %s GPUs.", pools, wanted,
                              sizes);
        if (count_partitions(p, is_known) == 0)
                return refuse(ret, v, NULL,
                              "Set Module= in [Fabric] of the configuration for each GPU, or ask with fabric=off.",
                              "%s: %u wanted, but the module ids of %u GPUs of one NVLink partition are not known.",
                              pools, wanted, wanted);
        if (count_partitions(p, is_candidate) == 0)
                return refuse(ret, v, NULL, "Name the GPUs of one partition, or ask with fabric=off.",
                              "%s: no NVLink partition of %u GPU%s has the GPUs that the request names.", pools, wanted,
                              PLURAL(wanted));
        (void) refuse(ret, v, NULL,
                      "Release the allocations that break a partition, or ask for another number of GPUs or with "
                      "fabric=off.",
                      "%s: %u wanted, but no NVLink partition of %u GPU%s is whole.", pools, wanted, wanted,
                      PLURAL(wanted));
        for (size_t i = 0; ret && ret->message && i < table->n; i++)
                if (is_candidate(p, &table->partitions[i]))
                        append_broken(p, &table->partitions[i], ret);
        return v;
}
