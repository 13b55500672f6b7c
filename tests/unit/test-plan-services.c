/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Slots of remote services: from the fewest endpoints, in the order of the configuration, and never more than are
 * free. */

#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"

#define PF    "0000:81:00.0"
#define CASES 3000U

static TestNode *make_node(const char *services) {
        TestNode *t = node_new();
        _cleanup_free_ char *text =
                string_format("[Pool gpu]\nMatch=class=0302\n[Pool ib-vf]\nMatch=type=vf\n%s", services);

        node_numa(t, 0, 0, 8, 1, 16 * GIB);
        node_nic(t, "pci0000:80/0000:80:01.0/" PF, 0, 1)->total_vfs = 8;
        node_vf(t, "pci0000:80/0000:80:01.0/0000:81:00.1", PF, 0, 2);
        node_vf(t, "pci0000:80/0000:80:01.0/0000:81:00.2", PF, 0, 3);
        node_gpu(t, "pci0000:00/0000:00:01.0/0000:01:00.0", 0, 20);
        node_ready(t, text);
        return t;
}

/* Formats the slots of a plan: "a:1=2 b:1=1". */
static char *slots_of(const Allocation *a) {
        char *text = NULL;

        for (size_t i = 0; i < a->n_services; i++)
                assert_int_equal(string_append(&text, " ", "%s=%u", a->services[i].endpoint, a->services[i].slots), 0);
        return text;
}

static void assert_slots(TestNode *t, const char *pools, const char *expected) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_free_ char *got = NULL;

        assert_int_equal(node_plan(t, ASK(.pools = pools), &plan, &why), VERDICT_NONE);
        got = slots_of(plan->allocation);
        assert_string_equal(got, expected);
}

/* All words must be in the message. */
static void assert_refused(TestNode *t, const char *pools, Verdict expected, const char *words) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_free_ char *copy = strdup(words);
        char *at = NULL;

        assert_int_equal(node_plan(t, ASK(.pools = pools), &plan, &why), expected);
        assert_true(why.message && why.remedy);
        for (char *word = strtok_r(copy, " ", &at); word; word = strtok_r(NULL, " ", &at))
                if (!strstr(why.message, word))
                        fail_msg("'%s' does not name %s", why.message, word);
}

TEST(test_fewest_endpoints_first_in_order) {
        _cleanup_node_ TestNode *t = make_node("[Service s]\nKind=lupine\nEndpoint=a:1 slots=2\nEndpoint=b:1 slots=0\n"
                                               "Endpoint=c:1 slots=4\nEndpoint=d:1 slots=4\n");

        assert_slots(t, "s=1", "a:1=1");
        assert_slots(t, "s=2", "a:1=2");
        assert_slots(t, "s=3", "c:1=3");
        assert_slots(t, "s=5", "a:1=2 c:1=3");
        assert_slots(t, "s=7", "c:1=4 d:1=3");
        assert_slots(t, "s=10", "a:1=2 c:1=4 d:1=4");
        assert_refused(t, "s=11", VERDICT_INSUFFICIENT_SLOTS, "11 10");
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "s=3"), NULL), VERDICT_NONE);
        assert_slots(t, "s=3", "d:1=3");
        assert_slots(t, "s=5", "a:1=2 d:1=3");
        assert_refused(t, "s=8", VERDICT_INSUFFICIENT_SLOTS, "8 7 'vm1' c:1");
}

TEST(test_one_endpoint_for_one_client) {
        _cleanup_node_ TestNode *t =
                make_node("[Service s]\nKind=gvirtus\nEndpoint=a:1 slots=2\nEndpoint=b:1 slots=3\n");

        assert_slots(t, "s=3", "b:1=3");
        assert_refused(t, "s=4", VERDICT_INSUFFICIENT_SLOTS, "4 3");
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "s=2"), NULL), VERDICT_NONE);
        assert_slots(t, "s=3", "b:1=3");
}

