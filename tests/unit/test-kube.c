/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <stdio.h>
/* after those */

#include "unit.h"

#include "kube/claim.h"
#include "model/fabric.h"
#include "util/strings.h"

#define POOLS                                                                                                          \
        "'pools': [{'name': 'gpu', 'scheduler': 'kubernetes', 'vgpu_type': null}, {'name': 'vgpu', 'scheduler': "      \
        "'kubernetes', 'vgpu_type': 'H100-20C'}, {'name': 'own', 'scheduler': 'none', 'vgpu_type': null}]"

static json_object *device_at(json_object *slices, size_t slice, size_t i) {
        return json_at(member(json_at(slices, slice), "devices"), i);
}

static int attribute(json_object *device, const char *name) {
        return json_object_get_int(member(member(member(device, "attributes"), name), "int"));
}

static json_object *make_wanted(json_object *document) {
        json_object *wanted = NULL;

        assert_non_null(document);
        assert_int_equal(slices_wanted(document, &wanted), 0);
        return wanted;
}

/* Messages */

TEST(test_messages) {
        static const char uid[] = "33333333-0000-4000-8000-000000000001";
        _cleanup_(wire_done) WireBuffer b = { 0 }, claim = { 0 };
        _cleanup_free_ ClaimRef *refs = NULL;
        size_t n;

        wire_put_text(&claim, 1, "default");
        wire_put_text(&claim, 2, uid);
        wire_put_text(&claim, 3, "a.b-c");
        wire_put_message(&b, 1, &claim);
        assert_int_equal(message_parse_claims(b.data, b.size, &refs, &n), 0);
        assert_int_equal(n, 1);
        assert_string_equal(refs[0].name, "a.b-c");
        assert_int_equal(message_parse_claims(b.data, b.size - 1, &refs, &n), -EBADMSG);
        for (unsigned i = 0; i < CLAIMS_MAX; i++)
                wire_put_message(&b, 1, &claim);
        assert_int_equal(message_parse_claims(b.data, b.size, &refs, &n), -E2BIG);
}

/* The name of a claim is used in URLs and names of files. */
TEST(test_names) {
        static const char *const wrong[] = { "", "..", "../x", "a/b", "-a", "a-", "A", "a?b", "a%2f", "." };

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                assert_false(name_is_valid(wrong[i]));
        assert_true(name_is_valid("a") && name_is_valid("pair-0.x"));
}

/* Slices */

static json_object *fabric_document(const FabricTable *t) {
        _cleanup_json_ json_object *o = json_format("{'devices': [], 'partitions': [], " POOLS "}");

        for (unsigned m = 1; m <= 8; m++)
                assert_true(
                        json_append(member(o, "devices"),
                                    json_format("{'address': '0000:%02x:00.0', 'pool': 'gpu', 'state': 'available', "
                                                "'iommu_group': %u, 'module': %u}",
                                                m, m, m)));
        for (size_t i = 0; i < t->n; i++) {
                json_object *p = json_format("{'id': %u, 'modules': []}", t->partitions[i].id);

                assert_true(json_append(member(o, "partitions"), p));
                for (unsigned m = 1; m <= 8; m++)
                        if (t->partitions[i].modules & fabric_bit(m))
                                assert_true(json_append(member(p, "modules"), json_object_new_int((int) m)));
        }
        return TAKE_PTR(o);
}

/* A claim for n GPUs with matchAttribute partitionN must be satisfiable exactly by those sets of n GPUs that are a
 * partition of Fabric Manager. Tries all sets. */
TEST(test_partitions) {
        FabricTable t = { 0 };
        _cleanup_json_ json_object *document = NULL, *wanted = NULL;

        assert_int_equal(fabric_table_of("hgx-h100", &t), 0);
        document = fabric_document(&t);
        wanted = make_wanted(document);
        for (unsigned set = 1; set < 256; set++) {
                unsigned n = fabric_count(set);
                bool is_partition = false, matches = true;
                int id = -1;
                char name[32];

                for (size_t i = 0; i < t.n; i++)
                        is_partition |= t.partitions[i].modules == (uint64_t) set << 1;
                (void) snprintf(name, sizeof(name), "partition%u", n);
                for (unsigned m = 1; m <= 8; m++) {
                        json_object *device = device_at(wanted, 0, m - 1);

                        if (!(set & 1U << (m - 1)))
                                continue;
                        /* The scheduler refuses a device without the attribute. */
                        matches &= member(member(device, "attributes"), name) != NULL &&
                                   (id < 0 || id == attribute(device, name));
                        id = attribute(device, name);
                }
                assert_int_equal(matches, is_partition);
        }
}

