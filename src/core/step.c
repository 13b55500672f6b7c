/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of hardware steps. */

#include "core/step.h"

#include <errno.h>
#include <stdio.h>

#include "util/strings.h"

StepList *step_list_new(void) {
        return calloc(1, sizeof(StepList));
}

StepList *step_list_free(StepList *l) {
        if (!l)
                return NULL;
        for (size_t i = 0; i < l->n; i++) {
                free(l->steps[i].from);
                free(l->steps[i].to);
        }
        free(l->steps);
        free(l);
        return NULL;
}

int step_list_add(StepList *l, StepKind kind, PciAddress device, const char *from, const char *to) {
        _cleanup_free_ char *f = NULL, *t = NULL;

        if (string_copy(&f, from) < 0 || string_copy(&t, to) < 0 || ARRAY_RESERVE(l->steps, l->n) < 0)
                return -ENOMEM;
        l->steps[l->n++] = (Step){ .kind = kind, .device = device, .from = TAKE_PTR(f), .to = TAKE_PTR(t) };
        return 0;
}

char *step_describe(const Step *s) {
        const char *address = PCI_ADDRESS_STR(s->device);
        char *text = NULL;

        switch (s->kind) {
        case STEP_OVERRIDE:
                if (s->to)
                        (void) string_replace(&text, "reserve %s for driver %s", address, s->to);
                else
                        (void) string_replace(&text, "clear the driver override of %s", address);
                break;
        case STEP_UNBIND:
                (void) string_replace(&text, "unbind %s from %s", address, s->from);
                break;
        case STEP_BIND:
                (void) string_replace(&text, "bind %s to %s", address, s->to);
                break;
        case STEP_AUTOPROBE:
                (void) string_replace(&text, "set driver autoprobe of VFs of %s to %s", address, s->to);
                break;
        case STEP_NUMVFS:
                (void) string_replace(&text, "create %s VFs on %s", s->to, address);
                break;
        case _STEP_KIND_MAX:
                break;
        }
        return text;
}

/* It was on the VFIO driver before the allocation: there it stays. */
static bool is_at_home(const Allocation *a, const AllocationDevice *d) {
        return streq_ptr(d->prior_driver, a->vfio_driver);
}

int steps_prepare(const Allocation *a, StepList **ret) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        const char *vfio = a->vfio_driver;
        int r = l ? 0 : -ENOMEM;

        /* 1. Say which driver may have each: from here no other one can take a device that is let go. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                if (!streq_ptr(a->devices[i].prior_override, vfio))
                        r = step_list_add(l, STEP_OVERRIDE, a->devices[i].address, a->devices[i].prior_override, vfio);
        /* 2. Unbind every member before binding any: VFIO needs the whole group. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                if (a->devices[i].prior_driver && !is_at_home(a, &a->devices[i]))
                        r = step_list_add(l, STEP_UNBIND, a->devices[i].address, a->devices[i].prior_driver, vfio);
        /* 3. Bind all. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                if (!is_at_home(a, &a->devices[i]))
                        r = step_list_add(l, STEP_BIND, a->devices[i].address, NULL, vfio);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

/* Another card at the address is not ours to touch. */
static bool is_there(const Inventory *inv, const AllocationDevice *d) {
        const PciDevice *dev = inventory_find(inv, d->address);

        return dev && allocation_device_is(d, dev);
}

/* One kind of release step for each device that has a way to go. */
static int add_release_steps(StepList *l, StepKind kind, const Allocation *a, const Inventory *inv) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];

                if (!is_there(inv, d) || is_at_home(a, d))
                        continue;
                if (kind == STEP_UNBIND)
                        r = step_list_add(l, kind, d->address, a->vfio_driver, d->prior_driver);
                else if (d->prior_driver)
                        r = step_list_add(l, kind, d->address, kind == STEP_OVERRIDE ? a->vfio_driver : NULL,
                                          d->prior_driver);
        }
        return r;
}

static int restore_overrides(StepList *l, const Allocation *a, const Inventory *inv) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                const char *now = d->prior_driver ? d->prior_driver : a->vfio_driver;

                if (is_there(inv, d) && !streq_ptr(now, d->prior_override))
                        r = step_list_add(l, STEP_OVERRIDE, d->address, now, d->prior_override);
        }
        return r;
}

int steps_release(const Allocation *a, const Inventory *inv, AfterRelease after, StepList **ret) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        int r = l ? 0 : -ENOMEM;

        if (r == 0 && after == AFTER_RELEASE_KEEP) {
                *ret = TAKE_PTR(l);
                return 0;
        }
        /*
         * 1. Allow the driver it came from, by name: that works where its ids would not, as for a VF of a PF with
         * autoprobe off (pci_device_can_probe() in the kernel's pci-driver.c) or a device another driver's new_id would
         * catch.
         */
        if (r == 0)
                r = add_release_steps(l, STEP_OVERRIDE, a, inv);
        /* 2. Unbind all before binding any: while a member is on VFIO and in use the kernel refuses host drivers in its
         * group. */
        if (r == 0)
                r = add_release_steps(l, STEP_UNBIND, a, inv);
        /* 3. Give each back to its driver. */
        if (r == 0)
                r = add_release_steps(l, STEP_BIND, a, inv);
        /* 4. The override as it was; this does not unbind. */
        if (r == 0)
                r = restore_overrides(l, a, inv);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

int steps_create_vfs(const PciDevice *pf, unsigned count, StepList **ret) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        char text[16];
        int r;

        if (!l)
                return -ENOMEM;
        (void) snprintf(text, sizeof(text), "%u", count);
        /* Before the VFs are there: it has no effect on existing ones (domain.md C7). */
        r = step_list_add(l, STEP_AUTOPROBE, pf->address, "1", "0");
        if (r == 0)
                r = step_list_add(l, STEP_NUMVFS, pf->address, "0", text);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}
