/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the lists of steps that prepare and release an allocation. */

#include "steps/step.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "model/vgpu.h"
#include "util/strings.h"

#define NO_VGPU "0"

StepList *step_list_new(void) {
        StepList *l = calloc(1, sizeof(*l));

        if (l)
                l->question_sec = 30;
        return l;
}

StepList *step_list_free(StepList *l) {
        if (!l)
                return NULL;
        for (size_t i = 0; i < l->n; i++) {
                free(l->steps[i].from);
                free(l->steps[i].to);
        }
        allocation_free(l->guest);
        free(l->steps);
        free(l);
        return NULL;
}

bool step_is_of_service(const Step *s) {
        return s->kind == STEP_STOP_SERVICE || s->kind == STEP_START_SERVICE;
}

bool step_is_of_region(const Step *s) {
        return s->kind == STEP_MAKE_REGION || s->kind == STEP_REMOVE_REGION;
}

bool step_has_device(const Step *s) {
        return !step_is_of_service(s) && !step_is_of_region(s) && !step_is_of_fabric(s);
}

int step_list_add(StepList *l, StepKind kind, PciAddress device, const char *from, const char *to) {
        _cleanup_free_ char *f = NULL, *t = NULL;

        if (string_copy(&f, from) < 0 || string_copy(&t, to) < 0 || ARRAY_RESERVE(l->steps, l->n) < 0)
                return -ENOMEM;
        l->steps[l->n++] = (Step) { .kind = kind, .device = device, .from = TAKE_PTR(f), .to = TAKE_PTR(t) };
        return 0;
}

void step_list_remove(StepList *l, size_t i) {
        assert(i < l->n);
        free(l->steps[i].from);
        free(l->steps[i].to);
        memmove(&l->steps[i], &l->steps[i + 1], (--l->n - i) * sizeof(*l->steps));
}

void step_list_move(StepList *l, size_t first, size_t to) {
        for (; first < l->n; first++, to++) {
                Step s = l->steps[first];

                memmove(&l->steps[to + 1], &l->steps[to], (first - to) * sizeof(*l->steps));
                l->steps[to] = s;
        }
}

int step_list_devices(const StepList *l, PciAddress **devices, size_t *n) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < l->n; i++)
                if (step_has_device(&l->steps[i]))
                        r = pci_address_append(devices, n, l->steps[i].device);
        pci_addresses_sort(*devices, n);
        return r;
}

int step_list_add_attributes(StepList *l, StepKind kind, PciAddress pf, unsigned vf, const VfAttributes *to) {
        _cleanup_free_ char *text = NULL;
        int r;

        if (to->set == 0)
                return 0;
        text = vf_attributes_format(to);
        r = text ? step_list_add(l, kind, pf, NULL, text) : -ENOMEM;
        if (r == 0)
                l->steps[l->n - 1].vf = vf;
        return r;
}

int steps_check_unused(const Allocation *a, StepList *steps) {
        int r = 0;

        for (size_t i = 0; i < a->n_devices; i++) {
                const char *mdev = a->devices[i].mdev;

                r = step_list_add(steps, STEP_CHECK_UNUSED, a->devices[i].address, *mdev ? mdev : NULL, NULL);
                if (r < 0)
                        return r;
                steps->steps[steps->n - 1].vf = a->devices[i].is_vf;
        }
        return r;
}

int step_keep_supported(Step *s, const VfAttributes *found) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes to;
        char *text;
        int r = vf_attributes_parse(s->to, &to, &problem);

        if (r < 0)
                return r;
        vf_attributes_keep(&to, found->set);
        text = vf_attributes_format(&to);
        if (!text)
                return -ENOMEM;
        free(s->to);
        s->to = text;
        return 0;
}

static char *describe_attributes(const Step *s, const char *address) {
        if (s->vf == STEP_VF_UNKNOWN)
                return string_format("give %s to a VF of %s whose index is unknown", s->to, address);
        return *s->to ? string_format("give VF %u of %s %s", s->vf, address, s->to)
                      : string_format("leave VF %u of %s as it is", s->vf, address);
}

