/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Facts that only depend on the allocation: its state, its name, and whether a device is the allocated one. */

#include <string.h>

#include "unit.h"

#include "ledger/allocation.h"
#include "nodefixture.h"

#define GPU "0000:01:00.0"
#define PF  "0000:02:00.0"
#define VF  "0000:02:00.1"

TEST(test_shown_state) {
        static const struct {
                AllocationState state;
                bool domain, reason;
                AllocationState shown;
        } cases[] = {
                { ALLOCATION_PREPARING, false, false, ALLOCATION_PREPARING },
                { ALLOCATION_RELEASING, true, true, ALLOCATION_RELEASING },
                { ALLOCATION_FAILED, true, true, ALLOCATION_FAILED },
                { ALLOCATION_READY, false, false, ALLOCATION_READY },
                { ALLOCATION_READY, false, true, ALLOCATION_FAILED },
                { ALLOCATION_READY, true, false, ALLOCATION_IN_USE },
                { ALLOCATION_READY, true, true, ALLOCATION_IN_USE },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new("vm");

                assert_non_null(a);
                a->state = cases[i].state;
                assert_int_equal(string_copy(&a->status.domain, cases[i].domain ? "guest" : NULL), 0);
                assert_int_equal(string_copy(&a->reason, cases[i].reason ? "A VF is missing." : NULL), 0);
                assert_int_equal(allocation_shown_state(a), cases[i].shown);
        }
}

TEST(test_names) {
        static const char *const good[] = { "a", "0", "Vm-1_x.y", "z." }, *const bad[] = { "",        ".a",  "-a",
                                                                                           "_a",      "a/b", "a b",
                                                                                           "\xc3\xa4" };
        char name[ALLOCATION_NAME_MAX + 3];

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                assert_int_equal(allocation_name_check(good[i], NULL), VERDICT_NONE);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(allocation_name_check(bad[i], NULL), VERDICT_INVALID_REQUEST);
        for (size_t n = ALLOCATION_NAME_MAX; n < sizeof(name); n++) {
                memset(name, 'a', n);
                name[n] = '\0';
                assert_int_equal(allocation_name_is_valid(name), n == ALLOCATION_NAME_MAX);
        }
}

static TestNode *make_node(void) {
        TestNode *t = node_new();

        node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, 0, 1);
        node_nic(t, "pci0000:00/0000:00:02.0/" PF, 0, 2);
        node_vf(t, "pci0000:00/0000:00:02.0/" VF, PF, 0, 3);
        node_ready(t, "[Pool gpu]\nMatch=vendor=10de\n");
        return t;
}

static PciDevice *find(const TestNode *t, const char *address) {
        return (PciDevice *) node_find(t, address);
}

static AllocationDevice *add(Allocation *a, const TestNode *t, const PciDevice *dev) {
        AllocationDevice *d = allocation_add_device(a, dev->address, DEVICE_ROLE_ASSIGNED);

        assert_non_null(d);
        assert_int_equal(allocation_device_identify(d, t->inventory, dev), 0);
        return d;
}

/* A card with a serial number is recognized in another slot. A card without one is recognized by its slot. */
TEST(test_serial) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new("vm");
        PciDevice *dev = find(t, GPU);
        const AllocationDevice *d;

        assert_non_null(a);
        dev->serial = 1;
        dev->serial_known = true;
        d = add(a, t, dev);
        assert_int_equal(string_copy(&dev->path, "pci0000:00/0000:00:03.0/" GPU), 0);
        assert_true(allocation_device_is(d, dev));
        assert_false(allocation_device_differs(d, dev));
        dev->serial = 2;
        assert_false(allocation_device_is(d, dev));
        assert_true(allocation_device_differs(d, dev));
        dev->serial_known = false;
        assert_false(allocation_device_is(d, dev));
        assert_false(allocation_device_differs(d, dev));
        assert_int_equal(string_copy(&dev->path, d->path), 0);
        assert_true(allocation_device_is(d, dev));
}

