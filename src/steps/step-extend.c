/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds further steps to a list that prepares or releases an allocation. Each section below is about one subject. */
#include <errno.h>

#include "steps/step.h"
#include "util/strings.h"

/* Steps that check the health of devices before a guest gets them. */

static bool has_bind(const StepList *l, PciAddress device) {
        for (size_t i = 0; i < l->n; i++)
                if (l->steps[i].kind == STEP_BIND && pci_address_equal(l->steps[i].device, device))
                        return true;
        return false;
}

int steps_check_health(const Allocation *a, StepList *steps) {
        const size_t first = steps->n;

        steps->checks_health = true;
        for (size_t i = 0; i < a->n_devices; i++) {
                PciAddress device = a->devices[i].address;

                /* A mediated device needs no check, because the driver notices a dead GPU when it creates the mediated
                 * device. */
                if (device.instance == 0 && !has_bind(steps, device))
                        step_list_add(steps, (Step) { STEP_CHECK_HEALTH, device });
        }
        step_list_move(steps, first, 0);
        return step_list_result(steps);
}

/* How the devices of an allocation are reset. */

/* Returns the pool of the device. For a companion, which has no pool, returns the pool of its card's assigned device.
 * NULL: no pool. */
static const Pool *pool_of_card(const Allocation *a, const AllocationDevice *d, const Config *config) {
        while (d > a->devices && d->role == DEVICE_ROLE_COMPANION)
                d--;
        return d->pool ? config_find_pool(config, d->pool) : NULL;
}

static void choose_reset(Step *s, const AllocationDevice *d, const Pool *pool, const PciDevice *dev) {
        bool companion = d->role == DEVICE_ROLE_COMPANION;

        s->reset.may_stay = pool && pool->allow_no_reset;
        s->reset.may_lack_method = s->reset.may_stay || companion;
        if (!pool || pool->reset_method == RESET_METHOD_DEFAULT || companion)
                return;
        s->reset.method = pool->reset_method;
        s->reset.before = d->prior_reset ?: (dev ? dev->reset_methods : NULL);
}

int steps_reset(const Allocation *a, const Inventory *inv, const Config *config, StepList *steps) {
        for (Step *s = steps->steps; s < step_list_end(steps); s++) {
                const AllocationDevice *d = s->kind == STEP_RESET ? allocation_find_device(a, s->device) : NULL;

                if (!d)
                        continue;
                choose_reset(s, d, pool_of_card(a, d, config), inventory_find(inv, s->device));
                step_list_own(steps, &s->reset.before);
        }
        return step_list_result(steps);
}

/* Steps for NVIDIA GPUs that have returned to the host. */

/* Returns true when NVIDIA's driver has the device after the steps: a step binds the device to this driver; or no step
 * binds the device, and the driver has it already, as after an interrupted release. */
static bool is_with_nvidia(const StepList *l, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, d->address);

        for (size_t i = 0; i < l->n; i++)
                if (l->steps[i].kind == STEP_BIND && pci_address_equal(l->steps[i].device, d->address))
                        return streq(l->steps[i].driver, NVIDIA_DRIVER);
        return dev && allocation_device_is(d, dev) && streq_ptr(dev->driver, NVIDIA_DRIVER);
}

/* Returns true for a GPU that NVIDIA's driver has again after the steps. False for a VF or slot, whose GPU has stayed
 * on NVIDIA's driver. */
static bool returns_gpu(const StepList *l, const AllocationDevice *d, const Inventory *inv) {
        return d->pool && !d->is_vf && d->vgpu_type == 0 && is_with_nvidia(l, d, inv);
}

int steps_return_gpus(const Allocation *a, const Inventory *inv, bool check, StepList *steps) {
        for (const AllocationDevice *d = a->devices; d < allocation_devices_end(a); d++)
                if (d->prior_persistence && returns_gpu(steps, d, inv))
                        step_list_add(steps, (Step) { STEP_PERSISTENCE, d->address });
        for (const AllocationDevice *d = a->devices; check && d < allocation_devices_end(a); d++)
                if (returns_gpu(steps, d, inv))
                        step_list_add(steps, (Step) { STEP_CHECK_GPU, d->address });
        return step_list_result(steps);
}

/* Steps that clean devices with a command before the devices return to the host. */

static const Pool *pool_with_cleaner(const Step *s, const Allocation *a, const Config *config) {
        const AllocationDevice *d = s->kind == STEP_CHECK ? allocation_find_device(a, s->device) : NULL;
        const Pool *pool = d && d->pool ? config_find_pool(config, d->pool) : NULL;

        return pool && pool->cleaner ? pool : NULL;
}