char *step_describe(const Step *s) {
        const char *address = PCI_ADDRESS_STR(s->device);

        switch (s->kind) {
        case STEP_OVERRIDE:
                return s->to ? string_format("reserve %s for driver %s", address, s->to)
                             : string_format("clear the driver override of %s", address);
        case STEP_UNBIND:
                return string_format("unbind %s from %s", address, s->from);
        case STEP_BIND:
                return string_format("bind %s to %s", address, s->to);
        case STEP_RUNTIME_PM:
                return streq(s->to, "on") ? string_format("keep %s from suspending", address)
                                          : string_format("let the kernel suspend %s", address);
        case STEP_D3COLD:
                return string_format("%s D3cold of %s", streq(s->to, "0") ? "forbid" : "allow", address);
        case STEP_AUTOPROBE:
                return string_format("set driver autoprobe of VFs of %s to %s", address, s->to);
        case STEP_SAVE_VF_STATE:
                return string_format("note what VF %u of %s has", s->vf, address);
        case STEP_REMOVE_VFS:
                return string_format("remove the %s VFs of %s", s->from, address);
        case STEP_NUMVFS:
                return string_format("create %s VFs on %s", s->to, address);
        case STEP_RESET:
                return s->to ? string_format("reset %s by the method '%s'", address, s->to)
                             : string_format("reset %s", address);
        case STEP_CHECK:
        case STEP_CHECK_HEALTH:
                return string_format(s->from ? "check the health of %s" : "check that %s answers", address);
        case STEP_ATTRIBUTES:
        case STEP_SUPPORTED_ATTRIBUTES:
        case STEP_TRY_ATTRIBUTES:
        case STEP_RESTORE:
                return describe_attributes(s, address);
        case STEP_CLEAN:
                return string_format("clean %s", address);
        case STEP_STOP_SERVICE:
                return string_format("stop %s", s->to);
        case STEP_START_SERVICE:
                return string_format("start %s", s->to);
        case STEP_CHECK_IDLE:
                return string_format("check that no process uses %s", address);
        case STEP_MAKE_REGION:
                return string_format("make %s of shared memory '%s' on node %d", FORMAT_SIZE(s->region.size),
                                     s->region.name, s->region.node);
        case STEP_REMOVE_REGION:
                return string_format("wipe and remove the shared memory '%s'", s->region.name);
        case STEP_FIND_PORTS:
                return string_format("find free PCI ports in the guest");
        case STEP_PLUG:
                return string_format("plug %s into the guest", address);
        case STEP_UNPLUG:
                return string_format("have the guest release %s", address);
        case STEP_VGPU:
                return streq(s->to, NO_VGPU) ? string_format("remove the vGPU of %s", address)
                                             : string_format("give %s a vGPU of type %.*s", address,
                                                             (int) strcspn(s->to, "/"), s->to);
        case STEP_CHECK_UNUSED:
                return string_format("check that no process has %s open", address);
        case STEP_PERSISTENCE:
                return string_format("turn on persistence mode of %s", address);
        case STEP_CHECK_GPU:
                return string_format("check the memory and NVLinks of %s", address);
        case STEP_ACTIVATE:
                return string_format("activate NVLink partition %u", s->partition);
        case STEP_DEACTIVATE:
                return string_format("deactivate NVLink partition %u", s->partition);
        case _STEP_KIND_MAX:
                break;
        }
        return NULL;
}

/* The present state of a device. If the device is gone or its address has another card: the state before the
 * allocation. */
typedef struct Present {
        bool there;
        const char *driver, *override; /* NULL: none, or override was not read */
        bool on_vfio;
        bool with_host; /* bound to a host driver */
} Present;

static Present present(const Allocation *a, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, d->address);
        Present now = { .driver = d->prior_driver, .override = d->prior_override };

        if (dev && allocation_device_is(d, dev))
                now = (Present) { .there = true, .driver = dev->driver, .override = dev->driver_override };
        now.on_vfio = streq_ptr(now.driver, allocation_driver(a, d));
        now.with_host = now.driver && !now.on_vfio;
        return now;
}

