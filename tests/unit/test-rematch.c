/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Recognizes cards after a boot with other bus numbers. */

#include "unit.h"

#include "ledger/rematch.h"
#include "nodefixture.h"

#define LEFT  "pci0000:00/0000:00:01.0/0000:01:00.0"
#define RIGHT "pci0000:00/0000:00:02.0/0000:02:00.0"

static PciDevice *gpu(TestNode *t, const char *path, uint64_t serial) {
        PciDevice *dev = node_gpu(t, path, 0, (int) t->inventory->n_devices);

        dev->serial = serial;
        dev->serial_known = true;
        return dev;
}

/* A PF with two VFs, at PREFIX/BUS:00.0 and on. */
static void nic(TestNode *t, const char *port, const char *number, uint64_t serial) {
        _cleanup_free_ char *pf = NULL;
        size_t first = t->inventory->n_devices;

        assert_int_equal(string_replace(&pf, "0000:%s:00.0", number), 0);
        for (int i = 0; i < 3; i++) {
                _cleanup_free_ char *path = NULL;
                PciDevice *dev;

                assert_int_equal(string_replace(&path, "%s/0000:%s:00.%d", port, number, i), 0);
                dev = i == 0 ? node_nic(t, path, 0, 50) : node_vf(t, path, pf, 0, 50 + i);
                dev->type = i == 0 ? PCI_TYPE_PF : PCI_TYPE_VF;
                dev->device = i == 0 ? 1 : 2;
                dev->serial = serial;
                dev->serial_known = true;
                dev = &t->inventory->devices[first];
                if (i > 0)
                        assert_int_equal(pci_address_append(&dev->linked, &dev->n_linked,
                                                            t->inventory->devices[first + (size_t) i].address),
                                         0);
                dev->n_virtfns = dev->n_linked;
        }
}

static TestNode *ready(TestNode *t) {
        node_ready(t, "[Pool gpu]\nMatch=class=03\n");
        return t;
}

/* Allocates in t's ledger the device that "before" has at that address. */
static void promise(TestNode *t, const TestNode *before, const char *name, const char *address) {
        Allocation *a = allocation_new(name);
        AllocationDevice *d = allocation_add_device(a, address_of(address), DEVICE_ROLE_ASSIGNED);

        assert_non_null(d);
        assert_int_equal(allocation_device_identify(d, before->inventory, node_find(before, address)), 0);
        assert_int_equal(ledger_adopt(t->ledger, a, NULL), VERDICT_NONE);
}

/* Compares all devices that are elsewhere now: "one:0000:02:00.0 two:lost". */
static void assert_found(const TestNode *t, const char *expected) {
        _cleanup_free_ Rematch *found = NULL;
        _cleanup_free_ char *text = NULL;
        size_t n = 0;

        assert_int_equal(string_copy(&text, ""), 0);
        assert_int_equal(rematch_find(t->ledger->allocations, t->ledger->n_allocations, t->inventory, &found, &n), 0);
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *before = text;

                text = NULL;
                assert_int_equal(string_replace(&text, "%s%s%s:%s", before, *before ? " " : "",
                                                found[i].allocation->name,
                                                found[i].now ? PCI_ADDRESS_STR(found[i].now->address) : "lost"),
                                 0);
                assert_int_equal(found[i].index, 0);
        }
        assert_string_equal(text, expected);
}