/* A lost device has no address. */
TEST(test_find) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new("vm");

        assert_non_null(a);
        (void) add(a, t, find(t, GPU));
        (void) add(a, t, find(t, VF));
        assert_ptr_equal(allocation_find_device(a, address_of(VF)), &a->devices[1]);
        assert_ptr_equal(allocation_find_device(a, address_of(GPU)), &a->devices[0]);
        assert_null(allocation_find_device(a, address_of(PF)));
        a->devices[0].lost = true;
        assert_null(allocation_find_device(a, address_of(GPU)));
}

/* A VF is identified by its PF and number. With an unknown number, any VF of the PF may be it. */
TEST(test_vf) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new("vm");
        PciDevice *dev = find(t, VF);
        AllocationDevice *d;

        assert_non_null(a);
        dev->vf_index = 0;
        d = add(a, t, dev);
        assert_int_equal(d->vf_index, 0);
        assert_true(allocation_device_is(d, dev));
        for (int was = -1; was < 2; was++)
                for (int now = -1; now < 2; now++) {
                        d->vf_index = was;
                        dev->vf_index = now;
                        assert_int_equal(allocation_device_is(d, dev), was < 0 || now < 0 || was == now);
                }
        dev->physfn.bus++;
        assert_false(allocation_device_is(d, dev));
        dev->physfn.bus--;
        assert_true(allocation_device_is(d, dev));
        dev->type = PCI_TYPE_DEVICE;
        assert_false(allocation_device_is(d, dev));
}

TEST(test_bound) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new("vm");
        PciDevice *gpu = find(t, GPU), *vf = find(t, VF);

        assert_non_null(a);
        assert_int_equal(string_copy(&a->vfio_driver, "vfio-pci"), 0);
        (void) add(a, t, gpu);
        assert_int_equal(string_copy(&add(a, t, vf)->vfio_driver, "mlx5_vfio_pci"), 0);
        assert_int_equal(string_copy(&gpu->driver, "vfio-pci"), 0);
        assert_int_equal(string_copy(&vf->driver, "vfio-pci"), 0);
        assert_false(allocation_is_bound(a, t->inventory));
        assert_int_equal(string_copy(&vf->driver, "mlx5_vfio_pci"), 0);
        assert_true(allocation_is_bound(a, t->inventory));
        gpu->device++;
        assert_false(allocation_is_bound(a, t->inventory));
        gpu->device--;
        a->devices[0].address.bus = 0x99;
        assert_false(allocation_is_bound(a, t->inventory));
}

/* Attached or detached parts have devices only: CPUs and memory stay with the allocation. */
TEST(test_parts) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new("vm"), *part = NULL, *rest = NULL;

        assert_non_null(a);
        (void) add(a, t, find(t, GPU));
        add(a, t, find(t, VF))->phase = DEVICE_PHASE_ATTACHING;
        a->pins = calloc(1, sizeof(*a->pins));
        assert_non_null(a->pins);
        a->n_pins = 1;
        cpuset_add(&a->cpus, 3);
        a->cells[0] = (Cell) { .memory = 1ULL << 30 };
        a->n_cells = 1;
        assert_true(allocation_is_changing(a));
        part = allocation_changing_part(a);
        assert_non_null(part);
        assert_int_equal(part->n_devices, 1);
        assert_non_null(allocation_find_device(part, find(t, VF)->address));
        assert_false(allocation_is_changing(part));
        assert_int_equal(part->n_pins, 0);
        assert_true(cpuset_is_empty(&part->cpus));
        assert_int_equal(allocation_memory(part), 0);
        rest = allocation_settled_part(a);
        assert_non_null(rest);
        assert_int_equal(rest->n_devices, 1);
        assert_non_null(allocation_find_device(rest, find(t, GPU)->address));
        assert_int_equal(rest->n_pins, 1);
        assert_int_equal(allocation_memory(rest), 1ULL << 30);
}