static unsigned index_of(const PciDevice *vf) {
        return vf->vf_index >= 0 ? (unsigned) vf->vf_index : STEP_VF_UNKNOWN;
}

/* Adds steps that set the attributes of a VF. A failure to set a requested attribute fails the job; generated
 * attributes are optional. */
static int give_attributes(StepList *l, const Allocation *a, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *vf = inventory_find(inv, d->address);
        VfAttributes generated = d->attributes, wanted = d->attributes;
        int r;

        if (!vf || a->status.domain)
                return 0;
        /*
         * With a baseline, the PF has offered these attributes before, and the allocation records that the VF has them,
         * so now they are required.
         */
        vf_attributes_keep(&generated, d->has_baseline ? 0 : d->generated);
        vf_attributes_keep(&wanted, ~generated.set);
        /* If the index of the VF is unknown, no attributes are generated. A step for requested attributes reports the
         * problem. */
        if (vf->vf_index < 0)
                generated.set = 0;
        r = step_list_add_attributes(l, STEP_SUPPORTED_ATTRIBUTES, d->physfn, index_of(vf), &generated);
        return r < 0 ? r : step_list_add_attributes(l, STEP_ATTRIBUTES, d->physfn, index_of(vf), &wanted);
}

/* Adds a step that creates or removes the vGPU. A vGPU that another program created is kept: the step to create one
 * fails, and no step removes it. */
static int set_vgpu(StepList *l, const AllocationDevice *d, const Inventory *inv, bool wanted) {
        const PciDevice *vf = inventory_find(inv, d->address);
        _cleanup_free_ char *type = NULL;
        VgpuType t;

        if (d->vgpu_type == 0 || !vf || !allocation_device_is(d, vf) || allocation_device_has_vgpu(d, vf) == wanted)
                return 0;
        if (!vf->mdev_parent)
                type = string_format("%u", d->vgpu_type);
        else if (vgpu_types_find_id(vf->vgpu_types, d->vgpu_type, &t) && t.directory)
                type = string_format("%.*s/%s", (int) t.directory_length, t.directory, d->mdev);
        else
                type = string_format("%u/%s", d->vgpu_type, d->mdev);
        if (!type)
                return -ENOMEM;
        return step_list_add(l, STEP_VGPU, d->address, wanted ? NO_VGPU : type, wanted ? type : NO_VGPU);
}

/* Adds steps that keep the device awake. An idle device on a VFIO driver is suspended, and some devices do not resume
 * from D3cold. The kernel sets power/control to "auto" at each bind to a VFIO driver, so the bind itself sets it again
 * (host/control.h). */
static int keep_awake(StepList *l, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, d->address);
        int r = 0;

        if (!dev || d->vgpu_type > 0)
                return 0;
        if (dev->d3cold)
                r = step_list_add(l, STEP_D3COLD, d->address, "1", "0");
        if (r == 0 && dev->runtime_pm)
                r = step_list_add(l, STEP_RUNTIME_PM, d->address, "auto", "on");
        return r;
}

static int unbind_from_host(StepList *l, const Allocation *a, const AllocationDevice *d, const char *driver) {
        int r = step_list_add(l, STEP_UNBIND, d->address, driver, allocation_driver(a, d));

        if (r < 0)
                return r;
        l->steps[l->n - 1].vf = d->is_vf;
        l->steps[l->n - 1].checks_idle = true;
        return 0;
}

