/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Changes of devices that are sent to clients: the difference of two snapshots, and the devices that a change can
 * concern. */

#include "unit.h"

#include "bus/changes.h"
#include "nodefixture.h"

#define GPU    "0000:01:00.0"
#define AUDIO  "0000:01:00.1"
#define PF     "0000:02:00.0"
#define VF     "0000:02:00.1"
#define OTHER  "0000:02:00.2"
#define ROUNDS 4000

/* Devices that share groups, a PF whose VFs have groups of their own and one whose VFs are in its own. */
static TestNode *make_node(void) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, 0, 1);
        node_device(t, "pci0000:00/0000:00:01.0/" AUDIO, 0x040300, 0, 1);
        node_gpu(t, "pci0000:00/0000:00:04.0/0000:04:00.0", 0, 1);
        node_nic(t, "pci0000:00/0000:00:02.0/" PF, 0, 2)->total_vfs = 4;
        node_vf(t, "pci0000:00/0000:00:02.0/" VF, PF, 0, 3);
        node_vf(t, "pci0000:00/0000:00:02.0/" OTHER, PF, 0, 4);
        node_nic(t, "pci0000:00/0000:00:03.0/0000:03:00.0", 0, 5)->total_vfs = 4;
        node_vf(t, "pci0000:00/0000:00:03.0/0000:03:00.1", "0000:03:00.0", 0, 5);
        node_vf(t, "pci0000:00/0000:00:03.0/0000:03:00.2", "0000:03:00.0", 0, 5);
        node_nic(t, "pci0000:00/0000:00:05.0/0000:05:00.0", 0, 6)->total_vfs = 2;
        node_ready(t, "[Pool gpu]\nMatch=vendor=10de class=03\n[Pool vf]\nMatch=type=vf\n"
                      "[Pool nic]\nMatch=address=0000:05:00.0\n");
        return t;
}

static void assert_changes(TestNode *t, const char *address, DeviceSnapshot *before, unsigned expected) {
        DeviceSnapshot now = device_snapshot(&t->context, node_find(t, address));

        assert_true(now.identity == before->identity);
        assert_int_equal(device_snapshot_differences(before, &now), expected);
        *before = now;
}

static PciDevice *change(TestNode *t, const char *address) {
        return &t->inventory->devices[inventory_device_index(t->inventory, node_find(t, address))];
}

TEST(test_property_names) {
        for (unsigned i = 0; i < _DEVICE_PROPERTY_MAX; i++)
                assert_non_null(device_property_names[i]);
        assert_string_equal(device_property_names[DEVICE_PROPERTY_IOMMU_GROUP], "IommuGroup");
}

TEST(test_each_property) {
        _cleanup_node_ TestNode *t = make_node();
        DeviceSnapshot gpu = device_snapshot(&t->context, node_find(t, GPU));

        assert_changes(t, GPU, &gpu, 0);
        assert_int_equal(string_copy(&change(t, GPU)->driver, "vfio-pci"), 0);
        assert_changes(t, GPU, &gpu, 1U << DEVICE_PROPERTY_DRIVER);
        change(t, GPU)->iommu_group = 9;
        assert_changes(t, GPU, &gpu, 1U << DEVICE_PROPERTY_IOMMU_GROUP);
        change(t, GPU)->iommu_group = 1;
        assert_changes(t, GPU, &gpu, 1U << DEVICE_PROPERTY_IOMMU_GROUP);
        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_STUCK, "It is stuck."), 0);
        assert_changes(t, GPU, &gpu,
                       1U << DEVICE_PROPERTY_STATE | 1U << DEVICE_PROPERTY_REASON | 1U << DEVICE_PROPERTY_REMEDY);
        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_STUCK, "It is stuck still."), 0);
        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_STUCK, NULL), 0);
        assert_changes(t, GPU, &gpu,
                       1U << DEVICE_PROPERTY_STATE | 1U << DEVICE_PROPERTY_REASON | 1U << DEVICE_PROPERTY_REMEDY);
        assert_int_equal(node_allocate(t, "guest", ASK(.pools = "gpu=1", .cpus = 1), NULL), VERDICT_NONE);
        assert_changes(t, GPU, &gpu,
                       1U << DEVICE_PROPERTY_STATE | 1U << DEVICE_PROPERTY_REASON | 1U << DEVICE_PROPERTY_REMEDY |
                               1U << DEVICE_PROPERTY_ALLOCATION);
}