static json_object *many_document(unsigned n, const char *state) {
        _cleanup_json_ json_object *o = json_format("{'devices': [], " POOLS "}");

        for (unsigned i = 0; i < n; i++)
                assert_true(json_append(member(o, "devices"),
                                        json_format("{'address': '0000:%02x:%02x.0', 'pool': 'gpu', 'state': '%s', "
                                                    "'iommu_group': %u}",
                                                    i / 32, i % 32, i == 0 ? state : "available", i)));
        return TAKE_PTR(o);
}

/* Applies a write as an API server does that does not know this member of devices. */
static void apply(json_object *items, json_object *written, json_object *write, const char *dropped) {
        json_object *body = member(write, "body"), *copy = NULL;
        const char *name = member_text(write, "name");

        json_object_object_del(items, name);
        if (!body)
                return;
        assert_int_equal(json_object_deep_copy(body, &copy, NULL), 0);
        for (size_t k = 0; dropped && k < json_length(member(member(copy, "spec"), "devices")); k++)
                json_object_object_del(json_at(member(member(copy, "spec"), "devices"), k), dropped);
        assert_true(member_add(items, name, copy));
        assert_true(member_add(written, name, json_object_new_object()));
        assert_true(member_add(member(written, name), "sent", json_object_get(member(body, "spec"))));
        assert_true(member_add(member(written, name), "kept", json_object_get(member(copy, "spec"))));
}

static int count_writes(json_object *items, json_object *document, const char *dropped) {
        const SliceOwner owner = { "n1", "uid-of-n1" };
        _cleanup_json_ json_object *wanted = make_wanted(document), *written = json_object_new_object();
        int64_t generation = 0;
        int n, left;

        for (n = 0;; n++) {
                _cleanup_json_ json_object *write = NULL;

                left = slices_difference(&owner, wanted, items, written, &generation, &write);
                assert_int_equal(left > 0, write != NULL);
                if (left == 0)
                        break;
                apply(items, written, write, dropped);
        }
        generation = 0;
        assert_int_equal(slices_difference(&owner, wanted, items, written, &generation, &written), 0);
        return n;
}

static int64_t generation_of(json_object *items) {
        json_object *spec = member(member(items, "n1-passthroughd.org-0"), "spec");

        return json_object_get_int64(member(member(spec, "pool"), "generation"));
}

TEST(test_difference) {
        _cleanup_json_ json_object *items = json_object_new_object(), *many = many_document(500, "available"),
                                   *failed = many_document(500, "stuck"), *few = many_document(64, "available"),
                                   *none = many_document(0, "available");

        assert_int_equal(count_writes(items, many, NULL), 8);
        assert_int_equal(generation_of(items), 1);
        assert_int_equal(count_writes(items, failed, NULL), 1);
        assert_int_equal(generation_of(items), 1);
        assert_int_equal(count_writes(items, many, NULL), 1);
        /* The first slice has another count, and seven slices are deleted. */
        assert_int_equal(count_writes(items, few, NULL), 8);
        assert_int_equal(generation_of(items), 2);
        assert_int_equal(count_writes(items, none, NULL), 1);
        assert_int_equal(json_object_object_length(items), 0);
}

/* An API server drops members that it does not know. The rest is not written again. */
TEST(test_dropped) {
        _cleanup_json_ json_object *items = json_object_new_object(), *failed = many_document(2, "stuck"),
                                   *sent = json_format("{'a': [{'b': 1, 'c': 2}, {'b': 1}]}"),
                                   *kept = json_format("{'a': [{'c': 2}, {'b': 1}], 'time': 3}"),
                                   *names = json_object_new_object();

        assert_int_equal(count_writes(items, failed, "taints"), 1);
        assert_int_equal(slices_dropped(sent, kept, names), 0);
        assert_int_equal(json_object_object_length(names), 1);
        assert_true(json_object_object_get_ex(names, "b", NULL));
}

