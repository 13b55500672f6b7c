/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "plan/device-state.h"

#include "plan/promise.h"
#include "resets.h"
#include "util/strings.h"
#include "util/stringtable.h"

static const char *const device_state_table[_DEVICE_STATE_MAX] = {
        [DEVICE_STATE_HOST] = "host",           [DEVICE_STATE_AVAILABLE] = "available",
        [DEVICE_STATE_ALLOCATED] = "allocated", [DEVICE_STATE_RESERVED] = "reserved",
        [DEVICE_STATE_MISSING] = "missing",     [DEVICE_STATE_HARDWARE_CHANGED] = "hardware-changed",
        [DEVICE_STATE_STUCK] = "stuck",         [DEVICE_STATE_QUARANTINED] = "quarantined",
        [DEVICE_STATE_UNHEALTHY] = "unhealthy", [DEVICE_STATE_CONTESTED] = "contested",
};
DEFINE_STRING_TABLE_TO_STRING(device_state, DeviceState, _DEVICE_STATE_MAX)

/* True when the number of VFs of the PF was changed outside the daemon and a pool offers its VFs. */
static bool is_contested(const HostView *view, const PciDevice *dev, Refusal *ret) {
        return dev->type == PCI_TYPE_PF && policy_vf_pool(view->policy, dev) &&
               device_status_check(view->status, dev->address, DEVICE_CONTESTED, ret) != VERDICT_NONE;
}

static void tell_expected(const HostView *view, const PciDevice *vf, Refusal *ret) {
        _cleanup_free_ char *text = inventory_describe_expected(view->inventory, vf);

        (void) refuse(ret, VERDICT_NONE, &vf->address, NULL, "%s", text ?: "It does not exist yet.");
}

/* The state of an allocated device. */
static DeviceState held_state(const HostView *view, const Allocation *holder, const PciDevice *dev, Refusal *ret) {
        _cleanup_refusal_ Refusal why = { 0 };
        const AllocationDevice *d = allocation_find_device(holder, dev->address);

        switch (promise_check_device(view, holder, d, ret ? &why : NULL)) {
        case VERDICT_NONE:
        case VERDICT_MISSING:
        case VERDICT_STUCK:
                return DEVICE_STATE_ALLOCATED;
        case VERDICT_HARDWARE_CHANGED:
                refusal_move(ret, &why);
                return DEVICE_STATE_HARDWARE_CHANGED;
        default:
                refusal_move(ret, &why);
                return DEVICE_STATE_CONTESTED;
        }
}

/* Why the device stays with the host. A card of mlx4_core may also lack its VFs. */
static void tell_host(const HostView *view, const PciDevice *dev, Refusal *ret) {
        Verdict v = policy_check(view->policy, dev, ret);
        _cleanup_refusal_ Refusal why = { 0 };

        if (!ret || !mlx4_needs_options(view->policy, dev))
                return;
        (void) mlx4_refuse(view->mlx4, view->policy, view->ledger, dev,
                           policy_vf_pool(view->policy, dev)->virtual_functions, &why);
        if (v != VERDICT_HOST_CRITICAL) {
                refusal_move(ret, &why);
                return;
        }
        if (!ret->message || !why.message)
                return;
        (void) string_replace(&ret->message, "%s %s", ret->message, why.message);
        if (!ret->remedy)
                (void) string_copy(&ret->remedy, why.remedy);
}

DeviceState device_state(const HostView *view, const PciDevice *dev, Refusal *ret) {
        const Allocation *holder = ledger_holder(view->ledger, dev->address);
        DeviceState promised;
        Verdict held;

        /* First, because a stuck device stays stuck whether or not it is allocated. */
        if (device_status_check(view->status, dev->address, DEVICE_STUCK, ret) != VERDICT_NONE)
                return DEVICE_STATE_STUCK;
        held = ledger_check_device(view->ledger, view->status, view->inventory, dev, NULL, ret);
        if (holder && ret && device_left_pools(view->policy, holder, dev))
                (void) refuse(ret, held, &dev->address, NULL,
                              "%s is held by '%s' and %s. It returns to the host when '%s' is released.",
                              PCI_ADDRESS_STR(dev->address), holder->name,
                              policy_pool(view->policy, dev) ? "is excluded now" : "is in no pool any more",
                              holder->name);
        if (holder && (promised = held_state(view, holder, dev, ret)) != DEVICE_STATE_ALLOCATED)
                return promised;
        /* The allocation keeps an unhealthy device. */
        if (holder && device_status_check_unhealthy(view->status, dev->address, ret) != VERDICT_NONE)
                return DEVICE_STATE_UNHEALTHY;
        if (holder)
                return holder->hold > 0 ? DEVICE_STATE_RESERVED : DEVICE_STATE_ALLOCATED;
        if (held == VERDICT_STUCK)
                return DEVICE_STATE_STUCK;
        if (held == VERDICT_QUARANTINED)
                return DEVICE_STATE_QUARANTINED;
        if (held == VERDICT_UNHEALTHY)
                return DEVICE_STATE_UNHEALTHY;
        if (held == VERDICT_CONTESTED || is_contested(view, dev, ret))
                return DEVICE_STATE_CONTESTED;
        if (policy_verdict(view->policy, dev) != VERDICT_NONE) {
                tell_host(view, dev, ret);
                return DEVICE_STATE_HOST;
        }
        switch (device_check_vgpu(view, dev, ret)) {
        case VERDICT_NONE:
                break;
        case VERDICT_CONTESTED:
                return DEVICE_STATE_CONTESTED;
        default:
                return DEVICE_STATE_HOST;
        }
        /* A job still prepares the device: it is neither allocated nor available. */
        if (held == VERDICT_BUSY)
                return DEVICE_STATE_HOST;
        if (held == VERDICT_NONE && dev->expected && ret)
                tell_expected(view, dev, ret);
        else if (held == VERDICT_NONE && ret)
                (void) device_can_be_reset(view->policy, dev, ret);
        /* Another allocation has its IOMMU group, its PF or one of its VFs. */
        return held != VERDICT_NONE ? DEVICE_STATE_ALLOCATED : DEVICE_STATE_AVAILABLE;
}