TEST(test_identity) {
        _cleanup_node_ TestNode *t = make_node();
        DeviceSnapshot before = device_snapshot(&t->context, node_find(t, VF));

        change(t, VF)->numa_node = 1;
        assert_false(device_snapshot(&t->context, node_find(t, VF)).identity == before.identity);
        change(t, VF)->numa_node = 0;
        change(t, VF)->class = 0x020700;
        assert_false(device_snapshot(&t->context, node_find(t, VF)).identity == before.identity);
        change(t, VF)->class = 0x020000;
        assert_int_equal(string_copy(&change(t, VF)->name, "A NIC"), 0);
        assert_false(device_snapshot(&t->context, node_find(t, VF)).identity == before.identity);
        assert_int_equal(string_copy(&change(t, VF)->name, NULL), 0);
        assert_true(device_snapshot(&t->context, node_find(t, VF)).identity == before.identity);
        change(t, VF)->physfn = address_of(GPU);
        assert_false(device_snapshot(&t->context, node_find(t, VF)).identity == before.identity);
}

/* Appends the changes that were sent, such as "-01:00.0 ". */
static void tell(char *told, const char *sign, PciAddress address) {
        (void) strcat(strcat(strcat(told, sign), PCI_ADDRESS_STR(address) + strlen("0000:")), " ");
}

static void on_removed(PciAddress address, void *userdata) {
        tell(userdata, "-", address);
}

static void on_added(PciAddress address, void *userdata) {
        tell(userdata, "+", address);
}

static void on_changed(PciAddress address, unsigned properties, void *userdata) {
        assert_int_equal(properties, 1U << DEVICE_PROPERTY_DRIVER);
        tell(userdata, "~", address);
}

TEST(test_compare) {
        static const ChangeHandler handler = { on_removed, on_added, on_changed };
        static const DeviceSnapshot before[] = { { .address = { .bus = 1 } },
                                                 { .address = { .bus = 2 } },
                                                 { .address = { .bus = 3 } },
                                                 { .address = { .bus = 5 } } };
        static const DeviceSnapshot now[] = { { .address = { .bus = 2 }, .values[DEVICE_PROPERTY_DRIVER] = 1 },
                                              { .address = { .bus = 3 }, .identity = 1 },
                                              { .address = { .bus = 4 } },
                                              { .address = { .bus = 5 } },
                                              { .address = { .bus = 6 } } };
        const DeviceSnapshotList empty = { 0 }, a = { (DeviceSnapshot *) before, ELEMENTSOF(before) },
                                 b = { (DeviceSnapshot *) now, ELEMENTSOF(now) };
        char told[256] = "";

        device_snapshot_lists_compare(&a, &b, &handler, told);
        assert_string_equal(told, "-01:00.0 ~02:00.0 -03:00.0 +03:00.0 +04:00.0 +06:00.0 ");
        told[0] = '\0';
        device_snapshot_lists_compare(&b, &b, &handler, told);
        device_snapshot_lists_compare(&empty, &empty, &handler, told);
        assert_string_equal(told, "");
        device_snapshot_lists_compare(&a, &empty, &handler, told);
        assert_string_equal(told, "-01:00.0 -02:00.0 -03:00.0 -05:00.0 ");
        told[0] = '\0';
        device_snapshot_lists_compare(&empty, &a, &handler, told);
        assert_string_equal(told, "+01:00.0 +02:00.0 +03:00.0 +05:00.0 ");
}

/* A change of the node, and the devices that it concerns. */
typedef struct Deed {
        PciAddress devices[8];
        PciAddress physfn[8];
        bool has_physfn[8];
        size_t n;
} Deed;

static void deed_about(Deed *deed, PciAddress address, const PciAddress *physfn) {
        deed->devices[deed->n] = address;
        deed->has_physfn[deed->n] = physfn;
        if (physfn)
                deed->physfn[deed->n] = *physfn;
        deed->n++;
}

static void deed_about_allocation(Deed *deed, const Allocation *a) {
        assert_true(a->n_devices <= ELEMENTSOF(deed->devices));
        for (size_t i = 0; i < a->n_devices; i++)
                deed_about(deed, a->devices[i].address, a->devices[i].is_vf ? &a->devices[i].physfn : NULL);
}

