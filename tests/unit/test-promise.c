/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The effect of a new configuration on existing allocations, and whether the node can keep its promises. */

#include "unit.h"

#include "nodefixture.h"
#include "plan/device-state.h"
#include "plan/promise.h"
#include "sentences.h"

#define GPU "0000:01:00.0"
#define PF  "0000:02:00.0"
#define VF  "0000:02:00.1"

static TestNode *make_node(bool with_vf) {
        TestNode *t = node_new();
        PciDevice *pf;

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, 0, 1);
        node_device(t, "pci0000:00/0000:00:01.0/0000:01:00.1", 0x040300, 0, 1);
        pf = node_nic(t, "pci0000:00/0000:00:02.0/" PF, 0, 2);
        pf->type = PCI_TYPE_PF;
        pf->total_vfs = 8;
        if (with_vf)
                node_vf(t, "pci0000:00/0000:00:02.0/" VF, PF, 0, 3);
        return t;
}

/* Gives a ready node another configuration. */
static void reconfigure(TestNode *t, const char *text) {
        policy_free(t->policy);
        config_free(t->config);
        assert_int_equal(config_parse("new.conf", text, strlen(text), &t->config), 0);
        assert_int_equal(policy_new(t->config, t->inventory, &t->policy), 0);
        t->context.config = t->config;
        t->context.policy = t->policy;
}

/* Allocates the device as one of that pool, regardless of the present configuration. NULL: as a companion. */
static Allocation *promise(TestNode *t, const char *name, const char *address, const char *pool) {
        const PciDevice *dev = node_find(t, address);
        Allocation *a = allocation_new(name);
        AllocationDevice *d = allocation_add_device(a, dev->address, DEVICE_ROLE_ASSIGNED);

        assert_non_null(d);
        d->vendor = dev->vendor;
        d->device = dev->device;
        d->subsystem_vendor = dev->subsystem_vendor;
        d->subsystem_device = dev->subsystem_device;
        assert_int_equal(string_copy(&d->path, dev->path), 0);
        assert_int_equal(string_copy(&d->pool, pool), 0);
        assert_int_equal(ledger_adopt(t->ledger, a, NULL), VERDICT_NONE);
        return a;
}

static void assert_check(TestNode *t, const char *config, const char *place) {
        _cleanup_refusal_ Refusal why = { 0 };
        Verdict v;

        reconfigure(t, config);
        v = promise_check_config(t->policy, t->ledger, &why);
        if (!place) {
                if (v != VERDICT_NONE)
                        fail_msg("'%s' gives '%s'", config, why.message);
                return;
        }
        assert_int_equal(v, VERDICT_INVALID_REQUEST);
        assert_says(&why, place);
        assert_says(&why, PF);
        assert_says(&why, "'vm1'");
        record(config, why.message);
        assert_non_null(why.remedy);
        assert_true(why.has_device);
}

