/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Shared memory: valid requests, owners, places, and that it is counted once. */

#include <stdio.h>

#include "unit.h"

#include "ledger/ledger-file.h"
#include "nodefixture.h"
#include "sentences.h"

#define MIB (1ULL << 20)

/* Two nodes with 4 CPUs and 8 GiB; the second one has 1 GiB of 2 MiB pages. */
static TestNode *make_node(void) {
        TestNode *t = node_new();

        (void) node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_hugepages(node_numa(t, 1, 4, 4, 1, 9 * GIB), 2 * MIB, 512, 512);
        node_ready(t, "ReserveMemory=0\n");
        return t;
}

static void ask(Request *r, unsigned cpus, uint64_t memory) {
        request_init(r);
        r->cpus = cpus;
        r->memory = memory;
}

static void want(Request *r, const char *name, uint64_t size, uint64_t page_size) {
        assert_int_equal(request_add_region(r, name, size, page_size, NULL), VERDICT_NONE);
}

static Verdict allocate(TestNode *t, const char *name, uint32_t owner, const Request *r, Refusal *why) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        const HostView *view = &t->context;
        Verdict v = plan_make(view, r, &plan, why);

        if (v != VERDICT_NONE)
                return v;
        assert_int_equal(string_copy(&plan->allocation->name, name), 0);
        plan->allocation->owner = owner;
        v = ledger_claim(t->ledger, t->inventory, t->config, plan->allocation, why);
        if (v == VERDICT_NONE)
                plan->allocation = NULL;
        assert_true(ledger_verify(t->ledger, t->inventory, t->config));
        return v;
}

/* Allocates one region, with a guest of one CPU and 1 GiB. */
static Verdict share(TestNode *t, const char *name, uint32_t owner, const char *region, uint64_t size,
                     uint64_t page_size, Refusal *why) {
        _cleanup_request_ Request r;

        ask(&r, 1, GIB);
        want(&r, region, size, page_size);
        return allocate(t, name, owner, &r, why);
}

static void release(TestNode *t, const char *name) {
        allocation_free(ledger_remove(t->ledger, name));
        assert_true(ledger_verify(t->ledger, t->inventory, t->config));
}

TEST(test_what_may_be_asked_for) {
        static const struct {
                uint64_t size, page_size;
                bool refused;
        } cases[] = {
                { MIB, 0, false },
                { 256 * MIB, 0, false },
                { REGION_SIZE_MAX, GIB, false },
                { 2 * MIB, 2 * MIB, false },
                { MIB, 64 << 10, false },
                { 0, 0, true },
                { 3 * MIB, 0, true },
                { UINT64_MAX, 0, true },
                { MIB / 2, 0, true },
                { 2 * REGION_SIZE_MAX, 0, true },
                { MIB, 2 * MIB, true },
                { 8 * MIB, 3 * MIB, true },
                { 8 * MIB, 4096, true },
                { 8 * MIB, UINT64_MAX, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_refusal_ Refusal why = { 0 };
                _cleanup_request_ Request r;

                ask(&r, 1, GIB);
                want(&r, "r", cases[i].size, cases[i].page_size);
                assert_int_equal(request_check(&r, &why), cases[i].refused ? VERDICT_INVALID_REQUEST : VERDICT_NONE);
                if (cases[i].refused)
                        record("shared memory", why.message);
        }
}

TEST(test_names) {
        static const char *const bad[] = { "", ".", "..", "a/b", "/a", "-a", "a b", "a\n", "%n", "\xff" };
        char longest[REGION_NAME_MAX + 2], file[REGION_FILE_MAX];
        _cleanup_request_ Request r;
        Region region = { 0 };

        ask(&r, 1, GIB);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(request_add_region(&r, bad[i], MIB, 0, NULL), VERDICT_INVALID_REQUEST);
        memset(longest, 'a', sizeof(longest));
        longest[REGION_NAME_MAX + 1] = '\0';
        assert_int_equal(region_name(&region, longest, NULL), VERDICT_INVALID_REQUEST);
        longest[REGION_NAME_MAX] = '\0';
        assert_int_equal(region_name(&region, longest, NULL), VERDICT_NONE);
        assert_int_equal(strlen(region_file(&region, file)), REGION_FILE_MAX - 1);
        for (unsigned i = 0; i < ALLOCATION_REGIONS_MAX; i++) {
                want(&r, &longest[i], MIB, 0);
                assert_int_equal(request_add_region(&r, &longest[i], MIB, 0, NULL), VERDICT_INVALID_REQUEST);
        }
        assert_int_equal(request_add_region(&r, longest, MIB, 0, NULL), VERDICT_INVALID_REQUEST);
        assert_int_equal(request_add_region(&r, "other", MIB, 0, NULL), VERDICT_INVALID_REQUEST);
        assert_int_equal(request_check(&r, NULL), VERDICT_NONE);
        r.cpus = 0;
        r.memory = 0;
        assert_int_equal(request_add_pool(&r, "gpu", 1), 0);
        assert_int_equal(request_check(&r, NULL), VERDICT_INVALID_REQUEST);
}

TEST(test_server) {
        static const Region r = { .name = "mpi" };
        static const char *const cases[][2] = { { "/run/%n", "/run/mpi" },
                                                { "/run/ivshmem-%n.sock", "/run/ivshmem-mpi.sock" },
                                                { "%n/%n", "mpi/%n" } };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *path = region_server(&r, cases[i][0]);

                assert_string_equal(path, cases[i][1]);
        }
}