TEST(test_two_services_of_one_kind) {
        _cleanup_node_ TestNode *t = make_node("[Service s]\nKind=gvirtus\nEndpoint=a:1 slots=2\n[Service t]\n"
                                               "Kind=gvirtus\nEndpoint=b:1 slots=3\n[Service u]\nKind=rcuda\n"
                                               "Endpoint=c:1 slots=2\n[Service v]\nKind=rcuda\nEndpoint=d:1 slots=3\n");

        assert_refused(t, "s=1 t=1", VERDICT_INVALID_REQUEST, "'s' 't' gvirtus");
        assert_slots(t, "s=1 u=1 v=1", "a:1=1 c:1=1 d:1=1");
}

TEST(test_via_brings_a_vf) {
        _cleanup_node_ TestNode *t = make_node("[Service s]\nKind=rcuda\nVia=ib-vf\nEndpoint=a:1 slots=9\n");
        _cleanup_(cleanup_plan_free) Plan *one = NULL, *two = NULL;

        assert_int_equal(node_plan(t, ASK(.pools = "s=2 gpu=1"), &one, NULL), VERDICT_NONE);
        assert_int_equal(one->allocation->n_devices, 2);
        assert_string_equal(one->allocation->devices[1].slot, "ib-vf0");
        assert_int_equal(node_plan(t, ASK(.pools = "s=2 ib-vf=2"), &two, NULL), VERDICT_NONE);
        assert_int_equal(two->allocation->n_devices, 2);
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "ib-vf=2"), NULL), VERDICT_NONE);
        assert_refused(t, "s=1", VERDICT_INSUFFICIENT_DEVICES, "'ib-vf'");
}

/* No request can have the device of Via=, so the refusal names the service. */
TEST(test_via_that_gives_nothing) {
        _cleanup_node_ TestNode *t = make_node("[Service s]\nKind=rcuda\nVia=ib-vf\nEndpoint=a:1 slots=9\n"
                                               "[Service t]\nKind=lupine\nEndpoint=b:1 slots=2\n");

        t->config->pools[1].scheduler = POOL_SCHEDULER_NOVA;
        assert_int_equal(string_copy(&t->config->services[1].via, "none"), 0);
        assert_refused(t, "s=1", VERDICT_SCHEDULED, "'s' 'ib-vf'");
        assert_refused(t, "t=1", VERDICT_NO_SUCH_POOL, "'t' 'none'");
        assert_refused(t, "none=1", VERDICT_NO_SUCH_POOL, "'none'");
}

TEST(test_refused) {
        _cleanup_node_ TestNode *t = make_node("[Service s]\nKind=rcuda\nEndpoint=a:1 slots=99\n");
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_request_ Request r = { 0 };

        assert_refused(t, "s=0", VERDICT_INVALID_REQUEST, "'s'");
        assert_refused(t, "s=64 gpu=1", VERDICT_INVALID_REQUEST, "65 64");
        ask_request(ASK(.pools = "s=1", .proximity = "s:gpu=node"), &r);
        assert_int_equal(plan_make(&t->context, &r, &plan, NULL), VERDICT_INVALID_REQUEST);
        request_done(&r);
        ask_request(ASK(.pools = "s=1"), &r);
        assert_int_equal(request_add_device(&r, "s", address_of("0000:01:00.0")), 0);
        assert_int_equal(plan_make(&t->context, &r, &plan, NULL), VERDICT_INVALID_REQUEST);
        request_done(&r);
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "gpu=1"), NULL), VERDICT_NONE);
        ask_request(ASK(.pools = "s=1"), &r);
        assert_int_equal(plan_attach(&t->context, ledger_find(t->ledger, "vm1"), &r, &plan, NULL),
                         VERDICT_NOT_SUPPORTED);
}

/* The refusal says why there are no slots at all, and suggests no smaller number. */
TEST(test_service_without_slots) {
        _cleanup_node_ TestNode *t = make_node("[Service s]\nKind=rcuda\nEndpoint=a:1 slots=0\n");
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal why = { 0 };

        assert_refused(t, "s=1", VERDICT_INSUFFICIENT_SLOTS, "'s' a:1 out service: 0 slots.");
        assert_int_equal(node_plan(t, ASK(.pools = "s=1"), &plan, &why), VERDICT_INSUFFICIENT_SLOTS);
        assert_non_null(strstr(why.remedy, "Endpoint="));
        t->config->services[0].n_endpoints = 0;
        assert_refused(t, "s=1", VERDICT_INSUFFICIENT_SLOTS, "'s' endpoint.");
}

