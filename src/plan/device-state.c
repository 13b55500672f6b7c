/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells the state of a device: available, or why not; whether it can be reset; whether it has room for a vGPU. */

#include "plan/device-state.h"

#include "model/mdev-slots.h"
#include "model/vgpu.h"
#include "plan/promise.h"
#include "util/strings.h"
#include "util/stringtable.h"

static bool has_method(const PciDevice *dev, const char *method) {
        size_t n = strlen(method);

        for (const char *at = dev->reset_methods; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
                if (strcspn(at, " ") == n && strncmp(at, method, n) == 0)
                        return true;
        return false;
}

static bool same_bus(const PciDevice *a, const PciDevice *b) {
        return a->address.domain == b->address.domain && a->address.bus == b->address.bus;
}

/* Finds another function on the bus of dev, or NULL. VFs and slots do not count: a PF with VFs is not allocated. */
static const PciDevice *find_on_same_bus(const Inventory *inv, const PciDevice *dev) {
        const PciDevice *at = dev;

        while (at > inv->devices && same_bus(at - 1, dev))
                at--;
        for (; at < inv->devices + inv->n_devices && same_bus(at, dev); at++)
                if (at != dev && at->type != PCI_TYPE_VF && !pci_device_is_slot(at))
                        return at;
        return NULL;
}

/* Returns whether a bus reset resets dev alone. *ret_other is another function on the bus, or NULL; with one, the
 * kernel refuses a bus reset (pci_parent_bus_reset()), although it lists "bus" for the first function of the bus. */
static bool bus_reset_works(const Inventory *inv, const PciDevice *dev, const PciDevice **ret_other) {
        *ret_other = find_on_same_bus(inv, dev);
        return !*ret_other;
}

static bool method_works(const Inventory *inv, const PciDevice *dev, ResetMethod m, const PciDevice **ret_other) {
        if (!has_method(dev, reset_method_to_string(m)))
                return false;
        return (m != RESET_METHOD_BUS && m != RESET_METHOD_CXL_BUS) || bus_reset_works(inv, dev, ret_other);
}

/* Returns whether a listed reset method works. Any method other than a bus reset counts as working. */
static bool any_works(const Inventory *inv, const PciDevice *dev, const PciDevice **ret_other) {
        static const char *const only_bus[] = { "bus", "cxl_bus", "bus cxl_bus", "cxl_bus bus" };

        if (!dev->reset_methods)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(only_bus); i++)
                if (streq(dev->reset_methods, only_bus[i]))
                        return bus_reset_works(inv, dev, ret_other);
        return true;
}

#define QUARANTINED "so each release will put it in quarantine."

bool device_can_be_reset(const Policy *policy, const PciDevice *dev, Refusal *ret) {
        const Pool *pool = policy_pool(policy, dev);
        const char *address = PCI_ADDRESS_STR(dev->address), *method, *remedy;
        const PciDevice *other = NULL;

        if (!pool || pool->vgpu_type || pci_device_is_slot(dev))
                return true;
        if (pool->reset_method == RESET_METHOD_DEFAULT &&
            (pool->allow_no_reset || any_works(policy->inventory, dev, &other)))
                return true;
        if (method_works(policy->inventory, dev, pool->reset_method, &other))
                return true;
        method = reset_method_to_string(pool->reset_method);
        remedy = pool->reset_method == RESET_METHOD_DEFAULT
                         ? "AllowNoReset=yes in its pool gives it to the next guest as the last one left it."
                         : "Correct ResetMethod= of its pool.";
        if (other)
                (void) refuse(ret, VERDICT_NONE, &dev->address, remedy,
                              "%s cannot be reset alone: a reset of its bus would reset %s too, " QUARANTINED, address,
                              PCI_ADDRESS_STR(other->address));
        else if (pool->reset_method == RESET_METHOD_DEFAULT)
                (void) refuse(ret, VERDICT_NONE, &dev->address, remedy, "%s has no reset method, " QUARANTINED,
                              address);
        else
                (void) refuse(ret, VERDICT_NONE, &dev->address, remedy,
                              "%s lacks the reset method '%s' of its pool, " QUARANTINED " It has: %s.", address,
                              method, dev->reset_methods ? QUOTABLE(dev->reset_methods) : "none");
        return false;
}

bool device_is_in_use(const HostView *view, const PciDevice *dev) {
        for (size_t i = 0; i < view->n_in_use; i++) {
                const PciDevice *used = inventory_find(view->inventory, view->in_use[i]);

                if (used && (used == dev || (dev->iommu_group >= 0 && used->iommu_group == dev->iommu_group)))
                        return true;
        }
        return false;
}

