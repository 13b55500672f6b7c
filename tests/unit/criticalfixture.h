/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions of the tests of host/critical.h. Include after unit.h. */

#include "host/critical.h"
#include "treefixture.h"

static inline void mounts(const Fixture *f, const char *lines) {
        tree_file(f->root, "proc/1/mountinfo", lines);
}

/* Returns the device after a new scan. config may be NULL. */
static inline const PciDevice *marked(Fixture *f, const Config *config, const char *address) {
        const PciDevice *dev;

        scan(f);
        assert_int_equal(critical_mark(f->fs, config, f->inv), 0);
        dev = find(f, address);
        assert_non_null(dev);
        return dev;
}

static inline const char *critical(Fixture *f, const char *address) {
        return marked(f, NULL, address)->critical;
}