TEST(test_slots) {
        static const struct {
                const char *a, *b;
                bool same;
        } cases[] = {
                { LEFT, LEFT, true },
                { LEFT, "pci0000:00/0000:00:01.0/0000:07:00.0", true },
                { LEFT, RIGHT, false },                                  /* another port */
                { LEFT, "pci0000:80/0000:80:01.0/0000:81:00.0", false }, /* another host bridge */
                { LEFT, "pci0000:00/0000:00:01.0/0000:01:00.1", false }, /* another function */
                { LEFT, "pci0000:00/0000:00:01.0", false },              /* the bridge above */
                { LEFT, LEFT "/0000:02:00.0", false },                   /* a device below */
                { LEFT, "pci0000:00/0000:00:01.0/0000:01:00.0x", false },
                { "LNXSYSTM:00/" LEFT, "LNXSYSTM:00/pci0000:00/0000:00:01.0/0000:03:00.0", true },
                { "LNXSYSTM:00/" LEFT, LEFT, false },
                { "pci0000:64/0000:64:05.5/pci10000:00/10000:01:00.0",
                  "pci0000:64/0000:64:05.5/pci10000:00/10000:02:00.0", true },
                { "a-component-longer-than-an-address", "another-component-as-long-as-that", false },
                { "a-component-longer-than-an-address", "a-component-longer-than-an-address", true },
                { "", "", true },
                { "", "a", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_int_equal(rematch_same_slots(cases[i].a, cases[i].b), cases[i].same);
                assert_int_equal(rematch_same_slots(cases[i].b, cases[i].a), cases[i].same);
        }
}

/* Two GPUs with serial numbers (0: none), their places after the boot, and the result. */
TEST(test_two_cards) {
        static const char *const other_left = "pci0000:00/0000:00:01.0/0000:02:00.0";
        static const char *const other_right = "pci0000:00/0000:00:02.0/0000:01:00.0";
        static const struct {
                const char *what;
                uint64_t before[2];
                const char *paths[2]; /* NULL: missing */
                uint64_t now[2];
                const char *found;
        } cases[] = {
                { "as they were", { 0, 0 }, { LEFT, RIGHT }, { 0, 0 }, "" },
                { "as they were, with serials", { 5, 6 }, { LEFT, RIGHT }, { 5, 6 }, "" },
                { "other numbers", { 0, 0 }, { other_left, other_right }, { 0, 0 }, "a:0000:02:00.0 b:0000:01:00.0" },
                { "other numbers, with serials",
                  { 5, 6 },
                  { other_left, other_right },
                  { 5, 6 },
                  "a:0000:02:00.0 b:0000:01:00.0" },
                { "other slots", { 5, 6 }, { LEFT, RIGHT }, { 6, 5 }, "a:0000:02:00.0 b:0000:01:00.0" },
                { "both the same serial", { 5, 5 }, { LEFT, RIGHT }, { 5, 5 }, "" },
                { "both the same serial, other numbers",
                  { 5, 5 },
                  { other_left, other_right },
                  { 5, 5 },
                  "a:0000:02:00.0 b:0000:01:00.0" },
                { "both the same serial, other slots",
                  { 5, 5 },
                  { "pci0000:00/0000:00:05.0/0000:05:00.0", "pci0000:00/0000:00:06.0/0000:06:00.0" },
                  { 5, 5 },
                  "" },
                { "both the same serial, one left",
                  { 5, 5 },
                  { "pci0000:00/0000:00:05.0/0000:05:00.0", NULL },
                  { 5, 0 },
                  "" },
                { "both the same serial, one moved",
                  { 5, 5 },
                  { LEFT, "pci0000:00/0000:00:05.0/0000:05:00.0" },
                  { 5, 5 },
                  "b:0000:05:00.0" },
                { "one gone, the other in its slot", { 5, 6 }, { LEFT, NULL }, { 6, 0 }, "a:lost b:0000:01:00.0" },
                { "one gone", { 5, 6 }, { LEFT, NULL }, { 5, 0 }, "" },
                { "another one in the slot", { 5, 6 }, { LEFT, RIGHT }, { 7, 6 }, "" },
                { "both are others", { 5, 6 }, { LEFT, RIGHT }, { 7, 8 }, "" },
                { "a third slot, without a serial",
                  { 0, 0 },
                  { "pci0000:00/0000:00:05.0/0000:05:00.0", RIGHT },
                  { 0, 0 },
                  "" },
                { "a third slot, with one",
                  { 5, 6 },
                  { "pci0000:00/0000:00:05.0/0000:05:00.0", RIGHT },
                  { 5, 6 },
                  "a:0000:05:00.0" },
                { "a slot that had a serial has none",
                  { 5, 6 },
                  { other_left, other_right },
                  { 0, 6 },
                  "a:lost b:0000:01:00.0" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                TestNode *before = node_new(), *t = node_new();

                (void) gpu(before, LEFT, cases[i].before[0]);
                (void) gpu(before, RIGHT, cases[i].before[1]);
                for (size_t j = 0; j < 2; j++)
                        if (cases[i].paths[j])
                                (void) gpu(t, cases[i].paths[j], cases[i].now[j]);
                ready(before);
                ready(t);
                promise(t, before, "a", "0000:01:00.0");
                promise(t, before, "b", "0000:02:00.0");
                print_message("%s\n", cases[i].what);
                assert_found(t, cases[i].found);
                node_free(before);
                node_free(t);
        }
}

/* A card whose serial number is unreadable now is recognized by its slot. One with other IDs never is. */
TEST(test_what_is_known) {
        TestNode *before = node_new(), *t = node_new();

        (void) gpu(before, LEFT, 5);
        (void) gpu(before, RIGHT, 6);
        gpu(t, "pci0000:00/0000:00:01.0/0000:03:00.0", 0)->serial_known = false;
        gpu(t, "pci0000:00/0000:00:02.0/0000:04:00.0", 6)->device = 0x4711;
        ready(before);
        ready(t);
        promise(t, before, "a", "0000:01:00.0");
        promise(t, before, "b", "0000:02:00.0");
        assert_found(t, "a:0000:03:00.0");
        node_free(before);
        node_free(t);
}

/* A VF is recognized by its PF and number. Its function number does not matter. */
TEST(test_vfs) {
        TestNode *before = node_new(), *t = node_new();

        nic(before, "pci0000:00/0000:00:03.0", "05", 5);
        nic(before, "pci0000:00/0000:00:04.0", "06", 6);
        nic(t, "pci0000:00/0000:00:04.0", "05", 5);
        nic(t, "pci0000:00/0000:00:03.0", "07", 6);
        ready(before);
        ready(t);
        promise(t, before, "a", "0000:05:00.2");
        promise(t, before, "b", "0000:06:00.1");
        assert_found(t, "a:0000:05:00.2 b:0000:07:00.1");
        node_free(t);

        /* Without serial numbers, a VF is where the slot of its PF is. */
        t = node_new();
        nic(t, "pci0000:00/0000:00:03.0", "06", 0);
        nic(t, "pci0000:00/0000:00:04.0", "05", 0);
        for (size_t i = 0; i < t->inventory->n_devices; i++)
                t->inventory->devices[i].serial_known = false;
        ready(t);
        promise(t, before, "a", "0000:05:00.2");
        promise(t, before, "b", "0000:06:00.1");
        assert_found(t, "a:0000:06:00.2 b:0000:05:00.1");
        node_free(t);

        /* The PF exists, its VFs do not yet. */
        t = node_new();
        (void) node_nic(t, "pci0000:00/0000:00:03.0/0000:06:00.0", 0, 1);
        ready(t);
        promise(t, before, "a", "0000:05:00.2");
        assert_found(t, "");
        node_free(t);
        node_free(before);
}

/* A device without a path, from an old file, is in no slot. */
TEST(test_unknown_path) {
        TestNode *before = node_new(), *t = node_new();

        (void) gpu(before, LEFT, 0);
        (void) gpu(t, "pci0000:00/0000:00:01.0/0000:03:00.0", 0);
        ready(before);
        ready(t);
        promise(t, before, "a", "0000:01:00.0");
        assert_int_equal(string_copy(&t->ledger->allocations[0]->devices[0].path, NULL), 0);
        assert_found(t, "");
        node_free(before);
        node_free(t);
}

/* A missing device loses its address to a card found there, to that card's PF and VFs, and to no other. */
TEST(test_displaced) {
        TestNode *before = node_new(), *t;

        (void) gpu(before, LEFT, 4);
        nic(before, "pci0000:00/0000:00:03.0", "05", 5);
        nic(before, "pci0000:00/0000:00:04.0", "06", 6);
        nic(before, "pci0000:00/0000:00:05.0", "07", 7);
        ready(before);

        t = node_new();
        nic(t, "pci0000:00/0000:00:04.0", "05", 6);
        ready(t);
        promise(t, before, "gpu", "0000:01:00.0");
        promise(t, before, "other-vf", "0000:07:00.1");
        promise(t, before, "pf", "0000:05:00.0");
        promise(t, before, "vf", "0000:06:00.1");
        assert_found(t, "pf:lost vf:0000:05:00.1");
        node_free(t);

        t = node_new();
        nic(t, "pci0000:00/0000:00:04.0", "05", 6);
        ready(t);
        promise(t, before, "gpu", "0000:01:00.0");
        promise(t, before, "other-vf", "0000:07:00.1");
        promise(t, before, "pf", "0000:06:00.0");
        promise(t, before, "vf", "0000:05:00.1");
        assert_found(t, "pf:0000:05:00.0 vf:lost");
        node_free(t);
        node_free(before);
}

/* Each fact alone shows that a card is not the allocated one. */
TEST(test_another_card) {
        enum {
                VENDOR,
                DEVICE,
                SUBSYSTEM_VENDOR,
                SUBSYSTEM_DEVICE,
                TYPE,
                SERIAL,
                _CHANGE_MAX
        };
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new("a");
        AllocationDevice *d = allocation_add_device(a, address_of("0000:01:00.0"), DEVICE_ROLE_ASSIGNED);
        PciDevice *dev = gpu(t, LEFT, 7), before;

        dev->subsystem_vendor = 0x10de;
        dev->subsystem_device = 0x1234;
        assert_non_null(d);
        assert_int_equal(allocation_device_identify(d, t->inventory, dev), 0);
        assert_true(allocation_device_is(d, dev) && rematch_may_be(d, dev));
        before = *dev;
        for (int change = 0; change < _CHANGE_MAX; change++) {
                dev->vendor += change == VENDOR;
                dev->device += change == DEVICE;
                dev->subsystem_vendor += change == SUBSYSTEM_VENDOR;
                dev->subsystem_device += change == SUBSYSTEM_DEVICE;
                dev->type = change == TYPE ? PCI_TYPE_VF : dev->type;
                dev->serial += change == SERIAL;
                if (allocation_device_is(d, dev))
                        fail_msg("change %d is not noticed", change);
                assert_int_equal(rematch_may_be(d, dev), change == SERIAL);
                *dev = before;
        }
        d->lost = true;
        assert_false(allocation_device_is(d, dev));
}
