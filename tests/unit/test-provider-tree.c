/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The tree of providers that OpenStack Placement should have, and the changes that lead to it. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#include "unit.h"

#include "placement/claim.h"
#include "placement/difference.h"
#include "placement/wanted.h"
#include "util/strings.h"

#define HOST     "n1"
#define CONSUMER "69b83cfb-7825-434d-9fba-2abf2ccb153d"
#define OTHER    "22222222-0000-4000-8000-000000000001"
#define CLASS    "CUSTOM_PCI_10DE_2330"
#define VF_CLASS "CUSTOM_PCI_15B3_101E"

#define NODE                                                                                                           \
        "{'id':0,'cpus':'0-7','cpus_free':'3-7','memory':8589934592,'memory_free':4294967296,'pages':"                 \
        "[{'size':1073741824,'total':2,'free':1}]}"
#define GPU(state, allocation)                                                                                         \
        "{'address':'0000:1a:00.0','path':'pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:1a:00.0',"           \
        "'vendor':'10de','device':'2330','pool':'gpu','physical_function':null,'cpu_node':0,'state':'" state           \
        "','allocation':" allocation "}"
#define PF                                                                                                             \
        "{'address':'0000:14:00.0','path':'pci0000:10/0000:10:01.0/0000:14:00.0','vendor':'15b3','device':'1021',"     \
        "'pool':null,'physical_function':null,'cpu_node':0,'state':'host','allocation':null}"
#define VF(n, state, allocation)                                                                                       \
        "{'address':'0000:14:00." n "','path':'pci0000:10/0000:10:01.0/0000:14:00." n "','vendor':'15b3',"             \
        "'device':'101e','pool':'ib-vf','physical_function':'0000:14:00.0','cpu_node':0,'state':'" state               \
        "','allocation':" allocation "}"
#define ALLOCATION "{'id':'" CONSUMER "','name':'vm1','cpus':'1-2','memory':{'0':2147483648},'page_size':null}"
#define DOCUMENT(devices, allocations)                                                                                 \
        "{'nodes':[" NODE "],'devices':[" devices "],'allocations':[" allocations                                      \
        "],'pools':[{'name':'gpu','scheduler':'none'}]}"

/* A service with one endpoint, and the allocation with slots of it. */
#define SLOTS_CLASS               "CUSTOM_PASSTHROUGHD_SLOTS_REMOTE_GPU"
#define ENDPOINT                  "gpu1.example.org:9999"
#define SERVICE(slots, allocated) SERVICE_WITH(slots, allocated, "null")
#define SERVICE_WITH(slots, allocated, reason)                                                                         \
        "{'name':'remote-gpu','scheduler':'none','endpoints':[{'endpoint':'" ENDPOINT "','slots':" slots               \
        ",'allocated':" allocated ",'health':null,'reason':" reason "}]}"
#define WITH_SLOTS(slots)                                                                                              \
        "{'id':'" CONSUMER "','name':'vm1','cpus':'','memory':{},'page_size':null,'services':"                         \
        "[{'pool':'remote-gpu','endpoint':'" ENDPOINT "','slots':" slots "}]}"
#define SERVICE_DOCUMENT(service, allocations)                                                                         \
        "{'nodes':[" NODE "],'devices':[],'allocations':[" allocations "],'pools':[" service "]}"

static const ClaimOwner owner = { .project = "p", .user = "u" };

/* JSON with single quotes. */
static json_object *document(const char *text) {
        _cleanup_free_ char *copy = strdup(text);
        json_object *o;

        assert_non_null(copy);
        for (char *c = copy; *c; c++)
                if (*c == '\'')
                        *c = '"';
        o = json_tokener_parse(copy);
        assert_non_null(o);
        return o;
}

static void root_uuid(char ret[static TREE_UUID_SIZE]) {
        tree_provider_uuid(HOST, ret);
}

static Tree *make_with(const char *text, const char *root, bool devices_only) {
        _cleanup_json_ json_object *o = document(text);
        WantedOptions options = { .host = HOST, .root = root, .devices_only = devices_only };
        Tree *t = NULL;

        assert_int_equal(tree_wanted(o, &options, &t), 0);
        return t;
}

