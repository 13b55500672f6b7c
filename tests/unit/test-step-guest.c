/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Steps before and after a guest has the devices: attributes of VFs, shared memory, resets and cleaners. */

#include <stdio.h>
#include <string.h>

#include "unit.h"

#include "nodefixture.h"
#include "steps/step.h"

#define GPU  "0000:01:00.0"
#define HELD "0000:01:00.1"
#define PF   "0000:02:00.0"
#define VF   "0000:02:00.1"
#define VFIO "vfio-pci"
#define MAC  "mac=02:00:00:00:00:01"

static const char *const kinds[_STEP_KIND_MAX] = {
        [STEP_OVERRIDE] = "override",
        [STEP_UNBIND] = "unbind",
        [STEP_BIND] = "bind",
        [STEP_AUTOPROBE] = "autoprobe",
        [STEP_SAVE_VF_STATE] = "save",
        [STEP_REMOVE_VFS] = "remove-vfs",
        [STEP_NUMVFS] = "create-vfs",
        [STEP_RESET] = "reset",
        [STEP_CHECK] = "check",
        [STEP_CHECK_HEALTH] = "check-health",
        [STEP_ATTRIBUTES] = "attributes",
        [STEP_SUPPORTED_ATTRIBUTES] = "supported",
        [STEP_TRY_ATTRIBUTES] = "try",
        [STEP_RESTORE] = "restore",
        [STEP_CLEAN] = "clean",
        [STEP_STOP_SERVICE] = "stop",
        [STEP_START_SERVICE] = "start",
        [STEP_CHECK_IDLE] = "check-idle",
        [STEP_MAKE_REGION] = "make-region",
        [STEP_REMOVE_REGION] = "remove-region",
};

/* Compares and frees the list: "KIND ADDRESS [vfN] [to TO]; ..." without drivers, which other tests compare. */
static void assert_steps(StepList *l, const char *expected) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        for (size_t i = 0; i < l->n; i++) {
                const Step *s = &l->steps[i];
                bool with_vf = step_gives_attributes(s) || s->kind == STEP_SAVE_VF_STATE;

                fprintf(f, "%s%s", i > 0 ? "; " : "", kinds[s->kind]);
                fprintf(f, step_has_device(s) ? " %s" : " '%s'",
                        step_has_device(s) ? PCI_ADDRESS_STR(s->device) : s->memory.region.name);
                if (with_vf)
                        fprintf(f, s->vf.index == STEP_VF_UNKNOWN ? " vf?" : " vf%u", s->vf.index);
                if (step_gives_attributes(s)) {
                        _cleanup_free_ char *attributes = vf_attributes_format(&s->vf.attributes);

                        fprintf(f, " to %s", attributes);
                }
                if (s->kind == STEP_CLEAN)
                        fprintf(f, " to %s", s->clean.command);
                if (s->kind == STEP_RESTORE)
                        fprintf(f, " of %s", PCI_ADDRESS_STR(s->vf.address));
        }
        assert_int_equal(fclose(f), 0);
        assert_string_equal(text, expected);
        free(text);
        step_list_free(l);
}

static VfAttributes attributes_of(const char *text) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes v = { 0 };

        assert_int_equal(vf_attributes_parse(text, &v, &problem), 0);
        return v;
}

static PciDevice *device(const TestNode *t, const char *address) {
        return (PciDevice *) node_find(t, address);
}

static TestNode *make_node(void) {
        TestNode *t = node_new();

        node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, 0, 1);
        node_device(t, "pci0000:00/0000:00:01.0/" HELD, 0x040300, 0, 1);
        node_nic(t, "pci0000:00/0000:00:02.0/" PF, 0, 2);
        node_vf(t, "pci0000:00/0000:00:02.0/" VF, PF, 0, 3);
        node_ready(t, "[Pool gpu]\nMatch=class=0302\nCleanerCommand=/bin/true\n[Pool vf]\nMatch=type=vf\n");
        device(t, VF)->vf_index = 0;
        return t;
}

static Allocation *make_allocation(void) {
        Allocation *a = allocation_new("vm");

        assert_non_null(a);
        assert_int_equal(string_copy(&a->vfio_driver, VFIO), 0);
        return a;
}

static AllocationDevice *add(Allocation *a, const TestNode *t, const char *address, DeviceRole role, const char *pool) {
        AllocationDevice *d = allocation_add_device(a, address_of(address), role);

        assert_non_null(d);
        assert_int_equal(allocation_device_identify(d, t->inventory, node_find(t, address)), 0);
        assert_int_equal(string_copy(&d->pool, pool), 0);
        return d;
}

