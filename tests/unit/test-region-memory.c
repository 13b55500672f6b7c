/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Where the pages of a region are, as a kernel tells it that is busy with them. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>

#include "host/region-memory.h"

static unsigned unmapped; /* looks at which every third page is not mapped */
static int elsewhere = -1;

/* In place of libnuma's. */
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
        int fd = memfd_create("region", MFD_CLOEXEC), k;

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, (off_t) r.size), 0);
        k = region_populate(fd, &r);
        (void) close(fd);
        return k;
}

static void test_there(void **state _unused_) {
        assert_int_equal(populate(), 0);
}

static void test_moved_meanwhile(void **state _unused_) {
        unmapped = 5;
        assert_int_equal(populate(), 0);
        assert_int_equal(unmapped, 0);
}

static void test_elsewhere(void **state _unused_) {
        elsewhere = 1;
        assert_int_equal(populate(), -EXDEV);
        unmapped = 2;
        assert_int_equal(populate(), -EXDEV);
        elsewhere = -1;
        unmapped = 0;
}

static void test_never_told(void **state _unused_) {
        unmapped = UINT32_MAX;
        assert_int_equal(populate(), -EBUSY);
        unmapped = 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_there),
                cmocka_unit_test(test_moved_meanwhile),
                cmocka_unit_test(test_elsewhere),
                cmocka_unit_test(test_never_told),
        };

        if (numa_available() < 0) {
                print_message("1..0 # SKIP this kernel has no NUMA\n");
                return 0;
        }
        return cmocka_run_group_tests_name("region-memory", tests, NULL, NULL);
}
