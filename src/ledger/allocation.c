/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes, copies, compares and frees allocations. */

#include "ledger/allocation.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "model/mdev-slots.h"
#include "util/strings.h"
#include "util/stringtable.h"

static const char *const allocation_state_table[_ALLOCATION_STATE_MAX] = {
        [ALLOCATION_RESERVED] = "reserved", [ALLOCATION_PREPARING] = "preparing", [ALLOCATION_READY] = "ready",
        [ALLOCATION_IN_USE] = "in-use",     [ALLOCATION_RELEASING] = "releasing", [ALLOCATION_FAILED] = "failed",
};
DEFINE_STRING_TABLE(allocation_state, AllocationState, _ALLOCATION_STATE_MAX)

static const char *const device_role_table[_DEVICE_ROLE_MAX] = {
        [DEVICE_ROLE_ASSIGNED] = "assigned",
        [DEVICE_ROLE_COMPANION] = "companion",
        [DEVICE_ROLE_HELD] = "held",
};
DEFINE_STRING_TABLE(device_role, DeviceRole, _DEVICE_ROLE_MAX)

static const char *const device_phase_table[_DEVICE_PHASE_MAX] = {
        [DEVICE_PHASE_SETTLED] = "settled",
        [DEVICE_PHASE_ATTACHING] = "attaching",
        [DEVICE_PHASE_DETACHING] = "detaching",
        [DEVICE_PHASE_KEPT] = "kept",
};
DEFINE_STRING_TABLE(device_phase, DevicePhase, _DEVICE_PHASE_MAX)

AllocationState allocation_shown_state(const Allocation *a) {
        if (a->state != ALLOCATION_READY)
                return a->state;
        if (a->status.domain)
                return ALLOCATION_IN_USE;
        return a->reason ? ALLOCATION_FAILED : ALLOCATION_READY;
}

static const char *const guest_topology_table[_GUEST_TOPOLOGY_MAX] = {
        [GUEST_TOPOLOGY_FLAT] = "flat",
        [GUEST_TOPOLOGY_MIRROR] = "mirror",
};

DEFINE_STRING_TABLE(guest_topology, GuestTopology, _GUEST_TOPOLOGY_MAX)

Allocation *allocation_new(const char *name) {
        _cleanup_(cleanup_allocation_free) Allocation *a = calloc(1, sizeof(*a));

        if (!a || string_copy(&a->name, name) < 0)
                return NULL;
        a->partition = -1;
        return TAKE_PTR(a);
}

static void device_done(AllocationDevice *d) {
        free(d->slot);
        free(d->pool);
        free(d->prior_driver);
        free(d->prior_override);
        free(d->prior_reset);
        free(d->vfio_driver);
        free(d->vgpu_name);
        free(d->path);
}

Allocation *allocation_free(Allocation *a) {
        if (!a)
                return NULL;
        for (size_t i = 0; i < a->n_devices; i++)
                device_done(&a->devices[i]);
        free(a->devices);
        free(a->services);
        free(a->pins);
        free(a->reason);
        free(a->status.domain);
        free(a->tag);
        free(a->token);
        free(a->consumer);
        free(a->vfio_driver);
        free(a->name);
        free(a);
        return NULL;
}

AllocationDevice *allocation_add_device(Allocation *a, PciAddress address, DeviceRole role) {
        if (ARRAY_RESERVE(a->devices, a->n_devices) < 0)
                return NULL;
        a->devices[a->n_devices] =
                (AllocationDevice) { .address = address, .role = role, .numa_node = -1, .vf_index = -1 };
        return &a->devices[a->n_devices++];
}

int allocation_add_service(Allocation *a, const AllocationService *s) {
        if (ARRAY_RESERVE(a->services, a->n_services) < 0)
                return -ENOMEM;
        a->services[a->n_services++] = *s;
        return 0;
}

static int copy_device(Allocation *to, const AllocationDevice *from) {
        AllocationDevice *copy = allocation_add_device(to, from->address, from->role);

        if (!copy)
                return -ENOMEM;
        *copy = *from;
        copy->slot = copy->pool = copy->prior_driver = copy->prior_override = copy->vfio_driver = copy->path = NULL;
        copy->vgpu_name = copy->prior_reset = NULL;
        if (string_copy(&copy->slot, from->slot) < 0 || string_copy(&copy->pool, from->pool) < 0 ||
            string_copy(&copy->prior_driver, from->prior_driver) < 0 ||
            string_copy(&copy->prior_override, from->prior_override) < 0 ||
            string_copy(&copy->prior_reset, from->prior_reset) < 0 ||
            string_copy(&copy->vfio_driver, from->vfio_driver) < 0 || string_copy(&copy->path, from->path) < 0 ||
            string_copy(&copy->vgpu_name, from->vgpu_name) < 0)
                return -ENOMEM;
        return 0;
}

