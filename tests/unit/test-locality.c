/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <stdio.h>

#include "unit.h"

#include "model/locality.h"
#include "util/strings.h"

#define SWITCH   "pci0000:10/0000:10:01.0/0000:11:00.0/"
#define FIRMWARE "LNXSYSTM:00/LNXSYBUS:00/"
#define CASCADE  "pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:00.0/"

/* The devices of the tests' machine: path and NUMA node. */
static const struct {
        const char *path;
        int node;
} machine[] = {
        /* one switch: two ports, a dual-function device on each, a VF on a bus of its own */
        { "pci0000:10/0000:10:01.0", 0 },
        { "pci0000:10/0000:10:01.0/0000:11:00.0", 0 },
        { SWITCH "0000:12:00.0", 0 },
        { SWITCH "0000:12:01.0", 0 },
        { SWITCH "0000:12:00.0/0000:13:00.0", 0 },
        { SWITCH "0000:12:00.0/0000:13:00.1", 0 },
        { SWITCH "0000:12:01.0/0000:14:00.0", 0 },
        { SWITCH "0000:12:01.0/0000:15:10.0", 0 },
        /* a switch below a switch */
        { "pci0000:20/0000:20:01.0", 0 },
        { "pci0000:20/0000:20:01.0/0000:21:00.0", 0 },
        { CASCADE "", 0 },
        { CASCADE "0000:23:00.0", 0 },
        { CASCADE "0000:23:00.0/0000:24:00.0", 0 },
        { CASCADE "0000:23:00.0/0000:24:00.0/0000:25:00.0", 0 },
        { "pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:01.0", 0 },
        { "pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:01.0/0000:26:00.0", 0 },
        /* a root port of its own, and an endpoint on the root bus, beside them */
        { "pci0000:20/0000:20:02.0", 0 },
        { "pci0000:20/0000:20:02.0/0000:27:00.0", 0 },
        { "pci0000:20/0000:20:05.0", -1 },
        { "pci0000:20/0000:20:05.1", -1 },
        /* another socket, whose lowest device has no known node */
        { "pci0000:80/0000:80:00.0", -1 },
        { "pci0000:80/0000:80:01.0", 1 },
        { "pci0000:80/0000:80:01.0/0000:81:00.0", 1 },
        /* host bridges without any known node */
        { "pci0000:c0/0000:c0:01.0", -1 },
        { "pci0000:c0/0000:c0:01.0/0000:c1:00.0", -1 },
        { "pci0000:d0/0000:d0:01.0", -1 },
        { "pci0000:d0/0000:d0:01.0/0000:d1:00.0", -1 },
        /* host bridges below devices: two of one firmware object, on two sockets; one below a PCI function */
        { FIRMWARE "pci0001:00/0001:00:01.0", 0 },
        { FIRMWARE "pci0001:00/0001:00:02.0", 0 },
        { FIRMWARE "pci0002:00/0002:00:01.0", 1 },
        { FIRMWARE "pci0003:00/0003:00:01.0", 0 },
        { "pci0000:80/0000:80:01.0/pci0004:00/0004:00:01.0", 1 },
};

typedef struct Fixture {
        Inventory *inv;
        Locality *locality;
} Fixture;

static PciAddress addr(const char *s) {
        PciAddress a;

        assert_int_equal(pci_address_parse(s, &a), 0);
        return a;
}

static void add(Inventory *inv, const char *path, int node) {
        _cleanup_free_ char *copy = strdup(path);
        PciDevice *dev;

        assert_non_null(copy);
        if (copy[strlen(copy) - 1] == '/')
                copy[strlen(copy) - 1] = '\0';
        dev = inventory_add_device(inv, addr(strrchr(copy, '/') + 1));
        assert_non_null(dev);
        dev->path = TAKE_PTR(copy);
        dev->numa_node = node;
}

static int setup(void **state) {
        Fixture *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        f->inv = inventory_new();
        for (size_t i = ELEMENTSOF(machine); i > 0; i--)
                add(f->inv, machine[i - 1].path, machine[i - 1].node);
        assert_int_equal(inventory_finish(f->inv), 0);
        assert_int_equal(locality_new(f->inv, &f->locality), 0);
        *state = f;
        return 0;
}

static int teardown(void **state) {
        Fixture *f = *state;

        (void) locality_free(f->locality);
        (void) inventory_free(f->inv);
        free(f);
        return 0;
}

static Distance between(const Fixture *f, const char *a, const char *b) {
        const PciDevice *x = inventory_find(f->inv, addr(a)), *y = inventory_find(f->inv, addr(b));

        assert_non_null(x);
        assert_non_null(y);
        return place_distance(f->locality->places + inventory_device_index(f->inv, x),
                              f->locality->places + inventory_device_index(f->inv, y));
}

