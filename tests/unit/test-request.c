/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <stdio.h>

#include "unit.h"

#include "plan/request.h"
#include "sentences.h"

TEST(test_numa_policy_names) {
        for (int p = 0; p < _NUMA_POLICY_MAX; p++)
                assert_int_equal(numa_policy_from_string(numa_policy_to_string((NumaPolicy) p)), p);
        assert_null(numa_policy_to_string(_NUMA_POLICY_MAX));
        assert_null(numa_policy_to_string(_NUMA_POLICY_INVALID));
        assert_int_equal(numa_policy_from_string("strict"), _NUMA_POLICY_INVALID);
        assert_int_equal(numa_policy_from_string(NULL), _NUMA_POLICY_INVALID);
}

TEST(test_add_pool) {
        _cleanup_request_ Request r;
        char name[] = "pool-a";

        request_init(&r);
        assert_int_equal(r.numa, NUMA_POLICY_LEGACY);
        assert_int_equal(r.proximity, PROXIMITY_ANY);

        assert_int_equal(request_add_pool(&r, name, 2), 0);
        assert_int_equal(request_add_pool(&r, name, 1), -EEXIST);
        for (name[5] = 'b'; r.n_pools < REQUEST_POOLS_MAX; name[5]++)
                assert_int_equal(request_add_pool(&r, name, 1), 0);
        assert_int_equal(request_add_pool(&r, name, 1), -E2BIG);
        assert_string_equal(r.pools[0].pool, "pool-a"); /* a copy, in the caller's order */
        assert_int_equal(r.pools[0].count, 2);
        assert_int_equal(request_check(&r, NULL), VERDICT_NONE);
}

#define GIB (UINT64_C(1) << 30)

TEST(test_check) {
        static const struct {
                const char *pool;
                unsigned count, cpus, cells;
                uint64_t memory, page_size;
                bool refused;
                unsigned nodes; /* number of host nodes that the request names */
        } cases[] = {
                { "gpu", 1, 8, 2, 20 * GIB, GIB, false },
                { "gpu", REQUEST_DEVICES_MAX, 0, 0, 0, 0, false },
                { NULL, 0, ALLOCATION_CPUS_MAX, ALLOCATION_CELLS_MAX, ALLOCATION_MEMORY_MAX, 0, false },
                { NULL, 0, 1, 1, 4096, 4096, false },
                { NULL, 0, 0, 0, 0, 0, true },
                { "gpu", 0, 8, 0, GIB, 0, true },
                { "gpu", REQUEST_DEVICES_MAX + 1, 0, 0, 0, 0, true },
                { "Gpu\n", 1, 0, 0, 0, 0, true },
                { NULL, 0, ALLOCATION_CPUS_MAX + 1, 0, GIB, 0, true },
                { NULL, 0, 8, 0, 0, 0, true },
                { "gpu", 1, 0, 0, GIB, 0, true },
                { NULL, 0, 8, 0, ALLOCATION_MEMORY_MAX + 4096, 0, true },
                { NULL, 0, 8, 0, GIB, 3 << 20, true },
                { NULL, 0, 8, 0, GIB, 2048, true },
                { NULL, 0, 8, 0, GIB + 4096, 2 << 20, true },
                { NULL, 0, 8, 0, GIB + 1, 0, true },
                { NULL, 0, 8, 0, 20, 0, true },
                { NULL, 0, 64, ALLOCATION_CELLS_MAX + 1, GIB, 0, true },
                { NULL, 0, 2, 3, GIB, 0, true },
                { NULL, 0, 2, 2, 4 << 20, 2 << 20, false },
                { NULL, 0, 2, 2, 2 << 20, 2 << 20, true },
                { NULL, 0, 2, 2, 4096, 0, true },
                { "gpu", 1, 0, 0, 0, 0, false, 2 },
                { NULL, 0, 2, 0, 4 << 20, 2 << 20, false, 2 },
                { NULL, 0, 1, 0, GIB, 0, true, 2 },
                { NULL, 0, 8, 0, 2 << 20, 2 << 20, true, 2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_refusal_ Refusal refusal = { 0 };
                _cleanup_request_ Request r;
                Verdict v;

                request_init(&r);
                if (cases[i].pool)
                        assert_int_equal(request_add_pool(&r, cases[i].pool, cases[i].count), 0);
                for (unsigned node = 0; node < cases[i].nodes; node++)
                        assert_int_equal(request_add_host_node(&r, (int) node), 0);
                r.cpus = cases[i].cpus;
                r.cells = cases[i].cells;
                r.memory = cases[i].memory;
                r.page_size = cases[i].page_size;

                v = request_check(&r, &refusal);
                assert_int_equal(v, cases[i].refused ? VERDICT_INVALID_REQUEST : VERDICT_NONE);
                assert_int_equal(refusal.verdict, v);
                if (cases[i].refused)
                        record("request", refusal.message);
        }
}

/* The sum of the counts must not overflow. */
TEST(test_check_huge_counts) {
        _cleanup_request_ Request r;

        request_init(&r);
        assert_int_equal(request_add_pool(&r, "a", UINT32_MAX), 0);
        assert_int_equal(request_add_pool(&r, "b", 2), 0);
        assert_int_equal(request_check(&r, NULL), VERDICT_INVALID_REQUEST);
}

TEST(test_slot_name) {
        char slot[SLOT_NAME_MAX], pool[64] = { 0 };

        assert_string_equal(slot_name("gpu", 10, slot), "gpu10");
        assert_string_equal(slot_name("gpu1", 0, slot), "gpu1_0");
        memset(pool, '7', 63);
        assert_int_equal(strlen(slot_name(pool, UINT32_MAX, slot)), 74);
}

static int give(Request *r, const char *slot, const char *text) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes v;

        assert_int_equal(vf_attributes_parse_wanted(text, &v, &problem), 0);
        return request_add_attributes(r, slot, &v);
}

