/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The files in fw_cfg of a domain document. */

#include <json-c/json.h>
#include <libxml/parser.h>

#include "unit.h"

#include "domxml-fixture.h"
#include "guest/xmlnode.h"

#define PREFIX  "opt/org.passthroughd1/"
#define NCCL    PREFIX "nccl-topology.xml"
#define DEVICES PREFIX "devices.json"

static Verdict make_with(const Case *c, const char *text, GuestInfo info, char **ret, Refusal *refusal) {
        const DomainTemplate template = { text };

        return domxml_make(c->inv, c->config, c->a, text ? &template : NULL, info, ret, refusal);
}

static char *told(const Case *c, const char *text, GuestInfo info) {
        char *document = NULL;

        assert_int_equal(make_with(c, text, info, &document, NULL), VERDICT_NONE);
        return document;
}

/* Decodes base64 (RFC 4648) in place. */
static void decode(char *text) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        size_t n = strlen(text), at = 0;
        unsigned bits = 0;

        assert_int_equal(n % 4, 0);
        for (size_t i = 0; i < n && text[i] != '='; i++) {
                const char *digit = strchr(digits, text[i]);

                assert_non_null(digit);
                bits = bits << 6 | (unsigned) (digit - digits);
                if (i % 4 > 0)
                        text[at++] = (char) (bits >> (6 - i % 4 * 2) & 0xff);
        }
        text[at] = '\0';
}

/* Returns the text of an entry as libvirt reads it, decoded, or NULL when there is none. */
static char *entry(const char *document, const char *name) {
        xmlDoc *doc = xmlReadMemory(document, (int) strlen(document), NULL, NULL, XML_PARSE_NONET);
        char *text = NULL;

        assert_non_null(doc);
        for (xmlNode *s = xmlDocGetRootElement(doc)->children; s; s = s->next)
                for (xmlNode *n = node_is(s, "sysinfo") && node_has(s, "type", "fwcfg") ? s->children : NULL; n;
                     n = n->next)
                        if (node_is(n, "entry") && node_has(n, "name", name)) {
                                assert_null(text);
                                text = (char *) xmlNodeGetContent(n);
                                if (strncmp(name, PREFIX, strlen(PREFIX)) == 0)
                                        decode(text);
                        }
        xmlFreeDoc(doc);
        return text;
}

static void assert_device(json_object *devices, size_t i, const char *key, const char *value) {
        json_object *member = NULL;

        assert_true(json_object_object_get_ex(json_object_array_get_idx(devices, i), key, &member));
        if (value)
                assert_string_equal(json_object_get_string(member), value);
        else
                assert_null(member);
}

TEST(test_topology) {
        _cleanup_case_ Case c = one_node("vm50");
        _cleanup_free_ char *document = told(&c, NULL, GUEST_INFO_GUEST), *text = entry(document, NCCL), *nccl = NULL;

        assert_int_equal(domxml_nccl_topology(c.inv, c.config, c.a, NULL, &nccl, NULL), VERDICT_NONE);
        assert_string_equal(text, nccl);
}

/* Texts of every length modulo 3. */
TEST(test_encoded) {
        _cleanup_case_ Case c = one_node("vm58");
        char pool[] = ",<&\"'>=x";

        for (size_t n = strlen(pool); n > 0; n--) {
                _cleanup_free_ char *document = NULL, *text = NULL;

                pool[n] = '\0';
                assert_int_equal(string_copy(&c.a->devices[0].pool, pool), 0);
                document = told(&c, NULL, GUEST_INFO_GUEST);
                text = entry(document, DEVICES);
                assert_string_equal(text + strlen(text) - 4, "\n]}\n");
        }
}

