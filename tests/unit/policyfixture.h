/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Fixtures for the tests of policy: a GPU with other functions, and its verdict. */

#include "nodefixture.h"

#define GPU   "0000:01:00.0"
#define AUDIO "0000:01:00.1"
#define OTHER "0000:02:00.0"

/* A GPU with its audio function in one group behind a root port, and a device of another card in the same group. */
static inline TestNode *gpu_with_audio(void) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 1, 64 * GIB);
        node_bridge(t, "pci0000:00/0000:00:01.0", 0, 1);
        node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, 0, 1);
        assert_int_equal(
                string_copy(&node_device(t, "pci0000:00/0000:00:01.0/" AUDIO, 0x040300, 0, 1)->driver, "snd_hda_intel"),
                0);
        return t;
}

static inline PciDevice *add_other(TestNode *t, const char *driver) {
        PciDevice *dev = node_device(t, "pci0000:00/0000:00:02.0/" OTHER, 0x040300, 0, 1);

        assert_int_equal(string_copy(&dev->driver, driver), 0);
        return dev;
}

static inline void assert_verdict(const TestNode *t, const char *address, Verdict expected) {
        Verdict v = policy_check(t->policy, node_find(t, address), NULL);

        if (v != expected)
                fail_msg("%s: %s, not %s", address, verdict_to_string(v), verdict_to_string(expected));
        assert_int_equal(policy_verdict(t->policy, node_find(t, address)), expected);
}
