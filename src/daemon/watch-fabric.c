/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks Fabric Manager every few seconds. One that has restarted with resiliency waits a minute to be told which NVLink
 * partitions are active, and ends without an answer; only the ledger knows them. Otherwise it reports whether the
 * partitions of allocations are active, and which GPUs have failed NVLinks. A child asks, because Fabric Manager may
 * hang.
 */

#include <errno.h>
#include <limits.h>

#include "host/rootservice.h"
#include "inventory.h"
#include "manager.h"
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
        uint32_t n;
        uint32_t ids[FABRIC_PARTITIONS_MAX]; /* of the partitions of allocations */
        FabricReport report;                 /* about the partitions of ready allocations */
} Told;

/* The GPUs of an allocation that is being released may have lost their partition already. */
static bool has_partition(const Allocation *a) {
        return a->partition >= 0 && a->state != ALLOCATION_RESERVED && a->state != ALLOCATION_RELEASING;
}

static int run(const Sysfs *fs _unused_, void *userdata) {
        const Manager *m = userdata;
        Told told = { 0 };
        uint64_t ready = 0;

        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                const Allocation *a = m->host.ledger->allocations[i];

                if (!has_partition(a) || told.n == ELEMENTSOF(told.ids))
                        continue;
                ready |= (uint64_t) (a->state == ALLOCATION_READY) << told.n;
                told.ids[told.n++] = (uint32_t) a->partition;
        }
        told.result = root_follow_partitions(told.ids, told.n, clock_usec(CLOCK_MONOTONIC) + ANSWER_USEC, &told.report);
        /* A job activates the others at this moment. */
        told.report.inactive &= ready;
        worker_report(&told, sizeof(told));
        return EXIT_SUCCESS;
}
_Static_assert(sizeof(Told) <= PIPE_BUF, "a report is written atomically");

static bool is_lost(const Told *told, const Allocation *a) {
        for (uint32_t i = 0; a->state == ALLOCATION_READY && i < told->n; i++)
                if (told->report.inactive >> i & 1 && (int) told->ids[i] == a->partition)
                        return true;
        return false;
}

/* Each report has an allocation resumed whose partition is lost: its guest may have ended since the last one. */
static void take_partitions(Manager *m, const Told *told) {
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];
                bool was_lost = a->partition_lost;

                a->partition_lost = is_lost(told, a);
                if (!was_lost && !a->partition_lost)
                        continue;
                a->resume_refused = a->resume_refused || a->partition_lost;
                m->reconcile.promises_unchecked = true;
                reconcile_want(&m->reconcile);
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

static void take(Manager *m, const Told *told) {
        take_partitions(m, told);
        take_failed(m, &told->report);
}

static void on_readable(void *userdata) {
        Manager *m = userdata;
        Told told;

        while (worker_read(&m->watches.fabric.worker, &told, sizeof(told))) {
                if (told.result > 0)
                        log_notice("Fabric Manager has restarted. It was told that %u NVLink partition%s %s active.",
                                   told.n, PLURAL(told.n), ARE(told.n));
                if (told.result == 0 && m->host.config->fabric_manager)
                        take(m, &told);
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
        if (!m->host.config->fabric_manager)
                take(m, &(const Told){ 0 });
        else if (m->watches.fabric.worker.pid == 0)
                wait_for(m, 0);
}

void fabric_watch_done(FabricWatch *w) {
        sd_event_source_disable_unref(w->timer);
        if (w->worker.pid > 0)
                worker_done(&w->worker);
}