int steps_clean(const Allocation *a, const Config *config, StepList *steps) {
        size_t n = steps->n, checked = 0;

        for (size_t i = 0; i < n; i++) {
                const Pool *pool = pool_with_cleaner(&steps->steps[i], a, config);

                if (steps->steps[i].kind == STEP_CHECK)
                        checked = i + 1;
                if (pool)
                        step_list_add(steps, (Step) { STEP_CLEAN, steps->steps[i].device,
                                                      .clean = { pool->name, pool->cleaner } });
        }
        step_list_move(steps, n, checked);
        return step_list_result(steps);
}

/* Steps that stop services before devices are unbound, and start the services afterwards. */

bool step_list_has_service(const StepList *l, const char *name) {
        for (size_t i = 0; i < l->n; i++)
                if (step_is_of_service(&l->steps[i]) && streq(l->steps[i].service, name))
                        return true;
        return false;
}

bool step_lists_share_service(const StepList *a, const StepList *b) {
        for (size_t i = 0; i < a->n; i++)
                if (step_is_of_service(&a->steps[i]) && step_list_has_service(b, a->steps[i].service))
                        return true;
        return false;
}

/* Returns the pool of the device that the step unbinds. NULL for other steps, and for a device in no pool. */
static const Pool *pool_of_unbound(const Step *s, const Allocation *a, const Config *config) {
        const AllocationDevice *d = s->kind == STEP_UNBIND ? allocation_find_device(a, s->device) : NULL;

        return d && d->pool ? config_find_pool(config, d->pool) : NULL;
}

/* The next two functions look at the first n steps of the list, and append steps for them. */

static void stop_services(StepList *l, size_t n, const Allocation *a, const Config *config) {
        for (size_t i = 0; i < n; i++) {
                const Pool *pool = pool_of_unbound(&l->steps[i], a, config);

                for (size_t j = 0; pool && j < pool->n_stop_services; j++)
                        if (!step_list_has_service(l, pool->stop_services[j]))
                                step_list_add(l, (Step) { STEP_STOP_SERVICE, l->steps[i].device,
                                                          .service = pool->stop_services[j] });
        }
}

static void look_for_users(StepList *l, size_t n, const Allocation *a, const Config *config) {
        for (size_t i = 0; i < n; i++) {
                const Step *unbind = &l->steps[i];
                const Pool *pool = pool_of_unbound(unbind, a, config);

                if (pool && pool->n_stop_services > 0)
                        step_list_add(l, (Step) { STEP_CHECK_IDLE, unbind->device,
                                                  .unbind = { .driver = unbind->unbind.driver,
                                                              .is_vf = unbind->unbind.is_vf } });
        }
}

int steps_around_services(const Allocation *a, const Config *config, StepList *steps) {
        size_t n = steps->n, n_stops;

        stop_services(steps, n, a, config);
        n_stops = steps->n - n;
        if (n_stops > 0)
                look_for_users(steps, n, a, config);
        step_list_move(steps, n, 0);
        while (n_stops-- > 0)
                step_list_add(steps, (Step) { STEP_START_SERVICE, steps->steps[n_stops].device,
                                              .service = steps->steps[n_stops].service });
        return step_list_result(steps);
}

/* Steps that create and remove shared memory. */

static int add_regions(StepList *l, StepKind kind, const Allocation *a, const char *group) {
        for (size_t i = 0; i < a->n_regions; i++)
                step_list_add(l, (Step) { .kind = kind, .memory = { .region = a->regions[i], .group = group } });
        return step_list_result(l);
}

int steps_make_regions(const Allocation *a, const Config *config, StepList *steps) {
        size_t n = steps->n;
        int r = add_regions(steps, STEP_MAKE_REGION, a, config->shared_memory_group);

        step_list_move(steps, n, 0);
        return r;
}

int steps_remove_regions(const Allocation *a, StepList *steps) {
        return add_regions(steps, STEP_REMOVE_REGION, a, NULL);
}

static bool has_region(const StepList *l, const char *name) {
        for (size_t i = 0; i < l->n; i++)
                if (step_is_of_region(&l->steps[i]) && streq(l->steps[i].memory.region.name, name))
                        return true;
        return false;
}

bool step_lists_share_region(const StepList *a, const StepList *b) {
        for (size_t i = 0; i < a->n; i++)
                if (step_is_of_region(&a->steps[i]) && has_region(b, a->steps[i].memory.region.name))
                        return true;
        return false;
}

/* Steps that activate and deactivate the NVLink partition of an allocation. */

/* Adds the step if the allocation has a partition and Manager= is set. Returns true if the step was added. */
static bool add_fabric_step(StepList *l, StepKind kind, const Allocation *a, const Config *config) {
        if (a->partition < 0 || !config->fabric_manager)
                return false;
        step_list_add(l, (Step) { .kind = kind, .partition = (unsigned) a->partition });
        return !l->lacks_memory;
}

int steps_activate(const Allocation *a, const Config *config, bool again, StepList *steps) {
        const size_t first = steps->n;

        if (add_fabric_step(steps, STEP_ACTIVATE, a, config) && again) {
                (void) steps_check_unused(a, steps);
                step_list_move(steps, first + 1, first);
                for (size_t i = first; i < steps->n; i++)
                        steps->steps[i].may_lack = true;
        }
        return step_list_result(steps);
}

