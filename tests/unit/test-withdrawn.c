/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The devices that a configuration with broken lines withdraws. */

#include <stdio.h>

#include "unit.h"

#include "config/withdrawn.h"
#include "policyfixture.h"

#define GOOD   "[Pool gpu]\nMatch=class=0302\n"
#define BROKEN "[Pool gpu]\nMatch=clazz=0302\n"

typedef struct Loaded {
        Config *config;
        Policy *policy;
} Loaded;

static Loaded load(const TestNode *t, const char *text) {
        Loaded l = { 0 };

        assert_int_equal(config_parse("test.conf", text, strlen(text), &l.config), 0);
        assert_int_equal(policy_new(l.config, t->inventory, &l.policy), 0);
        return l;
}

static void unload(Loaded *l) {
        policy_free(l->policy);
        config_free(l->config);
}

/* Loads the configurations in turn, and compares the number of withdrawn devices after each. */
static void expect(const TestNode *t, const char *const *texts, const size_t *counts, size_t n) {
        WithdrawnList list = { 0 };
        Loaded before = load(t, "");

        for (size_t i = 0; i < n; i++) {
                Loaded now = load(t, texts[i]);

                assert_int_equal(withdrawn_update(&list, before.policy, now.policy), 0);
                if (list.n != counts[i])
                        fail_msg("configuration %zu withdraws %zu devices, not %zu", i, list.n, counts[i]);
                if (list.n > 0) {
                        assert_true(pci_address_equal(list.devices[0].address, address_of(GPU)));
                        assert_string_equal(list.devices[0].pool, "gpu");
                }
                unload(&before);
                before = now;
        }
        unload(&before);
        withdrawn_done(&list);
}

#define EXPECT(t, texts, counts) expect((t), (texts), (counts), ELEMENTSOF(counts))

TEST(test_broken_match) {
        _cleanup_node_ TestNode *t = gpu_with_audio();

        node_ready(t, "");
        EXPECT(t, ((const char *[]) { GOOD, BROKEN, BROKEN, GOOD, "" }), ((const size_t[]) { 0, 1, 1, 0, 0 }));
}

TEST(test_perhaps_excluded) {
        _cleanup_node_ TestNode *t = gpu_with_audio();

        node_ready(t, "");
        EXPECT(t, ((const char *[]) { GOOD, GOOD "[Exclude]\nMatch=clazz=0302\n", GOOD }),
               ((const size_t[]) { 0, 1, 0 }));
}

TEST(test_taken_out_without_an_error) {
        _cleanup_node_ TestNode *t = gpu_with_audio();

        node_ready(t, "");
        EXPECT(t, ((const char *[]) { GOOD, "", "[Daemon]\nColour=red\n", GOOD "[Daemon]\nColour=red\n" }),
               ((const size_t[]) { 0, 0, 0, 0 }));
}

TEST(test_another_pool) {
        _cleanup_node_ TestNode *t = gpu_with_audio();

        node_ready(t, "");
        EXPECT(t, ((const char *[]) { GOOD, BROKEN "[Pool other]\nMatch=class=0302\n" }), ((const size_t[]) { 0, 0 }));
}