static void claim_or_release(TestNode *t, const PciDevice *dev, Deed *deed) {
        const Allocation *holder = ledger_holder(t->ledger, dev->address);
        Allocation *a;

        if (holder) {
                deed_about_allocation(deed, holder);
                node_release(t, holder->name);
                return;
        }
        if (policy_verdict(t->policy, dev) != VERDICT_NONE)
                return;
        assert_int_equal(plan_single(&t->context, dev, &a), 0);
        assert_int_equal(string_replace(&a->name, "a%u", (unsigned) rand()), 0);
        if (ledger_claim(t->ledger, t->inventory, t->config, a, NULL) == VERDICT_NONE)
                deed_about_allocation(deed, a);
        else
                allocation_free(a);
}

static void withhold_or_not(TestNode *t, const PciDevice *dev, Deed *deed) {
        const DeviceFinding finding = rand() % 2 ? DEVICE_STUCK : DEVICE_BUSY;
        bool found = device_status_get(&t->status, dev->address, finding);

        assert_int_equal(
                device_status_set(&t->status, dev->address, finding, found ? NULL : "A job works on the device."), 0);
        deed_about(deed, dev->address, NULL);
}

static void change_driver(TestNode *t, PciDevice *dev, Deed *deed) {
        static const char *const drivers[] = { NULL, "nvidia", "vfio-pci", "mlx5_core" };

        _cleanup_(cleanup_policy_free) Policy *anew = NULL;

        assert_int_equal(string_copy(&dev->driver, drivers[rand() % 4]), 0);
        policy_recheck(t->policy, dev);
        assert_int_equal(policy_new(t->config, t->inventory, &anew), 0);
        assert_memory_equal(t->policy->verdicts, anew->verdicts, t->inventory->n_devices);
        deed_about(deed, dev->address, NULL);
}

static bool concerns(const TestNode *t, const Deed *deed, PciAddress address) {
        _cleanup_free_ PciAddress *relatives = NULL;
        size_t n = 0;

        for (size_t i = 0; i < deed->n; i++)
                assert_int_equal(changes_append_relatives(t->inventory, deed->devices[i],
                                                          deed->has_physfn[i] ? &deed->physfn[i] : NULL, &relatives,
                                                          &n),
                                 0);
        for (size_t i = 0; i < n; i++)
                if (pci_address_equal(relatives[i], address))
                        return true;
        return false;
}

/* A change of a device affects the state of its relatives at most. */
TEST(test_relatives) {
        _cleanup_node_ TestNode *t = make_node();
        unsigned indirect = 0;

        srand(1);
        for (unsigned round = 0; round < ROUNDS; round++) {
                _cleanup_(cleanup_device_snapshot_list_free)
                        DeviceSnapshotList *before = device_snapshot_list_new(&t->context),
                                           *now = NULL;
                PciDevice *dev = &t->inventory->devices[(size_t) rand() % t->inventory->n_devices];
                Deed deed = { 0 };

                switch (rand() % 3) {
                case 0:
                        claim_or_release(t, dev, &deed);
                        break;
                case 1:
                        withhold_or_not(t, dev, &deed);
                        break;
                default:
                        change_driver(t, dev, &deed);
                }
                now = device_snapshot_list_new(&t->context);
                assert_true(before && now && before->n == now->n);
                for (size_t i = 0; i < now->n; i++) {
                        PciAddress address = now->snapshots[i].address;

                        if (device_snapshot_differences(&before->snapshots[i], &now->snapshots[i]) == 0)
                                continue;
                        if (!concerns(t, &deed, address))
                                fail_msg("round %u: %s changed with %s", round, PCI_ADDRESS_STR(address),
                                         PCI_ADDRESS_STR(dev->address));
                        indirect += !pci_address_equal(address, dev->address);
                }
        }
        assert_true(indirect > ROUNDS / 10);
}

/* A missing VF is still a VF of its PF. */
TEST(test_missing_relative) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_free_ PciAddress *relatives = NULL;
        const PciAddress pf = address_of(PF);
        size_t n = 0;

        assert_int_equal(changes_append_relatives(t->inventory, address_of("0000:02:00.7"), &pf, &relatives, &n), 0);
        assert_int_equal(n, 2);
        assert_true(pci_address_equal(relatives[1], pf));
        assert_int_equal(changes_append_relatives(t->inventory, address_of("0000:02:00.7"), NULL, &relatives, &n), 0);
        assert_int_equal(n, 3);
}
