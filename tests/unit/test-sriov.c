/* SPDX-License-Identifier: GPL-2.0-or-later */

/* virtfn links that appear and disappear later than the write. A process of the test is the kernel. */

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "host/sriov.h"
#include "treefixture.h"

static const PciAddress pf = { .bus = 1 };
static const char pf_text[] = "0000:01:00.0";

static int setup(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:00.0", "0x15b3", "0x101b", "0x020000");
        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:00.1", "0x15b3", "0x101c", "0x020000");
        tree_attribute(f->root, pf_text, "sriov_numvfs", "0");
        return 0;
}

static void set_links(const Fixture *f, unsigned n) {
        for (unsigned i = 0; i < 4; i++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "virtfn%u", i);
                if (i < n)
                        tree_attribute_link(f->root, pf_text, name, "../0000:01:00.1");
                else {
                        _cleanup_free_ char *path = NULL;

                        tree_require(asprintf(&path, "%s/sys/bus/pci/devices/%s/%s", f->root, pf_text, name) >= 0, "");
                        (void) unlink(path);
                }
        }
}

static unsigned numvfs(const Fixture *f) {
        char text[16];

        assert_true(sysfs_read(f->fs, "sys/bus/pci/devices/0000:01:00.0/sriov_numvfs", text, sizeof(text)) >= 0);
        return (unsigned) atoi(text);
}

/* Makes the links only after the number was written. */
static pid_t start_kernel(const Fixture *f, unsigned count) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid > 0)
                return pid;
        while (numvfs(f) != count)
                (void) usleep(1000);
        set_links(f, count);
        _exit(0);
}

static void end_kernel(pid_t pid) {
        (void) kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST_WITH(test_links_come_late, setup, teardown) {
        Fixture *f = *state;
        pid_t pid = start_kernel(f, 3);

        assert_int_equal(sriov_set_numvfs(f->fs, pf, 3), 1);
        end_kernel(pid);
        assert_int_equal(sriov_set_numvfs(f->fs, pf, 3), 0);
        assert_int_equal(sriov_set_numvfs(f->fs, pf, 2), -EBUSY);
        assert_int_equal(numvfs(f), 3);
}

TEST_WITH(test_links_never_come, setup, teardown) {
        Fixture *f = *state;

        assert_int_equal(sriov_set_numvfs(f->fs, pf, 3), -EIO);
        assert_int_equal(numvfs(f), 0);
}

TEST_WITH(test_links_go_late, setup, teardown) {
        Fixture *f = *state;
        pid_t pid;

        tree_attribute(f->root, pf_text, "sriov_numvfs", "3");
        set_links(f, 3);
        pid = start_kernel(f, 0);
        assert_int_equal(sriov_remove_vfs(f->fs, pf, 3), 1);
        end_kernel(pid);
        assert_int_equal(sriov_remove_vfs(f->fs, pf, 3), 0);
}

/* VFs of another number, or with a driver, are not removed. */
TEST_WITH(test_others_are_left_alone, setup, teardown) {
        Fixture *f = *state;

        tree_attribute(f->root, pf_text, "sriov_numvfs", "2");
        set_links(f, 2);
        assert_int_equal(sriov_remove_vfs(f->fs, pf, 3), -EBUSY);
        tree_attribute_link(f->root, "0000:01:00.1", "driver", "/sys/bus/pci/drivers/vfio-pci");
        assert_int_equal(sriov_remove_vfs(f->fs, pf, 2), -EBUSY);
        assert_int_equal(numvfs(f), 2);
}