int steps_prepare(const Allocation *a, const Inventory *inv, StepList **ret) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        int r = l ? 0 : -ENOMEM;

        /* 1. Forbid D3 while the device can still be resumed. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                r = keep_awake(l, &a->devices[i], inv);
        /* 2. Set driver_override: from now on no other driver can bind an unbound device. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++) {
                Present now = present(a, &a->devices[i], inv);
                const char *vfio = allocation_driver(a, &a->devices[i]);

                if (a->devices[i].vgpu_type == 0 && !streq_ptr(now.override, vfio))
                        r = step_list_add(l, STEP_OVERRIDE, a->devices[i].address, now.override, vfio);
        }
        /* 3. Unbind every member before binding any: VFIO needs the whole group. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++) {
                Present now = present(a, &a->devices[i], inv);

                if (now.with_host && a->devices[i].vgpu_type == 0)
                        r = unbind_from_host(l, a, &a->devices[i], now.driver);
        }
        /* 4. Set attributes before a guest sees the VFs. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                r = give_attributes(l, a, &a->devices[i], inv);
        /* 5. Bind all. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                if (a->devices[i].vgpu_type == 0 && !present(a, &a->devices[i], inv).on_vfio)
                        r = step_list_add(l, STEP_BIND, a->devices[i].address, NULL,
                                          allocation_driver(a, &a->devices[i]));
        /* 6. Create the vGPUs. */
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                r = set_vgpu(l, &a->devices[i], inv, true);
        if (r < 0)
                return r;
        l->reports_found_state = true;
        *ret = TAKE_PTR(l);
        return 0;
}

/*
 * Returns true when the device must return to its prior driver: it is on the VFIO driver or unbound, and its prior
 * driver is not that VFIO driver.
 */
static bool must_return(const Allocation *a, const AllocationDevice *d, const Present *now) {
        return now->there && d->vgpu_type == 0 && !now->with_host &&
               !streq_ptr(d->prior_driver, allocation_driver(a, d));
}

static int unbind_from_vfio(StepList *l, const Allocation *a, const AllocationDevice *d) {
        int r = step_list_add(l, STEP_UNBIND, d->address, allocation_driver(a, d), d->prior_driver);

        if (r == 0)
                l->steps[l->n - 1].checks_closed = true;
        return r;
}

static int add_release_step(StepList *l, StepKind kind, const Allocation *a, const AllocationDevice *d,
                            const Present *now) {
        bool returns = must_return(a, d, now);

        switch (kind) {
        case STEP_OVERRIDE:
                return returns && d->prior_driver ? step_list_add(l, kind, d->address, now->override, d->prior_driver)
                                                  : 0;
        case STEP_UNBIND:
                return returns && now->on_vfio ? unbind_from_vfio(l, a, d) : 0;
        default:
                /* An interrupted job leaves its device unbound, also a device whose prior driver is the VFIO driver. */
                return now->there && d->vgpu_type == 0 && !now->with_host && d->prior_driver &&
                                       (returns || !now->driver)
                               ? step_list_add(l, kind, d->address, NULL, d->prior_driver)
                               : 0;
        }
}

/* Adds a step that restores driver_override. An override that is neither ours nor the prior driver was set by another
 * program, and is kept. */
static int restore_override(StepList *l, const Allocation *a, const AllocationDevice *d, const Present *now) {
        bool returns = must_return(a, d, now) && d->prior_driver;
        const char *override = returns ? d->prior_driver : now->override;
        bool ours = !override || streq(override, allocation_driver(a, d)) || streq_ptr(override, d->prior_driver);

        if (!now->there || d->vgpu_type > 0 || !ours || (override && streq_ptr(override, d->prior_override)))
                return 0;
        /* NULL may mean that the override was not read; the step reads it. */
        if (step_list_add(l, STEP_OVERRIDE, d->address, override, d->prior_override) < 0)
                return -ENOMEM;
        l->steps[l->n - 1].unlocks = now->with_host;
        return 0;
}

/* Adds steps that restore power management. A device that stays on a VFIO driver is kept awake. An unbind from a VFIO
 * driver sets power/control to "on". */
static int restore_power(StepList *l, const Allocation *a, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, d->address);
        Present now = present(a, d, inv);
        bool returns = must_return(a, d, &now);
        int r = 0;

        if (!now.there || d->vgpu_type > 0 || (!now.with_host && !returns))
                return 0;
        if (d->prior_d3cold && !dev->d3cold)
                r = step_list_add(l, STEP_D3COLD, d->address, "0", "1");
        if (r == 0 && d->prior_runtime_pm && (returns || !dev->runtime_pm))
                r = step_list_add(l, STEP_RUNTIME_PM, d->address, "on", "auto");
        return r;
}