/* C6 */
TEST(test_vfs_of_an_allocated_pf) {
        _cleanup_node_ TestNode *t = make_node(false);
        Allocation *a;

        node_ready(t, "");
        assert_check(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=2\n", NULL);
        a = promise(t, "vm1", PF, "nic");
        assert_check(t, "\n[Pool vf]\nMatch=type=vf\nVirtualFunctions=2\n", "(new.conf:2)");
        assert_check(t, "[Pool vf]\nMatch=type=vf\n", NULL);
        assert_check(t, "[Pool nic]\nMatch=type=pf\n", NULL);
        assert_check(t, "[Pool vf]\nMatch=type=vf pf=0000:03:*\nVirtualFunctions=2\n", NULL);
        assert_check(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=2\n[Exclude]\nMatch=address=" PF "\n", NULL);
        assert_check(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=2\n[Exclude]\nMatch=oops\n", NULL);
        /* Another card is at the address. */
        a->devices[0].device ^= 1;
        assert_check(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=2\n", NULL);
}

/* The display was allocated with --force, and the daemon creates no VFs on an allocated PF. */
TEST(test_vfs_of_an_allocated_display) {
        for (int console = 0; console <= 1; console++) {
                _cleanup_node_ TestNode *t = make_node(false);
                PciDevice *pf = &t->inventory->devices[2];

                assert_string_equal(PCI_ADDRESS_STR(pf->address), PF);
                assert_int_equal(string_copy(&pf->console, console ? "tty0" : NULL), 0);
                pf->boot_vga = !console;
                node_ready(t, "");
                promise(t, "vm1", PF, "nic");
                assert_check(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=2\n", NULL);
        }
}

TEST(test_vfs_that_are_there) {
        _cleanup_node_ TestNode *t = make_node(true);

        node_ready(t, "");
        promise(t, "vm1", PF, "nic");
        assert_check(t, "[Pool a]\nMatch=vendor=10de\n[Pool vf]\nMatch=type=vf\n", "(new.conf:3)");
        assert_check(t, "[Pool vf]\nMatch=type=vf\n[Exclude]\nMatch=type=vf\n", NULL);
        assert_check(t, "[Pool a]\nMatch=vendor=10de\n", NULL);
}

static void assert_dropped(TestNode *t, const char *config, bool dropped) {
        const Allocation *a = ledger_find(t->ledger, "vm1");

        reconfigure(t, config);
        if (device_left_pools(t->policy, a, node_find(t, GPU)) != dropped)
                fail_msg("'%s' is taken wrongly", config);
        assert_int_equal(allocation_left_pools(t->policy, a), dropped);
}

/* Allocated, and in no pool any more. */
TEST(test_dropped) {
        _cleanup_node_ TestNode *t = make_node(false);

        node_ready(t, "[Pool gpu]\nMatch=class=03\n");
        /* Its audio function is a companion, which never had a pool. */
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "gpu=1"), NULL), VERDICT_NONE);
        assert_int_equal(ledger_find(t->ledger, "vm1")->n_devices, 2);
        assert_dropped(t, "[Pool gpu]\nMatch=class=03\n", false);
        assert_dropped(t, "[Pool other]\nMatch=class=03\n", false);
        assert_dropped(t, "[Pool nic]\nMatch=class=02\n", true);
        assert_dropped(t, "", true);
        assert_dropped(t, "[Pool gpu]\nMatch=class=03\n[Exclude]\nMatch=class=03\n", true);
        /* With a broken [Exclude] line nothing is known to be excluded. */
        assert_dropped(t, "[Pool gpu]\nMatch=class=03\n[Exclude]\nMatch=oops\n", false);
}

/* A held member of the group is never dropped from a pool. */
TEST(test_not_asked_for) {
        _cleanup_node_ TestNode *t = make_node(false);

        node_ready(t, "");
        promise(t, "vm1", GPU, NULL);
        assert_dropped(t, "", false);
}

TEST(test_reason) {
        _cleanup_node_ TestNode *t = make_node(false);
        _cleanup_refusal_ Refusal why = { 0 };

        node_ready(t, "[Pool gpu]\nMatch=class=03\n");
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "gpu=1"), NULL), VERDICT_NONE);
        assert_int_equal(device_state(&t->context, node_find(t, GPU), &why), DEVICE_STATE_ALLOCATED);
        assert_says(&why, "'vm1'");
        record("allocated", why.message);
        reconfigure(t, "");
        assert_int_equal(device_state(&t->context, node_find(t, GPU), &why), DEVICE_STATE_ALLOCATED);
        assert_int_equal(why.verdict, VERDICT_ALLOCATED);
        assert_says(&why, "'vm1'");
        record("allocated, in no pool", why.message);
        reconfigure(t, "[Pool gpu]\nMatch=class=03\n[Exclude]\nMatch=class=03\n");
        assert_int_equal(device_state(&t->context, node_find(t, GPU), &why), DEVICE_STATE_ALLOCATED);
        record("allocated, excluded", why.message);
}

/* An allocation with a GPU, CPUs and hugepages, ready for its guest. */
static Allocation *make_ready(TestNode *t) {
        Allocation *a;

        node_hugepages(&t->inventory->nodes[0], GIB, 4, 4);
        node_ready(t, "[Pool gpu]\nMatch=class=03\n[Pool nic]\nMatch=class=02\n");
        assert_int_equal(
                node_allocate(t, "vm1", ASK(.pools = "gpu=1", .cpus = 2, .memory = 2 * GIB, .page_size = GIB), NULL),
                VERDICT_NONE);
        a = ledger_find(t->ledger, "vm1");
        ledger_set_state(t->ledger, a, ALLOCATION_READY);
        assert_int_equal(string_copy(&a->vfio_driver, "vfio-pci"), 0);
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(t->inventory, a->devices[i].address);

                assert_int_equal(string_copy(&((PciDevice *) dev)->driver, "vfio-pci"), 0);
        }
        assert_int_equal(promise_check_kept(&t->context, a, NULL), VERDICT_NONE);
        return a;
}

/* A broken promise has a sentence and a remedy, and the same verdict without them. */
static void assert_kept(const TestNode *t, const Allocation *a, Verdict expected, const char *device) {
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(promise_check_kept(&t->context, a, &why), expected);
        assert_int_equal(promise_check_kept(&t->context, a, NULL), expected);
        if (expected == VERDICT_NONE)
                return;
        assert_int_equal(why.verdict, expected);
        assert_non_null(why.message);
        assert_non_null(why.remedy);
        record("promise", why.message);
        record("remedy", why.remedy);
        assert_int_equal(why.has_device, device != NULL);
        if (device)
                assert_string_equal(PCI_ADDRESS_STR(why.device), device);
}