static void put_on_vfio(const TestNode *t, const char *address) {
        assert_int_equal(string_copy(&device(t, address)->driver, VFIO), 0);
        assert_int_equal(string_copy(&device(t, address)->driver_override, VFIO), 0);
}

static StepList *prepare(const Allocation *a, const TestNode *t) {
        StepList *l = NULL;

        assert_int_equal(steps_prepare(a, t->inventory, &l), 0);
        assert_true(l->reports_found_state);
        return l;
}

static StepList *release(const Allocation *a, const TestNode *t, bool scrub) {
        StepList *l = NULL;

        assert_int_equal(steps_release(a, t->inventory, AFTER_RELEASE_KEEP, scrub, &l), 0);
        assert_true(l->skips_missing_devices);
        return l;
}

/* Requested attributes are required. Generated ones are optional until the VF had them once. */
TEST(test_attributes) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation();
        AllocationDevice *d = add(a, t, VF, DEVICE_ROLE_ASSIGNED, "vf");

        d->attributes = attributes_of(MAC " vlan=100");
        d->generated = VF_ATTRIBUTE_BIT(VF_MAC);
        assert_steps(prepare(a, t),
                     "override " VF "; supported " PF " vf0 to " MAC "; attributes " PF " vf0 to vlan=100; bind " VF);
        d->has_baseline = true;
        assert_steps(prepare(a, t), "override " VF "; attributes " PF " vf0 to " MAC " vlan=100; bind " VF);
        d->has_baseline = false;
        device(t, VF)->vf_index = 1;
        assert_steps(prepare(a, t),
                     "override " VF "; supported " PF " vf1 to " MAC "; attributes " PF " vf1 to vlan=100; bind " VF);
        device(t, VF)->vf_index = -1;
        assert_steps(prepare(a, t), "override " VF "; attributes " PF " vf? to vlan=100; bind " VF);
        device(t, VF)->vf_index = 0;
        d->generated = 0;
        assert_steps(prepare(a, t), "override " VF "; attributes " PF " vf0 to " MAC " vlan=100; bind " VF);
        d->attributes.set = 0;
        assert_steps(prepare(a, t), "override " VF "; bind " VF);
}

TEST(test_attributes_of_a_running_guest_stay) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation();

        add(a, t, VF, DEVICE_ROLE_ASSIGNED, "vf")->attributes = attributes_of("vlan=100");
        put_on_vfio(t, VF);
        assert_steps(prepare(a, t), "attributes " PF " vf0 to vlan=100");
        assert_int_equal(string_copy(&a->status.domain, "guest"), 0);
        assert_steps(prepare(a, t), "");
}

TEST(test_attributes_of_a_missing_vf) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation();
        AllocationDevice *d = add(a, t, VF, DEVICE_ROLE_ASSIGNED, "vf");

        d->attributes = attributes_of("vlan=100");
        d->baseline = attributes_of("vlan=7");
        d->has_baseline = true;
        d->address.function = 2;
        assert_steps(prepare(a, t), "override 0000:02:00.2; bind 0000:02:00.2");
        assert_steps(release(a, t, true), "");
}

/* The attributes that the allocation has changed, and attributes that depend on these, are restored. */
TEST(test_restore) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation();
        AllocationDevice *d = add(a, t, VF, DEVICE_ROLE_ASSIGNED, "vf");

        d->attributes = attributes_of("vlan=100");
        d->baseline = attributes_of("mac=02:00:00:00:00:07 vlan=7 qos=3");
        put_on_vfio(t, VF);
        assert_steps(release(a, t, true), "reset " VF "; check " VF);
        d->has_baseline = true;
        assert_steps(release(a, t, true), "reset " VF "; check " VF "; restore " PF " vf0 to vlan=7 qos=3 of " VF);
        assert_steps(release(a, t, false), "restore " PF " vf0 to vlan=7 qos=3 of " VF);
        d->attributes = attributes_of("trust=on");
        assert_steps(release(a, t, false), "");
}

/* Only devices that were on VFIO and visible to the guest are reset. */
TEST(test_scrub) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation();

        (void) add(a, t, GPU, DEVICE_ROLE_ASSIGNED, "gpu");
        (void) add(a, t, HELD, DEVICE_ROLE_HELD, NULL);
        assert_steps(release(a, t, true), "override " GPU "; override " HELD);
        put_on_vfio(t, GPU);
        put_on_vfio(t, HELD);
        assert_steps(release(a, t, true), "reset " GPU "; check " GPU);
        assert_steps(release(a, t, false), "");
        a->devices[1].role = DEVICE_ROLE_COMPANION;
        assert_steps(release(a, t, true), "reset " GPU "; check " GPU "; reset " HELD "; check " HELD);
}

