/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The state of a test: a machine in a temporary directory, and its inventory. Include after unit.h. */

#include "host/scan.h"
#include "tmptree.h"

typedef struct Fixture {
        char *root;
        Sysfs *fs;
        Inventory *inv; /* after scan() */
} Fixture;

/* Makes an empty machine, which the setup of a test completes. */
static inline Fixture *fixture_new(void **state) {
        Fixture *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        f->root = tree_new();
        assert_int_equal(sysfs_new(f->root, &f->fs), 0);
        *state = f;
        return f;
}

static inline int teardown(void **state) {
        Fixture *f = *state;

        (void) inventory_free(f->inv);
        (void) sysfs_free(f->fs);
        tree_done(f->root);
        free(f);
        return 0;
}

static inline void scan(Fixture *f) {
        f->inv = inventory_free(f->inv);
        assert_int_equal(scan_inventory(f->fs, &f->inv), 0);
}

static inline const PciDevice *find(const Fixture *f, const char *address) {
        PciAddress a;

        assert_int_equal(pci_address_parse(address, &a), 0);
        return inventory_find(f->inv, a);
}