static bool all_on_vfio(const Allocation *a, const Inventory *inv) {
        for (size_t i = 0; i < a->n_devices; i++) {
                Present now = present(a, &a->devices[i], inv);

                if (now.there && !now.on_vfio)
                        return false;
        }
        return true;
}

/* Adds a step that restores the attributes of the VF, because its next user must not get those of this allocation. */
static int restore_attributes(StepList *l, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *vf = inventory_find(inv, d->address);
        VfAttributes baseline = d->baseline;
        size_t n = l->n;
        int r;

        if (!vf || !d->has_baseline)
                return 0;
        vf_attributes_keep(&baseline, vf_attributes_touched(d->attributes.set));
        r = step_list_add_attributes(l, STEP_RESTORE, d->physfn, index_of(vf), &baseline);
        if (l->n > n)
                l->steps[n].target = d->address;
        return r;
}

/* Adds steps that reset and check the device while it is still bound to VFIO: the host driver must not see state that a
 * guest left. */
static int scrub_device(StepList *l, const AllocationDevice *d, const Present *now) {
        char fatal[16];
        int r;

        if (!now->on_vfio || d->role == DEVICE_ROLE_HELD || d->vgpu_type > 0)
                return 0;
        r = step_list_add(l, STEP_RESET, d->address, NULL, NULL);
        if (r < 0)
                return r;
        l->steps[l->n - 1].checks_closed = true;
        if (d->has_fatal)
                (void) snprintf(fatal, sizeof(fatal), "%u", d->fatal);
        return step_list_add(l, STEP_CHECK, d->address, d->has_fatal ? fatal : NULL, NULL);
}

int steps_release(const Allocation *a, const Inventory *inv, AfterRelease after, bool scrub, StepList **ret) {
        /*
         * 1. Reset the devices and restore the attributes of the VFs before a host driver sees them.
         *
         * 2. Set the prior driver as driver_override. This works where a bind by ids does not: for a VF of a PF with
         * autoprobe off (pci_device_can_probe() in the kernel's pci-driver.c), and for a device that matches the new_id
         * of another driver.
         *
         * 3. Unbind all before binding any: while a member is on VFIO and in use, the kernel refuses host drivers in
         * its group.
         *
         * 4. Bind each device to its prior driver.
         */
        static const StepKind order[] = { STEP_OVERRIDE, STEP_UNBIND, STEP_BIND };
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        bool keep;
        int r = 0;

        if (!l)
                return -ENOMEM;
        l->skips_missing_devices = true;
        l->outlives_stuck = true;
        /* Devices can only stay on VFIO if all devices of the allocation are on it. */
        keep = after == AFTER_RELEASE_KEEP && all_on_vfio(a, inv);
        for (size_t i = 0; r == 0 && i < a->n_devices; i++)
                r = set_vgpu(l, &a->devices[i], inv, false);
        for (size_t i = 0; r == 0 && i < a->n_devices; i++) {
                Present now = present(a, &a->devices[i], inv);

                if (now.there && scrub)
                        r = scrub_device(l, &a->devices[i], &now);
                if (now.there && r == 0)
                        r = restore_attributes(l, &a->devices[i], inv);
        }
        for (size_t k = 0; k < ELEMENTSOF(order) && !keep; k++)
                for (size_t i = 0; r == 0 && i < a->n_devices; i++) {
                        Present now = present(a, &a->devices[i], inv);

                        r = add_release_step(l, order[k], a, &a->devices[i], &now);
                }
        /* 5. Restore the prior override; this does not unbind. */
        for (size_t i = 0; r == 0 && !keep && i < a->n_devices; i++) {
                Present now = present(a, &a->devices[i], inv);

                r = restore_override(l, a, &a->devices[i], &now);
        }
        /* 6. Allow D3 again. */
        for (size_t i = 0; r == 0 && !keep && i < a->n_devices; i++)
                r = restore_power(l, a, &a->devices[i], inv);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}
