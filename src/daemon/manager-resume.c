/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Promises after a stop, a crash, a boot or a hot-plug: what is left to do for them, and whether it can be done. */

#include "daemon/manager.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

#define GONE(d) ((d)->lost ? "The card that was %s is not on this node any more." : "%s is not on this node any more.")

/* The first device that is gone, or whose address has another card now. NULL when all are there. */
static const AllocationDevice *find_stranger(const Manager *m, const Allocation *a, bool *ret_gone) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                const PciDevice *dev = d->lost ? NULL : inventory_find(m->node.inventory, d->address);

                *ret_gone = !dev;
                if (!dev || !allocation_device_is(d, dev))
                        return d;
        }
        return NULL;
}

void manager_check_presence(Manager *m, Allocation *a) {
        _cleanup_free_ char *reason = NULL;
        const AllocationDevice *d;
        bool gone;

        if (a->state != ALLOCATION_READY)
                return;
        d = find_stranger(m, a, &gone);
        if (d && gone && string_replace(&reason, GONE(d), PCI_ADDRESS_STR(d->address)) < 0)
                return;
        if (!streq_ptr(reason, a->reason))
                manager_set_state(m, a, ALLOCATION_READY, reason);
}

bool manager_needs_resume(const Manager *m, const Allocation *a) {
        return a->state == ALLOCATION_PREPARING || a->state == ALLOCATION_RELEASING ||
               (a->state == ALLOCATION_READY && (!manager_is_bound(m, a) || !manager_has_regions(m, a)));
}

/* The host may stand by now on what was allocated before a boot. */
static Verdict check_host_needs(const Manager *m, const Allocation *a, Refusal *ret) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->node.inventory, a->devices[i].address);

                if (streq_ptr(dev->driver, allocation_driver(a, &a->devices[i])))
                        continue;
                if (dev->critical || m->node.inventory->critical_unknown || (pci_device_is_display(dev) && !a->forced))
                        return refuse(ret, VERDICT_HOST_CRITICAL, &dev->address, "Release the allocation.",
                                      "The host needs %s: %s", PCI_ADDRESS_STR(dev->address),
                                      dev->critical                         ?: m->node.inventory->critical_unknown
                                              ?: dev->console ?: "it is the boot VGA.");
        }
        return VERDICT_NONE;
}

Verdict manager_check_hardware(const Manager *m, const Allocation *a, Refusal *ret) {
        bool gone;
        const AllocationDevice *d = find_stranger(m, a, &gone);

        if (!d) {
                Verdict v = check_host_needs(m, a, ret);

                return v != VERDICT_NONE ? v : manager_check_use(m, a, USE_RESUME, ret);
        }
        return gone ? refuse(ret, VERDICT_MISSING, &d->address, "Plug it in again, or release the allocation.", GONE(d),
                             PCI_ADDRESS_STR(d->address))
                    : refuse(ret, VERDICT_HARDWARE_CHANGED, &d->address,
                             "'passthroughctl accept' lets it take the place of the old one; or release the "
                             "allocation.",
                             "%s is not the card that was allocated.", PCI_ADDRESS_STR(d->address));
}

/* What a process of an earlier daemon may still write to is left as it is, until that is gone. */
static bool has_to_wait(Manager *m, Allocation *a) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (manager_check_withheld(m, a, true, &refusal) == VERDICT_NONE)
                return false;
        log_full(LOG_WARNING, 0, (&(LogFields){ .id = MESSAGE_OUT_OF_ORDER, .allocation = a->name }),
                 "'%s' cannot be brought in order yet: %s", a->name, refusal.message);
        manager_set_state(m, a, a->state, refusal.message);
        return true;
}

bool manager_resume(Manager *m, Allocation *a, uint32_t *ret_job) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        AllocationState state = a->state;
        Verdict v = VERDICT_NONE;

        if (has_to_wait(m, a))
                return false;
        if (state != ALLOCATION_READY && a->reason)
                manager_set_state(m, a, state, NULL);
        /* What is gone is left out of a release, so that it can always be had. */
        if (state == ALLOCATION_RELEASING)
                v = manager_check_use(m, a, USE_RELEASE, &refusal);
        else
                v = manager_check_hardware(m, a, &refusal);
        if (v == VERDICT_NONE && state == ALLOCATION_READY) {
                log_full(LOG_NOTICE, 0, (&(LogFields){ .allocation = a->name }),
                         manager_is_bound(m, a)
                                 ? "What '%s' shares is not there, making it again."
                                 : "The devices of '%s' are not on their VFIO driver, binding them again.",
                         a->name);
                manager_set_state(m, a, ALLOCATION_PREPARING, NULL);
        }
        if (v == VERDICT_NONE)
                v = state == ALLOCATION_RELEASING ? manager_start_release(m, a, ret_job, &refusal)
                                                  : manager_start_prepare(m, a, ret_job, &refusal);
        if (v == VERDICT_NONE) {
                manager_find_job(m, *ret_job)->resumed = true;
                manager_record_allocation(m, HISTORY_RESUMED, a, NULL);
                return true;
        }
        log_full(LOG_ERR, 0, (&(LogFields){ .id = MESSAGE_OUT_OF_ORDER, .allocation = a->name }),
                 "'%s' cannot be brought in order: %s", a->name, refusal.message);
        manager_record_disorder(m, a, &refusal);
        /* A device that is gone may come back, and the promise stands. */
        manager_set_state(m, a, v == VERDICT_MISSING && state == ALLOCATION_READY ? state : ALLOCATION_FAILED,
                          refusal.message);
        return false;
}
