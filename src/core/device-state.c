/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Device states. */

#include "core/device-state.h"

#include "core/promise.h"
#include "util/strings.h"
#include "util/stringtable.h"

static const char *const device_state_table[_DEVICE_STATE_MAX] = {
        [DEVICE_STATE_HOST] = "host",
        [DEVICE_STATE_AVAILABLE] = "available",
        [DEVICE_STATE_ALLOCATED] = "allocated",
        [DEVICE_STATE_MISSING] = "missing",
        [DEVICE_STATE_HARDWARE_CHANGED] = "hardware-changed",
        [DEVICE_STATE_STUCK] = "stuck",
        [DEVICE_STATE_QUARANTINED] = "quarantined",
        [DEVICE_STATE_UNHEALTHY] = "unhealthy",
        [DEVICE_STATE_CONTESTED] = "contested",
};
DEFINE_STRING_TABLE_TO_STRING(device_state, DeviceState, _DEVICE_STATE_MAX)

/* The PF is the host's as before, and its VFs are on offer: it is only told. */
static bool is_contested(const PlanContext *c, const PciDevice *dev, Refusal *ret) {
        const Finding *contested = dev->type == PCI_TYPE_PF ? ledger_find_contested(c->ledger, dev->address) : NULL;

        if (!contested || !policy_vf_pool(c->policy, dev))
                return false;
        (void) refuse(ret, VERDICT_VFS_PRESENT, &dev->address,
                      "Find out who did; 'passthroughctl sriov PF NUMBER' changes it back when nobody uses its VFs.",
                      "%s", contested->message);
        return true;
}

static bool is_stranger(const Allocation *holder, const PciDevice *dev, Refusal *ret) {
        _cleanup_free_ char *remedy = NULL;

        if (allocation_device_is(allocation_find_device(holder, dev->address), dev))
                return false;
        (void) string_replace(&remedy,
                              "'passthroughctl accept %s' lets it take the place of the one before; or release '%s'.",
                              holder->name, holder->name);
        (void) refuse(ret, VERDICT_HARDWARE_CHANGED, &dev->address, remedy,
                      "%s is not the card that '%s' was given at this address.", PCI_ADDRESS_STR(dev->address),
                      holder->name);
        return true;
}

/* Somebody else took it off the VFIO driver that it was promised on. It is told, not fought. */
static bool was_taken(const Allocation *holder, const PciDevice *dev, Refusal *ret) {
        const AllocationDevice *d = allocation_find_device(holder, dev->address);
        const char *driver = allocation_driver(holder, d);

        if (holder->state != ALLOCATION_READY || streq_ptr(dev->driver, driver))
                return false;
        (void) refuse(ret, VERDICT_CONTESTED, &dev->address,
                      "Find out who did; a restart of the daemon binds it again, a release leaves it where it is.",
                      "%s is held by '%s', but somebody else took it off %s; it %s%s.", PCI_ADDRESS_STR(dev->address),
                      holder->name, driver, dev->driver ? "is on " : "has no driver", dev->driver ?: "");
        return true;
}

/* Its allocation keeps it, but a guest had better not. */
static bool is_unhealthy(const PlanContext *c, const PciDevice *dev, Refusal *ret) {
        const Finding *unhealthy = ledger_find_unhealthy(c->ledger, dev->address);

        if (unhealthy)
                (void) refuse(ret, VERDICT_UNHEALTHY, &dev->address, LEDGER_UNHEALTHY_REMEDY, "%s", unhealthy->message);
        return unhealthy;
}

DeviceState device_state(const PlanContext *c, const PciDevice *dev, Refusal *ret) {
        const Withheld *withheld = ledger_find_withheld(c->ledger, dev->address);
        const Allocation *holder = ledger_holder(c->ledger, dev->address);
        Verdict held;

        /* First: an allocation that has it does not get it moving. */
        if (withheld && withheld->verdict == VERDICT_STUCK) {
                (void) refuse(ret, withheld->verdict, &dev->address, NULL, "%s", withheld->message);
                return DEVICE_STATE_STUCK;
        }
        held = ledger_check_device(c->ledger, c->inventory, dev, NULL, ret);
        if (holder && ret && promise_is_dropped(c->policy, holder, dev))
                (void) refuse(ret, held, &dev->address, NULL,
                              "%s is held by '%s' and %s: it goes back to the host when '%s' is released.",
                              PCI_ADDRESS_STR(dev->address), holder->name,
                              policy_pool(c->policy, dev) ? "excluded now" : "in no pool any more", holder->name);
        if (holder && is_stranger(holder, dev, ret))
                return DEVICE_STATE_HARDWARE_CHANGED;
        if (holder && !withheld && was_taken(holder, dev, ret))
                return DEVICE_STATE_CONTESTED;
        if (holder && is_unhealthy(c, dev, ret))
                return DEVICE_STATE_UNHEALTHY;
        if (holder)
                return DEVICE_STATE_ALLOCATED;
        if (held == VERDICT_STUCK)
                return DEVICE_STATE_STUCK;
        if (held == VERDICT_QUARANTINED)
                return DEVICE_STATE_QUARANTINED;
        if (held == VERDICT_UNHEALTHY)
                return DEVICE_STATE_UNHEALTHY;
        if (held == VERDICT_CONTESTED || is_contested(c, dev, ret))
                return DEVICE_STATE_CONTESTED;
        if (policy_verdict(c->policy, dev) != VERDICT_NONE) {
                if (mlx4_is_due(c->policy, dev))
                        (void) mlx4_refuse(c->policy, c->ledger, dev, policy_vf_pool(c->policy, dev)->virtual_functions,
                                           ret);
                else
                        (void) policy_check(c->policy, dev, ret);
                return DEVICE_STATE_HOST;
        }
        /* A job gets it ready: nobody has it, nor can have it yet. */
        if (held == VERDICT_BUSY)
                return DEVICE_STATE_HOST;
        /* Its group, its PF or one of its VFs is taken: it cannot be had, though nobody asked for it. */
        return held != VERDICT_NONE ? DEVICE_STATE_ALLOCATED : DEVICE_STATE_AVAILABLE;
}
