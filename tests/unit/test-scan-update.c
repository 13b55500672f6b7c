/* SPDX-License-Identifier: GPL-2.0-or-later */

/* An update of some devices gives the same result as a full scan. */

#include "unit.h"

#include "scanfixture.h"
#include "util/strings.h"

#define ROUNDS 200

/* Every possible device, with bridges before the devices below them. */
static const struct {
        const char *path, *class;
        int pf; /* index of the PF of a VF, or -1 */
} table[] = {
        { "pci0000:00/0000:00:01.0", "0x060400", -1 },
        { NIC, "0x020000", -1 },
        { "pci0000:00/0000:00:01.0/0000:01:00.1", "0x020000", -1 },
        { "pci0000:00/0000:00:01.0/0000:01:00.2", "0x010802", -1 },
        { "pci0000:00/0000:00:02.0", "0x060400", -1 },
        { "pci0000:00/0000:00:02.0/0000:02:00.0", "0x020000", -1 },
        { "pci0000:00/0000:00:02.0/0000:02:00.1", "0x020000", 5 },
        { "pci0000:00/0000:00:02.0/0000:02:00.2", "0x020000", 5 },
        { "pci0000:00/0000:00:02.0/0000:02:01.0", "0x020000", 5 },
        { "pci0000:00/0000:00:03.0", "0x060400", -1 },
        { "pci0000:00/0000:00:03.0/0000:03:00.0", "0x060400", -1 },
        { "pci0000:00/0000:00:03.0/0000:03:00.0/0000:04:00.0", "0x030200", -1 },
};

typedef struct Machine {
        const Fixture *f;
        bool there[ELEMENTSOF(table)];
        bool named[ELEMENTSOF(table)];
} Machine;

static const char *name_of(size_t i) {
        return strrchr(table[i].path, '/') + 1;
}

static const char *any(const char *const *values, size_t n) {
        return values[(size_t) rand() % n];
}

#define ANY(...)                                                                                                       \
        any((const char *const[]) { __VA_ARGS__ }, sizeof((const char *const[]) { __VA_ARGS__ }) / sizeof(char *))

/* Chooses a random IOMMU group. Groups with numbers divisible by 3 have a direct region. */
static void change_device(Machine *m, size_t i) {
        const char *root = m->f->root, *name = name_of(i);

        tree_attribute(root, name, "numa_node", ANY("-1", "-1", "0", "1", "junk"));
        tree_attribute_link(root, name, "iommu_group", ANY("../g/1", "../g/2", "../g/3", "../g/6", "../g/7"));
        tree_attribute_link(root, name, "driver", ANY("../d/vfio-pci", "../d/igb"));
        tree_attribute(root, name, "driver_override", ANY("(null)", "vfio-pci"));
        tree_attribute(root, name, "subsystem_device", ANY("0x0001", "0x0002"));
        m->named[i] = true;
}

static void link_vf(const Machine *m, size_t i, bool there) {
        const char *pf = table[i].pf >= 0 ? name_of((size_t) table[i].pf) : NULL;
        char link[32], target[64];

        if (!pf || !m->there[table[i].pf])
                return;
        (void) snprintf(link, sizeof(link), "virtfn%zu", i);
        (void) snprintf(target, sizeof(target), "../%s", name_of(i));
        if (there)
                tree_attribute_link(m->f->root, pf, link, target);
        else {
                (void) snprintf(target, sizeof(target), "sys/bus/pci/devices/%s/%s", pf, link);
                tree_unlink(m->f->root, target);
        }
}

static bool is_below(size_t i, size_t above) {
        return strncmp(table[i].path, table[above].path, strlen(table[above].path)) == 0;
}

