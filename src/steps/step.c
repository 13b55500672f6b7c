/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of steps, and the steps that prepare and release an allocation. */

#include "steps/step.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "model/vgpu.h"
#include "util/strings.h"

#define DRIVERS .strings = { offsetof(Step, unbind.driver), offsetof(Step, unbind.instead) }
#define SERVICE .subject = STEP_OF_SERVICE, .alone = true, .strings = { offsetof(Step, service) }
#define FABRIC  .subject = STEP_OF_PARTITION, .alone = true, .limit = STEP_LIMIT_QUESTION
#define OF_GUEST                                                                                                       \
        .alone = true, .limit = STEP_LIMIT_QUESTION,                                                                   \
        .strings = { offsetof(Step, plug.domain), offsetof(Step, plug.hostdev) }

const StepProperties step_properties[_STEP_KIND_MAX] = {
        [STEP_OVERRIDE] = { .strings = { offsetof(Step, override.from), offsetof(Step, override.to) } },
        [STEP_UNBIND] = { DRIVERS },
        [STEP_RUNTIME_PM] = { 0 },
        [STEP_D3COLD] = { 0 },
        [STEP_BIND] = { .strings = { offsetof(Step, driver) } },
        [STEP_AUTOPROBE] = { 0 },
        [STEP_SAVE_VF_STATE] = { 0 },
        [STEP_REMOVE_VFS] = { .limit = STEP_LIMIT_SLOW },
        [STEP_NUMVFS] = { .limit = STEP_LIMIT_SLOW },
        [STEP_RESET] = { .limit = STEP_LIMIT_SLOW,
                         .failure = STEP_FAILS_DEVICE,
                         .strings = { offsetof(Step, reset.before) } },
        [STEP_CHECK] = { .failure = STEP_FAILS_DEVICE },
        [STEP_ATTRIBUTES] = { .subject = STEP_OF_ATTRIBUTES },
        [STEP_SUPPORTED_ATTRIBUTES] = { .subject = STEP_OF_ATTRIBUTES },
        [STEP_TRY_ATTRIBUTES] = { .subject = STEP_OF_ATTRIBUTES, .failure = STEP_FAILS_ALONE },
        [STEP_RESTORE] = { .subject = STEP_OF_ATTRIBUTES, .failure = STEP_FAILS_DEVICE },
        [STEP_CLEAN] = { .alone = true,
                         .failure = STEP_FAILS_DEVICE,
                         .strings = { offsetof(Step, clean.pool), offsetof(Step, clean.command) } },
        [STEP_STOP_SERVICE] = { SERVICE },
        [STEP_START_SERVICE] = { SERVICE },
        [STEP_CHECK_IDLE] = { .alone = true, DRIVERS },
        [STEP_MAKE_REGION] = { .subject = STEP_OF_REGION, .alone = true, .strings = { offsetof(Step, memory.group) } },
        [STEP_REMOVE_REGION] = { .subject = STEP_OF_REGION, .alone = true },
        [STEP_FIND_PORTS] = { OF_GUEST },
        [STEP_PLUG] = { OF_GUEST },
        [STEP_UNPLUG] = { OF_GUEST },
        [STEP_VGPU] = { .strings = { offsetof(Step, vgpu.name), offsetof(Step, vgpu.mdev) } },
        [STEP_CHECK_UNUSED] = { .alone = true, .strings = { offsetof(Step, unused.mdev) } },
        [STEP_ACTIVATE] = { FABRIC },
        [STEP_DEACTIVATE] = { FABRIC },
        [STEP_CHECK_HEALTH] = { 0 },
        [STEP_PERSISTENCE] = { .limit = STEP_LIMIT_QUESTION },
        [STEP_CHECK_GPU] = { .alone = true, .limit = STEP_LIMIT_QUESTION, .failure = STEP_FAILS_DEVICE },
};

StepList *step_list_new(void) {
        StepList *l = calloc(1, sizeof(*l));

        if (l)
                l->question_sec = 30;
        return l;
}

StepList *step_list_free(StepList *l) {
        if (!l)
                return NULL;
        for (size_t i = 0; i < l->n_strings; i++)
                free(l->strings[i]);
        allocation_free(l->guest);
        free(l->strings);
        free(l->steps);
        free(l);
        return NULL;
}