static Tree *make(const char *text) {
        char root[TREE_UUID_SIZE];

        root_uuid(root);
        return make_with(text, root, false);
}

static const Provider *find(const Tree *t, const char *name) {
        const Provider *p = tree_find_name(t, name);

        assert_non_null(p);
        return p;
}

static void assert_resource(const Tree *t, const char *name, const char *class, int64_t total, int64_t reserved) {
        const Resource *r = provider_find_resource(find(t, name), class);

        assert_non_null(r);
        assert_int_equal(r->total, total);
        assert_int_equal(r->reserved, reserved);
}

static void assert_claimed(const Tree *t, const char *name, const char *class, int64_t amount) {
        const Claim *c = tree_find_claim(t, CONSUMER);

        assert_non_null(c);
        assert_int_equal(claim_amount(c, find(t, name)->uuid, class), amount);
}

TEST(test_providers) {
        _cleanup_(cleanup_tree_free) Tree *t =
                make(DOCUMENT(GPU("available", "null") "," PF "," VF("1", "available", "null"), ""));
        const Provider *numa = find(t, "n1_NUMA0"), *sw = find(t, "n1_SWITCH_0000:11:00.0");

        assert_string_equal(find(t, HOST)->parent, "");
        assert_string_equal(numa->parent, find(t, HOST)->uuid);
        assert_string_equal(sw->parent, numa->uuid);
        assert_string_equal(find(t, "n1_0000:1A:00.0")->parent, sw->uuid);
        assert_string_equal(find(t, "n1_0000:14:00.0")->parent, numa->uuid); /* no switch above it */
        assert_int_equal(t->n_providers, 5);
        assert_true(provider_has_trait(numa, "HW_NUMA_ROOT"));
        assert_true(provider_has_trait(sw, "CUSTOM_PASSTHROUGHD_SWITCH"));
        assert_true(provider_has_trait(find(t, "n1_0000:1A:00.0"), "CUSTOM_PASSTHROUGHD_SWITCH_0000_11_00_0"));
        assert_true(provider_has_trait(find(t, "n1_0000:1A:00.0"), "CUSTOM_PASSTHROUGHD_ROOT_PCI0000_10"));
        assert_true(provider_has_trait(find(t, "n1_0000:14:00.0"), "CUSTOM_PASSTHROUGHD_POOL_IB_VF"));
}

/* On some machines other devices precede the root bus. */
TEST(test_root_below_devices) {
        _cleanup_(cleanup_tree_free) Tree *t =
                make(DOCUMENT("{'address':'0000:1a:00.0','path':'LNXSYSTM:00/LNXSYBUS:00/pci0000:10/0000:10:01.0/"
                              "0000:11:00.0/0000:12:00.0/0000:1a:00.0','vendor':'10de','device':'2330','pool':'gpu',"
                              "'physical_function':null,'cpu_node':0,'state':'available','allocation':null},"
                              "{'address':'0000:14:00.0','path':'LNXSYSTM:00/LNXSYBUS:00/pci0000:20/0000:20:01.0/"
                              "0000:14:00.0','vendor':'10de','device':'2330','pool':'gpu','physical_function':null,"
                              "'cpu_node':0,'state':'available','allocation':null}",
                              ""));
        const Provider *below = find(t, "n1_0000:1A:00.0"), *other = find(t, "n1_0000:14:00.0");

        assert_string_equal(below->parent, find(t, "n1_SWITCH_0000:11:00.0")->uuid);
        assert_string_equal(other->parent, find(t, "n1_NUMA0")->uuid);
        assert_true(provider_has_trait(below, "CUSTOM_PASSTHROUGHD_SWITCH_0000_11_00_0"));
        assert_true(provider_has_trait(below, "CUSTOM_PASSTHROUGHD_ROOT_PCI0000_10"));
        assert_true(provider_has_trait(other, "CUSTOM_PASSTHROUGHD_ROOT_PCI0000_20"));
}

