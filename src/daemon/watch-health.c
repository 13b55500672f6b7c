/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks the health of devices that are not in use and have no host driver, and of allocated VFs. A child reads them,
 * because the read of a dead device may hang. If it hangs, the device is marked as unhealthy, and another child checks
 * the remaining devices. An unhealthy device is not allocated until a later check finds it healthy. */

#include <errno.h>

#include "facts.h"
#include "host/health.h"
#include "host/holders.h"
#include "state.h"
#include "util/log.h"
#include "util/strings.h"

/* The most devices in use that a check looks for among the allocated devices without a known guest; each one that is
 * found costs a scan of /proc/PID/fd of all processes. If it finds that many, all these allocated devices count as in
 * use. */
#define USED_MAX 64U

static bool may_be_checked(const Manager *m, const PciDevice *dev) {
        const Allocation *a = ledger_holder(m->host.ledger, dev->address);
        bool unhealthy = device_status_get(&m->host.status, dev->address, DEVICE_UNHEALTHY);

        /* Skip a device that a job blocks, that a guest has without an allocation, or that is in quarantine. */
        if (ledger_check_kept(m->host.ledger, &m->host.status, dev->address, NULL) != VERDICT_NONE)
                return false;
        if (a && a->state != ALLOCATION_READY && a->state != ALLOCATION_FAILED)
                return false;
        /* A VF does not sleep, and it answers also while a guest has it. */
        if (a && dev->type == PCI_TYPE_VF)
                return !manager_is_busy(m, dev->address);
        if (a && a->status.domain)
                return false;
        /* Check an unhealthy device even if it is in no pool, to report when it is healthy again. */
        return unhealthy || (policy_offers(m->host.policy, dev) && pci_device_driver_is_harmless(dev));
}

static void find_used(const Manager *m, const Sysfs *fs, const PciAddress *devices, size_t n, bool *used) {
        _cleanup_free_ HolderQuery *queries = calloc(n, sizeof(*queries));
        _cleanup_free_ size_t *positions = calloc(n, sizeof(*positions));
        size_t n_queries = 0;
        Holder holder;
        int r = 1;

        for (size_t i = 0; i < n; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, devices[i]);

                used[i] = dev->type != PCI_TYPE_VF && ledger_holder(m->host.ledger, devices[i]);
                if (!used[i] || !queries || !positions)
                        continue;
                queries[n_queries] = (HolderQuery) { .address = devices[i], .group = dev->iommu_group };
                positions[n_queries++] = i;
        }
        for (size_t i = 0; i < USED_MAX && r > 0 && n_queries > 0; i++) {
                r = holders_find(fs, queries, n_queries, &holder);
                if (r <= 0)
                        break;
                queries[holder.device] = queries[--n_queries];
                positions[holder.device] = positions[n_queries];
        }
        while (r == 0 && n_queries > 0)
                used[positions[--n_queries]] = false;
}

static int look(const Sysfs *fs, const Probe *s, const PciAddress *devices, size_t n, void *userdata) {
        const Checkup *c = userdata;
        const Inventory *inv = c->manager->host.inventory;
        _cleanup_free_ bool *used = calloc(n, sizeof(*used));

        if (!used)
                return -ENOMEM;
        find_used(c->manager, fs, devices, n, used);
        for (size_t i = 0; i < n; i++) {
                const PciDevice *dev = inventory_find(inv, devices[i]);
                HealthReading reading = { .error = -EBUSY };

                if (!used[i])
                        health_read(fs, dev, &reading);
                probe_tell(s, i, &reading);
        }
        return 0;
}

static void on_answer(PciAddress device, const void *answer, void *userdata) {
        const Checkup *c = userdata;
        Manager *m = c->manager;
        const PciDevice *dev = inventory_find(m->host.inventory, device);
        Health *h = dev ? health_list_find(&m->host.health, dev) : NULL;
        _cleanup_free_ char *why = NULL;
        HealthReading reading;

        memcpy(&reading, answer, sizeof(reading));
        /* Drop the answer if the card was replaced, or may not be checked any more, since the child was started. */
        if (!h || !may_be_checked(m, dev) || health_evaluate(h, &reading, h->asked, &why) < 0)
                return;
        manager_set_unhealthy(m, device, DEVICE_UNHEALTHY, why);
}

static void begin(Manager *m);

