/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extends the steps that prepare or release an allocation, each function for one subject. */
#include <errno.h>
#include <stdio.h>

#include "steps/step.h"
#include "util/strings.h"

/* Adds steps that check the health of devices before a guest gets them. */

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

                /* For mediated devices no check is needed: a GPU's driver notices a dead GPU when it creates one. */
                if (device.instance == 0 && !has_bind(steps, device) &&
                    step_list_add(steps, STEP_CHECK_HEALTH, device, NULL, NULL) < 0)
                        return -ENOMEM;
        }
        step_list_move(steps, first, 0);
        return 0;
}

/* Sets how the devices of an allocation are reset. */

/* Returns the pool of a device; for a companion, that of the assigned device of its card. */
static const Pool *pool_of_card(const Allocation *a, const AllocationDevice *d, const Config *config) {
        while (d > a->devices && d->role == DEVICE_ROLE_COMPANION)
                d--;
        return d->pool ? config_find_pool(config, d->pool) : NULL;
}

static int choose_reset(Step *s, const AllocationDevice *d, const Pool *pool, const PciDevice *dev) {
        bool companion = d->role == DEVICE_ROLE_COMPANION;

        s->may_stay = pool && pool->allow_no_reset;
        s->may_lack_method = s->may_stay || companion;
        if (!pool || pool->reset_method == RESET_METHOD_DEFAULT || companion)
                return 0;
        if (string_copy(&s->to, reset_method_to_string(pool->reset_method)) < 0)
                return -ENOMEM;
        return string_copy(&s->from, d->prior_reset ?: (dev ? dev->reset_methods : NULL));
}

int steps_reset(const Allocation *a, const Inventory *inv, const Config *config, StepList *steps) {
        int r = 0;

        for (Step *s = steps->steps; s < steps->steps + steps->n; s++) {
                const AllocationDevice *d = s->kind == STEP_RESET ? allocation_find_device(a, s->device) : NULL;

                if (d)
                        r = choose_reset(s, d, pool_of_card(a, d, config), inventory_find(inv, s->device));
                if (r != 0)
                        return r;
        }
        return r;
}

/* The steps for NVIDIA GPUs that have returned to the host. */

/* Returns whether the device is bound to NVIDIA's driver before the steps, as after an interrupted release, or after
 * them. */
static bool is_with_nvidia(const StepList *l, const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, d->address);

        for (size_t i = 0; i < l->n; i++)
                if (l->steps[i].kind == STEP_BIND && pci_address_equal(l->steps[i].device, d->address))
                        return streq(l->steps[i].to, NVIDIA_DRIVER);
        return dev && allocation_device_is(d, dev) && streq_ptr(dev->driver, NVIDIA_DRIVER);
}

/* Returns whether the GPU returns to NVIDIA's driver. With a vGPU, the VF or the GPU was never unbound from it. */
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

/* The steps that clean devices with a command before they return to the host. */

static const Pool *pool_with_cleaner(const Step *s, const Allocation *a, const Config *config) {
        const AllocationDevice *d = s->kind == STEP_CHECK ? allocation_find_device(a, s->device) : NULL;
        const Pool *pool = d && d->pool ? config_find_pool(config, d->pool) : NULL;

        return pool && pool->cleaner ? pool : NULL;
}

int steps_clean(const Allocation *a, const Config *config, StepList *steps) {
        size_t n = steps->n, checked = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++) {
                const Pool *pool = pool_with_cleaner(&steps->steps[i], a, config);

                if (steps->steps[i].kind == STEP_CHECK)
                        checked = i + 1;
                if (pool)
                        r = step_list_add(steps, STEP_CLEAN, steps->steps[i].device, pool->name, pool->cleaner);
        }
        step_list_move(steps, n, checked);
        return r;
}

/* The steps that stop services before devices are unbound, and start them afterwards. */

bool step_list_has_service(const StepList *l, const char *name) {
        for (size_t i = 0; i < l->n; i++)
                if (step_is_of_service(&l->steps[i]) && streq(l->steps[i].to, name))
                        return true;
        return false;
}

bool step_lists_share_service(const StepList *a, const StepList *b) {
        for (size_t i = 0; i < a->n; i++)
                if (step_is_of_service(&a->steps[i]) && step_list_has_service(b, a->steps[i].to))
                        return true;
        return false;
}

