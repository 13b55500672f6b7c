/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks Fabric Manager every few seconds. One that has restarted with resiliency waits a minute to be told which NVLink
 * partitions are active, and ends without an answer; only the ledger knows them. Otherwise it reports whether the
 * partitions of allocations are active, and which GPUs have failed NVLinks. A child asks, because Fabric Manager may
 * hang.
 */

#include <errno.h>
#include <limits.h>

#include "host/holders.h"
#include "host/rootservice.h"
#include "inventory.h"
#include "operations.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/strings.h"

/* Several times in the minute. */
#define INTERVAL_USEC (10U * 1000000U)
#define ANSWER_USEC   (10U * 1000000U)
/* passthroughd-root answers some seconds later when Fabric Manager hangs. */
#define DEADLINE_USEC (ANSWER_USEC + 10U * 1000000U)

/* The child's report. */
typedef struct Told {
        int32_t result;
        uint32_t n;                                  /* partitions that it asked about */
        uint64_t generations[FABRIC_PARTITIONS_MAX]; /* of their allocations: another may have the partition by now */
        uint64_t ready;                              /* bit i: the allocation was ready, so no job activated it */
        uint64_t idle;       /* bit i: the partition is not active, and no process has its GPUs open */
        FabricReport report; /* about the partitions */
} Told;

/* The GPUs of an allocation that is being released may have lost their partition already. */
static bool has_partition(const Allocation *a) {
        return a->partition >= 0 && a->state != ALLOCATION_RESERVED && a->state != ALLOCATION_RELEASING;
}

/* The child searches /proc, so that the event loop need not. Usually one search is enough for all allocations. The
 * partition of an allocation about which nothing is known after HOLDER_LOOK_USEC counts as not idle. */
static uint64_t find_idle(const Manager *m, const Sysfs *fs, Allocation *const *asked, uint64_t lost) {
        const uint64_t end = clock_usec(CLOCK_MONOTONIC) + HOLDER_LOOK_USEC;
        Allocation *unused[FABRIC_PARTITIONS_MAX];
        size_t indices[FABRIC_PARTITIONS_MAX], n = 0, open;
        uint64_t idle = 0;
        int r = 1;

        for (size_t i = 0; i < FABRIC_PARTITIONS_MAX; i++)
                if (lost >> i & 1 && !asked[i]->domain) {
                        unused[n] = asked[i];
                        indices[n++] = i;
                }
        while (n > 0 && r > 0 && clock_usec(CLOCK_MONOTONIC) < end) {
                r = manager_find_open(m, fs, unused, n, &open);
                if (r <= 0)
                        continue;
                unused[open] = unused[--n];
                indices[open] = indices[n];
        }
        for (size_t i = 0; r == 0 && i < n; i++)
                idle |= UINT64_C(1) << indices[i];
        return idle;
}

static int run(const Sysfs *fs, void *userdata) {
        const Manager *m = userdata;
        Allocation *asked[FABRIC_PARTITIONS_MAX];
        unsigned ids[FABRIC_PARTITIONS_MAX];
        Told told = { 0 };

        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];

                if (!has_partition(a) || told.n == ELEMENTSOF(ids))
                        continue;
                told.ready |= (uint64_t) (a->state == ALLOCATION_READY) << told.n;
                told.generations[told.n] = a->generation;
                ids[told.n] = (unsigned) a->partition;
                asked[told.n++] = a;
        }
        told.result = root_follow_partitions(ids, told.n, clock_usec(CLOCK_MONOTONIC) + ANSWER_USEC, &told.report);
        if (told.result == 0)
                told.idle = find_idle(m, fs, asked, told.report.inactive & told.ready);
        worker_report(&told, sizeof(told));
        return EXIT_SUCCESS;
}
_Static_assert(sizeof(Told) <= PIPE_BUF, "a report is written atomically");

/* Each report has an allocation resumed whose partition is lost: its guest may have ended since the last one. */
static void take_partition(Manager *m, Allocation *a, bool lost, bool idle) {
        bool was_lost = a->partition_lost;

        a->partition_lost = lost;
        a->partition_idle = idle;
        if (!was_lost && !lost)
                return;
        a->resume_refused = a->resume_refused || lost;
        m->reconcile.promises_unchecked = true;
        reconcile_want(&m->reconcile);
}

/* The allocations may have changed since the child was started. */
static void take_partitions(Manager *m, const Told *told) {
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];

                for (uint32_t k = 0; k < told->n; k++)
                        if (told->generations[k] == a->generation && told->ready >> k & 1 &&
                            a->state == ALLOCATION_READY)
                                take_partition(m, a, told->report.inactive >> k & 1, told->idle >> k & 1);
        }
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

static void on_readable(void *userdata) {
        Manager *m = userdata;
        Told told;

        while (worker_read(&m->watches.fabric.worker, &told, sizeof(told))) {
                if (told.result > 0)
                        log_notice("Fabric Manager has restarted. It was told that %u NVLink partition%s %s active.",
                                   told.n, PLURAL(told.n), ARE(told.n));
                if (told.result == 0 && m->host.config->fabric_manager) {
                        take_partitions(m, &told);
                        take_failed(m, &told.report);
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
        if (m->host.config->fabric_manager) {
                if (m->watches.fabric.worker.pid == 0)
                        wait_for(m, 0);
                return;
        }
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++)
                take_partition(m, m->host.ledger->allocations[i], false, false);
        take_failed(m, &(const FabricReport){ 0 });
}

void fabric_watch_done(FabricWatch *w) {
        sd_event_source_disable_unref(w->timer);
        if (w->worker.pid > 0)
                worker_done(&w->worker);
}
