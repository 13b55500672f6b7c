/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "unit.h"

#include "model/vfattr.h"
#include "sentences.h"
#include "util/strings.h"

static void assert_round_trip(const char *text, const char *formatted) {
        _cleanup_free_ char *problem = NULL, *again = NULL;
        VfAttributes v;

        assert_int_equal(vf_attributes_parse_wanted(text, &v, &problem), 0);
        again = vf_attributes_format(&v);
        assert_string_equal(again, formatted);
}

TEST(test_text) {
        assert_round_trip("", "");
        assert_round_trip(" , ", "");
        assert_round_trip("vlan=100,mac=02:AB:00:00:00:01", "mac=02:ab:00:00:00:01 vlan=100");
        assert_round_trip("qos=7 vlan=1 protocol=802.1ad trust=on spoof-check=off min-rate=1 max-rate=0 link=auto",
                          "vlan=1 qos=7 protocol=802.1ad trust=on spoof-check=off min-rate=1 max-rate=0 link=auto");
        assert_round_trip("port-guid=02:00:00:00:00:00:00:02 node-guid=fe:00:00:00:00:00:00:01 pkey=8001 link=down",
                          "link=down node-guid=fe:00:00:00:00:00:00:01 port-guid=02:00:00:00:00:00:00:02 pkey=0x8001");
        assert_round_trip("second-port-pkey=8002,second-port-guid=02:00:00:00:00:00:00:03",
                          "second-port-guid=02:00:00:00:00:00:00:03 second-port-pkey=0x8002");
}

static void assert_problem(const char *text) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes v = { .set = 42 };

        assert_int_equal(vf_attributes_parse_wanted(text, &v, &problem), -EINVAL);
        assert_non_null(problem);
        record(text, problem);
        assert_int_equal(v.set, 42);
}

TEST(test_problems) {
        static const char *const table[] = {
                "vlan",
                "colour=red",
                "vlan=1 vlan=1",
                "vlan=4095",
                "vlan=-1",
                "vlan=",
                "vlan=1 qos=8",
                "qos=3",
                "protocol=802.1ad vlan=0",
                "trust=yes",
                "link=enable",
                "mac=02:00:00:00:00:1",
                "mac=02-00-00-00-00-01",
                "mac=02:00:00:00:00:0x",
                "mac=02:00:00:00:00:00:01",
                "mac=00:00:00:00:00:00",
                "mac=01:00:5e:00:00:01",
                "node-guid=00:00:00:00:00:00:00:00",
                "port-guid=ff:ff:ff:ff:ff:ff:ff:ff",
                "second-port-guid=00:00:00:00:00:00:00:00",
                "min-rate=200 max-rate=100",
                "min-rate=4294967296",
                "pkey=0x10000",
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                assert_problem(table[i]);
}

/* The attributes that a PF reports are not those that may be requested. */
TEST(test_facts) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes v;

        assert_int_equal(
                vf_attributes_parse("mac=00:00:00:00:00:00 qos=0 node-guid=ff:ff:ff:ff:ff:ff:ff:ff", &v, &problem), 0);
        assert_int_equal(v.value[VF_MAC], 0);
        assert_true(vf_attributes_have(&v, VF_MAC));
        assert_false(vf_attributes_have(&v, VF_VLAN));
        assert_true(v.value[VF_NODE_GUID] == UINT64_MAX);
}

TEST(test_sets) {
        VfAttributes a = { 0 }, b = { 0 };

        vf_attributes_put(&a, VF_VLAN, 100);
        vf_attributes_put(&a, VF_TRUST, 1);
        assert_int_equal(vf_attributes_differ(&a, &b), VF_ATTRIBUTE_BIT(VF_VLAN) | VF_ATTRIBUTE_BIT(VF_TRUST));
        assert_int_equal(vf_attributes_differ(&b, &a), 0);
        vf_attributes_put(&b, VF_VLAN, 200);
        vf_attributes_merge(&a, &b);
        assert_int_equal(a.value[VF_VLAN], 200);
        assert_int_equal(a.value[VF_TRUST], 1);
        vf_attributes_keep(&a, VF_ATTRIBUTE_BIT(VF_VLAN));
        assert_int_equal(vf_attributes_differ(&a, &b), 0);
        assert_false(vf_attributes_have(&a, VF_TRUST));
}

TEST(test_sentences) {
        assert_sentences("vf-attributes.txt");
}