/* A GPU with room for two vGPUs. A claim has one, and a person has another VF. */
TEST(test_vgpu) {
        _cleanup_json_ json_object *document = json_format(
                "{'devices': ["
                "{'address': '0000:13:00.4', 'pool': 'vgpu', 'type': 'vf', 'state': 'allocated', 'allocation': "
                "'claim-u', 'physical_function': '0000:13:00.0', 'iommu_group': 1},"
                "{'address': '0000:13:00.5', 'pool': 'vgpu', 'type': 'vf', 'state': 'available', "
                "'physical_function': '0000:13:00.0', 'iommu_group': 2},"
                "{'address': '0000:13:00.6', 'pool': 'vgpu', 'type': 'vf', 'state': 'host', 'verdict': 'no-vgpu', "
                "'physical_function': '0000:13:00.0', 'iommu_group': 3},"
                "{'address': '0000:13:00.7', 'pool': 'vgpu', 'type': 'vf', 'state': 'allocated', 'allocation': 'vm1', "
                "'physical_function': '0000:13:00.0', 'iommu_group': 4}],"
                "'allocations': [{'name': 'claim-u', 'consumer': 'u'}, {'name': 'vm1', 'consumer': null}], " POOLS "}");
        _cleanup_json_ json_object *wanted = make_wanted(document);
        json_object *counters = member_at(json_at(wanted, 1), "sharedCounters", 0);

        assert_int_equal(json_length(wanted), 2);
        assert_string_equal(member_text(counters, "name"), "pci-0000-13-00-0");
        assert_string_equal(member_text(member(member(counters, "counters"), "slots"), "value"), "2");
        for (size_t i = 0; i < 4; i++) {
                json_object *device = device_at(wanted, 0, i);

                assert_string_equal(member_text(member_at(device, "consumesCounters", 0), "counterSet"),
                                    "pci-0000-13-00-0");
                assert_int_equal(member(device, "taints") != NULL, i == 3);
        }
}

/* One device of a group, of pools of Kubernetes only, without mediated devices. */
TEST(test_devices) {
        _cleanup_json_ json_object *document = json_format(
                "{'devices': ["
                "{'address': '0000:01:00.0', 'pool': 'gpu', 'state': 'available', 'iommu_group': 1},"
                "{'address': '0000:01:00.1', 'pool': 'gpu', 'state': 'available', 'iommu_group': 1},"
                "{'address': '0000:02:00.0', 'pool': 'own', 'state': 'available', 'iommu_group': 2},"
                "{'address': '0000:03:00.0', 'pool': null, 'state': 'host', 'iommu_group': null},"
                "{'address': '0000:03:00.1', 'pool': 'gpu', 'state': 'available', 'iommu_group': 3, 'vgpu': "
                "{'mediated': true}},"
                "{'address': '0000:04:00.0', 'pool': 'gpu', 'state': 'quarantined', 'verdict': 'quarantined', "
                "'iommu_group': 4}], " POOLS "}");
        _cleanup_json_ json_object *wanted = make_wanted(document), *wrong = json_format("{'devices': 1}"),
                                   *none = NULL;
        json_object *last = device_at(wanted, 0, 1);

        assert_int_equal(json_length(member(json_at(wanted, 0), "devices")), 2);
        assert_string_equal(member_text(last, "name"), "pci-0000-04-00-0");
        assert_string_equal(member_text(member_at(last, "taints", 0), "key"), "passthroughd.org/out-of-service");
        assert_string_equal(member_text(member_at(last, "taints", 0), "value"), "quarantined");
        assert_int_equal(slices_wanted(wrong, &none), -EBADMSG);
}