TEST_WITH(test_distances, setup, teardown) {
        static const struct {
                const char *a, *b;
                Distance distance;
        } cases[] = {
                { "0000:13:00.0", "0000:13:00.0", DISTANCE_PIX },
                { "0000:13:00.0", "0000:13:00.1", DISTANCE_PIX },
                { "0000:13:00.0", "0000:14:00.0", DISTANCE_PIX },
                { "0000:14:00.0", "0000:15:10.0", DISTANCE_PIX },
                { "0000:25:00.0", "0000:26:00.0", DISTANCE_PXB },
                { "0000:26:00.0", "0000:27:00.0", DISTANCE_PHB },
                { "0000:20:05.0", "0000:20:05.1", DISTANCE_PIX },
                { "0000:20:05.0", "0000:27:00.0", DISTANCE_PHB },
                { "0000:13:00.0", "0000:27:00.0", DISTANCE_NODE },
                { "0000:13:00.0", "0000:20:05.0", DISTANCE_NODE }, /* its host bridge has a known node */
                { "0000:13:00.0", "0000:81:00.0", DISTANCE_SYS },
                { "0000:80:00.0", "0000:81:00.0", DISTANCE_PHB },
                { "0000:c1:00.0", "0000:d1:00.0", DISTANCE_SYS }, /* two unknown nodes are not the same */
                { "0000:c1:00.0", "0000:c0:01.0", DISTANCE_PHB },
                { "0000:c1:00.0", "0000:13:00.0", DISTANCE_SYS },
                { "0001:00:01.0", "0001:00:02.0", DISTANCE_PHB },
                { "0001:00:01.0", "0002:00:01.0", DISTANCE_SYS },
                { "0001:00:01.0", "0003:00:01.0", DISTANCE_NODE },
                { "0001:00:01.0", "0000:13:00.0", DISTANCE_NODE },
                { "0004:00:01.0", "0000:81:00.0", DISTANCE_NODE }, /* a host bridge of its own, and no bridge above */
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_int_equal(between(*state, cases[i].a, cases[i].b), cases[i].distance);
                assert_int_equal(between(*state, cases[i].b, cases[i].a), cases[i].distance);
        }
}

/* The planner relies on this: places that are equal at one level are equal at every level above. */
TEST_WITH(test_ultrametric, setup, teardown) {
        const Fixture *f = *state;
        const Place *p = f->locality->places;

        for (size_t i = 0; i < f->locality->n_places; i++)
                for (size_t j = 0; j < f->locality->n_places; j++) {
                        for (Distance d = place_distance(p + i, p + j); d < DISTANCE_SYS; d++)
                                assert_int_equal(p[i].level[d], p[j].level[d]);
                        for (size_t k = 0; k < f->locality->n_places; k++)
                                assert_true(place_distance(p + i, p + k) <=
                                            MAX(place_distance(p + i, p + j), place_distance(p + j, p + k)));
                }
}

TEST(test_without_paths) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        _cleanup_(cleanup_locality_free) Locality *l = NULL;

        assert_int_equal(locality_new(inv, &l), 0);
        l = locality_free(l);
        assert_non_null(inventory_add_device(inv, addr("0000:01:00.0")));
        assert_non_null(inventory_add_device(inv, addr("0000:01:00.1")));
        assert_non_null(inventory_add_device(inv, addr("0000:02:00.0")));
        assert_int_equal(inventory_finish(inv), 0);
        assert_int_equal(locality_new(inv, &l), 0);
        assert_int_equal(place_distance(l->places, l->places + 1), DISTANCE_PIX);
        assert_int_equal(place_distance(l->places, l->places + 2), DISTANCE_SYS);
}

TEST(test_many_devices) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        _cleanup_(cleanup_locality_free) Locality *l = NULL;

        /* 16 host bridges with 512 functions each make quadratic work visible. */
        for (unsigned i = 0; i < 8192; i++) {
                _cleanup_free_ char *path = NULL;

                assert_true(asprintf(&path, "pci%04x:00/%04x:%02x:%02x.%u", i / 512, i / 512, i / 256 % 2, i / 8 % 32,
                                     i % 8) >= 0);
                add(inv, path, (int) (i / 512) % 2);
        }
        assert_int_equal(inventory_finish(inv), 0);
        assert_int_equal(locality_new(inv, &l), 0);
        assert_int_equal(place_distance(l->places, l->places + 7), DISTANCE_PIX);
        assert_int_equal(place_distance(l->places, l->places + 511), DISTANCE_PHB);
        assert_int_equal(place_distance(l->places, l->places + 512), DISTANCE_SYS);
        assert_int_equal(place_distance(l->places, l->places + 1024), DISTANCE_NODE);
}

TEST(test_proximity) {
        assert_true(proximity_allows(PROXIMITY_SWITCH, DISTANCE_PXB));
        assert_false(proximity_allows(PROXIMITY_SWITCH, DISTANCE_PHB));
        assert_true(proximity_allows(PROXIMITY_ROOT_COMPLEX, DISTANCE_PHB));
        assert_false(proximity_allows(PROXIMITY_ROOT_COMPLEX, DISTANCE_NODE));
        assert_true(proximity_allows(PROXIMITY_NODE, DISTANCE_NODE));
        assert_false(proximity_allows(PROXIMITY_NODE, DISTANCE_SYS));
        assert_true(proximity_allows(PROXIMITY_ANY, DISTANCE_SYS));
        for (Proximity p = 0; p < _PROXIMITY_MAX; p++)
                assert_int_equal(proximity_from_string(proximity_to_string(p)), p);
        assert_int_equal(proximity_from_string("near"), _PROXIMITY_INVALID);
        assert_string_equal(distance_to_string(DISTANCE_NODE), "NODE");
}
