/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks a change of the number of VFs of a PF, and chooses attributes for VFs that no allocation has. */

#include "plan/vfs.h"

#include <errno.h>

#include "model/mdev-slots.h"
#include "plan/vfidentity.h"
#include "util/strings.h"

Verdict plan_check_pf(const HostView *view, const PciDevice *pf, unsigned count, Refusal *ret) {
        const char *address = PCI_ADDRESS_STR(pf->address);
        Verdict v = device_status_check_blocked(view->status, pf->address, ret);

        if (v != VERDICT_NONE)
                return v;
        if (pci_device_is_slot(pf))
                return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address, NULL,
                              "%s is a slot for a vGPU of %s, and a slot cannot have VFs.", address,
                              PCI_ADDRESS_STR(pf->physfn));
        if (pf->type == PCI_TYPE_VF)
                return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address, "Change the number of VFs of its PF.",
                              "%s is a VF, and a VF cannot have VFs.", address);
        if (pf->type != PCI_TYPE_PF)
                return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address,
                              "Enable SR-IOV in the firmware of the node and of the card.", "%s cannot have VFs.",
                              address);
        if (count > pf->total_vfs)
                return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address,
                              "ConnectX: raise NUM_OF_VFS in the firmware configuration.",
                              "%s can have %u VF%s, %u %s wanted.", address, pf->total_vfs, PLURAL(pf->total_vfs),
                              count, ARE(count));
        if (pf->n_virtfns != count && pci_device_is_mlx4_pf(pf))
                return mlx4_refuse(view->mlx4, view->policy, view->ledger, pf, count, ret);
        return VERDICT_NONE;
}

Verdict plan_check_pf_free(const HostView *view, const PciDevice *pf, Refusal *ret) {
        Verdict v = ledger_check_device(view->ledger, view->status, view->inventory, pf, NULL, ret);

        /* VERDICT_PF_HAS_VFS: allocations have VFs of the PF. If a boot removed these, they may be created again. */
        if (v != VERDICT_PF_HAS_VFS)
                return v;
        refusal_done(ret);
        return VERDICT_NONE;
}

static Verdict refuse_allocated(const Allocation *a, PciAddress vf, PciAddress pf, Refusal *ret) {
        if (a->status.domain)
                return refuse(ret, VERDICT_ALLOCATED, &vf, "Shut the domain down, then release the allocation.",
                              "%s, a VF of %s, is held by '%s', and the domain '%s' runs with it.", PCI_ADDRESS_STR(vf),
                              PCI_ADDRESS_STR(pf), a->name, QUOTABLE(a->status.domain));
        return refuse(ret, VERDICT_ALLOCATED, &vf, "Release the allocation first.", "%s, a VF of %s, is held by '%s'.",
                      PCI_ADDRESS_STR(vf), PCI_ADDRESS_STR(pf), a->name);
}

/* Refuses if an allocation has a VF of the PF, even a missing one. */
static Verdict check_promised(const HostView *view, const PciDevice *pf, Refusal *ret) {
        for (size_t i = 0; i < view->ledger->n_claims; i++) {
                const Claim *claim = &view->ledger->claims[i];
                const AllocationDevice *d = allocation_find_device(claim->allocation, claim->address);

                if (d->is_vf && pci_address_equal(d->physfn, pf->address))
                        return refuse_allocated(claim->allocation, claim->address, pf->address, ret);
        }
        return VERDICT_NONE;
}

/* Refuses if a VF is in quarantine, used by a guest without an allocation, or blocked by a job; or if it is bound to
 * a host driver, because the host may use it even if its netdev is down. */
static Verdict check_drivers(const HostView *view, const PciDevice *pf, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < pf->n_vfs; i++) {
                const PciDevice *vf = inventory_find(view->inventory, pf->vfs[i]);

                v = ledger_check_kept(view->ledger, view->status, pf->vfs[i], ret);
                if (v == VERDICT_NONE && vf && !pci_device_driver_is_harmless(vf))
                        v = refuse(ret, VERDICT_BUSY, &vf->address,
                                   "Make sure that the host does not need the VF, and unbind its driver.",
                                   "%s, a VF of %s, is bound to %s: the host may be using it.",
                                   PCI_ADDRESS_STR(vf->address), PCI_ADDRESS_STR(pf->address), vf->driver);
        }
        return v;
}

Verdict plan_check_vfs_idle(const HostView *view, const PciDevice *pf, Refusal *ret) {
        Verdict v = pf->n_virtfns > 0 ? check_promised(view, pf, ret) : VERDICT_NONE;

        return v != VERDICT_NONE ? v : check_drivers(view, pf, ret);
}

/* Returns whether the VF exists and may get attributes: it has no driver and no allocation, and ledger_check_kept()
 * accepts it. */
static bool may_identify(const HostView *view, const PciDevice *pf, unsigned index) {
        const PciDevice *vf = NULL;

        for (size_t i = 0; !vf && i < pf->n_vfs; i++) {
                vf = inventory_find(view->inventory, pf->vfs[i]);
                vf = vf && vf->vf_index == (int) index ? vf : NULL;
        }
        return vf && !vf->driver && !ledger_holder(view->ledger, vf->address) &&
               ledger_check_kept(view->ledger, view->status, vf->address, NULL) == VERDICT_NONE;
}

int plan_vf_attributes(const HostView *view, const char *node, const PciDevice *pf, unsigned count,
                       VfAttributes **ret) {
        const Pool *pool = policy_vf_pool(view->policy, pf);
        _cleanup_free_ VfAttributes *attributes = calloc(count + 1, sizeof(*attributes));
        int r = attributes ? 0 : -ENOMEM;

        for (unsigned i = 0; r == 0 && i < count; i++) {
                if (pf->n_virtfns == count && (pci_device_is_mlx4_pf(pf) || !may_identify(view, pf, i)))
                        continue;
                r = vf_identity_stable(node, pf, i, &attributes[i]);
                if (r == 0 && pool)
                        vf_attributes_merge(&attributes[i], &pool->attributes);
        }
        if (r == 0)
                *ret = TAKE_PTR(attributes);
        return r;
}

Verdict plan_check_pf_pool(const HostView *view, const PciDevice *pf, Refusal *ret) {
        const Pool *external = policy_external_pool(view->policy, pf);
        const Pool *pool = policy_asking_pool(view->policy, pf);

        if (external)
                return refuse(ret, VERDICT_EXCLUDED, &pf->address,
                              "Change the number with the program that manages the VFs, or remove that line.",
                              "VirtualFunctions=external (%s:%u) leaves the VFs of %s to another program.",
                              external->virtual_functions_place.file, external->virtual_functions_place.line,
                              PCI_ADDRESS_STR(pf->address));
        if (!pool)
                return refuse(ret, VERDICT_NOT_IN_POOL, &pf->address,
                              "Add VirtualFunctions= to a pool that matches its VFs.", "No pool wants VFs on %s.",
                              PCI_ADDRESS_STR(pf->address));
        return policy_check_vfs(view->policy, pf, pool, ret);
}
