/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks Fabric Manager every few seconds. If it has restarted with resiliency, it waits a minute to be told which NVLink
 * partitions are active, and exits if it is not told; only the ledger knows them. Otherwise it reports its partitions,
 * whether those of allocations are active, and which GPUs have failed NVLinks. A child asks, because Fabric Manager may
 * hang.
 */

#include <errno.h>
#include <limits.h>

#include "facts.h"
#include "host/holders.h"
#include "host/rootservice.h"
#include "operations.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/strings.h"

/* The time between two questions. Several questions fit into the minute for which a restarted Fabric Manager waits. */
#define INTERVAL_USEC (10U * 1000000U)
#define ANSWER_USEC   (10U * 1000000U)
/* If Fabric Manager hangs, passthroughd-root answers some seconds after ANSWER_USEC. The child then still has time. */
#define DEADLINE_USEC (ANSWER_USEC + 10U * 1000000U)

/* What the child reports. */
typedef struct FabricAnswer {
        int32_t result;
        uint32_t last_job;                           /* number of the last job when the child was started */
        uint32_t n;                                  /* number of partitions that the question is about */
        uint32_t n_active;                           /* how many of these a restarted Fabric Manager is told */
        uint64_t generations[FABRIC_PARTITIONS_MAX]; /* generations of their allocations, because another allocation may
                                                        have the partition by now */
        uint64_t ready;   /* bit i: the allocation was ready, so no job was activating partition i */
        uint64_t idle;    /* bit i: the partition is not active, no guest is known to run with its allocation, and no
                             process has its GPUs open */
        uint64_t unknown; /* bit i: the partition is not active, and whether a process has its GPUs open is unknown */
        uint64_t held;    /* bit i: an allocation had partition i of the table */
        FabricReport report; /* Fabric Manager's answer: all its partitions, not only those of the question */
} FabricAnswer;

/* Returns true when the partition of the allocation must be active. It need not be while the allocation is a lease, or
 * is being released. */
static bool has_partition(const Allocation *a) {
        return a->partition >= 0 && a->state != ALLOCATION_RESERVED && a->state != ALLOCATION_RELEASING;
}

/* Returns true when an allocation has the partition. An allocation that is being released has the partition until its
 * end. */
static bool is_held(const Ledger *l, unsigned partition) {
        for (size_t i = 0; i < l->n_allocations; i++)
                if (l->allocations[i]->partition == (int) partition && l->allocations[i]->state != ALLOCATION_RESERVED)
                        return true;
        return false;
}

/* Finds out for each partition in `lost` whether a process has its GPUs open. Skips partitions whose allocation has a
 * known guest. Runs in the child, so that the event loop need not search /proc. Searches separately for each
 * allocation, because the search for one may fail. */
static void find_users(const Manager *m, const Sysfs *fs, Allocation *const *asked, uint64_t lost, FabricAnswer *told) {
        const uint64_t end = clock_usec(CLOCK_MONOTONIC) + HOLDER_LOOK_USEC;
        size_t open;

        for (size_t i = 0; i < FABRIC_PARTITIONS_MAX; i++) {
                int r = -ETIMEDOUT;

                if (!(lost >> i & 1) || asked[i]->status.domain)
                        continue;
                if (clock_usec(CLOCK_MONOTONIC) < end)
                        r = manager_find_open(m, fs, &asked[i], 1, &open);
                told->idle |= (uint64_t) (r == 0) << i;
                told->unknown |= (uint64_t) (r < 0 && r != -EBUSY) << i;
        }
}

/*
 * Runs in the child: asks. A restarted Fabric Manager keeps the routing of the partitions that it is told, and does not
 * initialize them (Fabric Manager User Guide, "Resiliency"). So it is not told of two kinds of partitions: those known
 * to be lost, which must be activated again; and those of allocations that are being prepared, because no guest has
 * them yet and the job activates them.
 */
static int run(const Sysfs *fs, void *userdata) {
        const Manager *m = userdata;
        Allocation *asked[FABRIC_PARTITIONS_MAX];
        unsigned ids[FABRIC_PARTITIONS_MAX];
        FabricAnswer told = { .last_job = m->jobs.last_id };
        uint64_t active = 0;

        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];
                bool is_active;

                if (!has_partition(a) || told.n == ELEMENTSOF(ids))
                        continue;
                told.ready |= (uint64_t) (a->state == ALLOCATION_READY) << told.n;
                is_active = !a->status.partition_lost && a->state != ALLOCATION_PREPARING;
                active |= (uint64_t) is_active << told.n;
                told.n_active += is_active;
                told.generations[told.n] = a->generation;
                ids[told.n] = (unsigned) a->partition;
                asked[told.n++] = a;
        }
        told.result =
                root_follow_partitions(ids, told.n, active, clock_usec(CLOCK_MONOTONIC) + ANSWER_USEC, &told.report);
        for (size_t i = 0; i < told.report.table.n; i++)
                told.held |= (uint64_t) is_held(m->host.ledger, told.report.table.partitions[i].id) << i;
        if (told.result == 0)
                find_users(m, fs, asked, told.report.inactive & told.ready, &told);
        worker_report(&told, sizeof(told));
        return EXIT_SUCCESS;
}
_Static_assert(sizeof(FabricAnswer) <= PIPE_BUF, "a report is written atomically");