static void remove_device(Machine *m, size_t above) {
        /* Removes VFs while their PF still has its links to them. */
        for (size_t i = ELEMENTSOF(table); i-- > 0;) {
                _cleanup_free_ char *path = NULL, *link = NULL;

                if (!m->there[i] || (!is_below(i, above) && table[i].pf != (int) above))
                        continue;
                link_vf(m, i, false);
                assert_true(asprintf(&path, "%s/sys/devices/%s", m->f->root, table[i].path) > 0);
                assert_true(asprintf(&link, "sys/bus/pci/devices/%s", name_of(i)) > 0);
                (void) nftw(path, tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
                tree_unlink(m->f->root, link);
                m->there[i] = false;
                m->named[i] = true;
        }
}

static bool may_be_there(const Machine *m, size_t i) {
        if (table[i].pf >= 0 && !m->there[table[i].pf])
                return false;
        for (size_t j = 0; j < i; j++)
                if (is_below(i, j) && !m->there[j])
                        return false;
        return true;
}

static void add_device(Machine *m, size_t i) {
        if (!may_be_there(m, i))
                return;
        tree_device(m->f->root, table[i].path, "0x8086", "0x10c9", table[i].class);
        m->there[i] = true;
        change_device(m, i);
        if (table[i].pf >= 0)
                tree_attribute_link(m->f->root, name_of(i), "physfn", PCI_ADDRESS_STR((PciAddress) { .bus = 2 }));
        link_vf(m, i, true);
}

static void change(Machine *m) {
        for (int n = rand() % 4; n >= 0; n--) {
                size_t i = (size_t) rand() % ELEMENTSOF(table);

                if (!m->there[i])
                        add_device(m, i);
                else if (rand() % 2)
                        change_device(m, i);
                else
                        remove_device(m, i);
        }
}

static bool same_address_list(const PciDevice *a, const PciDevice *b) {
        if (a->n_vfs != b->n_vfs)
                return false;
        for (size_t i = 0; i < a->n_vfs; i++)
                if (!pci_address_equal(a->vfs[i], b->vfs[i]))
                        return false;
        return true;
}

static void assert_same_device(const PciDevice *a, const PciDevice *b) {
        assert_true(pci_address_equal(a->address, b->address));
        assert_int_equal(a->subsystem_device, b->subsystem_device);
        assert_int_equal(a->vendor, b->vendor);
        assert_int_equal(a->class, b->class);
        assert_true(streq_ptr(a->name, b->name));
        assert_true(streq_ptr(a->path, b->path));
        assert_int_equal(a->parent, b->parent);
        assert_int_equal(a->numa_node, b->numa_node);
        assert_int_equal(a->own_node, b->own_node);
        assert_int_equal(a->iommu_group, b->iommu_group);
        assert_true(streq_ptr(a->driver, b->driver));
        assert_true(streq_ptr(a->driver_override, b->driver_override));
        assert_int_equal(a->has_override, b->has_override);
        assert_int_equal(a->is_bridge, b->is_bridge);
        assert_int_equal(a->type, b->type);
        assert_true(pci_address_equal(a->physfn, b->physfn));
        assert_int_equal(a->n_virtfns, b->n_virtfns);
        assert_int_equal(a->vf_index, b->vf_index);
        assert_true(same_address_list(a, b));
        assert_int_equal(a->acs, b->acs);
        assert_true(streq_ptr(a->fault, b->fault));
}

static void assert_same_inventory(const Inventory *a, const Inventory *b) {
        assert_int_equal(a->n_devices, b->n_devices);
        for (size_t i = 0; i < a->n_devices; i++)
                assert_same_device(&a->devices[i], &b->devices[i]);
        assert_int_equal(a->n_groups, b->n_groups);
        for (size_t i = 0; i < a->n_groups; i++) {
                assert_int_equal(a->groups[i].number, b->groups[i].number);
                assert_int_equal(a->groups[i].direct, b->groups[i].direct);
                assert_int_equal(a->groups[i].n_members, b->groups[i].n_members);
                assert_memory_equal(a->groups[i].members, b->groups[i].members,
                                    a->groups[i].n_members * sizeof(*a->groups[i].members));
        }
        assert_int_equal(a->n_nodes, b->n_nodes);
        for (size_t i = 0; i < a->n_nodes; i++)
                assert_int_equal(a->nodes[i].memory, b->nodes[i].memory);
        assert_int_equal(a->n_cpus, b->n_cpus);
        for (size_t i = 0; i < a->n_cpus; i++)
                assert_memory_equal(&a->cpus[i], &b->cpus[i], sizeof(*a->cpus));
        assert_int_equal(a->iommu, b->iommu);
        assert_int_equal(a->n_notes, b->n_notes);
        for (size_t i = 0; i < a->n_notes; i++)
                assert_string_equal(a->notes[i], b->notes[i]);
}

static void update(Fixture *f, Machine *m) {
        _cleanup_(cleanup_inventory_free) Inventory *all = NULL, *some = NULL;
        PciAddress addresses[ELEMENTSOF(table)];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (m->named[i])
                        assert_int_equal(pci_address_parse(name_of(i), &addresses[n++]), 0);
        assert_int_equal(scan_update(f->fs, f->inv, addresses, n, true, NULL, 0, &some), 0);
        /* Reads the overrides, which an update of locked devices leaves out. */
        for (size_t i = 0; i < n; i++) {
                const PciDevice *dev = inventory_find(some, addresses[i]);

                if (dev)
                        assert_int_equal(scan_refresh(f->fs, &some->devices[inventory_device_index(some, dev)], false),
                                         0);
        }
        assert_int_equal(scan_inventory(f->fs, &all), 0);
        assert_same_inventory(some, all);
        (void) inventory_free(f->inv);
        f->inv = TAKE_PTR(some);
        memset(m->named, 0, sizeof(m->named));
}

static void make_groups(const Fixture *f) {
        for (unsigned i = 1; i < 8; i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "sys/kernel/iommu_groups/%u/reserved_regions", i);
                tree_file(f->root, path, i % 3 == 0 ? "0x0 0x1 direct" : "0x0 0x1 msi");
        }
}