TEST(test_other_schedulers) {
        static const struct {
                const char *name;
                bool is_reported;
        } schedulers[] = { { "none", true }, { "placement", true }, { "kubernetes", false }, { "nova", false } };

        for (size_t i = 0; i < ELEMENTSOF(schedulers); i++) {
                _cleanup_free_ char *text = string_format(
                        "{'nodes':[" NODE
                        "],'devices':[" GPU("available", "null") "],'allocations':[],"
                                                                 "'pools':[{'name':'gpu','scheduler':'%s'}]}",
                        schedulers[i].name);
                _cleanup_(cleanup_tree_free) Tree *t = make(text);

                assert_int_equal(!!tree_find_name(t, "n1_0000:1A:00.0"), schedulers[i].is_reported);
        }
}

TEST(test_counts) {
        _cleanup_(cleanup_tree_free) Tree *t = make(DOCUMENT(
                GPU("allocated", "'vm1'") "," PF "," VF("1", "allocated", "'vm1'") "," VF("2", "available", "null"),
                ALLOCATION));

        assert_resource(t, "n1_0000:1A:00.0", CLASS, 1, 0);
        assert_resource(t, "n1_0000:14:00.0", VF_CLASS, 2, 0);
        assert_resource(t, "n1_NUMA0", "PCPU", 8, 1); /* 5 free, 2 claimed */
        assert_resource(t, "n1_NUMA0", "MEMORY_MB", 8192, 2048);
        assert_resource(t, "n1_NUMA0", "CUSTOM_HUGEPAGES_1048576KB", 2, 1);
        assert_claimed(t, "n1_0000:1A:00.0", CLASS, 1);
        assert_claimed(t, "n1_0000:14:00.0", VF_CLASS, 1);
        assert_claimed(t, "n1_NUMA0", "PCPU", 2);
        assert_claimed(t, "n1_NUMA0", "MEMORY_MB", 2048);
}

TEST(test_hugepages) {
        _cleanup_(cleanup_tree_free) Tree *t =
                make(DOCUMENT("", "{'id':'" CONSUMER "','name':'vm1','cpus':'1','memory':{'0':1073741824},'page_size':"
                                  "1073741824}"));

        assert_resource(t, "n1_NUMA0", "CUSTOM_HUGEPAGES_1048576KB", 2, 0);
        assert_claimed(t, "n1_NUMA0", "CUSTOM_HUGEPAGES_1048576KB", 1);
        assert_claimed(t, "n1_NUMA0", "MEMORY_MB", 0);
}