TEST(test_one_owner) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_refusal_ Refusal why = { 0 };
        const SharedRegion *s;

        assert_int_equal(share(t, "b", 5, "mpi", 256 * MIB, 0, NULL), VERDICT_NONE);
        assert_int_equal(share(t, "c", 6, "mpi", 256 * MIB, 0, &why), VERDICT_SHARED_MEMORY_TAKEN);
        assert_says(&why, "uid 5");
        assert_int_equal(share(t, "c", 5, "mpi", 512 * MIB, 0, NULL), VERDICT_SHARED_MEMORY_TAKEN);
        assert_int_equal(share(t, "c", 5, "mpi", 256 * MIB, 2 * MIB, &why), VERDICT_SHARED_MEMORY_TAKEN);
        record("ordinary pages exist, hugepages are wanted", why.message);
        assert_int_equal(share(t, "a", 5, "mpi", 256 * MIB, 0, NULL), VERDICT_NONE);
        s = ledger_find_region(t->ledger, "mpi");
        assert_int_equal(s->n_members, 2);
        assert_string_equal(s->members[0]->name, "a");
        assert_string_equal(s->members[1]->name, "b");
        assert_ptr_equal(ledger_find(t->ledger, "a")->shared[0], s);
        assert_int_equal(ledger_memory(t->ledger, s->region.node, 0), 256 * MIB + 2 * GIB);
        release(t, "b");
        assert_int_equal(ledger_find_region(t->ledger, "mpi")->n_members, 1);
        assert_int_equal(ledger_memory(t->ledger, s->region.node, 0), 256 * MIB + GIB);
        release(t, "a");
        assert_null(ledger_find_region(t->ledger, "mpi"));
        assert_int_equal(ledger_memory(t->ledger, 0, 0) + ledger_memory(t->ledger, 1, 0), 0);
        assert_int_equal(share(t, "c", 6, "mpi", 512 * MIB, 2 * MIB, NULL), VERDICT_NONE);
        assert_int_equal(share(t, "d", 6, "mpi", 512 * MIB, 0, &why), VERDICT_SHARED_MEMORY_TAKEN);
        record("hugepages exist, ordinary pages are wanted", why.message);
}

TEST(test_removed) {
        _cleanup_node_ TestNode *t = make_node();

        assert_int_equal(share(t, "a", 5, "mpi", 256 * MIB, 0, NULL), VERDICT_NONE);
        ledger_set_region_removed(t->ledger, "mpi", true);
        ledger_set_region_removed(t->ledger, "other", true);
        assert_true(ledger_find_region(t->ledger, "mpi")->removed);
        ledger_set_region_removed(t->ledger, "mpi", false);
        assert_false(ledger_find_region(t->ledger, "mpi")->removed);
}

