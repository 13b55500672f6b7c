/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Names from pci.ids: from files of the test, and compared with libpci for the file of this machine. */

#include <errno.h>
#include <pci/pci.h>
#include <stdio.h>
#include <unistd.h>

#include "unit.h"

#include "host/pciids.h"
#include "tmptree.h"
#include "util/strings.h"

static const char ids[] = "# 10de  A comment\n"
                          "\t1234  A device of no vendor\n"
                          "10de  NVIDIA Corporation\n"
                          "\n"
                          "\t0001  First\r\n"
                          "# 0002  A comment\n"
                          "\t\t10de 0002  A subsystem\n"
                          "\t0002  Trailing blank \n"
                          "\t0002  A second entry\n"
                          "\t0003\n"
                          "\t00040  Five digits\n"
                          "8086  Intel\n"
                          "\t0001  Not NVIDIA's\n"
                          "15b3  Mellanox Technologies\n"
                          "\t1021  MT2910\n"
                          "\t101e  Virtual\x01"
                          "Function\n"
                          "C 02  Network controller\n"
                          "\t1022  A subclass\n"
                          "C 03  Display controller\n"
                          "\t00  VGA compatible controller\n"
                          "\t\t02  An interface\n"
                          "\t02  3D controller\n"
                          "1000  Last\n"
                          "\t0001  No newline";

static int setup(void **state) {
        *state = tree_new();
        return 0;
}

static int teardown(void **state) {
        tree_done(*state);
        return 0;
}

static int name_one(const char *file, uint16_t vendor, uint16_t device, uint16_t vf_device, Inventory **ret) {
        PciDevice *dev;

        *ret = inventory_new();
        assert_non_null(*ret);
        dev = inventory_add_device(*ret, (PciAddress) { 0 });
        assert_non_null(dev);
        dev->vendor = vendor;
        dev->device = device;
        dev->vf_device = vf_device;
        dev->class = 0x030200;
        return pciids_name_devices(file, *ret);
}

TEST_WITH(test_entries, setup, teardown) {
        static const struct {
                uint16_t vendor, device;
                const char *name;
        } cases[] = {
                { 0x10de, 0x0001, "NVIDIA Corporation First" },
                { 0x10de, 0x0002, "NVIDIA Corporation Trailing blank" },
                { 0x10de, 0x0003, "NVIDIA Corporation 3D controller [10de:0003]" },
                { 0x10de, 0x0004, "NVIDIA Corporation 3D controller [10de:0004]" },
                { 0x10de, 0x1234, "NVIDIA Corporation 3D controller [10de:1234]" },
                { 0x8086, 0x0001, "Intel Not NVIDIA's" },
                { 0x15b3, 0x1021, "Mellanox Technologies MT2910" },
                { 0x15b3, 0x101e, "Mellanox Technologies 3D controller [15b3:101e]" }, /* a control character */
                { 0x15b3, 0x1022, "Mellanox Technologies 3D controller [15b3:1022]" },
                { 0x1234, 0x0001, "3D controller [1234:0001]" },
                { 0x0000, 0x0001, NULL }, /* the IDs could not be read */
                { 0x1000, 0x0001, "Last No newline" },
        };
        const char *root = *state;
        _cleanup_free_ char *file = string_format("%s/pci.ids", root);

        tree_bytes(root, "pci.ids", ids, strlen(ids));
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_inventory_free) Inventory *inv = NULL;

                assert_int_equal(name_one(file, cases[i].vendor, cases[i].device, 0x1021, &inv), 0);
                assert_true(inv->devices->named);
                assert_true(streq_ptr(inv->devices->name, cases[i].name));
                if (cases[i].vendor == 0x15b3)
                        assert_string_equal(inv->devices->vf_name, "Mellanox Technologies MT2910");
        }
}

TEST_WITH(test_files, setup, teardown) {
        const char *root = *state;
        _cleanup_free_ char *file = string_format("%s/pci.ids.gz", root);
        Inventory *inv;

        tree_bytes(root, "pci.ids", ids, strlen(ids));
        assert_int_equal(name_one(file, 0x8086, 0x0001, 0, &inv), 0); /* without its suffix .gz */
        assert_string_equal(inv->devices->name, "Intel Not NVIDIA's");
        inventory_free(inv);
        tree_bytes(root, "pci.ids.gz", "\x1f\x8b\x08", 3);
        assert_int_equal(name_one(file, 0x8086, 0x0001, 0, &inv), -EBADMSG);
        assert_false(inv->devices->named);
        inventory_free(inv);
        file[strlen(file) - 1] = 'x';
        assert_int_equal(name_one(file, 0x8086, 0x0001, 0, &inv), -ENOENT);
        inventory_free(inv);
}

static const char *look_up(struct pci_access *access, int kind, char buf[static 1024], int a, int b) {
        return pci_lookup_name(access, buf, 1024, kind | PCI_LOOKUP_NO_NUMBERS | PCI_LOOKUP_NO_HWDB, a, b);
}

static char *libpci_name(struct pci_access *access, const PciDevice *dev) {
        char buf[1024], class[1024];
        const char *name = look_up(access, PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE, buf, dev->vendor, dev->device);

        if (name)
                return strdup(name);
        name = look_up(access, PCI_LOOKUP_VENDOR, buf, dev->vendor, 0);
        return string_format("%s%s%s [%04x:%04x]", name ?: "", name ? " " : "",
                             look_up(access, PCI_LOOKUP_CLASS, class, dev->class >> 8, 0), dev->vendor, dev->device);
}

TEST(test_names_are_libpcis) {
        static const uint16_t vendors[] = { 0x0010, 0x1000, 0x10de, 0x15b3, 0x8086, 0xffff };
        static const uint32_t classes[] = { 0x030000, 0x030200, 0x020000, 0x110100, 0x060400 };
        struct pci_access *access = pci_alloc();
        size_t named = 0;

        access->id_lookup_mode = 0;
        for (size_t v = 0; v < ELEMENTSOF(vendors); v++) {
                _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();

                for (unsigned i = 0; i < INVENTORY_DEVICES_MAX; i++) {
                        PciDevice *dev = inventory_add_device(inv, (PciAddress) { .domain = i });

                        dev->vendor = vendors[v];
                        dev->device = (uint16_t) i;
                        dev->class = classes[i % ELEMENTSOF(classes)];
                }
                if (pciids_name_devices(access->id_file_name, inv) < 0)
                        skip();
                for (size_t i = 0; i < inv->n_devices; i++) {
                        _cleanup_free_ char *name = libpci_name(access, &inv->devices[i]);

                        assert_string_equal(inv->devices[i].name, name);
                        named += !strchr(name, '[');
                }
        }
        pci_cleanup(access);
        assert_true(named > 100);
}
