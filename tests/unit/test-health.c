/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The health of a device: readings, findings and how long they last, and their sentences. */

#include <errno.h>

#include "unit.h"

#include "host/health.h"
#include "sentences.h"
#include "treefixture.h"

#define GPU_TEXT      "0000:01:00.0"
#define PORT_TEXT     "0000:00:01.0"
#define GPU_DIRECTORY "pci0000:00/" PORT_TEXT "/" GPU_TEXT

static const PciDevice gpu = { .address = { .bus = 1 }, .instance = 7 };

/* Checks the result of health_evaluate(). names: words of the sentence; NULL: the device is healthy. */
static void assert_judged(Health *h, HealthReading r, HealthTrigger why, const char *names) {
        _cleanup_free_ char *text = NULL;

        assert_int_equal(health_evaluate(h, &r, why, &text), names ? 1 : 0);
        if (!names) {
                assert_null(text);
                return;
        }
        if (!strstr(text, names))
                fail_msg("'%s' does not name '%s'", text, names);
        record("health", text);
}

static HealthReading counted(uint64_t fatal) {
        return (HealthReading) { .counted = true, .fatal = fatal };
}

TEST(test_dead) {
        Health h = { .address = gpu.address };
        _cleanup_free_ char *text = NULL;

        assert_judged(&h, (HealthReading) { .error = -EIO }, HEALTH_DUE_EVENT, GPU_TEXT);
        assert_judged(&h, (HealthReading) { .error = -EIO, .cold = true }, HEALTH_DUE_EVENT, "D3cold");
        assert_judged(&h, (HealthReading) { .error = -ENXIO }, HEALTH_DUE_EVENT, GPU_TEXT);
        assert_judged(&h, (HealthReading) { .power_error = true }, HEALTH_DUE_EVENT, GPU_TEXT);
        /* It responds, so it has woken up. */
        assert_judged(&h, (HealthReading) { .cold = true }, HEALTH_DUE_EVENT, NULL);
        assert_int_equal(health_evaluate(&h, &(HealthReading) { .error = -EACCES }, HEALTH_DUE_RESCAN, &text),
                         -ENODATA);
        assert_int_equal(health_evaluate(&h, &(HealthReading) { .error = -ENODEV }, HEALTH_DUE_RESCAN, &text),
                         -ENODATA);
        assert_null(text);
}

TEST(test_fatal) {
        Health h = { .address = gpu.address };

        /* Errors before the first reading do not count. */
        assert_judged(&h, counted(3), HEALTH_DUE_EVENT, NULL);
        assert_judged(&h, counted(3), HEALTH_DUE_EVENT, NULL);
        assert_judged(&h, counted(5), HEALTH_DUE_EVENT, "had 2 fatal");
        assert_judged(&h, counted(5), HEALTH_DUE_EVENT, "had 2 fatal");
        assert_judged(&h, counted(6), HEALTH_DUE_RESCAN, "had 3 fatal");
        /* The errors remain when the device did not respond for a while. */
        assert_judged(&h, (HealthReading) { .error = -EIO }, HEALTH_DUE_RESCAN, "all ones");
        assert_judged(&h, counted(6), HEALTH_DUE_EVENT, "had 3 fatal");
        assert_judged(&h, counted(6), HEALTH_DUE_RESCAN, NULL);
        assert_judged(&h, (HealthReading) { .error = -EIO }, HEALTH_DUE_EVENT, "all ones");
        assert_judged(&h, counted(8), HEALTH_DUE_EVENT, "had 2 fatal");
        assert_judged(&h, counted(8), HEALTH_DUE_RESCAN, NULL);
        assert_judged(&h, counted(6), HEALTH_DUE_EVENT, NULL);
        assert_judged(&h, counted(8), HEALTH_DUE_RESCAN, "had 2 fatal");
        assert_judged(&h, counted(8), HEALTH_DUE_RESCAN, NULL);
        assert_judged(&h, counted(8), HEALTH_DUE_EVENT, NULL);
        /* The count starts again. */
        assert_judged(&h, counted(1), HEALTH_DUE_EVENT, NULL);
        assert_judged(&h, counted(UINT64_MAX), HEALTH_DUE_EVENT, "had 18446744073709551614 fatal");
}