/* A plan refuses what a claim would refuse: a region of another owner, if the owner is known, or of another kind. */
TEST(test_plan_looks_at_what_is_shared) {
        static const struct {
                uint64_t size, page_size;
                bool has_owner;
                uint32_t owner;
                Verdict verdict;
        } cases[] = {
                { 256 * MIB, 0, false, 0, VERDICT_NONE },
                { 256 * MIB, 0, true, 5, VERDICT_NONE },
                { 256 * MIB, 0, true, 6, VERDICT_SHARED_MEMORY_TAKEN },
                { 512 * MIB, 0, false, 0, VERDICT_SHARED_MEMORY_TAKEN },
                { 512 * MIB, 0, true, 5, VERDICT_SHARED_MEMORY_TAKEN },
                { 256 * MIB, 2 * MIB, true, 5, VERDICT_SHARED_MEMORY_TAKEN },
        };
        _cleanup_node_ TestNode *t = make_node();

        assert_int_equal(share(t, "a", 5, "mpi", 256 * MIB, 0, NULL), VERDICT_NONE);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;
                _cleanup_request_ Request r;

                ask(&r, 1, GIB);
                r.has_owner = cases[i].has_owner;
                r.owner = cases[i].owner;
                want(&r, "mpi", cases[i].size, cases[i].page_size);
                assert_int_equal(plan_make(&t->context, &r, &plan, NULL), cases[i].verdict);
        }
}

/* A claim is checked against the node, for each region and then for the CPUs. */
TEST(test_claim_counts_regions) {
        static const struct {
                uint64_t first, second;
                unsigned cpu;
                Verdict verdict;
        } cases[] = {
                { GIB, GIB, 1, VERDICT_NONE },
                { 16 * GIB, GIB, 1, VERDICT_INSUFFICIENT_MEMORY },
                { GIB, 16 * GIB, 1, VERDICT_INSUFFICIENT_MEMORY },
                { GIB, GIB, 5, VERDICT_INSUFFICIENT_CPUS },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = make_node();
                Allocation *a = allocation_new("a");
                Verdict v;

                assert_non_null(a);
                a->regions[a->n_regions++] = (Region) { .name = "one", .size = cases[i].first };
                a->regions[a->n_regions++] = (Region) { .name = "two", .size = cases[i].second };
                a->cells[a->n_cells++] = (Cell) { .node = 0, .memory = GIB };
                cpuset_add(&a->cpus, cases[i].cpu);
                v = ledger_claim(t->ledger, t->inventory, t->config, a, NULL);
                assert_int_equal(v, cases[i].verdict);
                if (v != VERDICT_NONE)
                        allocation_free(a);
        }
}

static int node_of(const TestNode *t, const char *region) {
        return ledger_find_region(t->ledger, region)->region.node;
}

/* While a member is ready, the region is made: its pages are no longer promised memory that is idle. */
TEST(test_made_memory_is_not_idle) {
        _cleanup_node_ TestNode *t = make_node();
        int node;

        assert_int_equal(share(t, "a", 5, "mpi", 256 * MIB, 0, NULL), VERDICT_NONE);
        assert_int_equal(share(t, "b", 5, "mpi", 256 * MIB, 0, NULL), VERDICT_NONE);
        node = ledger_find_region(t->ledger, "mpi")->region.node;
        ledger_set_state(t->ledger, ledger_find(t->ledger, "a"), ALLOCATION_PREPARING);
        ledger_set_state(t->ledger, ledger_find(t->ledger, "b"), ALLOCATION_PREPARING);
        assert_int_equal(ledger_memory_idle(t->ledger, node, 0), 256 * MIB + 2 * GIB);
        ledger_set_state(t->ledger, ledger_find(t->ledger, "a"), ALLOCATION_READY);
        ledger_set_state(t->ledger, ledger_find(t->ledger, "b"), ALLOCATION_READY);
        assert_int_equal(ledger_memory_idle(t->ledger, node, 0), 2 * GIB);
        assert_true(ledger_verify(t->ledger, t->inventory, t->config));
        ledger_set_state(t->ledger, ledger_find(t->ledger, "a"), ALLOCATION_RELEASING);
        assert_int_equal(ledger_memory_idle(t->ledger, node, 0), 2 * GIB);
        release(t, "a");
        assert_int_equal(ledger_memory_idle(t->ledger, node, 0), GIB);
        ledger_set_state(t->ledger, ledger_find(t->ledger, "b"), ALLOCATION_RELEASING);
        assert_int_equal(ledger_memory_idle(t->ledger, node, 0), 256 * MIB + GIB);
        ledger_set_state(t->ledger, ledger_find(t->ledger, "b"), ALLOCATION_READY);
        release(t, "b");
        assert_int_equal(ledger_memory_idle(t->ledger, node, 0), 0);
}