Allocation *allocation_copy(const Allocation *a) {
        _cleanup_(cleanup_allocation_free) Allocation *copy = calloc(1, sizeof(*copy));

        if (!copy)
                return NULL;
        *copy = *a;
        copy->name = copy->status.domain = copy->reason = copy->vfio_driver = copy->tag = copy->token = NULL;
        copy->consumer = NULL;
        copy->devices = NULL;
        copy->n_devices = 0;
        copy->services = NULL;
        copy->n_services = 0;
        memset(copy->shared, 0, sizeof(copy->shared));
        copy->pins = calloc(a->n_pins + 1, sizeof(*copy->pins));
        if (!copy->pins || string_copy(&copy->name, a->name) < 0 ||
            string_copy(&copy->status.domain, a->status.domain) < 0 || string_copy(&copy->reason, a->reason) < 0 ||
            string_copy(&copy->vfio_driver, a->vfio_driver) < 0 || string_copy(&copy->tag, a->tag) < 0 ||
            string_copy(&copy->token, a->token) < 0 || string_copy(&copy->consumer, a->consumer) < 0)
                return NULL;
        for (size_t i = 0; i < a->n_pins; i++)
                copy->pins[i] = a->pins[i];
        for (size_t i = 0; i < a->n_devices; i++)
                if (copy_device(copy, &a->devices[i]) < 0)
                        return NULL;
        for (size_t i = 0; i < a->n_services; i++)
                if (allocation_add_service(copy, &a->services[i]) < 0)
                        return NULL;
        return TAKE_PTR(copy);
}

Allocation *allocation_reduce(const Allocation *a, const AllocationDevice *d, const char *reason) {
        _cleanup_(cleanup_allocation_free) Allocation *rest = allocation_new(a->name);

        assert(d >= a->devices && d < allocation_devices_end(a));
        if (!rest || copy_device(rest, d) < 0 || string_copy(&rest->vfio_driver, a->vfio_driver) < 0 ||
            string_copy(&rest->reason, reason) < 0)
                return NULL;
        allocation_forget_guest(rest);
        memcpy(rest->id, a->id, sizeof(rest->id));
        rest->owner = a->owner;
        rest->generation = a->generation;
        rest->state = ALLOCATION_FAILED;
        return TAKE_PTR(rest);
}

bool allocation_is_changing(const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (!allocation_device_is_settled(&a->devices[i]))
                        return true;
        return false;
}

/* Copies the allocation with only its settled devices, its other devices, or both. */
static Allocation *copy_part(const Allocation *a, bool settled, bool changing) {
        Allocation *part = allocation_copy(a);
        size_t n = 0;

        for (size_t i = 0; part && i < part->n_devices; i++)
                if (allocation_device_is_settled(&part->devices[i]) ? settled : changing)
                        part->devices[n++] = part->devices[i];
                else
                        device_done(&part->devices[i]);
        if (part)
                part->n_devices = n;
        return part;
}

/* Makes the copy ready, without a guest and a reason, and its devices settled. Returns the copy; NULL for NULL. */
static Allocation *make_plain(Allocation *part) {
        for (size_t i = 0; part && i < part->n_devices; i++)
                part->devices[i].phase = DEVICE_PHASE_SETTLED;
        if (!part)
                return NULL;
        part->state = ALLOCATION_READY;
        allocation_forget_guest(part);
        free(TAKE_PTR(part->status.domain));
        free(TAKE_PTR(part->reason));
        return part;
}

Allocation *allocation_with_all(const Allocation *a) {
        return make_plain(copy_part(a, true, true));
}

Allocation *allocation_changing_part(const Allocation *a) {
        Allocation *part = make_plain(copy_part(a, false, true));

        if (part) {
                part->cpus = (CpuSet) { 0 };
                part->n_pins = part->n_cells = part->n_regions = part->n_services = 0;
        }
        return part;
}

Allocation *allocation_settled_part(const Allocation *a) {
        return copy_part(a, true, false);
}

int allocation_take_devices(Allocation *a, Allocation *b) {
        size_t shown = 0;

        assert(a != b);
        for (size_t i = 0; i < b->n_devices; i++)
                if (ARRAY_RESERVE(a->devices, a->n_devices + i) < 0)
                        return -ENOMEM;
        while (shown < a->n_devices && a->devices[shown].role != DEVICE_ROLE_HELD)
                shown++;
        for (size_t i = 0; i < b->n_devices; i++) {
                size_t at = b->devices[i].role == DEVICE_ROLE_HELD ? a->n_devices : shown++;

                memmove(&a->devices[at + 1], &a->devices[at], (a->n_devices++ - at) * sizeof(*a->devices));
                a->devices[at] = b->devices[i];
        }
        b->n_devices = 0;
        return 0;
}

