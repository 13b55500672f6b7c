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

static bool needs_binding(const AllocationDevice *d, const char *vfio_driver) {
        return !streq_ptr(d->prior_driver, vfio_driver);
}

int steps_prepare(const Allocation *a, const char *vfio_driver, StepList **ret) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        int r = l ? 0 : -ENOMEM;

        /* 1. Say which driver may have each: from here no other one can take a device that is let go. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                if (!streq_ptr(a->devices[i].prior_override, vfio_driver))
                        r = step_list_add(l, STEP_OVERRIDE, a->devices[i].address, a->devices[i].prior_override, vfio_driver);
        /* 2. Unbind every member before binding any: VFIO needs the whole group. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                if (a->devices[i].prior_driver && needs_binding(&a->devices[i], vfio_driver))
                        r = step_list_add(l, STEP_UNBIND, a->devices[i].address, a->devices[i].prior_driver, NULL);
        /* 3. Bind all. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                if (needs_binding(&a->devices[i], vfio_driver))
                        r = step_list_add(l, STEP_BIND, a->devices[i].address, NULL, vfio_driver);
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

int steps_release(const Allocation *a, const Inventory *inv, const char *vfio_driver, AfterRelease after, StepList **ret) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        int r = l ? 0 : -ENOMEM;

        if (r == 0 && after == AFTER_RELEASE_KEEP) {
                *ret = TAKE_PTR(l);
                return 0;
        }
        /*
         * 1. Allow the driver it came from, by name: that works where its ids would not, as for a VF of a PF with autoprobe off
         * (domain.md B10) or a device another driver's new_id would catch.
         */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                if (is_there(inv, &a->devices[i]) && needs_binding(&a->devices[i], vfio_driver) && a->devices[i].prior_driver)
                        r = step_list_add(l, STEP_OVERRIDE, a->devices[i].address, vfio_driver, a->devices[i].prior_driver);
        /* 2. Unbind all before binding any: a group member on a host driver while another is on VFIO is refused (A8). */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                if (is_there(inv, &a->devices[i]) && needs_binding(&a->devices[i], vfio_driver))
                        r = step_list_add(l, STEP_UNBIND, a->devices[i].address, vfio_driver, NULL);
        /* 3. Give each back to its driver. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                if (is_there(inv, &a->devices[i]) && needs_binding(&a->devices[i], vfio_driver) && a->devices[i].prior_driver)
                        r = step_list_add(l, STEP_BIND, a->devices[i].address, NULL, a->devices[i].prior_driver);
        /* 4. The override as it was; this does not unbind (B3). */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                const char *now = needs_binding(d, vfio_driver) && d->prior_driver ? d->prior_driver : vfio_driver;

                if (is_there(inv, d) && !streq_ptr(now, d->prior_override))
                        r = step_list_add(l, STEP_OVERRIDE, d->address, now, d->prior_override);
        }
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