TEST(test_driver) {
        _cleanup_node_ TestNode *t = make_node(false);
        Allocation *a = make_ready(t);
        PciDevice *gpu = (PciDevice *) node_find(t, GPU);

        assert_int_equal(string_copy(&gpu->driver, NULL), 0);
        assert_kept(t, a, VERDICT_CONTESTED, GPU);
        gpu->n_vfs = 1;
        assert_kept(t, a, VERDICT_CONTESTED, GPU);
        gpu->n_vfs = 0;
        assert_int_equal(promise_check_hardware(&t->context, a, NULL), VERDICT_NONE);
        assert_int_equal(device_state(&t->context, gpu, NULL), DEVICE_STATE_CONTESTED);
        /* A job works on it, or binds it. */
        assert_int_equal(device_status_set(&t->status, gpu->address, DEVICE_BUSY, "A job works on it."), 0);
        assert_kept(t, a, VERDICT_NONE, NULL);
        assert_int_equal(device_status_set(&t->status, gpu->address, DEVICE_BUSY, NULL), 0);
        ledger_set_state(t->ledger, a, ALLOCATION_PREPARING);
        assert_kept(t, a, VERDICT_NONE, NULL);
        ledger_set_state(t->ledger, a, ALLOCATION_READY);
        a->devices[0].device ^= 1;
        assert_kept(t, a, VERDICT_HARDWARE_CHANGED, GPU);
        assert_int_equal(promise_check_hardware(&t->context, a, NULL), VERDICT_HARDWARE_CHANGED);
        a->devices[0].lost = true;
        assert_kept(t, a, VERDICT_MISSING, GPU);
        assert_int_equal(promise_check_hardware(&t->context, a, NULL), VERDICT_MISSING);
}

TEST(test_group) {
        _cleanup_node_ TestNode *t = make_node(true);
        Allocation *a = make_ready(t), *b;
        PciDevice *pf = (PciDevice *) node_find(t, PF), *vf = (PciDevice *) node_find(t, VF);

        /* A group member without a driver is harmless. One on a driver of the host is not. */
        vf->iommu_group = 1;
        assert_int_equal(inventory_finish(t->inventory), 0);
        assert_kept(t, a, VERDICT_NONE, NULL);
        pf->iommu_group = 1;
        assert_int_equal(inventory_finish(t->inventory), 0);
        assert_kept(t, a, VERDICT_GROUP_NOT_VIABLE, GPU);
        assert_int_equal(promise_check_hardware(&t->context, a, NULL), VERDICT_GROUP_NOT_VIABLE);
        assert_int_equal(device_state(&t->context, node_find(t, GPU), NULL), DEVICE_STATE_CONTESTED);
        assert_int_equal(string_copy(&pf->driver, "pci-stub"), 0);
        assert_kept(t, a, VERDICT_NONE, NULL);
        /* A group member of another allocation is not harmless with any driver: both allocations are affected. */
        b = promise(t, "vm2", PF, "nic");
        assert_kept(t, a, VERDICT_GROUP_NOT_VIABLE, GPU);
        assert_int_equal(promise_check_hardware(&t->context, b, NULL), VERDICT_GROUP_NOT_VIABLE);
        pf->iommu_group = 3;
        assert_int_equal(inventory_finish(t->inventory), 0);
        assert_kept(t, a, VERDICT_NONE, NULL);
        assert_int_equal(promise_check_hardware(&t->context, b, NULL), VERDICT_NONE);
        /* The IOMMU is off. */
        ((PciDevice *) node_find(t, GPU))->iommu_group = -1;
        assert_kept(t, a, VERDICT_NO_IOMMU, GPU);
}

TEST(test_cpus_and_memory) {
        _cleanup_node_ TestNode *t = make_node(false);
        Allocation *a = make_ready(t);
        NumaNode *node = &t->inventory->nodes[0];
        size_t n_cpus = t->inventory->n_cpus;

        node->pages[0].total = 2;
        assert_kept(t, a, VERDICT_NONE, NULL);
        node->pages[0].total = 1;
        assert_kept(t, a, VERDICT_INSUFFICIENT_MEMORY, NULL);
        node->n_pages = 0;
        assert_kept(t, a, VERDICT_INSUFFICIENT_MEMORY, NULL);
        /* A running guest already has its pages. */
        assert_int_equal(string_copy(&a->status.domain, "vm1"), 0);
        assert_kept(t, a, VERDICT_NONE, NULL);
        node->id = 7;
        assert_kept(t, a, VERDICT_INSUFFICIENT_MEMORY, NULL);
        node->id = 0;
        /* With fewer CPUs the promise is broken; without any, the CPUs could not be read. */
        t->inventory->n_cpus = 1;
        assert_kept(t, a, VERDICT_INSUFFICIENT_CPUS, NULL);
        t->inventory->n_cpus = 0;
        assert_kept(t, a, VERDICT_NONE, NULL);
        t->inventory->n_cpus = n_cpus;
        assert_kept(t, a, VERDICT_NONE, NULL);
}