bool allocation_has_guest(const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (a->devices[i].guest.known)
                        return true;
        return a->status.domain;
}

void allocation_forget_guest(Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++)
                a->devices[i].guest = (GuestPlace) { 0 };
}

const AllocationDevice *allocation_find_device(const Allocation *a, PciAddress address) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (!a->devices[i].lost && pci_address_equal(a->devices[i].address, address))
                        return &a->devices[i];
        return NULL;
}

uint64_t allocation_memory(const Allocation *a) {
        uint64_t sum = 0;

        for (size_t i = 0; i < a->n_cells; i++)
                sum += a->cells[i].memory;
        return sum;
}

bool allocation_device_differs(const AllocationDevice *d, const PciDevice *dev) {
        return d->serial != 0 && dev->serial_known && dev->serial != d->serial;
}

/* Returns true when `d` and `dev` are the same VF, or when neither is a VF. The address of a VF does not decide,
 * because after a boot it may belong to a VF of another PF. */
static bool is_same_vf(const AllocationDevice *d, const PciDevice *dev) {
        if (!d->is_vf || dev->type != PCI_TYPE_VF)
                return !d->is_vf && dev->type != PCI_TYPE_VF;
        return pci_address_equal(d->physfn, dev->physfn) &&
               (d->vf_index < 0 || dev->vf_index < 0 || d->vf_index == dev->vf_index);
}

bool allocation_device_is(const AllocationDevice *d, const PciDevice *dev) {
        bool same_serial = d->serial != 0 && dev->serial_known && dev->serial == d->serial;

        return !d->lost && is_same_vf(d, dev) && dev->vendor == d->vendor && dev->device == d->device &&
               dev->subsystem_vendor == d->subsystem_vendor && dev->subsystem_device == d->subsystem_device &&
               (same_serial || (streq_ptr(dev->path, d->path) && !allocation_device_differs(d, dev)));
}

bool allocation_device_has_vgpu(const AllocationDevice *d, const PciDevice *dev) {
        return dev->vgpu_type == d->vgpu_type && streq(dev->mdev, d->mdev);
}

void allocation_assign_mdevs(Allocation *a, const Inventory *inv) {
        for (AllocationDevice *d = a->devices; d < allocation_devices_end(a); d++) {
                const PciDevice *vf = inventory_find(inv, d->address);

                if (d->vgpu_type == 0 || *d->mdev || !vf || !vf->mdev_parent)
                        continue;
                assert(*a->id);
                mdev_uuid_format(a->id, d->address, d->mdev);
        }
}

bool allocation_is_bound(const Allocation *a, const Inventory *inv) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(inv, a->devices[i].address);

                if (allocation_device_is_settled(&a->devices[i]) &&
                    (!dev || !allocation_device_is(&a->devices[i], dev) ||
                     !streq_ptr(dev->driver, allocation_driver(a, &a->devices[i])) ||
                     (a->devices[i].vgpu_type > 0 && !allocation_device_has_vgpu(&a->devices[i], dev))))
                        return false;
        }
        return true;
}

int cell_memory_node(const Cell *cell) {
        return cell->has_memory_node ? cell->memory_node : cell->node;
}

int allocation_device_identify(AllocationDevice *d, const Inventory *inv, const PciDevice *dev) {
        if (string_copy(&d->path, dev->path) < 0)
                return -ENOMEM;
        d->address = dev->address;
        /* The UUID contains the address of the GPU, so make it anew. No mediated device survives a change of that
         * address. */
        if (pci_device_is_slot(dev) && *d->mdev)
                mdev_uuid_format(d->mdev, dev->address, d->mdev);
        d->is_vf = dev->type == PCI_TYPE_VF;
        d->physfn = dev->physfn;
        d->vf_index = d->is_vf ? dev->vf_index : -1;
        d->vendor = dev->vendor;
        d->device = dev->device;
        d->subsystem_vendor = dev->subsystem_vendor;
        d->subsystem_device = dev->subsystem_device;
        if (dev->serial_known)
                d->serial = dev->serial;
        d->numa_node = inventory_device_cpu_node(inv, dev);
        d->guest = (GuestPlace) { 0 };
        d->lost = false;
        return 0;
}

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool allocation_name_is_valid(const char *name) {
        size_t len = strnlen(name, ALLOCATION_NAME_MAX + 1);

        return len > 0 && len <= ALLOCATION_NAME_MAX && strchr(LETTERS_AND_DIGITS, name[0]) &&
               strspn(name, LETTERS_AND_DIGITS "_.-") == len;
}

Verdict allocation_name_check(const char *name, Refusal *ret) {
        if (allocation_name_is_valid(name))
                return VERDICT_NONE;
        return refuse_request(ret, "Use up to 63 letters, digits, '_', '.' and '-', beginning with a letter or digit.",
                              "'%s' cannot be the name of an allocation.", QUOTABLE(name));
}