/* Returns the pool of the device that the step unbinds; NULL for other steps, and for devices in no pool. */
static const Pool *pool_of_unbound(const Step *s, const Allocation *a, const Config *config) {
        const AllocationDevice *d = s->kind == STEP_UNBIND ? allocation_find_device(a, s->device) : NULL;

        return d && d->pool ? config_find_pool(config, d->pool) : NULL;
}

/* The functions below append steps for the first n steps of the list. */

static int stop_services(StepList *l, size_t n, const Allocation *a, const Config *config) {
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                const Pool *pool = pool_of_unbound(&l->steps[i], a, config);

                for (size_t j = 0; r == 0 && pool && j < pool->n_stop_services; j++)
                        if (!step_list_has_service(l, pool->stop_services[j]))
                                r = step_list_add(l, STEP_STOP_SERVICE, l->steps[i].device, NULL,
                                                  pool->stop_services[j]);
        }
        return r;
}

static int look_for_users(StepList *l, size_t n, const Allocation *a, const Config *config) {
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                const Pool *pool = pool_of_unbound(&l->steps[i], a, config);

                if (!pool || pool->n_stop_services == 0)
                        continue;
                r = step_list_add(l, STEP_CHECK_IDLE, l->steps[i].device, l->steps[i].from, NULL);
                if (r != 0)
                        return r;
                l->steps[l->n - 1].vf = allocation_find_device(a, l->steps[i].device)->is_vf;
        }
        return r;
}

int steps_around_services(const Allocation *a, const Config *config, StepList *steps) {
        size_t n = steps->n, n_stops;
        int r = stop_services(steps, n, a, config);

        n_stops = steps->n - n;
        if (r < 0 || n_stops == 0)
                return r;
        r = look_for_users(steps, n, a, config);
        step_list_move(steps, n, 0);
        while (r == 0 && n_stops-- > 0)
                r = step_list_add(steps, STEP_START_SERVICE, steps->steps[n_stops].device, NULL,
                                  steps->steps[n_stops].to);
        return r;
}

/* The steps that create and remove shared memory. */

static int add_regions(StepList *l, StepKind kind, const Allocation *a, const char *to) {
        int r = 0;

        for (size_t i = 0; i < a->n_regions; i++) {
                r = step_list_add(l, kind, (PciAddress) { 0 }, NULL, to);
                if (r != 0)
                        return r;
                l->steps[l->n - 1].region = a->regions[i];
        }
        return r;
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
                if (step_is_of_region(&l->steps[i]) && streq(l->steps[i].region.name, name))
                        return true;
        return false;
}

bool step_lists_share_region(const StepList *a, const StepList *b) {
        for (size_t i = 0; i < a->n; i++)
                if (step_is_of_region(&a->steps[i]) && has_region(b, a->steps[i].region.name))
                        return true;
        return false;
}

/* The steps that activate and deactivate the NVLink partition of an allocation. */

bool step_is_of_fabric(const Step *s) {
        return s->kind == STEP_ACTIVATE || s->kind == STEP_DEACTIVATE;
}

static int add_fabric_step(StepList *l, StepKind kind, const Allocation *a, const Config *config) {
        int r = a->partition >= 0 && config->fabric_manager ? step_list_add(l, kind, (PciAddress) { 0 }, NULL, NULL)
                                                            : 1;

        if (r == 0)
                l->steps[l->n - 1].partition = (unsigned) a->partition;
        return r;
}

int steps_activate(const Allocation *a, const Config *config, bool again, StepList *steps) {
        const size_t first = steps->n;
        int r = add_fabric_step(steps, STEP_ACTIVATE, a, config);

        if (r != 0 || !again)
                return r < 0 ? r : 0;
        r = steps_check_unused(a, steps);
        step_list_move(steps, first + 1, first);
        for (size_t i = first; i < steps->n; i++)
                steps->steps[i].may_lack = true;
        return r;
}

int steps_deactivate(const Allocation *a, const Config *config, StepList *steps) {
        int r = add_fabric_step(steps, STEP_DEACTIVATE, a, config);

        if (r == 0)
                step_list_move(steps, steps->n - 1, 0);
        return r < 0 ? r : 0;
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

/* The steps that plug devices into a running guest, and take them from it. */

static int add_hostdevs(StepList *steps, StepKind kind, const char *uuid, const PciAddress *devices,
                        char *const *hostdevs, size_t n) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++)
                r = step_list_add(steps, kind, devices[i], uuid, hostdevs[i]);
        return r;
}

