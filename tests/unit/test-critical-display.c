/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "unit.h"

#include "criticalfixture.h"

#define GPU  "pci0000:00/0000:00:01.0/0000:01:00.0"
#define GPU2 "pci0000:00/0000:00:02.0/0000:02:00.0"
#define BMC  "pci0000:00/0000:00:1c.0/0000:05:00.0"
#define IPMI "pci0000:00/0000:00:1c.0/0000:05:00.1"

static int setup(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, GPU, "0x10de", "0x1eb8", "0x030000");
        tree_device(f->root, GPU2, "0x10de", "0x1eb8", "0x030000");
        mounts(f, "");
        return 0;
}

static void add_framebuffer(const Fixture *f, const char *device, unsigned number) {
        char dir[160], link[64], target[200];

        (void) snprintf(dir, sizeof(dir), "sys/devices/%s/graphics/fb%u", device, number);
        (void) snprintf(link, sizeof(link), "sys/class/graphics/fb%u", number);
        (void) snprintf(target, sizeof(target), "../../../%s", dir);
        tree_dir(f->root, dir);
        tree_link(f->root, link, target);
}

TEST_WITH(test_console_on_the_first_framebuffer, setup, teardown) {
        Fixture *f = *state;

        tree_dir(f->root, "sys/class/graphics/fbcon");
        add_framebuffer(f, GPU2, 2);
        add_framebuffer(f, GPU, 10);
        assert_null(marked(f, NULL, "0000:02:00.0")->console);
        tree_file(f->root, "sys/class/vtconsole/vtcon0/name", "(S) dummy device\n");
        assert_null(marked(f, NULL, "0000:02:00.0")->console);
        tree_file(f->root, "sys/class/vtconsole/vtcon1/name", "(M) frame buffer device\n");
        assert_string_equal(marked(f, NULL, "0000:02:00.0")->console, "0000:02:00.0 <- fb2 <- console");
        assert_null(marked(f, NULL, "0000:02:00.0")->critical);
        assert_null(marked(f, NULL, "0000:01:00.0")->console);
}

/* The firmware's framebuffer is below the card with its memory, or below no device. */
TEST_WITH(test_framebuffer_of_the_firmware, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, "sys/class/vtconsole/vtcon1/name", "(M) frame buffer device\n");
        add_framebuffer(f, GPU "/simple-framebuffer.0", 0);
        assert_string_equal(marked(f, NULL, "0000:01:00.0")->console, "0000:01:00.0 <- fb0 <- console");
        tree_unlink(f->root, "sys/class/graphics/fb0");
        add_framebuffer(f, "platform/efi-framebuffer.0", 0);
        assert_null(marked(f, NULL, "0000:01:00.0")->console);
}

TEST_WITH(test_bmc, setup, teardown) {
        Fixture *f = *state;

        tree_device(f->root, BMC, "0x1a03", "0x2000", "0x030000");
        tree_device(f->root, IPMI, "0x1a03", "0x2402", "0x0c0701");
        assert_string_equal(critical(f, "0000:05:00.0"), "0000:05:00.0 <- BMC (remote console)");
        assert_string_equal(critical(f, "0000:05:00.1"), "0000:05:00.1 <- BMC (IPMI)");
        assert_null(critical(f, "0000:01:00.0"));
}

/* Matrox also made cards for slots. */
TEST_WITH(test_matrox, setup, teardown) {
        Fixture *f = *state;

        tree_device(f->root, BMC, "0x102b", "0x0536", "0x030000");
        tree_device(f->root, IPMI, "0x102b", "0x2527", "0x030000");
        assert_string_equal(critical(f, "0000:05:00.0"), "0000:05:00.0 <- BMC (remote console)");
        assert_null(critical(f, "0000:05:00.1"));
}