TEST_WITH(test_same_as_scan, setup, teardown) {
        Fixture *f = *state;
        Machine m = { .f = f, .there = { true, true } };

        make_groups(f);
        /* A group that stays: without any group the node gets a note, which only a full scan handles. */
        tree_device(f->root, "pci0000:00/0000:00:1f.0", "0x8086", "0x10c9", "0x060100");
        tree_attribute_link(f->root, "0000:00:1f.0", "iommu_group", "../g/5");
        scan(f);
        assert_int_equal(f->inv->n_notes, 0);
        srand(1);
        for (unsigned round = 0; round < ROUNDS; round++) {
                change(&m);
                update(f, &m);
        }
}

TEST_WITH(test_only_the_named_are_read, setup, teardown) {
        _cleanup_(cleanup_inventory_free) Inventory *some = NULL;
        Fixture *f = *state;
        const PciAddress port = { .slot = 1 };

        nic_has(f, "driver_override", "(null)");
        tree_attribute_link(f->root, "0000:01:00.0", "iommu_group", "../g/5");
        scan(f);
        nic_has(f, "driver_override", "vfio-pci");
        assert_int_equal(scan_update(f->fs, f->inv, &port, 1, true, NULL, 0, &some), 0);
        assert_int_equal(some->n_devices, 2);
        assert_null(some->devices[1].driver_override);
}

/* A new VF: the kernel may probe drivers with the device lock held. */
TEST_WITH(test_locked, setup, teardown) {
        _cleanup_(cleanup_inventory_free) Inventory *some = NULL;
        Fixture *f = *state;
        const PciAddress vf = { .bus = 1, .slot = 0x10 }, pf = { .bus = 1 };

        tree_attribute_link(f->root, "0000:01:00.0", "iommu_group", "../g/5");
        nic_has(f, "driver_override", "nouveau");
        scan(f);
        nic_has(f, "driver_override", "vfio-pci");
        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:10.0", "0x8086", "0x10ca", "0x020000");
        tree_attribute_link(f->root, "0000:01:10.0", "physfn", "../0000:01:00.0");
        tree_attribute(f->root, "0000:01:10.0", "driver_override", "vfio-pci");
        assert_int_equal(scan_update(f->fs, f->inv, &vf, 1, true, NULL, 0, &some), 0);
        assert_null(inventory_find(some, vf)->driver_override);
        assert_true(inventory_find(some, vf)->has_override);
        assert_int_equal(inventory_find(some, pf)->n_vfs, 1);
        /* The PF is read too, except for attributes that need its lock. */
        assert_string_equal(inventory_find(some, pf)->driver_override, "nouveau");
}

/* A node with notes is read as a whole, and its devices may be locked all the same. */
TEST_WITH(test_locked_with_notes, setup, teardown) {
        _cleanup_(cleanup_inventory_free) Inventory *some = NULL;
        Fixture *f = *state;
        const PciAddress port = { .slot = 1 }, nic = { .bus = 1 };

        nic_has(f, "driver_override", "nouveau");
        scan(f);
        assert_int_equal(inventory_add_note(f->inv, "a note"), 0);
        nic_has(f, "driver_override", "vfio-pci");
        assert_int_equal(scan_update(f->fs, f->inv, &port, 1, true, NULL, 0, &some), 0);
        assert_string_equal(inventory_find(some, nic)->driver_override, "nouveau");
}