int steps_plug(const Allocation *a, const char *uuid, const PciAddress *devices, char *const *hostdevs, size_t n,
               StepList *steps) {
        const size_t first = steps->n;
        int r;

        if (n == 0)
                return 0;
        steps->guest = allocation_with_all(a);
        r = steps->guest ? step_list_add(steps, STEP_FIND_PORTS, devices[0], uuid, NULL) : -ENOMEM;
        if (r < 0)
                return r;
        step_list_move(steps, first, 0);
        return add_hostdevs(steps, STEP_PLUG, uuid, devices, hostdevs, n);
}

int steps_unplug(const Allocation *part, const char *uuid, const PciAddress *devices, char *const *hostdevs, size_t n,
                 StepList *steps) {
        const size_t first = steps->n;
        int r = add_hostdevs(steps, STEP_UNPLUG, uuid, devices, hostdevs, n);

        if (r == 0 && n > 0)
                r = steps_check_unused(part, steps);
        step_list_move(steps, first, 0);
        return r;
}

/* The steps that change the number of VFs. */

/* Buffer size for the 16 bit number in sriov_numvfs. */
#define COUNT_MAX 16

/* Adds steps that remove driver and override of a VF. They are lost with the VF anyway; explicit steps let the undo
 * restore both. */
static int strip_vf(StepList *l, const PciDevice *vf) {
        int r = 0;

        if (vf->driver)
                r = step_list_add(l, STEP_UNBIND, vf->address, vf->driver, NULL);
        if (r == 0 && vf->driver_override)
                r = step_list_add(l, STEP_OVERRIDE, vf->address, vf->driver_override, NULL);
        return r;
}

/* Adds steps that save MACs and GUIDs of the VFs, because not every driver restores them when VFs are created again. */
static int note_vfs(StepList *l, const PciDevice *pf) {
        int r = 0;

        for (size_t i = 0; pci_device_is_nic(pf) && i < pf->n_virtfns; i++) {
                r = step_list_add(l, STEP_SAVE_VF_STATE, pf->address, NULL, NULL);
                if (r < 0)
                        return r;
                l->steps[l->n - 1].vf = (unsigned) i;
        }
        return r;
}

static int remove_vfs(StepList *l, const Inventory *inv, const PciDevice *pf) {
        char from[COUNT_MAX];
        int r = 0;

        for (size_t i = 0; r == 0 && i < pf->n_vfs; i++) {
                const PciDevice *vf = inventory_find(inv, pf->vfs[i]);

                r = vf ? strip_vf(l, vf) : 0;
        }
        if (r == 0)
                r = note_vfs(l, pf);
        (void) snprintf(from, sizeof(from), "%zu", pf->n_virtfns);
        return r < 0 ? r : step_list_add(l, STEP_REMOVE_VFS, pf->address, from, "0");
}

static int change_number(StepList *l, const Inventory *inv, const PciDevice *pf, unsigned count) {
        char to[COUNT_MAX];
        int r;

        /* 1. Set autoprobe before VFs are created, also by an undo: it does not affect existing VFs. */
        r = step_list_add(l, STEP_AUTOPROBE, pf->address, "1", "0");
        /* 2. Remove existing VFs: the kernel cannot change one number directly into another, only through 0. */
        if (r == 0 && pf->n_virtfns > 0)
                r = remove_vfs(l, inv, pf);
        /* 3. Create the VFs. */
        (void) snprintf(to, sizeof(to), "%u", count);
        return r < 0 || count == 0 ? r : step_list_add(l, STEP_NUMVFS, pf->address, "0", to);
}

int steps_set_vfs(const Inventory *inv, const PciDevice *pf, unsigned count, const VfAttributes *attributes,
                  StepList **ret) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        int r = l ? 0 : -ENOMEM;

        if (r == 0 && pf->n_virtfns != count)
                r = change_number(l, inv, pf, count);
        for (unsigned i = 0; r == 0 && attributes && i < count; i++)
                r = step_list_add_attributes(l, STEP_TRY_ATTRIBUTES, pf->address, i, &attributes[i]);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}
