/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps for NVIDIA GPUs that have returned to the host. */

#include <errno.h>

#include "steps/step.h"
#include "util/strings.h"

/* Whether NVIDIA's driver has the device before the steps, as after an interrupted release, or after them. */
static bool is_with_nvidia(const StepList *l, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, d->address);

        for (size_t i = 0; i < l->n; i++)
                if (l->steps[i].kind == STEP_BIND && pci_address_equal(l->steps[i].device, d->address))
                        return streq(l->steps[i].to, NVIDIA_DRIVER);
        return dev && allocation_device_is(d, dev) && streq_ptr(dev->driver, NVIDIA_DRIVER);
}

/* A vGPU leaves its VF, or its GPU, with the driver. */
static bool returns_gpu(const StepList *l, const AllocationDevice *d, const Inventory *inv) {
        return d->pool && !d->is_vf && d->vgpu_type == 0 && is_with_nvidia(l, d, inv);
}

int steps_return_gpus(const Allocation *a, const Inventory *inv, bool check, StepList *steps) {
        int r = 0;

        for (const AllocationDevice *d = a->devices; r == 0 && d < a->devices + a->n_devices; d++)
                if (d->prior_persistence && returns_gpu(steps, d, inv))
                        r = step_list_add(steps, STEP_PERSISTENCE, d->address, NULL, NULL);
        for (const AllocationDevice *d = a->devices; r == 0 && check && d < a->devices + a->n_devices; d++)
                if (returns_gpu(steps, d, inv))
                        r = step_list_add(steps, STEP_CHECK_GPU, d->address, NULL, NULL);
        return r;
}
