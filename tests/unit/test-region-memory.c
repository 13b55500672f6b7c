/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The nodes of a region's pages, as reported by a kernel that moves pages meanwhile. */

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>

#include "unit.h"

#include "host/region-memory.h"

static unsigned unmapped; /* number of queries in which every third page is unmapped */
static int elsewhere = -1;

/* Replaces libnuma's function. */
long move_pages(int pid, unsigned long count, void **pages, const int *nodes, int *status, int flags) {
        assert_int_equal(pid, 0);
        assert_int_equal(flags, 0);
        assert_null(nodes);
        for (unsigned long i = 0; i < count; i++) {
                assert_non_null(pages[i]);
                status[i] = unmapped > 0 && i % 3 == 0 ? -ENOENT : MAX(elsewhere, 0);
        }
        unmapped -= unmapped > 0;
        return 0;
}

static int populate(void) {
        const Region r = { .name = "mpi", .size = 8 << 20, .node = 0 };
        int fd, k;

        if (numa_available() < 0)
                skip();
        fd = memfd_create("region", MFD_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, (off_t) r.size), 0);
        k = region_populate(fd, &r);
        (void) close(fd);
        return k;
}

TEST(test_there) {
        assert_int_equal(populate(), 0);
}

TEST(test_moved_meanwhile) {
        unmapped = 5;
        assert_int_equal(populate(), 0);
        assert_int_equal(unmapped, 0);
}

TEST(test_elsewhere) {
        elsewhere = 1;
        assert_int_equal(populate(), -EXDEV);
        unmapped = 2;
        assert_int_equal(populate(), -EXDEV);
        elsewhere = -1;
        unmapped = 0;
}

TEST(test_never_told) {
        unmapped = UINT32_MAX;
        assert_int_equal(populate(), -EBUSY);
        unmapped = 0;
}