TEST(test_devices) {
        _cleanup_case_ Case c = one_node("vm51");
        _cleanup_free_ char *document = told(&c, NULL, GUEST_INFO_HOST), *text = entry(document, DEVICES);
        json_object *told_devices = json_tokener_parse(text), *devices = NULL;

        assert_true(json_object_object_get_ex(told_devices, "devices", &devices));
        assert_int_equal(json_object_array_length(devices), 2);
        assert_device(devices, 0, "slot", "gpu0");
        assert_device(devices, 0, "pool", "gpu");
        assert_device(devices, 0, "guest_address", "0000:02:00.0");
        assert_device(devices, 0, "seen_address", "0000:fc:00.0");
        assert_device(devices, 0, "address", "0000:82:00.0");
        assert_device(devices, 1, "slot", "ib-vf0");
        assert_device(devices, 1, "address", "0000:83:00.1");
        json_object_put(told_devices);
}

TEST(test_host_addresses) {
        _cleanup_case_ Case c = one_node("vm52");
        _cleanup_free_ char *document = told(&c, NULL, GUEST_INFO_GUEST), *text = entry(document, DEVICES);

        assert_has(text, "\"gpu0\"");
        assert_has_not(text, "0000:82:00.0");
        assert_has_not(text, "0000:83:00.1");
}

static void add_slots(const Case *c, const char *name, RemoteKind kind, const char *variables, const char *endpoint,
                      unsigned slots) {
        AllocationService s = { .kind = kind, .slots = slots };

        (void) snprintf(s.name, sizeof(s.name), "%s", name);
        (void) snprintf(s.variables, sizeof(s.variables), "%s", variables);
        (void) snprintf(s.endpoint, sizeof(s.endpoint), "%s", endpoint);
        assert_int_equal(allocation_add_service(c->a, &s), 0);
}

TEST(test_services) {
        _cleanup_case_ Case c = one_node("vm56");
        _cleanup_free_ char *document = NULL, *without = told(&c, NULL, GUEST_INFO_GUEST), *env = NULL, *file = NULL;
        json_object *gvirtus;

        assert_has_not(without, "services.env");
        add_slots(&c, "r", REMOTE_KIND_RCUDA, "RCUDA_NETWORK=IB", "gpu1:8308", 2);
        add_slots(&c, "r", REMOTE_KIND_RCUDA, "RCUDA_NETWORK=IB", "10.0.0.2:9000", 1);
        add_slots(&c, "l", REMOTE_KIND_LUPINE, "", "gpu3:14833", 1);
        add_slots(&c, "l", REMOTE_KIND_LUPINE, "", "gpu4:14833", 5);
        add_slots(&c, "c", REMOTE_KIND_CRICKET, "", "gpu5:1", 1);
        add_slots(&c, "g", REMOTE_KIND_GVIRTUS, "", "gpu6.example.org:9999", 1);
        add_slots(&c, "o", REMOTE_KIND_CUSTOM, "A=%h:%p,%n  B=", "gpu7:7", 4);
        document = told(&c, NULL, GUEST_INFO_GUEST);
        env = entry(document, PREFIX "services.env");
        file = entry(document, PREFIX "gvirtus.json");
        assert_string_equal(env, "RCUDA_DEVICE_0=gpu1:0\nRCUDA_DEVICE_1=gpu1:1\nRCUDA_DEVICE_2=10.0.0.2@9000:0\n"
                                 "RCUDA_DEVICE_COUNT=3\nLUPINE_SERVER=gpu3:14833,gpu4:14833\n"
                                 "REMOTE_GPU_ADDRESS=gpu5:1\nGVIRTUS_CONFIG=/run/passthroughd/gvirtus.json\n"
                                 "RCUDA_NETWORK=IB\nA=gpu7:7,4\nB=\n");
        gvirtus = json_tokener_parse(file);
        assert_non_null(gvirtus);
        assert_has(file, "\"server_address\":\"gpu6.example.org\",\"port\":\"9999\"");
        json_object_put(gvirtus);
}

/* Without an expander, the guest's firmware chooses the bus numbers. */
TEST(test_no_expander) {
        _cleanup_case_ Case c = case_new("vm53", 1, (int[]) { 0 }, false);
        _cleanup_free_ char *document = NULL, *nccl = NULL, *text = NULL;

        add_gpu(&c, "0000:c2:00.0", -1, 0, "gpu0");
        pin(&c, "2-5", 8 * GIB, 0);
        document = told(&c, NULL, GUEST_INFO_GUEST);
        nccl = entry(document, NCCL);
        text = entry(document, DEVICES);
        assert_null(nccl);
        assert_has(text, "\"seen_address\":null");
}