/* VFs of a GPU, or its slots for mediated devices, in pools with VgpuType=. A GPU has more VFs or slots than it can
 * have vGPUs, so only the first free ones, by address, are available. */

/* The most types that a refusal names. */
#define TYPES_MAX 8U

/* Returns true when the VF has, or shall have, a vGPU of view->grown, the allocation to which devices are attached. */
static bool is_kept(const HostView *view, const PciDevice *dev) {
        const AllocationDevice *d = view->grown ? allocation_find_device(view->grown, dev->address) : NULL;

        return d && d->vgpu_type > 0 && (dev->vgpu_type == 0 || allocation_device_has_vgpu(d, dev));
}

/* Returns how many VFs or slots of the GPU at lower addresses than that of dev are free for a vGPU of the same pool. */
static unsigned count_before(const HostView *view, const PciDevice *dev) {
        const PciDevice *pf = inventory_find(view->inventory, dev->physfn);
        const Pool *pool = policy_pool(view->policy, dev);
        unsigned n = 0;

        for (size_t i = 0; pf && i < pf->n_vfs; i++) {
                const PciDevice *vf = inventory_find(view->inventory, pf->vfs[i]);

                n += vf && pci_address_compare(vf->address, dev->address) < 0 && vf->vgpu_type == 0 &&
                     policy_pool(view->policy, vf) == pool && policy_verdict(view->policy, vf) == VERDICT_NONE &&
                     ledger_check_device(view->ledger, view->status, view->inventory, vf, NULL, NULL) == VERDICT_NONE &&
                     !device_is_in_use(view, vf) && !is_kept(view, vf);
        }
        return n;
}

/* Formats a list of vGPU types: "NVIDIA H100L-12C, NVIDIA H100L-23C and 5 more", or "none". The caller frees. When out
 * of memory, the list is shorter, or NULL. */
static char *list_types(const char *types) {
        char *text = NULL;
        unsigned n = 0;
        VgpuType t;

        while (vgpu_types_next(&types, &t)) {
                _cleanup_free_ char *name = n++ < TYPES_MAX ? strndup(t.name, t.length) : NULL;

                if (name && string_append(&text, ", ", "%s", QUOTABLE(name)) < 0)
                        return text;
        }
        if (n > TYPES_MAX)
                (void) string_append(&text, "", "%s", AND_MORE(n - TYPES_MAX));
        return text ?: strdup("none");
}

static Verdict refuse_type(const PciDevice *dev, const char *name, Refusal *ret) {
        _cleanup_free_ char *types = ret ? list_types(dev->vgpu_types) : NULL;

        return refuse(ret, VERDICT_NO_VGPU, &dev->address,
                      "Release a vGPU of its GPU, or correct VgpuType= of the pool; types backed by MIG need MIG mode "
                      "and GPU instances.",
                      "%s can have no vGPU of type '%s' now. Types it can have: %s.", PCI_ADDRESS_STR(dev->address),
                      name, types ?: "?");
}

Verdict device_check_vgpu(const HostView *view, const PciDevice *dev, Refusal *ret) {
        const Pool *pool = policy_pool(view->policy, dev);
        VgpuRoom room;

        /* In a pool of Nova, Nova or the admin makes the vGPUs, and a VF with a vGPU stays on offer. The daemon does
         * not bind it. */
        if (!pool || pool->scheduler == POOL_SCHEDULER_NOVA || is_kept(view, dev))
                return VERDICT_NONE;
        /* Refuse a VF with a vGPU in any other pool, even in one of whole devices: a VFIO driver would remove the vGPU.
         */
        if (dev->vgpu_type > 0)
                return refuse(
                        ret, VERDICT_CONTESTED, &dev->address,
                        dev->mdev_parent
                                ? "Release it where it was made, or write 1 to the remove attribute of its mediated "
                                  "device."
                                : "Release it where it was made, or write 0 to its nvidia/current_vgpu_type.",
                        "%s has a vGPU, of type %u, that the daemon did not make.", PCI_ADDRESS_STR(dev->address),
                        dev->vgpu_type);
        if (!pool->vgpu_type)
                return VERDICT_NONE;
        ledger_vgpu_room(view->ledger, view->grown, view->inventory, dev, pool->vgpu_type, &room);
        if (room.type == 0)
                return refuse_type(dev, pool->vgpu_type, ret);
        if (count_before(view, dev) < room.further)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_NO_VGPU, &dev->address,
                      room.further > 0 ? "Ask for a device that is available." : "Release a vGPU of its GPU.",
                      "Its GPU %s has room for %u more vGPU%s of type '%s'%s.", PCI_ADDRESS_STR(dev->physfn),
                      room.further, PLURAL(room.further), pool->vgpu_type,
                      room.further > 0 ? ", and other devices of its pool offer them" : "");
}