/* A down endpoint gives no slot and its allocations keep theirs. One in an unknown state gives slots. */
TEST(test_endpoint_is_down) {
        _cleanup_node_ TestNode *t = make_node("[Service s]\nKind=lupine\nEndpoint=a:1 slots=4\nEndpoint=b:1 "
                                               "slots=2\nEndpoint=c:1 slots=0\n");
        EndpointStatusTable table = { 0 };

        t->context.endpoints = &table;
        assert_int_equal(endpoint_status_add(&table, "a:1"), 0);
        assert_int_equal(endpoint_status_add(&table, "b:1"), 0);
        assert_int_equal(endpoint_status_add(&table, "c:1"), 0);
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "s=1"), NULL), VERDICT_NONE);
        assert_true(endpoint_status_take(&table.endpoints[0], ENDPOINT_REFUSES));
        assert_true(endpoint_status_take(&table.endpoints[2], ENDPOINT_REFUSES));
        assert_slots(t, "s=2", "b:1=2");
        assert_refused(t, "s=3", VERDICT_INSUFFICIENT_SLOTS, "3 2 6 'vm1' a:1 refuses");
        assert_int_equal(ledger_slots_free(t->ledger, t->config, &table, "a:1"), 0);
        assert_int_equal(ledger_slots_free(t->ledger, t->config, NULL, "a:1"), 3);
        assert_int_equal(ledger_slots(t->ledger, "a:1"), 1);
        assert_true(endpoint_status_take(&table.endpoints[0], ENDPOINT_ACCEPTS));
        assert_slots(t, "s=3", "a:1=3");
        endpoint_status_table_done(&table);
}

/* Returns the right choice by trying each subset of endpoints: the smallest, and then the first in order. */
static unsigned best_set(const unsigned *n_free, unsigned n, unsigned wanted) {
        unsigned best = 0;

        for (unsigned set = 1; set < 1U << n; set++) {
                unsigned sum = 0, size = (unsigned) __builtin_popcount(set), have = (unsigned) __builtin_popcount(best);

                for (unsigned i = 0; i < n; i++)
                        sum += set >> i & 1 ? n_free[i] : 0;
                /* Of two subsets of one size, the one with the first differing endpoint. */
                if (sum >= wanted && (!best || size < have || (size == have && set >> __builtin_ctz(set ^ best) & 1)))
                        best = set;
        }
        return best;
}

TEST(test_equals_exhaustive_search) {
        uint64_t seed = 88172645463325252;

        for (unsigned k = 0; k < CASES; k++) {
                _cleanup_free_ char *text = strdup("[Service s]\nKind=lupine\n"), *pools = NULL;
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;
                _cleanup_node_ TestNode *t = NULL;
                unsigned n, n_free[6], wanted, set, taken = 0;

                seed = seed * 6364136223846793005 + 1442695040888963407;
                n = 1 + (unsigned) (seed >> 33) % 6;
                wanted = 1 + (unsigned) (seed >> 40) % 12;
                for (unsigned i = 0; i < n; i++) {
                        n_free[i] = (unsigned) (seed >> (8 + 5 * i)) % 6;
                        assert_int_equal(string_append(&text, "", "Endpoint=%c:1 slots=%u\n", 'a' + i, n_free[i]), 0);
                }
                t = make_node(text);
                assert_int_equal(string_replace(&pools, "s=%u", wanted), 0);
                set = best_set(n_free, n, wanted);
                assert_int_equal(node_plan(t, ASK(.pools = pools), &plan, NULL),
                                 set ? VERDICT_NONE : VERDICT_INSUFFICIENT_SLOTS);
                for (size_t i = 0; plan && i < plan->allocation->n_services; i++) {
                        const AllocationService *s = &plan->allocation->services[i];
                        unsigned index = (unsigned) (s->endpoint[0] - 'a');

                        assert_true(set >> index & 1 && s->slots > 0 && s->slots <= n_free[index]);
                        set &= ~(1U << index);
                        taken += s->slots;
                }
                assert_true(!plan || (set == 0 && taken == wanted));
        }
}