TEST(test_nothing) {
        _cleanup_case_ Case c = one_node("vm54");
        _cleanup_free_ char *none = told(&c, NULL, GUEST_INFO_NONE), *unable = NULL, *able = NULL, *bare = NULL;
        size_t n_devices = c.a->n_devices;

        assert_has_not(none, "sysinfo");
        c.inv->libvirt = (LibvirtFeatures) { .known = true };
        unable = told(&c, NULL, GUEST_INFO_HOST);
        assert_has_not(unable, "sysinfo");
        c.inv->libvirt.fwcfg = true;
        able = told(&c, NULL, GUEST_INFO_GUEST);
        assert_has(able, NCCL);
        c.a->n_devices = 0;
        bare = told(&c, NULL, GUEST_INFO_GUEST);
        assert_has_not(bare, "sysinfo");
        c.a->n_devices = n_devices; /* restored, because they are freed with the case */
}

#define OLD "<entry name='" NCCL "'>old</entry><entry name='" PREFIX "gone'>old</entry>"

TEST(test_template) {
        static const char template[] =
                "<domain type='kvm'><sysinfo type='fwcfg'>" OLD "<entry name='opt/org.example/x'>a, b\n</entry>"
                "</sysinfo><sysinfo type='smbios'><system><entry name='uuid'>old</entry></system></sysinfo></domain>";
        _cleanup_case_ Case c = one_node("vm55");
        _cleanup_free_ char *document = told(&c, template, GUEST_INFO_GUEST), *nccl = entry(document, NCCL),
                            *text = entry(document, "opt/org.example/x"), *none = told(&c, template, GUEST_INFO_NONE),
                            *kept = entry(none, "opt/org.example/x"),
                            *empty = told(&c, "<domain type='kvm'><sysinfo type='fwcfg'>" OLD "</sysinfo></domain>",
                                          GUEST_INFO_NONE);

        assert_has(nccl, "<system");
        assert_string_equal(text, "a, b\n");
        assert_has_not(document, "old");
        assert_has_not(none, PREFIX);
        assert_string_equal(kept, text);
        assert_has_not(empty, "sysinfo");
}

TEST(test_many_entries) {
        _cleanup_case_ Case c = one_node("vm56");
        _cleanup_free_ char *template = strdup("<domain type='kvm'>\n<sysinfo type='fwcfg'>"), *document = NULL;

        for (unsigned i = 0; i < 9; i++)
                assert_int_equal(string_append(&template, "", "<entry name='opt/org.example/%u'>x</entry>", i), 0);
        assert_int_equal(string_append(&template, "", "</sysinfo></domain>"), 0);
        assert_refused(&c, template, VERDICT_INVALID_TEMPLATE, "See line 2.");
        document = told(&c, template, GUEST_INFO_NONE);
        assert_has(document, "opt/org.example/8");
}

/* The text is above the limit in base64, and below without. */
TEST(test_long_text) {
        _cleanup_case_ Case c = one_node("vm57");
        char pool[97 * 1024 + 1];
        _cleanup_free_ char *document = NULL;

        memset(pool, 'x', sizeof(pool) - 1);
        pool[sizeof(pool) - 1] = '\0';
        assert_int_equal(string_copy(&c.a->devices[0].pool, pool), 0);
        assert_refused(&c, NULL, VERDICT_INVALID_REQUEST, "128 KiB");
        document = told(&c, NULL, GUEST_INFO_NONE);
        pool[95 * 1024] = '\0';
        assert_int_equal(string_copy(&c.a->devices[0].pool, pool), 0);
        free(document);
        document = told(&c, NULL, GUEST_INFO_GUEST);
}

TEST_GROUP(NULL, teardown)