static void on_late(const PciAddress *devices, size_t n, void *userdata) {
        Checkup *c = userdata;
        Manager *m = c->manager;
        _cleanup_free_ char *why = NULL;

        c->late = devices[0];
        c->is_late = true;
        if (string_replace(&why, "%s is unhealthy: the kernel does not return from reading its config space.",
                           PCI_ADDRESS_STR(devices[0])) >= 0)
                manager_set_unhealthy(m, devices[0], DEVICE_UNHEALTHY, why);
        for (size_t i = 1; i < n; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, devices[i]);
                Health *h = dev ? health_list_find(&m->host.health, dev) : NULL;

                if (h)
                        h->due = MAX(h->due, h->asked);
        }
}

static void on_done(void *userdata) {
        const Checkup *c = userdata;

        begin(c->manager);
}

/* If the child dies, the devices about which it has not reported keep their health. */
static const ProbeKind health_probe = {
        .process = "passthroughd-hc",
        .size = sizeof(HealthReading),
        .look = look,
        .told = on_answer,
        .late = on_late,
        .done = on_done,
        .ended = on_done,
};
_Static_assert(sizeof(HealthReading) <= PROBE_ANSWER_MAX, "an answer fits into a message of a probe");

static bool is_hanging(const Manager *m, PciAddress device) {
        for (size_t i = 0; i < ELEMENTSOF(m->watches.checkups); i++) {
                const Checkup *c = &m->watches.checkups[i];

                if (c->probe && c->is_late && pci_address_equal(c->late, device))
                        return true;
        }
        return false;
}

static int gather(Manager *m, PciAddress **devices, size_t *n) {
        for (size_t i = 0; i < m->host.health.n; i++) {
                Health *h = &m->host.health.devices[i];
                const PciDevice *dev;

                if (h->due == HEALTH_NOT_DUE || is_hanging(m, h->address))
                        continue;
                h->asked = h->due;
                h->due = HEALTH_NOT_DUE;
                dev = inventory_find(m->host.inventory, h->address);
                if (dev && dev->instance == h->instance && may_be_checked(m, dev) &&
                    pci_address_append(devices, n, h->address) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Returns an element without a probe. NULL while a probe asks, or when the children of all probes hang. */
static Checkup *find_free(Manager *m) {
        Checkup *unused = NULL;

        for (size_t i = 0; i < ELEMENTSOF(m->watches.checkups); i++) {
                if (probe_is_asking(m->watches.checkups[i].probe))
                        return NULL;
                if (!m->watches.checkups[i].probe)
                        unused = &m->watches.checkups[i];
        }
        return unused;
}

static void begin(Manager *m) {
        Checkup *c = m->announced && !m->stopping ? find_free(m) : NULL;
        _cleanup_free_ PciAddress *devices = NULL;
        size_t n = 0;
        int r;

        if (!c)
                return;
        r = gather(m, &devices, &n);
        if (r == 0 && n == 0)
                return;
        c->manager = m;
        c->is_late = false;
        if (r >= 0)
                r = probe_begin(&health_probe, m->event, m->fs, TAKE_PTR(devices), n, m->host.config->job_timeout, c,
                                &c->probe);
        if (r < 0)
                log_warning_errno(r, "Failed to check the health of devices, ignoring: %m");
}

static void make_due(Manager *m, const PciDevice *dev, HealthTrigger why) {
        Health *h = may_be_checked(m, dev) ? health_list_add(&m->host.health, dev) : NULL;

        if (h)
                h->due = MAX(h->due, why);
}

void manager_check_health(Manager *m, HealthTrigger why) {
        for (size_t i = 0; i < m->host.inventory->n_devices; i++)
                make_due(m, &m->host.inventory->devices[i], why);
        begin(m);
}

void manager_check_health_of(Manager *m, const PciAddress *devices, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, devices[i]);

                if (dev)
                        make_due(m, dev, HEALTH_DUE_EVENT);
        }
        begin(m);
}

void manager_check_vfs_of(Manager *m, const PciAddress *pf) {
        for (size_t i = 0; i < m->host.ledger->n_claims; i++) {
                const PciDevice *vf = inventory_find(m->host.inventory, m->host.ledger->claims[i].address);

                if (vf && vf->type == PCI_TYPE_VF && (!pf || pci_address_equal(vf->physfn, *pf)))
                        make_due(m, vf, HEALTH_DUE_EVENT);
        }
        begin(m);
}