int step_list_result(const StepList *l) {
        return l->lacks_memory ? -ENOMEM : 0;
}

int step_list_finish(StepList *l, StepList **ret) {
        int r = step_list_result(l);

        *ret = r < 0 ? step_list_free(l) : l;
        return r;
}

void step_list_own(StepList *l, const char **s) {
        if (!*s)
                return;
        if (ARRAY_RESERVE(l->strings, l->n_strings) >= 0 && (l->strings[l->n_strings] = strdup(*s)))
                *s = l->strings[l->n_strings++];
        else
                l->lacks_memory = true;
}

void step_list_add(StepList *l, Step s) {
        const uint8_t *strings = step_properties[s.kind].strings;

        for (size_t i = 0; i < ELEMENTSOF(step_properties->strings); i++)
                if (strings[i] > 0)
                        step_list_own(l, (const char **) ((char *) &s + strings[i]));
        if (!l->lacks_memory && ARRAY_RESERVE(l->steps, l->n) >= 0)
                l->steps[l->n++] = s;
        else
                l->lacks_memory = true;
}

void step_list_remove(StepList *l, size_t i) {
        assert(i < l->n);
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

int steps_check_unused(const Allocation *a, StepList *steps) {
        for (const AllocationDevice *d = a->devices; d < allocation_devices_end(a); d++)
                step_list_add(steps, (Step) { STEP_CHECK_UNUSED, d->address,
                                              .unused = { .mdev = *d->mdev ? d->mdev : NULL, .is_vf = d->is_vf } });
        return step_list_result(steps);
}

static char *describe_attributes(const Step *s, const char *address) {
        _cleanup_free_ char *text = vf_attributes_format(&s->vf.attributes);

        if (!text)
                return NULL;
        if (s->vf.index == STEP_VF_UNKNOWN)
                return string_format("give %s to a VF of %s whose index is unknown", text, address);
        return *text ? string_format("give VF %u of %s %s", s->vf.index, address, text)
                     : string_format("leave VF %u of %s as it is", s->vf.index, address);
}

static char *describe_vgpu(const Step *s, const char *address) {
        if (!s->vgpu.wanted)
                return string_format("remove the vGPU of %s", address);
        return s->vgpu.name ? string_format("give %s a vGPU of type %s", address, s->vgpu.name)
                            : string_format("give %s a vGPU of type %u", address, s->vgpu.type);
}

char *step_describe(const Step *s) {
        const char *address = PCI_ADDRESS_STR(s->device);

        switch (s->kind) {
        case STEP_OVERRIDE:
                return s->override.to ? string_format("reserve %s for driver %s", address, s->override.to)
                                      : string_format("clear the driver override of %s", address);
        case STEP_UNBIND:
                return string_format("unbind %s from %s", address, s->unbind.driver);
        case STEP_BIND:
                return string_format("bind %s to %s", address, s->driver);
        case STEP_RUNTIME_PM:
                return s->on ? string_format("keep %s from suspending", address)
                             : string_format("let the kernel suspend %s", address);
        case STEP_D3COLD:
                return string_format("%s D3cold of %s", s->on ? "allow" : "forbid", address);
        case STEP_AUTOPROBE:
                return string_format("set driver autoprobe of VFs of %s to %d", address, s->on);
        case STEP_SAVE_VF_STATE:
                return string_format("note what VF %u of %s has", s->vf.index, address);
        case STEP_REMOVE_VFS:
                return string_format("remove the %u VFs of %s", s->count, address);
        case STEP_NUMVFS:
                return string_format("create %u VFs on %s", s->count, address);
        case STEP_RESET:
                return s->reset.method != RESET_METHOD_DEFAULT ? string_format("reset %s by the method '%s'", address,
                                                                               reset_method_to_string(s->reset.method))
                                                               : string_format("reset %s", address);
        case STEP_CHECK:
                return string_format(s->check.compares ? "check the health of %s" : "check that %s answers", address);
        case STEP_ATTRIBUTES:
        case STEP_SUPPORTED_ATTRIBUTES:
        case STEP_TRY_ATTRIBUTES:
        case STEP_RESTORE:
                return describe_attributes(s, address);
        case STEP_CHECK_HEALTH:
                return string_format("check that %s answers", address);
        case STEP_CLEAN:
                return string_format("clean %s", address);
        case STEP_STOP_SERVICE:
                return string_format("stop %s", s->service);
        case STEP_START_SERVICE:
                return string_format("start %s", s->service);
        case STEP_CHECK_IDLE:
                return string_format("check that no process uses %s", address);
        case STEP_MAKE_REGION:
                return string_format("make %s of shared memory '%s' on node %d", FORMAT_SIZE(s->memory.region.size),
                                     s->memory.region.name, s->memory.region.node);
        case STEP_REMOVE_REGION:
                return string_format("wipe and remove the shared memory '%s'", s->memory.region.name);
        case STEP_FIND_PORTS:
                return string_format("find free PCI ports in the guest");
        case STEP_PLUG:
                return string_format("plug %s into the guest", address);
        case STEP_UNPLUG:
                return string_format("have the guest release %s", address);
        case STEP_VGPU:
                return describe_vgpu(s, address);
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

/* The present state of a device; its state before the allocation if the device is missing or another card has its
 * address. */
typedef struct Present {
        bool there;
        const char *driver, *override; /* NULL: none; an override that was not read is NULL, too */
        bool on_vfio;
        bool with_host; /* the device is bound to a host driver */
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

/* Adds a step of the given kind for those attributes of a VF that are set; no step if none is set. */
static void give(StepList *l, StepKind kind, const AllocationDevice *d, const PciDevice *vf,
                 const VfAttributes *attributes) {
        if (attributes->set != 0)
                step_list_add(l,
                              (Step) { kind, d->physfn,
                                       .vf = { .index = vf->vf_index >= 0 ? (unsigned) vf->vf_index : STEP_VF_UNKNOWN,
                                               .attributes = *attributes,
                                               .address = d->address } });
}

/* Adds steps that set the attributes of a VF. The job fails if an attribute that the request names cannot be set. An
 * attribute that the daemon generated is left out if the PF does not offer it. */
static void give_attributes(StepList *l, const Allocation *a, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *vf = inventory_find(inv, d->address);
        VfAttributes generated = d->attributes, wanted = d->attributes;

        if (!vf || a->status.domain)
                return;
        /* With a baseline, an earlier job has found which attributes the PF offers, and manager_found_attributes() has
         * dropped the generated attributes that it does not offer. So the remaining ones are required. */
        vf_attributes_keep(&generated, d->has_baseline ? 0 : d->generated);
        vf_attributes_keep(&wanted, ~generated.set);
        /* If the index of the VF is unknown, skip the generated attributes. The step for the requested attributes, if
         * there are any, then fails and reports that. */
        if (vf->vf_index < 0)
                generated.set = 0;
        give(l, STEP_SUPPORTED_ATTRIBUTES, d, vf, &generated);
        give(l, STEP_ATTRIBUTES, d, vf, &wanted);
}

/* Adds a step that creates or removes the vGPU. A vGPU of another type, or another mediated device, counts as another
 * program's and is kept: the step that creates a vGPU then fails, and no step removes the other vGPU. */
static void set_vgpu(StepList *l, const AllocationDevice *d, const Inventory *inv, bool wanted) {
        const PciDevice *vf = inventory_find(inv, d->address);
        _cleanup_free_ char *name = NULL;
        VgpuType t;

        if (d->vgpu_type == 0 || !vf || !allocation_device_is(d, vf) || allocation_device_has_vgpu(d, vf) == wanted)
                return;
        if (vf->mdev_parent && vgpu_types_find_id(vf->vgpu_types, d->vgpu_type, &t) && t.directory)
                name = string_format("%.*s", (int) t.directory_length, t.directory);
        step_list_add(l, (Step) { STEP_VGPU, d->address,
                                  .vgpu = { .wanted = wanted,
                                            .type = d->vgpu_type,
                                            .name = name,
                                            .mdev = vf->mdev_parent ? d->mdev : NULL } });
}

static void add_override(StepList *l, const AllocationDevice *d, const char *from, const char *to, bool unlocks) {
        step_list_add(l,
                      (Step) { STEP_OVERRIDE, d->address, .override = { .from = from, .to = to, .unlocks = unlocks } });
}

static void add_bind(StepList *l, const AllocationDevice *d, const char *driver) {
        step_list_add(l, (Step) { STEP_BIND, d->address, .driver = driver });
}

static void add_switch(StepList *l, StepKind kind, const AllocationDevice *d, bool on) {
        step_list_add(l, (Step) { kind, d->address, .on = on });
}

/* Adds steps that keep the device out of D3. An idle device on a VFIO driver is suspended, and some devices do not
 * resume from D3cold. The kernel sets power/control to "auto" at each bind to a VFIO driver, so STEP_BIND sets it to
 * "on" again (host/control.h). */
static void keep_awake(StepList *l, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, d->address);

        if (!dev || d->vgpu_type > 0)
                return;
        if (dev->d3cold)
                add_switch(l, STEP_D3COLD, d, false);
        if (dev->runtime_pm)
                add_switch(l, STEP_RUNTIME_PM, d, true);
}

/* No call below checks whether a step was added: step_list_finish() returns -ENOMEM if one was not. */
int steps_prepare(const Allocation *a, const Inventory *inv, StepList **ret) {
        const AllocationDevice *const end = allocation_devices_end(a);
        StepList *l = step_list_new();

        if (!l)
                return -ENOMEM;
        l->reports_found_state = true;
        /* 1. Forbid D3 while the device can still be resumed. */
        for (const AllocationDevice *d = a->devices; d < end; d++)
                keep_awake(l, d, inv);
        /* 2. Set driver_override: from now on no other driver can bind an unbound device. */
        for (const AllocationDevice *d = a->devices; d < end; d++) {
                Present now = present(a, d, inv);

                if (d->vgpu_type == 0 && !streq_ptr(now.override, allocation_driver(a, d)))
                        add_override(l, d, now.override, allocation_driver(a, d), false);
        }
        /* 3. Unbind every device before binding any: VFIO gives a group to a guest only if no member is on a host
         * driver. */
        for (const AllocationDevice *d = a->devices; d < end; d++) {
                Present now = present(a, d, inv);

                if (now.with_host && d->vgpu_type == 0)
                        step_list_add(l, (Step) { STEP_UNBIND, d->address,
                                                  .unbind = { .driver = now.driver,
                                                              .instead = allocation_driver(a, d),
                                                              .is_vf = d->is_vf,
                                                              .checks_idle = true } });
        }
        /* 4. Set attributes before a guest sees the VFs. */
        for (const AllocationDevice *d = a->devices; d < end; d++)
                give_attributes(l, a, d, inv);
        /* 5. Bind all. */
        for (const AllocationDevice *d = a->devices; d < end; d++)
                if (d->vgpu_type == 0 && !present(a, d, inv).on_vfio)
                        add_bind(l, d, allocation_driver(a, d));
        /* 6. Create the vGPUs. */
        for (const AllocationDevice *d = a->devices; d < end; d++)
                set_vgpu(l, d, inv, true);
        return step_list_finish(l, ret);
}

/* Returns true when the device must return to its prior driver, or to no driver: the device is present, has no vGPU, is
 * unbound or on the VFIO driver of the allocation, and was not on that driver before the allocation. */
static bool must_return(const Allocation *a, const AllocationDevice *d, const Present *now) {
        return now->there && d->vgpu_type == 0 && !now->with_host &&
               !streq_ptr(d->prior_driver, allocation_driver(a, d));
}

static void add_release_step(StepList *l, StepKind kind, const Allocation *a, const AllocationDevice *d,
                             const Present *now) {
        bool returns = must_return(a, d, now);

        if (kind == STEP_OVERRIDE && returns && d->prior_driver)
                add_override(l, d, now->override, d->prior_driver, false);
        if (kind == STEP_UNBIND && returns && now->on_vfio)
                step_list_add(l, (Step) { kind, d->address,
                                          .unbind = { .driver = now->driver,
                                                      .instead = d->prior_driver,
                                                      .checks_closed = true } });
        /* Bind also a device whose prior driver is the VFIO driver, if an interrupted job has left it unbound. */
        if (kind == STEP_BIND && now->there && d->vgpu_type == 0 && !now->with_host && d->prior_driver &&
            (returns || !now->driver))
                add_bind(l, d, d->prior_driver);
}

/* Adds a step that restores driver_override. An override that is neither the VFIO driver nor the prior driver was set
 * by another program. It is kept, unless the device returns to a prior driver, for which an earlier step replaces the
 * override. */
static void restore_override(StepList *l, const Allocation *a, const AllocationDevice *d, const Present *now) {
        bool returns = must_return(a, d, now) && d->prior_driver;
        const char *override = returns ? d->prior_driver : now->override;
        bool ours = !override || streq(override, allocation_driver(a, d)) || streq_ptr(override, d->prior_driver);

        /* override is NULL if there is none or if it was not read. The step reads it again. */
        if (now->there && d->vgpu_type == 0 && ours && (!override || !streq_ptr(override, d->prior_override)))
                add_override(l, d, override, d->prior_override, now->with_host);
}

/* Adds steps that restore power management. A device that stays on a VFIO driver is kept out of D3. After an unbind
 * from a VFIO driver, power/control is "on", whatever it was before. */
static void restore_power(StepList *l, const Allocation *a, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, d->address);
        Present now = present(a, d, inv);
        bool returns = must_return(a, d, &now);

        if (!now.there || d->vgpu_type > 0 || (!now.with_host && !returns))
                return;
        if (d->prior_d3cold && !dev->d3cold)
                add_switch(l, STEP_D3COLD, d, true);
        if (d->prior_runtime_pm && (returns || !dev->runtime_pm))
                add_switch(l, STEP_RUNTIME_PM, d, false);
}

static bool all_on_vfio(const Allocation *a, const Inventory *inv) {
        for (size_t i = 0; i < a->n_devices; i++) {
                Present now = present(a, &a->devices[i], inv);

                if (now.there && !now.on_vfio)
                        return false;
        }
        return true;
}

/* Adds a step that restores the attributes that the VF had before the allocation, because its next user must not get
 * those of the allocation. */
static void restore_attributes(StepList *l, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *vf = inventory_find(inv, d->address);
        VfAttributes baseline = d->baseline;

        if (!vf || !d->has_baseline)
                return;
        vf_attributes_keep(&baseline, vf_attributes_touched(d->attributes.set));
        give(l, STEP_RESTORE, d, vf, &baseline);
}

/* Adds steps that reset and check the device while it is still on its VFIO driver, because a host driver must not see
 * the state that a guest left. */
static void scrub_device(StepList *l, const AllocationDevice *d, const Present *now) {
        if (!now->on_vfio || d->role == DEVICE_ROLE_HELD || d->vgpu_type > 0)
                return;
        step_list_add(l, (Step) { STEP_RESET, d->address, .reset = { .checks_closed = true } });
        step_list_add(l, (Step) { STEP_CHECK, d->address, .check = { .compares = d->has_fatal, .fatal = d->fatal } });
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
        const AllocationDevice *const end = allocation_devices_end(a);
        StepList *l = step_list_new();

        if (!l)
                return -ENOMEM;
        l->skips_missing_devices = true;
        l->outlives_stuck = true;
        for (const AllocationDevice *d = a->devices; d < end; d++)
                set_vgpu(l, d, inv, false);
        for (const AllocationDevice *d = a->devices; d < end; d++) {
                Present now = present(a, d, inv);

                if (now.there && scrub)
                        scrub_device(l, d, &now);
                if (now.there)
                        restore_attributes(l, d, inv);
        }
        /* Devices may stay on VFIO only if all present devices of the allocation are on it. */
        if (after == AFTER_RELEASE_KEEP && all_on_vfio(a, inv))
                return step_list_finish(l, ret);
        for (size_t k = 0; k < ELEMENTSOF(order); k++)
                for (const AllocationDevice *d = a->devices; d < end; d++) {
                        Present now = present(a, d, inv);

                        add_release_step(l, order[k], a, d, &now);
                }
        /* 5. Restore the prior overrides. This does not unbind a device. */
        for (const AllocationDevice *d = a->devices; d < end; d++) {
                Present now = present(a, d, inv);

                restore_override(l, a, d, &now);
        }
        /* 6. Allow D3 again. */
        for (const AllocationDevice *d = a->devices; d < end; d++)
                restore_power(l, a, d, inv);
        return step_list_finish(l, ret);
}