/* Stores whether the partition of `a` is active. cause: why it is not active; NULL: it is active. idle: no process has
 * its GPUs open. Each report about a lost partition has settle check whether to resume the allocation, because its
 * guest may have ended since the last report. */
static void take_partition(Manager *m, Allocation *a, const char *cause, bool idle) {
        bool was_lost = a->status.partition_lost;

        if (!cause)
                allocation_keep_partition(a);
        /* Keep the cause of the last failed try while the next one may follow. */
        else if (!idle || a->status.partition_delay == 0)
                a->status.partition_lost = cause;
        a->status.partition_idle = idle && clock_usec(CLOCK_MONOTONIC) >= a->status.partition_retry;
        if (!was_lost && !cause)
                return;
        a->status.resume_refused = a->status.resume_refused || cause;
        note_facts(m);
        note_turn(m);
}

static const char *find_cause(const Manager *m, const Allocation *a, const FabricAnswer *told, uint32_t k) {
        const FabricPartition *partition = fabric_table_find(&m->host.config->fabric, (unsigned) a->partition);

        if (!partition || !fabric_table_has(&told->report.table, partition))
                return PARTITION_UNSUPPORTED;
        if (!(told->report.inactive >> k & 1))
                return NULL;
        return told->unknown >> k & 1 ? PARTITION_USERS_UNKNOWN : PARTITION_INACTIVE;
}

/* Handles what is reported about the partitions. Since the child was started, allocations may have changed, and jobs
 * may have activated partitions. */
static void take_partitions(Manager *m, const FabricAnswer *told) {
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];

                for (uint32_t k = 0; k < told->n; k++)
                        if (told->generations[k] == a->generation && told->ready >> k & 1 &&
                            a->state == ALLOCATION_READY && a->status.prepared_by <= told->last_job)
                                take_partition(m, a, find_cause(m, a, told, k), told->idle >> k & 1);
        }
}

/* Stores the table of partitions. It may differ after a restart: Fabric Manager drops partitions with a failed
 * NVSwitch, and its configuration may have changed. */
static void take_table(Manager *m, const FabricTable *table) {
        const FabricTable *wanted = &m->host.config->fabric;
        _cleanup_free_ char *missing = NULL;
        size_t n = 0;

        if (m->host.has_fabric && fabric_table_equal(&m->host.fabric, table))
                return;
        m->host.fabric = *table;
        m->host.has_fabric = true;
        for (size_t i = 0; i < wanted->n; i++)
                if (!fabric_table_has(table, &wanted->partitions[i])) {
                        (void) string_append(&missing, ", ", "%u", wanted->partitions[i].id);
                        n++;
                }
        if (missing)
                log_warning("Fabric Manager does not have the NVLink partition%s %s of Partitions=, or with other "
                            "GPUs. No guest gets %s.",
                            PLURAL(n), missing, n > 1 ? "them" : "it");
}

static bool has_failed(const FabricReport *r, PciAddress gpu) {
        for (uint32_t i = 0; i < r->n_failed; i++)
                if (pci_address_equal(r->failed[i], gpu))
                        return true;
        return false;
}

static void take_failed(Manager *m, const FabricReport *r) {
        for (size_t i = m->host.status.n; i-- > 0;)
                if (!has_failed(r, m->host.status.devices[i].address))
                        manager_set_unhealthy(m, m->host.status.devices[i].address, DEVICE_UNLINKED, NULL);
        for (uint32_t i = 0; i < r->n_failed; i++) {
                const char *gpu = PCI_ADDRESS_STR(r->failed[i]);
                _cleanup_free_ char *why =
                        string_format("%s is unhealthy: Fabric Manager reports that its NVLinks failed.", gpu);

                if (why && inventory_find(m->host.inventory, r->failed[i]))
                        manager_set_unhealthy(m, r->failed[i], DEVICE_UNLINKED, why);
        }
}

/* Returns why no guest may get the GPU, as a clause; NULL: a guest may get it. The reason is an active partition that
 * has the GPU: no allocation has the partition, or an allocation has it and no allocation has the GPU. A partition that
 * an allocation has got or given up since the report is no reason. held: the partitions that allocations had at the
 * report, as in FabricAnswer. Sets *ret to the id of the partition. */