TEST(test_list) {
        HealthList l = { 0 };
        PciDevice dev = gpu;

        for (unsigned i = 16; i-- > 0;) {
                dev.address.bus = (uint8_t) (i * 5 % 16);
                health_list_add(&l, &dev)->fatal_before = dev.address.bus;
        }
        assert_int_equal(l.n, 16);
        for (unsigned i = 0; i < 16; i++) {
                dev.address.bus = (uint8_t) i;
                assert_int_equal(l.devices[i].address.bus, i);
                assert_int_equal(health_list_find(&l, &dev)->fatal_before, i);
                assert_int_equal(health_list_add(&l, &dev)->fatal_before, i);
        }
        dev.instance++;
        assert_null(health_list_find(&l, &dev));
        assert_int_equal(health_list_add(&l, &dev)->fatal_before, 0);
        assert_int_equal(l.n, 16);
        dev.address.bus = 16;
        assert_null(health_list_find(&l, &dev));
        assert_null(health_list_find(NULL, &dev));
        health_list_done(&l);
        assert_null(health_list_find(&l, &dev));
}

TEST(test_parse) {
        uint64_t n = 0;

        assert_int_equal(health_parse_errors("Undefined 0\nDLP 2\nTOTAL_ERR_FATAL 2", &n), 0);
        assert_int_equal(n, 2);
        assert_int_equal(health_parse_errors("TOTAL_ERR_COR 9\n", &n), 0);
        assert_int_equal(n, 9);
        assert_int_equal(health_parse_errors("Undefined 0", &n), -EINVAL);
        assert_int_equal(health_parse_errors("TOTAL_ERR_COR", &n), -EINVAL);
        assert_int_equal(health_parse_errors("TOTAL_ERR_COR x", &n), -EINVAL);
        assert_int_equal(health_parse_errors("", &n), -EINVAL);
        assert_int_equal(n, 9);
}

static int setup(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, "pci0000:00/" PORT_TEXT, "0x8086", "0x2f08", "0x060400");
        tree_device(f->root, GPU_DIRECTORY, "0x2020", "0x2020", "0x030200");
        /* A vendor ID of two spaces. */
        tree_attribute(f->root, GPU_TEXT, "config", "                                                                ");
        tree_attribute(f->root, GPU_TEXT, "aer_dev_fatal", "DLP 1\nTOTAL_ERR_FATAL 1");
        return 0;
}

TEST_WITH(test_read, setup, teardown) {
        const Fixture *f = *state;
        PciDevice vf = gpu;
        HealthReading r;

        health_read(f->fs, &gpu, &r);
        assert_int_equal(r.error, 0);
        assert_false(r.cold || r.power_error);
        assert_true(r.counted);
        assert_int_equal(r.fatal, 1);
        vf.type = PCI_TYPE_VF;
        health_read(f->fs, &vf, &r);
        assert_false(r.counted);
}

TEST_WITH(test_read_less, setup, teardown) {
        const Fixture *f = *state;
        HealthReading r;

        tree_attribute(f->root, GPU_TEXT, "aer_dev_fatal", "nonsense");
        tree_attribute(f->root, GPU_TEXT, "power_state", "error");
        health_read(f->fs, &gpu, &r);
        assert_false(r.counted);
        assert_true(r.power_error);
        tree_attribute(f->root, GPU_TEXT, "power_state", "D3cold");
        tree_attribute(f->root, GPU_TEXT, "vendor", "0x10de");
        health_read(f->fs, &gpu, &r);
        assert_int_equal(r.error, -ENXIO);
        assert_true(r.cold);
        health_read(f->fs, &(PciDevice) { .address = { .bus = 9 } }, &r);
        assert_int_equal(r.error, -ENOENT);
}

TEST(test_sentences) {
        assert_sentences("health.txt");
}