/* A cleaner runs after all devices were checked, for each checked device of its pool. */
TEST(test_clean) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation();
        StepList *l;

        assert_int_equal(string_copy(&add(a, t, GPU, DEVICE_ROLE_ASSIGNED, "gpu")->prior_driver, "nvidia"), 0);
        (void) add(a, t, HELD, DEVICE_ROLE_COMPANION, NULL);
        (void) add(a, t, VF, DEVICE_ROLE_ASSIGNED, "vf");
        put_on_vfio(t, GPU);
        put_on_vfio(t, HELD);
        put_on_vfio(t, VF);
        assert_int_equal(steps_release(a, t->inventory, AFTER_RELEASE_RESTORE, true, &l), 0);
        assert_int_equal(steps_clean(a, t->config, l), 0);
        assert_true(l->skips_missing_devices);
        for (size_t i = 0; i < l->n; i++)
                if (l->steps[i].kind == STEP_CLEAN)
                        assert_string_equal(l->steps[i].clean.pool, "gpu");
        assert_steps(l, "reset " GPU "; check " GPU "; reset " HELD "; check " HELD "; reset " VF "; check " VF
                        "; clean " GPU " to /bin/true; override " GPU "; unbind " GPU "; unbind " HELD "; unbind " VF
                        "; bind " GPU "; override " GPU "; override " HELD "; override " VF);
        l = release(a, t, false);
        assert_int_equal(steps_clean(a, t->config, l), 0);
        assert_steps(l, "");
}

TEST(test_regions) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation(), *other = make_allocation();
        StepList *l, *none;

        (void) add(a, t, VF, DEVICE_ROLE_ASSIGNED, "vf");
        l = prepare(a, t);
        assert_int_equal(steps_make_regions(a, t->config, l), 0);
        assert_steps(l, "override " VF "; bind " VF);
        a->regions[0] = (Region) { .name = "one", .size = GIB };
        a->regions[1] = (Region) { .name = "two", .size = GIB };
        a->n_regions = 2;
        l = prepare(a, t);
        none = prepare(a, t);
        assert_int_equal(steps_make_regions(a, t->config, l), 0);
        assert_true(l->reports_found_state);
        assert_false(step_lists_share_region(l, none));
        assert_false(step_lists_share_region(none, l));
        assert_true(step_lists_share_region(l, l));
        step_list_free(none);
        assert_steps(l, "make-region 'one'; make-region 'two'; override " VF "; bind " VF);
        l = release(a, t, false);
        assert_int_equal(steps_remove_regions(a, l), 0);
        other->regions[0] = (Region) { .name = "two" };
        other->n_regions = 1;
        none = release(other, t, false);
        assert_int_equal(steps_remove_regions(other, none), 0);
        assert_true(step_lists_share_region(l, none));
        step_list_free(none);
        assert_steps(l, "override " VF "; remove-region 'one'; remove-region 'two'");
}

TEST(test_list) {
        StepList *l = step_list_new();
        PciAddress *devices = NULL;
        size_t n = 0;

        assert_non_null(l);
        step_list_add(l, (Step) { STEP_RESET, address_of(VF) });
        step_list_add(l, (Step) { STEP_STOP_SERVICE, address_of(PF), .service = "x.service" });
        step_list_add(l, (Step) { STEP_RESET, address_of(GPU) });
        step_list_add(l, (Step) { STEP_MAKE_REGION, address_of(PF) });
        step_list_add(l, (Step) { STEP_CHECK, address_of(VF) });
        assert_int_equal(step_list_result(l), 0);
        assert_int_equal(step_list_devices(l, &devices, &n), 0);
        assert_int_equal(n, 2);
        assert_true(pci_address_equal(devices[0], address_of(GPU)) && pci_address_equal(devices[1], address_of(VF)));
        free(devices);
        step_list_remove(l, 3);
        step_list_remove(l, 1);
        assert_steps(l, "reset " VF "; reset " GPU "; check " VF);
}

/* The strings of a step are those of the list, also after its maker has freed its own. */
TEST(test_strings) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        char pool[] = "gpu", command[] = "/bin/true";

        assert_non_null(l);
        step_list_add(l, (Step) { STEP_CLEAN, address_of(GPU), .clean = { pool, command } });
        step_list_add(l, (Step) { STEP_OVERRIDE, address_of(GPU), .override = { .to = pool } });
        memset(pool, 'x', strlen(pool));
        memset(command, 'x', strlen(command));
        assert_int_equal(step_list_result(l), 0);
        assert_string_equal(l->steps[0].clean.pool, "gpu");
        assert_string_equal(l->steps[0].clean.command, "/bin/true");
        assert_null(l->steps[1].override.from);
        assert_string_equal(l->steps[1].override.to, "gpu");
}