static const char *find_stray(const Manager *m, const FabricReport *r, uint64_t held, const PciDevice *gpu,
                              unsigned *ret) {
        unsigned module = policy_has_fabric(m->host.policy, gpu) ? config_module(m->host.config, gpu) : 0;
        bool is_free = !ledger_holder(m->host.ledger, gpu->address);

        for (size_t i = 0; module > 0 && i < r->table.n; i++) {
                const FabricPartition *p = &r->table.partitions[i];
                bool was_held = held >> i & 1;

                if (!(r->active >> i & 1) || !(p->modules & fabric_bit(module)) ||
                    was_held != is_held(m->host.ledger, p->id))
                        continue;
                *ret = p->id;
                if (!was_held)
                        return "no allocation has the partition";
                if (is_free)
                        return "the allocation with the partition does not have the GPU";
        }
        return NULL;
}

/* Marks as unhealthy each GPU for which find_stray() has a reason, so that no guest gets it: two guests could have GPUs
 * of one partition. Another program may have activated the partition; a former configuration without Manager= may have
 * left it active; or Module= may have been corrected. */
static void take_stray(Manager *m, const FabricReport *r, uint64_t held) {
        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                const PciDevice *dev = &m->host.inventory->devices[i];
                unsigned id = 0;
                const char *cause = find_stray(m, r, held, dev, &id);
                _cleanup_free_ char *why =
                        cause ? string_format("%s is unhealthy: its NVLink partition %u is active, and %s.",
                                              PCI_ADDRESS_STR(dev->address), id, cause)
                              : NULL;

                if (!cause || why)
                        manager_set_unhealthy(m, dev->address, DEVICE_LINKED, why);
        }
}

static void on_readable(void *userdata) {
        Manager *m = userdata;
        FabricAnswer told;

        while (worker_read(&m->watches.fabric.worker, &told, sizeof(told))) {
                if (told.result > 0)
                        log_notice("Fabric Manager has restarted. It was told that %u NVLink partition%s %s active.",
                                   told.n_active, PLURAL(told.n_active), ARE(told.n_active));
                if (told.result == 0 && m->host.config->fabric_manager) {
                        take_table(m, &told.report.table);
                        take_partitions(m, &told);
                        take_failed(m, &told.report);
                        take_stray(m, &told.report, told.held);
                }
        }
}

static void on_late(void *userdata) {
        const Manager *m = userdata;

        worker_kill(&m->watches.fabric.worker);
}

static void wait_again(Manager *m);

static void on_exit_of_child(const siginfo_t *end _unused_, void *userdata) {
        Manager *m = userdata;

        worker_done(&m->watches.fabric.worker);
        wait_again(m);
}

static const WorkerKind kind = { run, on_readable, on_late, on_exit_of_child };

static int on_time(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata) {
        Manager *m = userdata;
        int r;

        m->watches.fabric.timer = sd_event_source_disable_unref(m->watches.fabric.timer);
        m->watches.fabric.worker = WORKER("passthroughd-fm");
        r = worker_start(&m->watches.fabric.worker, &kind, m->event, m->fs, DEADLINE_USEC, m);
        if (r >= 0)
                return 0;
        log_warning_errno(r, "Failed to ask Fabric Manager, ignoring: %m");
        worker_done(&m->watches.fabric.worker);
        m->watches.fabric.worker.pid = 0;
        wait_again(m);
        return 0;
}

static void wait_for(Manager *m, uint64_t usec) {
        int r = sd_event_add_time_relative(m->event, &m->watches.fabric.timer, CLOCK_MONOTONIC, usec, 0, on_time, m);

        if (r < 0)
                log_warning_errno(r, "A restart of Fabric Manager is not noticed, ignoring: %m");
}

static void wait_again(Manager *m) {
        if (m->host.config->fabric_manager && !m->stopping)
                wait_for(m, INTERVAL_USEC);
}

void manager_follow_fabric(Manager *m) {
        m->watches.fabric.timer = sd_event_source_disable_unref(m->watches.fabric.timer);
        m->host.has_fabric = false; /* Manager= or Partitions= may be new */
        /* After a reload, try at once to activate each lost partition. */
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                m->host.ledger->allocations[i]->status.partition_delay = 0;
                m->host.ledger->allocations[i]->status.partition_retry = 0;
        }
        if (m->host.config->fabric_manager) {
                if (m->watches.fabric.worker.pid == 0)
                        wait_for(m, 0);
                return;
        }
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++)
                take_partition(m, m->host.ledger->allocations[i], NULL, false);
        take_failed(m, &(const FabricReport) { 0 });
        take_stray(m, &(const FabricReport) { 0 }, 0);
}

void fabric_watch_done(FabricWatch *w) {
        sd_event_source_disable_unref(w->timer);
        if (w->worker.pid > 0)
                worker_done(&w->worker);
}