/* The root bus and the switch, also below the devices of firmware that precede the root bus on some machines. */
TEST(test_place) {
        static const struct {
                const char *path, *root, *upstream;
        } cases[] = {
                { "pci0000:80/0000:80:01.0/0000:81:00.0", "pci0000:80", NULL },
                { "pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:00.0/0000:83:00.0", "pci0000:80", "0000:81:00.0" },
                { "LNXSYSTM:00/LNXSYBUS:00/pci0000:80/0000:80:01.0/0000:81:00.0", "pci0000:80", NULL },
                { "LNXSYSTM:00/pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:00.0/0000:83:00.0", "pci0000:80",
                  "0000:81:00.0" },
                { "", NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_json_ json_object *device = json_format("{'path': '%s'}", cases[i].path),
                                           *o = slice_attributes(NULL, device);
                json_object *root = member(o, "resource.kubernetes.io/pcieRoot"), *upstream = member(o, "switch");

                assert_non_null(o);
                assert_string_equal(member_text(root, "string") ?: "", cases[i].root ?: "");
                assert_string_equal(member_text(upstream, "string") ?: "", cases[i].upstream ?: "");
        }
}

/* Claims */

static int read_claim(const char *results, json_object **ret) {
        static const ClaimRef ref = { "default", "u", "c" };
        _cleanup_json_ json_object *claim = json_format(
                "{'metadata': {'uid': 'u'}, 'status': {'allocation': {'devices': {'results': %s}}}}", results);
        char sentence[CLAIM_SENTENCE_SIZE];

        return claim_from_document(claim, &ref, "n1", ret, sentence);
}

static bool has_gone(int status, const char *text) {
        static const ClaimRef ref = { "default", "u", "c" };
        _cleanup_json_ json_object *reply = json_format("%s", text);

        return claim_has_gone(status, reply, &ref);
}

#define NOT_FOUND(kind, name)                                                                                          \
        "{'kind': 'Status', 'reason': 'NotFound', 'details': {'kind': '" kind "', 'name': '" name "'}}"
#define CLAIM(uid, status) "{'kind': 'ResourceClaim', 'metadata': {'uid': " uid "}, 'status': " status "}"

/* Only an answer of the API server counts. */
TEST(test_gone) {
        assert_true(has_gone(404, NOT_FOUND("resourceclaims", "c")));
        assert_false(has_gone(404, NOT_FOUND("resourceclaims", "d")));
        assert_false(has_gone(404, NOT_FOUND("namespaces", "c")));
        assert_false(has_gone(404, "{}"));
        assert_false(has_gone(404, "404"));
        assert_false(has_gone(403, NOT_FOUND("resourceclaims", "c")));
        assert_false(has_gone(-EHOSTUNREACH, "{}"));
        assert_true(has_gone(200, CLAIM("'v'", "{'allocation': {}}")));
        assert_true(has_gone(200, CLAIM("'u'", "{}")));
        assert_false(has_gone(200, CLAIM("'u'", "{'allocation': {}}")));
        assert_false(has_gone(200, CLAIM("null", "{}")));
        assert_false(has_gone(200, "{'metadata': {'uid': 'v'}}"));
}

/* A prefix never ends within a character. */
TEST(test_prefix) {
        assert_int_equal(text_prefix("abc", 2), 2);
        assert_int_equal(text_prefix("abc", 9), 3);
        assert_int_equal(text_prefix("a\xc3\xa9", 2), 1);
        assert_int_equal(text_prefix("a\xc3\xa9", 3), 3);
}

TEST(test_claim) {
        static const char *const wrong[] = {
                "[]",
                "[{'request': 'r', 'driver': 'other.org', 'pool': 'n1', 'device': 'd'}]",
                "[{'request': 'r', 'driver': 'passthroughd.org', 'pool': 'n2', 'device': 'd'}]",
                "[{'request': '../r', 'driver': 'passthroughd.org', 'pool': 'n1', 'device': 'd'}]",
                "[{'request': 'r', 'driver': 'passthroughd.org', 'pool': 'n1', 'device': '../d'}]",
                "[{'driver': 'passthroughd.org', 'pool': 'n1'}]",
                "[{'request': 'r', 'driver': 'passthroughd.org', 'pool': 'n1', 'device': 'd', 'adminAccess': true}]",
                "3",
        };
        _cleanup_json_ json_object *record = NULL;
        char request[NAME_SIZE];

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                assert_int_equal(read_claim(wrong[i], &record), -EINVAL);
        assert_int_equal(read_claim("[{'request': 'a/b', 'driver': 'passthroughd.org', 'pool': 'n1', 'device': 'd'},"
                                    "{'request': 'a/b', 'driver': 'passthroughd.org', 'pool': 'n1', 'device': 'e'}]",
                                    &record),
                         0);
        assert_int_equal(claim_check_record(record, "u"), 0);
        assert_int_equal(claim_check_record(record, "v"), -EBADMSG);
        claim_request_name(record, 1, request);
        assert_string_equal(request, "a");
        assert_true(claim_is_first(record, 0) && !claim_is_first(record, 1));
}