/* A region is on the first node with room beside the guest's own memory, and the guest is there too. */
TEST(test_where_there_is_room) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_request_ Request r;

        /* Leaves 2 GiB on node 0: room for a guest of 1 GiB, but not for its region. */
        ask(&r, 1, 6 * GIB);
        assert_int_equal(allocate(t, "big", 0, &r, NULL), VERDICT_NONE);
        assert_int_equal(ledger_find(t->ledger, "big")->cells[0].node, 0);
        assert_int_equal(share(t, "a", 0, "mpi", 2 * GIB, 0, NULL), VERDICT_NONE);
        assert_int_equal(ledger_find(t->ledger, "a")->cells[0].node, 1);
        assert_int_equal(node_of(t, "mpi"), 1);
        /* A further member need not be on that node. */
        assert_int_equal(share(t, "b", 0, "mpi", 2 * GIB, 0, NULL), VERDICT_NONE);
        assert_int_equal(ledger_find(t->ledger, "b")->cells[0].node, 0);
        assert_int_equal(ledger_find(t->ledger, "b")->regions[0].node, 1);
        /* Hugepages are on node 1 only. The guest's own memory uses none. */
        assert_int_equal(share(t, "c", 0, "huge", GIB, 2 * MIB, NULL), VERDICT_NONE);
        assert_int_equal(node_of(t, "huge"), 1);
        assert_int_equal(share(t, "d", 0, "more", 2 * MIB, 2 * MIB, &why), VERDICT_INSUFFICIENT_MEMORY);
        assert_says(&why, "'more' of 2 MiB");
}

/* With 'required', the guest is beside the region, or is refused. */
TEST(test_required_is_beside_it) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_request_ Request r;

        ask(&r, 1, 8 * GIB);
        assert_int_equal(allocate(t, "big", 0, &r, NULL), VERDICT_NONE);
        assert_int_equal(share(t, "a", 0, "mpi", GIB, 0, NULL), VERDICT_NONE);
        assert_int_equal(node_of(t, "mpi"), 1);
        release(t, "big");
        want(&r, "mpi", GIB, 0);
        r.memory = GIB;
        assert_int_equal(allocate(t, "anywhere", 0, &r, NULL), VERDICT_NONE);
        assert_int_equal(ledger_find(t->ledger, "anywhere")->cells[0].node, 0);
        r.numa = NUMA_POLICY_REQUIRED;
        assert_int_equal(allocate(t, "b", 0, &r, NULL), VERDICT_NONE);
        assert_int_equal(ledger_find(t->ledger, "b")->cells[0].node, 1);
        r.memory = 7 * GIB;
        assert_int_equal(allocate(t, "c", 0, &r, &why), VERDICT_NUMA);
        assert_says(&why, "'mpi'");
        assert_says(&why, "node 1");
        record("required, beside shared memory", why.message);
}

/* Two nodes, each with room for one region: the first region must not take the only place of the second. */
TEST(test_all_find_their_place) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_request_ Request r;
        const Allocation *a;

        ask(&r, 2, 8 * GIB);
        r.cells = 2;
        want(&r, "small", 2 * GIB, 0);
        want(&r, "large", 4 * GIB, 0);
        want(&r, "next", 2 * GIB, 0);
        assert_int_equal(allocate(t, "a", 0, &r, NULL), VERDICT_NONE);
        a = ledger_find(t->ledger, "a");
        assert_int_equal(a->regions[0].node, 0);
        assert_int_equal(a->regions[1].node, 1);
        assert_int_equal(a->regions[2].node, 0);
        release(t, "a");
        /* More than both nodes have. */
        r.regions[2].size = 4 * GIB;
        assert_int_equal(allocate(t, "a", 0, &r, NULL), VERDICT_INSUFFICIENT_MEMORY);
}

TEST(test_limit) {
        _cleanup_node_ TestNode *t = make_node();

        for (unsigned i = 0; i < LEDGER_REGIONS_MAX; i++) {
                _cleanup_free_ char *name = NULL;
                Allocation *a;

                assert_true(string_replace(&name, "a%u", i) >= 0);
                a = allocation_new(name);
                assert_non_null(a);
                a->regions[a->n_regions++] = (Region) { .size = MIB };
                assert_int_equal(region_name(&a->regions[0], name, NULL), VERDICT_NONE);
                assert_int_equal(ledger_adopt(t->ledger, a, NULL), VERDICT_NONE);
        }
        assert_int_equal(share(t, "b", 0, "one-more", MIB, 0, NULL), VERDICT_LIMIT);
        assert_int_equal(share(t, "b", 0, "a7", MIB, 0, NULL), VERDICT_NONE);
}