TEST(test_add_attributes) {
        _cleanup_request_ Request r;
        char slot[] = "vf00";

        request_init(&r);
        assert_int_equal(give(&r, slot, "vlan=1"), 0);
        assert_int_equal(give(&r, slot, "trust=on"), -EEXIST);
        while (r.n_attributes < REQUEST_DEVICES_MAX) {
                (void) snprintf(slot, sizeof(slot), "vf%02zu", r.n_attributes);
                assert_int_equal(give(&r, slot, "vlan=1"), 0);
        }
        assert_int_equal(give(&r, "more", "vlan=1"), -E2BIG);
        assert_string_equal(r.attributes[0].slot, "vf00");
}

#define MAC1  "mac=02:00:00:00:00:01"
#define GUID1 "=02:00:00:00:00:00:00:01"

/* For the request vf=2 a1=1 a=20 one=1. */
TEST(test_check_attributes) {
        static const struct {
                const char *first, *attributes, *second, *others;
                bool refused;
        } cases[] = {
                { "vf0", MAC1, "vf1", "mac=02:00:00:00:00:02", false },
                { "vf0", MAC1, "vf", "vlan=3", false },
                { "a1_0", MAC1, "a19", "vlan=1", false },
                { "one", MAC1 " trust=on", "vf", "trust=on", false },
                { "one", MAC1, "one0", MAC1, false }, /* the same slot */
                { "vf0", "", "vf1", "", false },
                { "vf0", "node-guid" GUID1 " port-guid" GUID1, "vf1", MAC1, false },
                { "vf2", "vlan=1", "vf0", "vlan=1", true },
                { "a10", "vlan=1", "vf00", "vlan=1", true },
                { "vf-0", "vlan=1", "vf0", "vlan=1", true },
                { "\n", "vlan=1", "vf0", "vlan=1", true },
                { "vf", MAC1, "a0", "vlan=1", true },
                { "vf0", MAC1, "vf1", MAC1, true },
                { "one", MAC1, "vf1", MAC1, true },
                { "vf0", "node-guid" GUID1, "vf1", "port-guid" GUID1, true },
                { "vf0", "port-guid" GUID1, "vf1", "second-port-guid" GUID1, true },
                { "vf0", "port-guid" GUID1, "a3", "port-guid" GUID1, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_refusal_ Refusal refusal = { 0 };
                _cleanup_request_ Request r;
                Verdict v;

                request_init(&r);
                assert_int_equal(request_add_pool(&r, "vf", 2), 0);
                assert_int_equal(request_add_pool(&r, "a1", 1), 0);
                assert_int_equal(request_add_pool(&r, "a", 20), 0);
                assert_int_equal(request_add_pool(&r, "one", 1), 0);
                assert_int_equal(give(&r, cases[i].first, cases[i].attributes), 0);
                assert_int_equal(give(&r, cases[i].second, cases[i].others), 0);
                v = request_check(&r, &refusal);
                if (v != (cases[i].refused ? VERDICT_INVALID_REQUEST : VERDICT_NONE))
                        fail_msg("case %zu: %s", i, refusal.message);
                if (cases[i].refused)
                        record(cases[i].first, refusal.message);
        }
}

/* A pool with a digit at the end has slots such as vf0_0. A pool named like a slot of another pool is ambiguous. */
TEST(test_check_ambiguous) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_request_ Request r;

        request_init(&r);
        assert_int_equal(request_add_pool(&r, "vf", 1), 0);
        assert_int_equal(request_add_pool(&r, "vf0", 1), 0);
        assert_int_equal(give(&r, "vf0_0", "vlan=1"), 0);
        assert_int_equal(request_check(&r, NULL), VERDICT_NONE);
        assert_int_equal(give(&r, "vf0", "vlan=1"), 0);
        assert_int_equal(request_check(&r, &refusal), VERDICT_INVALID_REQUEST);
        assert_non_null(strstr(refusal.message, "'vf0'"));
        record("a pool named as a slot", refusal.message);
}

TEST(test_no_slots) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_request_ Request r;

        request_init(&r);
        r.cpus = 1;
        r.memory = GIB;
        assert_int_equal(give(&r, "vf0", "vlan=1"), 0);
        assert_int_equal(request_check(&r, &refusal), VERDICT_INVALID_REQUEST);
        assert_non_null(strstr(refusal.message, "are: none."));
}

TEST(test_allocation_name) {
        static const char *const bad[] = { "", ".", "..", "-a", "_a", "a/b", "a b", "a\n", "\xc3\xa9" };
        char name[ALLOCATION_NAME_MAX + 2] = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_false(allocation_name_is_valid(bad[i]));
        assert_true(allocation_name_is_valid("vm7"));
        assert_true(allocation_name_is_valid("7_Vm.x-y"));

        memset(name, 'a', ALLOCATION_NAME_MAX);
        assert_true(allocation_name_is_valid(name));
        name[ALLOCATION_NAME_MAX] = 'a';
        assert_false(allocation_name_is_valid(name));
}

TEST(test_sentences) {
        assert_sentences("requests.txt");
}
