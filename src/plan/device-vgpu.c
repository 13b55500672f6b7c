/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which VFs of a GPU, or slots for its mediated devices, offer a vGPU. A GPU has more of them than room for vGPUs: the
 * first free ones offer what there is. */

#include "model/vgpu.h"
#include "plan-internal.h"
#include "plan/device-state.h"
#include "util/strings.h"

/* Most types that a refusal names. */
#define TYPES_MAX 8U

/* The VF has a vGPU of the allocation that is planned anew, or is promised one. */
static bool is_kept(const HostView *view, const PciDevice *dev) {
        const AllocationDevice *d = view->grown ? allocation_find_device(view->grown, dev->address) : NULL;

        return d && d->vgpu_type > 0 && (dev->vgpu_type == 0 || allocation_device_has_vgpu(d, dev));
}

/* The number of VFs before dev that offer further vGPUs for the same pool. */
static unsigned count_before(const HostView *view, const PciDevice *dev) {
        const PciDevice *pf = inventory_find(view->inventory, dev->physfn);
        const Pool *pool = policy_pool(view->policy, dev);
        unsigned n = 0;

        for (size_t i = 0; pf && i < pf->n_vfs; i++) {
                const PciDevice *vf = inventory_find(view->inventory, pf->vfs[i]);

                n += vf && pci_address_compare(vf->address, dev->address) < 0 && vf->vgpu_type == 0 &&
                     policy_pool(view->policy, vf) == pool && policy_verdict(view->policy, vf) == VERDICT_NONE &&
                     ledger_check_device(view->ledger, view->status, view->inventory, vf, NULL, NULL) == VERDICT_NONE &&
                     !planner_is_in_use(view, vf) && !is_kept(view, vf);
        }
        return n;
}

/* "NVIDIA H100L-12C, NVIDIA H100L-23C and 5 more"; "none". The caller frees; NULL when out of memory. */
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

        /* Nova or the administrator made the vGPU: the VF stays on offer to Nova, and is not bound. */
        if (!pool || pool->scheduler == POOL_SCHEDULER_NOVA || is_kept(view, dev))
                return VERDICT_NONE;
        /* Also in a pool of whole devices: unbinding the VF would remove the vGPU. */
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