/* The job that made the VF has ended. Another job works on the PF, or none. */
TEST_WITH(test_unlocked, setup, teardown) {
        _cleanup_(cleanup_inventory_free) Inventory *busy = NULL, *some = NULL;
        Fixture *f = *state;
        const PciAddress vf = { .bus = 1, .slot = 0x10 }, pf = { .bus = 1 };

        tree_attribute_link(f->root, "0000:01:00.0", "iommu_group", "../g/5");
        scan(f);
        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:10.0", "0x8086", "0x10ca", "0x020000");
        tree_attribute_link(f->root, "0000:01:10.0", "physfn", "../0000:01:00.0");
        tree_attribute(f->root, "0000:01:10.0", "driver_override", "vfio-pci");
        assert_int_equal(scan_update(f->fs, f->inv, &vf, 1, false, &pf, 1, &busy), 0);
        assert_null(inventory_find(busy, vf)->driver_override);
        assert_int_equal(scan_update(f->fs, f->inv, &vf, 1, false, NULL, 0, &some), 0);
        assert_string_equal(inventory_find(some, vf)->driver_override, "vfio-pci");
}

/* A name that pci.ids lacks shows that pci.ids was not read. */
TEST_WITH(test_names_are_known, setup, teardown) {
        _cleanup_(cleanup_inventory_free) Inventory *some = NULL;
        Fixture *f = *state;
        const PciAddress vf = { .bus = 1, .slot = 0x10 }, pf = { .bus = 1 };
        PciDevice *nic;

        tree_attribute_link(f->root, "0000:01:00.0", "iommu_group", "../g/5");
        nic_has(f, "sriov_totalvfs", "7");
        nic_has(f, "sriov_vf_device", "10ca");
        scan(f);
        nic = &f->inv->devices[inventory_device_index(f->inv, find(f, "0000:01:00.0"))];
        assert_true(nic->named);
        assert_int_equal(string_copy(&nic->name, "the PF"), 0);
        assert_int_equal(string_copy(&nic->vf_name, "its VF"), 0);
        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:10.0", "0x8086", "0x10ca", "0x020000");
        tree_attribute_link(f->root, "0000:01:10.0", "physfn", "../0000:01:00.0");
        assert_int_equal(scan_update(f->fs, f->inv, &vf, 1, true, NULL, 0, &some), 0);
        assert_string_equal(inventory_find(some, vf)->name, "its VF");
        assert_string_equal(inventory_find(some, pf)->name, "the PF");
}

/* Only the PF is named; one of its VFs shares its slot. */
TEST_WITH(test_vfs_that_were_made, setup, teardown) {
        static const char *const vfs[] = { "0000:01:00.1", "0000:01:10.0" };
        _cleanup_(cleanup_inventory_free) Inventory *some = NULL, *all = NULL;
        Fixture *f = *state;
        const PciAddress pf = { .bus = 1 };

        tree_attribute_link(f->root, "0000:01:00.0", "iommu_group", "../g/5");
        scan(f);
        for (size_t i = 0; i < ELEMENTSOF(vfs); i++) {
                _cleanup_free_ char *path = NULL, *virtfn = NULL;

                assert_int_equal(string_replace(&path, "pci0000:00/0000:00:01.0/%s", vfs[i]), 0);
                tree_device(f->root, path, "0x8086", "0x10ca", "0x020000");
                tree_attribute_link(f->root, vfs[i], "physfn", "../0000:01:00.0");
                tree_attribute(f->root, vfs[i], "driver_override", "(null)");
                assert_int_equal(string_replace(&virtfn, "virtfn%zu", i), 0);
                assert_int_equal(string_replace(&path, "../%s", vfs[i]), 0);
                tree_attribute_link(f->root, "0000:01:00.0", virtfn, path);
        }
        assert_int_equal(scan_update(f->fs, f->inv, &pf, 1, true, NULL, 0, &some), 0);
        assert_int_equal(inventory_find(some, pf)->n_vfs, 2);
        assert_int_equal(scan_inventory(f->fs, &all), 0);
        assert_same_inventory(some, all);
}
