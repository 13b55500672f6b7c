/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the vGPUs that a GPU can still have, on its VFs or in its slots for mediated devices. */

#include "ledger/ledger.h"
#include "model/mdev-slots.h"
#include "model/vgpu.h"
#include "util/strings.h"

/* The vGPUs of a GPU. */
typedef struct Fill {
        unsigned present; /* that the driver shows */
        unsigned pending; /* promised and not created yet: a job has not run, or a lease holds the VF */
        bool others;      /* of another type than the one asked for, among these */
        bool others_pending;
        unsigned total; /* as recorded with a vGPU of this type, 0 unknown */
} Fill;

static const AllocationDevice *find_promise(const Ledger *l, const Allocation *grown, const PciDevice *vf) {
        const Allocation *holder = ledger_holder(l, vf->address) ?: grown;

        return holder ? allocation_find_device(holder, vf->address) : NULL;
}

/* d: the VF in its allocation, NULL if it has none. */
static void add(Fill *f, const AllocationDevice *d, const PciDevice *vf, const char *name, unsigned type) {
        bool promised = d && d->vgpu_type > 0, present = vf->vgpu_type > 0;

        if (!present && !promised)
                return;
        f->present += present;
        f->pending += !present;
        if (present ? vf->vgpu_type != type : !streq(d->vgpu_name, name)) {
                f->others = true;
                f->others_pending |= !present;
        } else if (promised)
                f->total = MAX(f->total, d->vgpu_total);
}

/* The driver of a GPU with mediated devices tells the number, without those that are pending. */
static unsigned slots_further(const PciDevice *slot, const char *name, const Fill *f) {
        unsigned available = f->others_pending ? 0 : vgpu_types_available(slot->vgpu_types, name);

        return available - MIN(available, f->pending);
}

/*
 * By default the vGPUs of a GPU have one size, and the total is exact. With other types beside, or types of unknown
 * size, only the driver knows what fits: one more while it lists the type.
 */
void ledger_vgpu_room(const Ledger *l, const Allocation *grown, const Inventory *inv, const PciDevice *vf,
                      const char *name, VgpuRoom *ret) {
        const PciDevice *pf = inventory_find(inv, vf->physfn);
        Fill f = { 0 };
        unsigned total;

        *ret = (VgpuRoom) { .type = vgpu_types_find(vf->vgpu_types, name) };
        for (size_t i = 0; pf && i < pf->n_vfs; i++) {
                const PciDevice *sibling = inventory_find(inv, pf->vfs[i]);

                if (sibling)
                        add(&f, find_promise(l, grown, sibling), sibling, name, ret->type);
        }
        if (pci_device_is_slot(vf))
                ret->further = slots_further(vf, name, &f);
        if (pci_device_is_slot(vf) || ret->type == 0 || (f.others && f.pending > 0))
                return;
        if (f.present == 0)
                f.total = vgpu_types_capacity(vf->vgpu_types, name);
        ret->total = f.others ? 0 : f.total;
        total = ret->total > 0 ? ret->total : f.present + 1;
        ret->further = total - MIN(total, f.present + f.pending);
}

Verdict ledger_check_vgpus(const Ledger *l, const Inventory *inv, const Allocation *a, Refusal *ret) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                const PciDevice *vf = inventory_find(inv, d->address);
                bool mixed = false;
                unsigned wanted = 0;
                VgpuRoom room;

                if (d->vgpu_type == 0)
                        continue;
                for (const AllocationDevice *e = a->devices; e < a->devices + a->n_devices; e++)
                        if (e->vgpu_type > 0 && pci_address_equal(e->physfn, d->physfn)) {
                                mixed = mixed || e->vgpu_type != d->vgpu_type;
                                wanted++;
                        }
                ledger_vgpu_room(l, NULL, inv, vf, d->vgpu_name, &room);
                if (room.type != d->vgpu_type || mixed || wanted > room.further)
                        return refuse(ret, VERDICT_NO_VGPU, &d->address, NULL,
                                      "The GPU %s has room for %u more vGPU%s of type '%s', %u %s wanted.",
                                      PCI_ADDRESS_STR(d->physfn), room.further, PLURAL(room.further), d->vgpu_name,
                                      wanted, ARE(wanted));
        }
        return VERDICT_NONE;
}