int steps_deactivate(const Allocation *a, const Config *config, StepList *steps) {
        if (add_fabric_step(steps, STEP_DEACTIVATE, a, config))
                step_list_move(steps, steps->n - 1, 0);
        return step_list_result(steps);
}

bool step_may_lack(const Step *s, int error) {
        static const int away[] = { ENOTCONN, EAGAIN, ETIMEDOUT, EHOSTDOWN, ELIBACC, EPROTO };

        if (!s->may_lack || s->kind == STEP_CHECK_UNUSED)
                return s->may_lack;
        for (size_t i = 0; i < ELEMENTSOF(away); i++)
                if (error == -away[i])
                        return true;
        return false;
}

/* Steps that plug devices into a running guest, and take devices from it. */

static int add_hostdevs(StepList *steps, StepKind kind, const char *uuid, const PciAddress *devices,
                        char *const *hostdevs, size_t n) {
        for (size_t i = 0; i < n; i++)
                step_list_add(steps, (Step) { kind, devices[i], .plug = { uuid, hostdevs[i] } });
        return step_list_result(steps);
}

int steps_plug(const Allocation *a, const char *uuid, const PciAddress *devices, char *const *hostdevs, size_t n,
               StepList *steps) {
        const size_t first = steps->n;

        if (n == 0)
                return 0;
        steps->guest = allocation_with_all(a);
        if (!steps->guest)
                return -ENOMEM;
        step_list_add(steps, (Step) { STEP_FIND_PORTS, devices[0], .plug = { .domain = uuid } });
        step_list_move(steps, first, 0);
        return add_hostdevs(steps, STEP_PLUG, uuid, devices, hostdevs, n);
}

int steps_unplug(const Allocation *part, const char *uuid, const PciAddress *devices, char *const *hostdevs, size_t n,
                 StepList *steps) {
        const size_t first = steps->n;
        int r = add_hostdevs(steps, STEP_UNPLUG, uuid, devices, hostdevs, n);

        if (n > 0)
                r = steps_check_unused(part, steps);
        step_list_move(steps, first, 0);
        return r;
}

/* Steps that change the number of VFs. */

/* Adds steps that remove the driver and the override of a VF. Removing the VF would remove both anyway; with steps of
 * their own, the undo restores them. */
static void strip_vf(StepList *l, const PciDevice *vf) {
        if (vf->driver)
                step_list_add(l, (Step) { STEP_UNBIND, vf->address, .unbind = { .driver = vf->driver } });
        if (vf->driver_override)
                step_list_add(l, (Step) { STEP_OVERRIDE, vf->address, .override = { .from = vf->driver_override } });
}

static void remove_vfs(StepList *l, const Inventory *inv, const PciDevice *pf) {
        for (size_t i = 0; i < pf->n_vfs; i++) {
                const PciDevice *vf = inventory_find(inv, pf->vfs[i]);

                if (vf)
                        strip_vf(l, vf);
        }
        /* Save the attributes (MACs and GUIDs) of the VFs, because some drivers do not restore them when VFs are
         * created again. */
        for (size_t i = 0; pci_device_is_nic(pf) && i < pf->n_virtfns; i++)
                step_list_add(l, (Step) { STEP_SAVE_VF_STATE, pf->address, .vf = { .index = (unsigned) i } });
        step_list_add(l, (Step) { STEP_REMOVE_VFS, pf->address, .count = (unsigned) pf->n_virtfns });
}

static void change_number(StepList *l, const Inventory *inv, const PciDevice *pf, unsigned count) {
        /* 1. Turn autoprobe off before VFs are created, because it has no effect on existing VFs. Do so even if count
         * is 0: the undo creates the old VFs again. */
        step_list_add(l, (Step) { STEP_AUTOPROBE, pf->address, .on = false });
        /* 2. Remove the existing VFs: the kernel does not change the number of VFs to another one than 0 while VFs
         * exist. */
        if (pf->n_virtfns > 0)
                remove_vfs(l, inv, pf);
        /* 3. Create the VFs. */
        if (count > 0)
                step_list_add(l, (Step) { STEP_NUMVFS, pf->address, .count = count });
}

int steps_set_vfs(const Inventory *inv, const PciDevice *pf, unsigned count, const VfAttributes *attributes,
                  StepList **ret) {
        StepList *l = step_list_new();

        if (!l)
                return -ENOMEM;
        if (pf->n_virtfns != count)
                change_number(l, inv, pf, count);
        for (unsigned i = 0; attributes && i < count; i++)
                if (attributes[i].set != 0)
                        step_list_add(l, (Step) { STEP_TRY_ATTRIBUTES, pf->address,
                                                  .vf = { .index = i, .attributes = attributes[i] } });
        return step_list_finish(l, ret);
}