TEST(test_out_of_service) {
        static const struct {
                const char *devices, *provider, *class;
                int64_t total, reserved;
        } cases[] = {
                { GPU("quarantined", "null"), "n1_0000:1A:00.0", CLASS, 1, 1 },
                { GPU("unhealthy", "'vm1'"), "n1_0000:1A:00.0", CLASS, 1, 1 },
                { GPU("missing", "'vm1'"), "n1_0000:1A:00.0", CLASS, 1, 1 },
                { GPU("host", "null"), "n1_0000:1A:00.0", CLASS, 1, 1 },
                { GPU("allocated", "null"), "n1_0000:1A:00.0", CLASS, 1, 1 }, /* a device of its group is in use */
                { GPU("reserved", "'vm1'"), "n1_0000:1A:00.0", CLASS, 1, 0 },
                { PF "," VF("1", "stuck", "null") "," VF("2", "available", "null"), "n1_0000:14:00.0", VF_CLASS, 2, 1 },
                { PF "," VF("1", "unhealthy", "'vm1'") "," VF("2", "available", "null"), "n1_0000:14:00.0", VF_CLASS, 2,
                  0 },
                { PF "," VF("1", "unhealthy", "'vm1'") "," VF("2", "stuck", "null"), "n1_0000:14:00.0", VF_CLASS, 2,
                  2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = string_format(DOCUMENT("%s", ALLOCATION), cases[i].devices);
                _cleanup_(cleanup_tree_free) Tree *t = make(text);

                assert_resource(t, cases[i].provider, cases[i].class, cases[i].total, cases[i].reserved);
        }
}

TEST(test_slots) {
        static const struct {
                const char *slots, *allocated, *reason;
                int64_t total, reserved; /* 0: the endpoint has no inventory */
        } cases[] = {
                { "4", "0", "null", 4, 0 },   { "4", "3", "null", 4, 0 },   { "4", "4", "null", 4, 0 },
                { "2", "3", "'more'", 3, 3 }, { "0", "3", "'more'", 3, 3 }, { "4", "0", "'down'", 4, 4 },
                { "4", "3", "'down'", 4, 4 }, { "2", "3", "'down'", 3, 3 }, { "0", "0", "'none'", 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text =
                        string_format(SERVICE_DOCUMENT(SERVICE_WITH("%s", "%s", "%s"), WITH_SLOTS("%s")),
                                      cases[i].allocated, cases[i].slots, cases[i].allocated, cases[i].reason);
                _cleanup_(cleanup_tree_free) Tree *t = make(text);
                const Provider *p = find(t, "n1_" ENDPOINT);
                bool is_used = strcmp(cases[i].allocated, "0") != 0;

                assert_string_equal(p->parent, find(t, HOST)->uuid);
                assert_true(provider_has_trait(p, "CUSTOM_PASSTHROUGHD"));
                assert_true(provider_has_trait(p, "CUSTOM_PASSTHROUGHD_POOL_REMOTE_GPU"));
                if (cases[i].total > 0)
                        assert_resource(t, p->name, SLOTS_CLASS, cases[i].total, cases[i].reserved);
                else
                        assert_int_equal(p->n_resources, 0);
                assert_int_equal(t->n_claims, is_used);
                if (is_used)
                        assert_claimed(t, p->name, SLOTS_CLASS, atoi(cases[i].allocated));
        }
}

static void assert_request(const char *text, int64_t amount, int error, const char *line) {
        _cleanup_json_ json_object *o = document(text);
        _cleanup_free_ char *name = string_format("%s_%s", HOST, ENDPOINT), *request = NULL;
        Claim c = { .consumer = CONSUMER };
        char uuid[TREE_UUID_SIZE];

        assert_non_null(name);
        tree_provider_uuid(name, uuid);
        assert_int_equal(claim_add(&c, uuid, SLOTS_CLASS, amount), 0);
        assert_int_equal(claim_request(&c, HOST, o, &request), error);
        if (line)
                assert_string_equal(request, line);
        else
                assert_null(request);
        free(c.parts);
}

TEST(test_claim_of_slots) {
        assert_request(SERVICE_DOCUMENT(SERVICE("4", "1"), ""), 3, 0, "--consumer " CONSUMER " remote-gpu=3");
        assert_request(SERVICE_DOCUMENT(SERVICE("4", "1"), ""), 4, -EBUSY, NULL);
        assert_request(SERVICE_DOCUMENT(SERVICE("2", "3"), ""), 1, -EBUSY, NULL);
        assert_request(SERVICE_DOCUMENT(SERVICE_WITH("4", "1", "'down'"), ""), 1, -EBUSY, NULL);
        assert_request(SERVICE_DOCUMENT("", ""), 1, -ENOENT, NULL);
        assert_request("{'nodes':[],'devices':[]}", 1, -EBADMSG, NULL);
}

TEST(test_bad_document) {
        static const char *const wrong[] = { "{}",
                                             "[]",
                                             "{'nodes':[],'devices':{},'allocations':[],'pools':[]}",
                                             "{'nodes':[{'id':0}],'devices':[],'allocations':[],'pools':[]}",
                                             "{'nodes':[],'devices':[],'allocations':[],'pools':[{}]}",
                                             SERVICE_DOCUMENT("{'name':'x','endpoints':[{'slots':1}]}", "") };

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                _cleanup_json_ json_object *o = document(wrong[i]);
                WantedOptions options = { .host = HOST, .root = OTHER };
                Tree *t = NULL;

                assert_int_equal(tree_wanted(o, &options, &t), -EBADMSG);
                assert_null(t);
        }
}

/* Nova's root provider, without the CPUs and memory that Nova reports itself. */
TEST(test_foreign_root) {
        _cleanup_(cleanup_tree_free) Tree *t = make_with(DOCUMENT(GPU("available", "null"), ALLOCATION), OTHER, true);
        _cleanup_(cleanup_tree_free) Tree *have = calloc(1, sizeof(*have));
        _cleanup_changes_ Changes changes = { 0 };

        assert_non_null(tree_add_provider(have, HOST, OTHER, ""));
        assert_string_equal(find(t, "n1_NUMA0")->parent, OTHER);
        assert_int_equal(find(t, "n1_NUMA0")->n_resources, 0);
        assert_null(tree_find_claim(t, CONSUMER));
        assert_int_equal(tree_difference(t, have, &owner, &changes), 0);
        for (size_t i = 0; i < changes.n; i++)
                assert_string_not_equal(changes.changes[i].uuid, OTHER);
}

/* Differences */

/* Changes have as Placement would after each change. */
static void apply(Tree *have, const Changes *changes) {
        for (size_t i = 0; i < changes->n; i++) {
                const Change *c = &changes->changes[i];
                Provider *p = tree_find_provider(have, c->uuid);

                switch (c->kind) {
                case CHANGE_ADD_PROVIDER:
                case CHANGE_MOVE_PROVIDER:
                        if (c->kind == CHANGE_MOVE_PROVIDER)
                                json_object_object_add(c->body, "uuid", json_object_new_string(c->uuid));
                        assert_int_equal(tree_parse_provider(have, c->body), 0);
                        break;
                case CHANGE_INVENTORIES:
                        assert_int_equal(provider_parse_inventories(p, c->body), 0);
                        break;
                case CHANGE_TRAITS:
                        assert_int_equal(provider_parse_traits(p, c->body), 0);
                        break;
                case CHANGE_CLAIM:
                        assert_int_equal(tree_parse_claim(have, c->uuid, c->body), 0);
                        break;
                case CHANGE_REMOVE_CLAIM:
                        tree_remove_claim(have, c->uuid);
                        break;
                case CHANGE_REMOVE_PROVIDER:
                        for (size_t j = 0; j < have->n_providers; j++)
                                assert_string_not_equal(have->providers[j].parent, c->uuid);
                        tree_remove_provider(have, c->uuid);
                        break;
                default:
                        fail();
                }
        }
}

/* Compares, applies the changes, and compares again, without differences. Returns the number of changes. */
static size_t converge(const Tree *wanted, Tree *have) {
        _cleanup_changes_ Changes changes = { 0 }, rest = { 0 };

        assert_int_equal(tree_difference(wanted, have, &owner, &changes), 0);
        apply(have, &changes);
        assert_int_equal(tree_difference(wanted, have, &owner, &rest), 0);
        assert_int_equal(rest.n, 0);
        return changes.n;
}

TEST(test_converges) {
        static const char *const documents[] = {
                DOCUMENT(GPU("available", "null") "," PF "," VF("1", "available", "null"), ""),
                DOCUMENT(GPU("allocated", "'vm1'") "," PF "," VF("1", "allocated", "'vm1'"), ALLOCATION),
                DOCUMENT(GPU("unhealthy", "'vm1'") "," PF "," VF("1", "allocated", "'vm1'"), ALLOCATION),
                DOCUMENT(PF "," VF("1", "allocated", "'vm1'"), ALLOCATION),
                DOCUMENT("", ""),
                DOCUMENT(GPU("missing", "'vm1'"), ALLOCATION),
                DOCUMENT(GPU("allocated", "'vm1'"), ALLOCATION),
                SERVICE_DOCUMENT(SERVICE("2", "0"), ""),
                SERVICE_DOCUMENT(SERVICE("2", "2"), WITH_SLOTS("2")),
                SERVICE_DOCUMENT(SERVICE("1", "2"), WITH_SLOTS("2")),
                SERVICE_DOCUMENT(SERVICE("0", "0"), ""),
                DOCUMENT("", ""),
        };
        static const size_t changes[] = { 12, 2, 1, 4, 4, 5, 6, 8, 1, 1, 2, 1 };
        _cleanup_(cleanup_tree_free) Tree *have = calloc(1, sizeof(*have));

        for (size_t i = 0; i < ELEMENTSOF(documents); i++) {
                _cleanup_(cleanup_tree_free) Tree *wanted = make(documents[i]);

                assert_int_equal(converge(wanted, have), changes[i]);
        }
}

/* Providers of the operator and of other programs are not changed. */
TEST(test_others) {
        _cleanup_(cleanup_tree_free) Tree *wanted = make(DOCUMENT(GPU("available", "null"), "")), *none = NULL;
        _cleanup_(cleanup_tree_free) Tree *have = calloc(1, sizeof(*have));
        _cleanup_changes_ Changes changes = { 0 };
        const Provider *gpu = find(wanted, "n1_0000:1A:00.0");
        Claim *rival;

        (void) converge(wanted, have);
        assert_non_null(tree_add_provider(have, "n1_vgpu", OTHER, gpu->uuid));
        assert_int_equal(provider_add_trait(tree_find_provider(have, gpu->uuid), "CUSTOM_GOLD"), 0);
        assert_int_equal(converge(wanted, have), 0);

        rival = tree_add_claim(have, OTHER);
        rival->is_checked = rival->is_foreign = true;
        assert_int_equal(claim_add(rival, gpu->uuid, CLASS, 1), 0);
        none = make(DOCUMENT("", ""));
        assert_int_equal(tree_difference(none, have, &owner, &changes), 0);
        assert_int_equal(changes.n, 1);
        assert_int_equal(changes.changes[0].kind, CHANGE_INVENTORIES);
        apply(have, &changes);
        assert_resource(have, "n1_0000:1A:00.0", CLASS, 1, 1);

        tree_remove_claim(have, OTHER);
        tree_remove_provider(have, OTHER);
        assert_int_equal(converge(none, have), 3); /* its inventory, the provider, and its switch */
}

/* If Nova has a provider of that name, it is not changed, and no claim names it. */
TEST(test_taken_name) {
        _cleanup_(cleanup_tree_free) Tree *wanted = make(DOCUMENT(GPU("allocated", "'vm1'"), ALLOCATION));
        _cleanup_(cleanup_tree_free) Tree *have = calloc(1, sizeof(*have));
        const Provider *gpu = find(wanted, "n1_0000:1A:00.0");

        assert_non_null(tree_add_provider(have, gpu->name, OTHER, find(wanted, HOST)->uuid));
        (void) converge(wanted, have);
        assert_null(tree_find_provider(have, gpu->uuid));
        assert_int_equal(tree_find_provider(have, OTHER)->n_resources, 0);
        assert_claimed(wanted, "n1_0000:1A:00.0", CLASS, 1);
        assert_int_equal(claim_amount(tree_find_claim(have, CONSUMER), gpu->uuid, CLASS), 0);
        assert_int_equal(claim_amount(tree_find_claim(have, CONSUMER), find(have, "n1_NUMA0")->uuid, "PCPU"), 2);
}

/* An inventory that another program altered is repaired. */
TEST(test_altered) {
        _cleanup_(cleanup_tree_free) Tree *wanted = make(DOCUMENT(GPU("available", "null"), ""));
        _cleanup_(cleanup_tree_free) Tree *have = calloc(1, sizeof(*have));
        _cleanup_json_ json_object *o =
                document("{'resource_provider_generation':7,'inventories':{'" CLASS
                         "':{'total':1,'reserved':0,'min_unit':1,'max_unit':1,'step_size':1,'allocation_ratio':2.0}}}");
        Provider *gpu;

        (void) converge(wanted, have);
        gpu = tree_find_name(have, "n1_0000:1A:00.0");
        assert_int_equal(provider_parse_inventories(gpu, o), 0);
        assert_int_equal(gpu->generation, 7);
        assert_int_equal(converge(wanted, have), 1);
}

TEST(test_bad_reply) {
        _cleanup_(cleanup_tree_free) Tree *t = calloc(1, sizeof(*t));
        _cleanup_json_ json_object *empty = document("{}"), *text = document("{'allocations':{'" OTHER "':1}}");
        Provider p = { 0 };

        assert_int_equal(tree_parse_provider(t, empty), -EBADMSG);
        assert_int_equal(tree_parse_usage(t, OTHER, empty), -EBADMSG);
        assert_int_equal(tree_parse_usage(t, OTHER, text), -EBADMSG);
        assert_int_equal(tree_parse_claim(t, OTHER, empty), -EBADMSG);
        assert_int_equal(provider_parse_inventories(&p, empty), -EBADMSG);
        assert_int_equal(provider_parse_traits(&p, empty), -EBADMSG);
}

static void add_provider(Tree *t, const char *name, const char *uuid, const char *parent) {
        _cleanup_json_ json_object *o = json_object_new_object();

        assert_int_equal(json_object_object_add(o, "name", json_object_new_string(name)), 0);
        assert_int_equal(json_object_object_add(o, "uuid", json_object_new_string(uuid)), 0);
        assert_int_equal(json_object_object_add(o, "parent_provider_uuid", json_object_new_string(parent)), 0);
        assert_int_equal(tree_parse_provider(t, o), 0);
}

static void number_uuid(unsigned n, char ret[static TREE_UUID_SIZE]) {
        (void) snprintf(ret, TREE_UUID_SIZE, "00000000-0000-4000-8000-%012u", n);
}

#define MANY 100000U

/* A tree as large as the longest reply. Work for each pair of providers, or of claims, would take more than a minute of
 * CPU time, and SIGPROF would end the test. */
TEST(test_many) {
        _cleanup_(cleanup_tree_free) Tree *have = calloc(1, sizeof(*have)), *wanted = make(DOCUMENT("", ""));
        _cleanup_json_ json_object *usage = json_object_new_object(), *part = document("{'resources':{'PCPU':1}}");
        json_object *all = json_object_new_object();
        const struct itimerval minute = { .it_value.tv_sec = 60 };
        char root[TREE_UUID_SIZE], uuid[TREE_UUID_SIZE] = "", own[TREE_UUID_SIZE];
        Changes changes;
        size_t removed = 0;

        assert_non_null(have);
        assert_int_equal(setitimer(ITIMER_PROF, &minute, NULL), 0);
        root_uuid(root);
        add_provider(have, HOST, root, "");
        for (unsigned i = 0; i < MANY; i++) {
                char parent[TREE_UUID_SIZE], name[32];

                (void) snprintf(name, sizeof(name), "%u", i);
                memcpy(parent, root, sizeof(parent));
                if (i % 2 == 1 && i > 1)
                        number_uuid(i - 2, parent);
                number_uuid(i, uuid);
                add_provider(have, name, uuid, parent);
        }
        tree_provider_uuid("n1_gone", own);
        add_provider(have, "n1_gone", own, root);
        assert_int_equal(json_object_object_add(usage, "allocations", all), 0);
        for (unsigned i = 0; i < MANY; i++) {
                number_uuid(i, uuid);
                assert_int_equal(json_object_object_add(all, uuid, json_object_get(part)), 0);
        }
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(tree_parse_usage(have, own, usage), 0);
                assert_int_equal(have->n_claims, MANY);
        }
        assert_int_equal(tree_difference(wanted, have, &owner, &changes), 0);
        for (size_t i = 0; i < changes.n; i++)
                removed += changes.changes[i].kind == CHANGE_REMOVE_PROVIDER;
        assert_int_equal(removed, 1);
        changes_done(&changes);
        tree_remove_provider(have, own);
        number_uuid(MANY / 2, uuid);
        tree_remove_provider(have, uuid);
        assert_null(tree_find_provider(have, uuid));
        number_uuid(MANY - 1, uuid);
        assert_string_equal(tree_find_provider(have, uuid)->uuid, uuid);
        tree_remove_claim(have, uuid);
        assert_null(tree_find_claim(have, uuid));
        number_uuid(MANY - 2, uuid);
        assert_string_equal(tree_find_claim(have, uuid)->consumer, uuid);
        assert_int_equal(setitimer(ITIMER_PROF, &(struct itimerval) { 0 }, NULL), 0);
}
