/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Requests as D-Bus messages. The input defines keys, types and values; the message's bus is not connected. A parsed
 * request is planned. The plan has exactly what was requested, is the same each time, and can be claimed.
 */

#include "fuzz-node.h"

#include <sys/socket.h>

#include "bus/json.h"
#include "bus/names.h"
#include "bus/request.h"

#define TEXT_MAX 80
#define DEPTH    4

typedef struct Input {
        const uint8_t *at, *end;
} Input;

static unsigned take_byte(Input *in) {
        return in->at < in->end ? *in->at++ : 0;
}

/* Returns mostly numbers at limits. */
static uint64_t take_number(Input *in) {
        static const uint64_t numbers[] = {
                0,          1,          2,          3,          4,          8,          9,
                16,         17,         32,         33,         64,         65,         4096,
                4097,       1ULL << 20, 2ULL << 20, 1ULL << 30, 2ULL << 30, 8ULL << 30, 1ULL << 40,
                1ULL << 50, INT32_MAX,  UINT32_MAX, INT64_MAX,  UINT64_MAX,
        };
        unsigned first = take_byte(in);
        uint64_t n = 0;

        if (first < ELEMENTSOF(numbers))
                return numbers[first];
        for (unsigned i = 0; i < first % 8; i++)
                n = n << 8 | take_byte(in);
        return n;
}

static const char *take_text(Input *in, char buf[static TEXT_MAX]) {
        static const char *const words[] = { "gpu",       "vf",       "nic",           "gpu ",
                                             "",          "required", "any",           "legacy",
                                             "preferred", "socket",   "switch",        "root-complex",
                                             "node",      "no such",  "gpu:vf=switch", "gpu:gpu=node,any" };
        unsigned first = take_byte(in), n = 0;

        if (first < ELEMENTSOF(words))
                return words[first];
        while (n < first % TEXT_MAX && in->at < in->end && (buf[n] = (char) (*in->at++ & 0x7f)))
                n++;
        buf[n] = '\0';
        return buf;
}

static int append_basic(sd_bus_message *m, char type, Input *in) {
        char buf[TEXT_MAX];
        uint64_t n;
        int truth;

        switch (type) {
        case 's':
                return sd_bus_message_append_basic(m, 's', take_text(in, buf));
        case 'o':
                return sd_bus_message_append_basic(m, 'o', "/a");
        case 'b':
                truth = take_byte(in) & 1;
                return sd_bus_message_append_basic(m, 'b', &truth);
        default:
                n = take_number(in);
                return sd_bus_message_append_basic(m, type, &n); /* little endian: narrow types take its low bytes */
        }
}

static const char *const types[] = { "s", "u",    "t",     "a(su)", "i",      "b",        "y",  "x",
                                     "o", "as",   "a{su}", "a(us)", "a(sut)", "v",        "au", "(su)",
                                     "d", "a(s)", "q",     "aas",   "a{sv}",  "a{s(su)}", "ao", "n" };

static int append_value(sd_bus_message *m, const char *type, Input *in, unsigned depth);

/* Appends the members of a structure, whose types are single letters except for the last. */
static int append_members(sd_bus_message *m, const char *contents, Input *in, unsigned depth) {
        int r = 0;

        for (const char *t = contents; r >= 0 && *t; t++) {
                r = append_value(m, t, in, depth);
                if (*t == '(')
                        break;
        }
        return r;
}

static int append_value(sd_bus_message *m, const char *type, Input *in, unsigned depth) {
        char kind = *type == '(' ? 'r' : *type == '{' ? 'e' : *type;
        char contents[32] = "";
        int r;

        if (!strchr("av(re", kind))
                return append_basic(m, kind, in);
        if (kind == 'v')
                (void) stpcpy(contents, depth > 0 ? types[take_byte(in) % ELEMENTSOF(types)] : "u");
        else
                (void) stpcpy(contents, type + 1);
        if (kind == 'r' || kind == 'e')
                contents[strlen(contents) - 1] = '\0';
        r = sd_bus_message_open_container(m, kind, contents);
        if (kind == 'v' && r >= 0)
                r = append_value(m, contents, in, depth - 1);
        else if (kind == 'a')
                for (unsigned n = take_byte(in) % 20; r >= 0 && n > 0; n--)
                        r = append_value(m, contents, in, depth);
        else if (r >= 0)
                r = append_members(m, contents, in, depth);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_entry(sd_bus_message *m, Input *in) {
        static const struct {
                const char *key, *type;
        } keys[] = {
                { REQUEST_KEY_DEVICES, "a(su)" },
                { REQUEST_KEY_CPUS, "u" },
                { REQUEST_KEY_MEMORY, "t" },
                { REQUEST_KEY_PAGE_SIZE, "t" },
                { REQUEST_KEY_CELLS, "u" },
                { REQUEST_KEY_NUMA, "s" },
                { REQUEST_KEY_PROXIMITY, "s" },
                { "devices ", "a(su)" },
                { REQUEST_KEY_VFS, "a{ss}" },
                { REQUEST_KEY_SHARED_MEMORY, "a(stt)" },
                /* From here on the keys of the bytes 0x90 to 0x9f. */
                { REQUEST_KEY_AT, "a(ss)" },
                { REQUEST_KEY_HOST_NODES, "au" },
                { REQUEST_KEY_CPUS_FROM, "s" },
                { REQUEST_KEY_MEMORY_FROM, "s" },
                { REQUEST_KEY_CONFIDENTIAL, "s" },
                { REQUEST_KEY_TOPOLOGY, "s" },
                { REQUEST_KEY_RELEASE_WITH_DOMAIN, "b" },
                { REQUEST_KEY_HOLD, "u" },
                { REQUEST_KEY_TAG, "s" },
                { REQUEST_KEY_CONSUMER, "s" },
                { REQUEST_KEY_TOKEN, "s" },
                { REQUEST_KEY_FABRIC, "s" },
                { REQUEST_KEY_FORCE, "b" },
                { REQUEST_KEY_REPEAT, "b" },
                { REQUEST_KEY_OWNER, "u" },
        };
        /* 0x90 to 0xbf stand for keys that were added later, so the corpus keeps its meaning. */
        unsigned byte = take_byte(in), key = byte % 8;
        const char *type;
        char buf[TEXT_MAX];
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (byte / 0x10 == 0x9)
                key = 10 + byte % 0x10 % (ELEMENTSOF(keys) - 10);
        else if (byte / 0x10 == 0xa)
                key = 9;
        else if (byte / 0x10 == 0xb)
                key = 8;
        type = byte < 0xc0 ? keys[key].type : types[take_byte(in) % ELEMENTSOF(types)];
        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', key != 7 ? keys[key].key : take_text(in, buf));
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', type);
        if (r >= 0)
                r = append_value(m, type, in, DEPTH);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static sd_bus_message *new_message(void) {
        static sd_bus *bus;
        sd_bus_message *m;
        int fds[2];

        if (!bus) {
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
                assert_true(sd_bus_new(&bus) >= 0);
                assert_true(sd_bus_set_fd(bus, fds[0], fds[0]) >= 0);
                assert_true(sd_bus_start(bus) >= 0);
        }
        assert_true(sd_bus_message_new_method_call(bus, &m, NULL, BUS_PATH, BUS_MANAGER_INTERFACE, "Plan") >= 0);
        return m;
}

/* Makes no message that sd-bus itself would refuse to send. */
static sd_bus_message *make_message(Input *in) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = new_message();
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        while (r >= 0 && in->at < in->end)
                r = append_entry(m, in);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r < 0)
                fail_msg("the message cannot be made: %s\n", strerror(-r));
        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
        assert_true(sd_bus_message_rewind(m, true) >= 0);
        return TAKE_PTR(m);
}

