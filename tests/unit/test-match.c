/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "unit.h"

#include "config/config.h"
#include "sentences.h"
#include "util/strings.h"

TEST(test_problems) {
        static const char *const cases[] = {
                "",
                "vendor",
                "vendor = 10de",
                "device=1",
                "vendor=10de vendor=1002",
                "id=10de:1 vendor=1002",
                "vendor=10dex",
                "vendor=110de",
                "id=10de",
                "id=10de:",
                "id=:1",
                "id=000000010de:1",
                "subsystem=x",
                "class=",
                "class=0x",
                "class=0300000",
                "class=03*",
                "type=gpu",
                "numa=-1",
                "address=01:00.0",
                "address=0000:3B:00.0",
                "address=",
                "pf=0000:3b:00",
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *problem = NULL;
                Match m = { .place.line = 7 };

                assert_int_equal(match_parse(cases[i], &m, &problem), -EINVAL);
                record(cases[i], problem);
                assert_int_equal(m.place.line, 7);
        }
}

TEST(test_device) {
        static const PciDevice device = {
                .address = { 0, 0x3b, 0, 1 },
                .vendor = 0x10de,
                .device = 0x2330,
                .subsystem_vendor = 0x10de,
                .subsystem_device = 0x16c1,
                .class = 0x030200,
                .numa_node = 1,
                .type = PCI_TYPE_PF,
        };
        static const PciDevice vf = {
                .address = { 0, 0x3b, 2, 0 },
                .vendor = 0x15b3,
                .class = 0x020700,
                .numa_node = -1,
                .type = PCI_TYPE_VF,
                .physfn = { 0, 0x3b, 0, 0 },
        };
        static const struct {
                const char *text;
                bool device, vf;
        } cases[] = {
                { "vendor=10de", true, false },
                { "vendor=0x15B3", false, true },
                { "id=10de:2330", true, false },
                { "id=10de:2331", false, false },
                { "subsystem=10de", true, false },
                { "subsystem=10de:16c1", true, false },
                { "subsystem=10de:16c2", false, false },
                { "subsystem=0:0", false, true },
                { "class=03", true, false },
                { "class=0x0302", true, false },
                { "class=030200", true, false },
                { "class=0", true, true },
                { "class=2", false, false }, /* a prefix of six digits, not a number */
                { "type=pf", true, false },
                { "type=vf", false, true },
                { "type=device", false, false },
                { "numa=1", true, false },
                { "numa=0", false, false }, /* unknown is not 0 */
                { "address=0000:3b:*", true, true },
                { "address=0000:3b:00.1", true, false },
                { "address=0000:3b:0[0-1].?", true, false },
                { "address=*", true, true },
                { "pf=0000:3b:00.0", false, true },
                { "pf=*", false, true }, /* VFs only: a device without a PF does not match */
                { "vendor=10de class=02", false, false },
                { "vendor=10de class=03 type=pf numa=1", true, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *problem = NULL;
                Match m;

                assert_int_equal(match_parse(cases[i].text, &m, &problem), 0);
                if (match_device(&m, &device) != cases[i].device || match_device(&m, &vf) != cases[i].vf)
                        fail_msg("'%s' matches wrongly", cases[i].text);
                assert_ptr_equal(match_any(&m, 1, &device), cases[i].device ? &m : NULL);
                match_done(&m);
        }
}

TEST(test_sentences) {
        assert_sentences("match-lines.txt");
}