TEST(test_ordinary_memory) {
        _cleanup_node_ TestNode *t = make_node(false);
        NumaNode *node = &t->inventory->nodes[0];
        Allocation *a = allocation_new("vm");

        node_ready(t, "");
        a->state = ALLOCATION_READY;
        a->cells[a->n_cells++] = (Cell) { .node = 0, .memory = node->memory };
        assert_int_equal(ledger_adopt(t->ledger, a, NULL), VERDICT_NONE);
        assert_kept(t, a, VERDICT_NONE, NULL);
        node->memory -= GIB;
        assert_kept(t, a, VERDICT_INSUFFICIENT_MEMORY, NULL);
}

TEST(test_removed_region) {
        _cleanup_node_ TestNode *t = make_node(false);
        Allocation *a = allocation_new("vm");

        node_ready(t, "");
        a->state = ALLOCATION_READY;
        a->regions[a->n_regions++] = (Region) { .name = "mpi", .size = GIB };
        assert_int_equal(ledger_adopt(t->ledger, a, NULL), VERDICT_NONE);
        assert_kept(t, a, VERDICT_NONE, NULL);
        ledger_set_region_removed(t->ledger, "mpi", true);
        assert_kept(t, a, VERDICT_INSUFFICIENT_MEMORY, NULL);
        ledger_set_region_removed(t->ledger, "mpi", false);
        assert_kept(t, a, VERDICT_NONE, NULL);
}

static VfAttributes attributes_of(const char *text) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes v = { 0 };

        assert_int_equal(vf_attributes_parse(text, &v, &problem), 0);
        return v;
}

/* The PF reports an attribute with another value than the promised one. */
TEST(test_attributes) {
        static const struct {
                const char *promised, *report;
                AllocationState state;
                Verdict expected;
        } cases[] = {
                { "vlan=100", "vlan=100 trust=on", ALLOCATION_READY, VERDICT_NONE },
                { "vlan=100", "vlan=0", ALLOCATION_READY, VERDICT_CONTESTED },
                { "vlan=100 trust=off", "vlan=0 trust=off", ALLOCATION_READY, VERDICT_CONTESTED },
                { "vlan=100", "vlan=0", ALLOCATION_FAILED, VERDICT_NONE },
                { "vlan=100", "trust=off", ALLOCATION_READY, VERDICT_NONE },
                { "mac=02:00:00:00:00:01", "mac=02:00:00:00:00:02", ALLOCATION_READY, VERDICT_CONTESTED },
                { "mac=02:00:00:00:00:01 trust=on", "mac=02:00:00:00:00:02 trust=on", ALLOCATION_READY, VERDICT_NONE },
                { "mac=02:00:00:00:00:01 trust=on", "mac=02:00:00:00:00:02 trust=off", ALLOCATION_READY,
                  VERDICT_CONTESTED },
                { "mac=02:00:00:00:00:01 trust=off", "mac=02:00:00:00:00:02 trust=off", ALLOCATION_READY,
                  VERDICT_CONTESTED },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = make_node(true);
                const VfAttributes report = attributes_of(cases[i].report);
                VfReportList reports = { 0 };
                PciDevice *vf;
                Allocation *a;

                node_ready(t, "");
                a = promise(t, "vm", VF, "vf");
                vf = (PciDevice *) node_find(t, VF);
                a->devices[0].is_vf = true;
                a->devices[0].physfn = vf->physfn;
                a->devices[0].attributes = attributes_of(cases[i].promised);
                assert_int_equal(string_copy(&a->vfio_driver, "vfio-pci"), 0);
                assert_int_equal(string_copy(&vf->driver, "vfio-pci"), 0);
                ledger_set_state(t->ledger, a, cases[i].state);
                assert_kept(t, a, VERDICT_NONE, NULL);
                t->context.vfs = &reports;
                assert_kept(t, a, VERDICT_NONE, NULL);
                assert_int_equal(vf_report_set(&reports, vf->address, &report), 1);
                assert_kept(t, a, cases[i].expected, cases[i].expected == VERDICT_NONE ? NULL : VF);
                vf_report_list_done(&reports);
        }
}

TEST(test_sentences) {
        assert_sentences("promises.txt");
}