/* Only VFs have attributes, and no two have the same MAC. */
static void check_attributes(const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];

                assert_true(d->is_vf || d->attributes.set == 0);
                assert_int_equal(d->generated, 0);
                for (const AllocationDevice *e = a->devices; e < d; e++)
                        assert_true(!vf_attributes_have(&d->attributes, VF_MAC) ||
                                    (vf_attributes_differ(&d->attributes, &e->attributes) & VF_ATTRIBUTE_BIT(VF_MAC)));
        }
}

static bool is_on_its_nodes(const Allocation *a, const Region *r) {
        for (size_t i = 0; i < a->n_cells; i++)
                if (a->cells[i].node == r->node)
                        return true;
        return false;
}

static void check_plan(const TestNode *t, const Request *r, const Allocation *a) {
        unsigned wanted = 0, given = 0;

        for (size_t i = 0; i < r->n_pools; i++)
                wanted += r->pools[i].count;
        for (size_t i = 0; i < a->n_devices; i++)
                given += a->devices[i].role == DEVICE_ROLE_ASSIGNED;
        assert_int_equal(given, wanted);
        assert_int_equal(a->n_pins, r->cpus);
        assert_int_equal(allocation_memory(a), r->memory);
        assert_true(r->cells == 0 || a->n_cells == r->cells);
        check_attributes(a);
        assert_int_equal(a->n_regions, r->n_regions);
        for (size_t i = 0; i < a->n_regions; i++)
                assert_true(is_on_its_nodes(a, &a->regions[i]));
        for (size_t i = 0; i < a->n_pins; i++)
                assert_true(cpuset_has(&a->cpus, a->pins[i].cpu) && inventory_find_cpu(t->inventory, a->pins[i].cpu));
}

/* Plans again, and compares the texts of both plans. */
static void check_same(const TestNode *t, const Request *r, const Plan *plan) {
        _cleanup_(cleanup_plan_free) Plan *again = NULL;
        _cleanup_json_ json_object *first = json_plan(&t->context, plan), *second = NULL;
        _cleanup_free_ char *a = NULL, *b = NULL;

        assert_int_equal(plan_make(&t->context, r, &again, NULL), VERDICT_NONE);
        second = json_plan(&t->context, again);
        a = json_text(first);
        b = json_text(second);
        assert_true(a && b);
        assert_string_equal(a, b);
}

static void check_claim(TestNode *t, Plan *plan) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        assert_int_equal(string_copy(&plan->allocation->name, "guest"), 0);
        assert_int_equal(ledger_claim(t->ledger, t->inventory, t->config, plan->allocation, &refusal), VERDICT_NONE);
        plan->allocation = NULL;
        assert_true(ledger_verify(t->ledger, t->inventory, t->config));
        node_release(t, "guest");
        assert_int_equal(t->ledger->n_claims + t->ledger->n_pf_uses, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        TestNode *t = fuzz_node();
        Input in = { data, data + size };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = make_message(&in);
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_request_ Request request;
        Verdict v;

        request_init(&request);
        v = bus_read_request(m, &request, &refusal);
        if (v == VERDICT_NONE)
                v = plan_make(&t->context, &request, &plan, &refusal);
        else
                assert_int_equal(v, VERDICT_INVALID_REQUEST);
        assert_int_equal(v == VERDICT_NONE, plan != NULL);
        if (v != VERDICT_NONE) {
                fuzz_check_refusal(v, &refusal);
                return 0;
        }
        check_plan(t, &request, plan->allocation);
        check_same(t, &request, plan);
        check_claim(t, plan);
        return 0;
}