/* The file is read back. A file that contradicts itself or another file is refused. */
TEST(test_file) {
        static const char *const broken[][2] = {
                { "\"size\": 268435456", "\"size\": 268435455" },
                { "\"name\": \"mpi\"", "\"name\": \"../mpi\"" },
                { "268435456, \"page_size\": 0", "268435456, \"page_size\": 3" },
                { "\"node\": 0 }", "\"node\": -1 }" },
                { "\"node\": 0 }", "\"knot\": 0 }" },
                { "\"shared_memory\": [", "\"shared_memory\": 1, \"x\": [" },
        };
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_allocation_free) Allocation *again = NULL;
        _cleanup_free_ char *text = NULL, *message = NULL, *flat = NULL;
        Allocation *a;
        size_t n = 0;

        assert_int_equal(share(t, "a", 5, "mpi", 256 * MIB, 0, NULL), VERDICT_NONE);
        a = ledger_find(t->ledger, "a");
        memset(a->id, 'a', 36);
        a->state = ALLOCATION_READY;
        text = ledger_file_format(a);
        assert_int_equal(ledger_file_parse(text, strlen(text), &again, &message), LEDGER_FILE_OK);
        assert_int_equal(again->n_regions, 1);
        assert_memory_equal(&again->regions[0], &a->regions[0], sizeof(Region));
        again->owner = 6;
        free(again->name);
        again->name = strdup("b");
        cpuset_subtract(&again->cpus, &a->cpus);
        assert_int_equal(ledger_adopt(t->ledger, again, NULL), VERDICT_SHARED_MEMORY_TAKEN);

        /* White space in the file does not matter. */
        flat = strdup(text);
        for (const char *c = text; *c; c++)
                if (*c != '\n' && (*c != ' ' || (n > 0 && flat[n - 1] != ' ')))
                        flat[n++] = *c;
        flat[n] = '\0';
        for (size_t i = 0; i < ELEMENTSOF(broken); i++) {
                const char *at = strstr(flat, broken[i][0]);
                _cleanup_free_ char *bad = NULL, *why = NULL;
                Allocation *none = NULL;

                if (!at)
                        fail_msg("%s is not in %s", broken[i][0], flat);
                assert_true(string_replace(&bad, "%.*s%s%s", (int) (at - flat), flat, broken[i][1],
                                           at + strlen(broken[i][0])) >= 0);
                if (ledger_file_parse(bad, strlen(bad), &none, &why) != LEDGER_FILE_BROKEN)
                        fail_msg("%s is taken", broken[i][1]);
        }
}

/* The region is made first and removed last. Jobs on the same region take turns. */
TEST(test_steps) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_step_list_free) StepList *make = NULL, *remove = NULL, *other = NULL;
        _cleanup_free_ char *text = NULL;
        const Allocation *a;

        assert_int_equal(share(t, "a", 5, "mpi", 256 * MIB, 0, NULL), VERDICT_NONE);
        assert_int_equal(share(t, "b", 5, "own", MIB, 0, NULL), VERDICT_NONE);
        a = ledger_find(t->ledger, "a");
        assert_int_equal(steps_prepare(a, t->inventory, &make), 0);
        assert_int_equal(steps_make_regions(a, t->config, make), 0);
        assert_true(make->reports_found_state);
        assert_int_equal(make->n, 1);
        assert_int_equal(make->steps[0].kind, STEP_MAKE_REGION);
        assert_string_equal(make->steps[0].memory.group, "kvm");
        assert_false(step_has_device(&make->steps[0]));
        text = step_describe(&make->steps[0]);
        record("step", text);
        assert_int_equal(steps_release(a, t->inventory, AFTER_RELEASE_RESTORE, true, &remove), 0);
        assert_int_equal(steps_remove_regions(a, remove), 0);
        assert_int_equal(remove->steps[remove->n - 1].kind, STEP_REMOVE_REGION);
        assert_true(step_lists_share_region(make, remove));
        assert_int_equal(steps_release(ledger_find(t->ledger, "b"), t->inventory, AFTER_RELEASE_KEEP, true, &other), 0);
        assert_int_equal(steps_remove_regions(ledger_find(t->ledger, "b"), other), 0);
        assert_false(step_lists_share_region(make, other));
}

TEST(test_sentences) {
        assert_sentences("shared-memory.txt");
}