/* A confidential guest on a GPU in no confidential mode would leak its data; drivers of other guests fail on a GPU in a
 * confidential mode. */
Verdict device_check_mode(const HostView *view, const PciDevice *dev, Refusal *ret) {
        const Pool *pool = policy_pool(view->policy, dev);

        if (!pool || dev->mode == CONFIDENTIAL_MODE_UNKNOWN || dev->mode == pool->confidential_mode)
                return VERDICT_NONE;
        return refuse(
                ret, VERDICT_NOT_SUPPORTED, &dev->address,
                "Change its mode with nvidia_gpu_tools.py of NVIDIA's gpu-admin-tools, and then run 'passthroughctl "
                "rescan'; or correct ConfidentialMode= of the pool.",
                "NVIDIA's driver has told that its confidential mode is %s, and pool '%s' has "
                "ConfidentialMode=%s.",
                confidential_mode_to_string(dev->mode), pool->name,
                confidential_mode_to_string(pool->confidential_mode));
}

static const char *const device_state_table[_DEVICE_STATE_MAX] = {
        [DEVICE_STATE_HOST] = "host",           [DEVICE_STATE_AVAILABLE] = "available",
        [DEVICE_STATE_ALLOCATED] = "allocated", [DEVICE_STATE_RESERVED] = "reserved",
        [DEVICE_STATE_MISSING] = "missing",     [DEVICE_STATE_HARDWARE_CHANGED] = "hardware-changed",
        [DEVICE_STATE_STUCK] = "stuck",         [DEVICE_STATE_QUARANTINED] = "quarantined",
        [DEVICE_STATE_UNHEALTHY] = "unhealthy", [DEVICE_STATE_CONTESTED] = "contested",
};
DEFINE_STRING_TABLE_TO_STRING(device_state, DeviceState, _DEVICE_STATE_MAX)

/* Returns whether a pool asks for VFs on this PF, and another program has changed their number. */
static bool is_contested(const HostView *view, const PciDevice *dev, Refusal *ret) {
        return dev->type == PCI_TYPE_PF && policy_vf_pool(view->policy, dev) &&
               device_status_check(view->status, dev->address, DEVICE_CONTESTED, ret) != VERDICT_NONE;
}

static void tell_expected(const HostView *view, const PciDevice *vf, Refusal *ret) {
        _cleanup_free_ char *text = inventory_describe_expected(view->inventory, vf);

        (void) refuse(ret, VERDICT_NONE, &vf->address, NULL, "%s", text ?: "It does not exist yet.");
}

/* Returns DEVICE_STATE_ALLOCATED, or how the device breaks the promise to its holder. */
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

/* Says why the host keeps the device. If the device is an mlx4 card with a wrong number of VFs, says instead that only
 * new options of mlx4_core change this number; if the host needs the card, says both. */
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

/* Says that guests get this coherent GPU without its memory, if its VFIO driver is not COHERENT_DRIVER. */
static void tell_lost_memory(const HostView *view, const PciDevice *dev, Refusal *ret) {
        _cleanup_free_ char *text = NULL;
        const char *remedy;

        if (!policy_pool(view->policy, dev)->vgpu_type &&
            inventory_explain_lost_memory(view->inventory, dev, config_driver(view->config, view->inventory, dev),
                                          &text, &remedy) >= 0 &&
            text)
                (void) refuse(ret, VERDICT_NONE, &dev->address, remedy, "%s", text);
}

DeviceState device_state(const HostView *view, const PciDevice *dev, Refusal *ret) {
        const Allocation *holder = ledger_holder(view->ledger, dev->address);
        DeviceState promised;
        Verdict held;

        /* Stuck comes first: it matters more than who has the device. */
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
        /* An unhealthy device stays allocated. The state tells the holder's admin. */
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
        if (device_check_mode(view, dev, ret) != VERDICT_NONE)
                return DEVICE_STATE_HOST;
        /* A job works on the device, its PF, one of its VFs or a member of its IOMMU group: it is not available, and no
         * allocation has it. */
        if (held == VERDICT_BUSY)
                return DEVICE_STATE_HOST;
        if (held == VERDICT_NONE && dev->expected && ret)
                tell_expected(view, dev, ret);
        else if (held == VERDICT_NONE && ret && device_can_be_reset(view->policy, dev, ret))
                tell_lost_memory(view, dev, ret);
        /* No allocation has the device. If held is set, an allocation has a member of the device's IOMMU group, its PF
         * or one of its VFs, or a guest of Nova uses one of these or the device. */
        return held != VERDICT_NONE ? DEVICE_STATE_ALLOCATED : DEVICE_STATE_AVAILABLE;
}
