/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses the request (a{sv}) of Plan, Allocate and Attach. */

#include "request.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>

#include "bus/names.h"
#include "plan/proximity.h"
#include "server-internal.h"
#include "util/strings.h"

/* The most bytes of strings in a request. They bound the memory of a call that waits. */
#define NAME_SIZE_MAX       255U
#define ATTRIBUTES_SIZE_MAX 1023U
#define PROXIMITY_SIZE_MAX  8191U
#define CPUS_SIZE_MAX       16383U

typedef struct RequestKey {
        const char *name;
        const char *type; /* D-Bus type of the value. If it is an array, read() is called for each element */
        Verdict (*read)(sd_bus_message *m, const struct RequestKey *key, Request *r, Refusal *ret);
        size_t offset; /* offset of the member in Request; unused if read() does not call member_of() */
        size_t max;    /* the most bytes of a string */
        /* Only for read_word(). */
        int (*find)(const char *word); /* returns the value of an enum, or a negative number */
        const char *what, *remedy;
} RequestKey;

/* Refuses a message that does not match its signature, or for which memory ran out. */
static Verdict unreadable(Refusal *ret) {
        return refuse_request(ret, NULL, "The request could not be read.");
}

/* Refuses a string of more than max bytes, before it is copied. */
static Verdict check_size(const char *text, size_t max, Refusal *ret) {
        if (strnlen(text, max + 1) <= max)
                return VERDICT_NONE;
        return refuse_request(ret, NULL, "The request has the string '%s' of more than %zu bytes.", QUOTABLE(text),
                              max);
}

static void *member_of(Request *r, const RequestKey *key) {
        return (char *) r + key->offset;
}

/* Reads a number into the member of the key. The member has the D-Bus type of the key: u or t. */
static Verdict read_number(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        return sd_bus_message_read_basic(m, *key->type, member_of(r, key)) < 0 ? unreadable(ret) : VERDICT_NONE;
}

static Verdict read_flag(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        bool *flag = member_of(r, key);
        int value;

        if (sd_bus_message_read_basic(m, 'b', &value) < 0)
                return unreadable(ret);
        *flag = value;
        return VERDICT_NONE;
}

static Verdict read_string(sd_bus_message *m, const RequestKey *key, const char **ret_s, Refusal *ret) {
        return sd_bus_message_read_basic(m, 's', ret_s) < 0 ? unreadable(ret) : check_size(*ret_s, key->max, ret);
}

static Verdict read_text(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        const char *s;
        Verdict v = read_string(m, key, &s, ret);

        if (v != VERDICT_NONE)
                return v;
        return string_copy(member_of(r, key), s) < 0 ? unreadable(ret) : VERDICT_NONE;
}

static Verdict read_devices(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        const char *pool;
        uint32_t count;
        Verdict v;
        int k;

        if (sd_bus_message_read(m, "(su)", &pool, &count) < 0)
                return unreadable(ret);
        v = check_size(pool, key->max, ret);
        if (v != VERDICT_NONE)
                return v;
        k = request_add_pool(r, pool, count);
        if (k == -EEXIST)
                return refuse_request(ret, "Ask for each pool once, with the count.",
                                      "The request names pool '%s' twice.", QUOTABLE(pool));
        if (k == -E2BIG)
                return refuse_request(ret, NULL, "A request can name at most %u pools.", REQUEST_POOLS_MAX);
        return k < 0 ? unreadable(ret) : VERDICT_NONE;
}

static Verdict read_at(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        const char *pool, *text;
        PciAddress address;
        Verdict v;
        int k;

        if (sd_bus_message_read(m, "(ss)", &pool, &text) < 0)
                return unreadable(ret);
        v = check_size(pool, key->max, ret);
        if (v == VERDICT_NONE)
                v = bus_read_address(text, &address, ret);
        if (v != VERDICT_NONE)
                return v;
        k = request_add_device(r, pool, address);
        if (k == -EEXIST)
                return refuse_request(ret, NULL, "The request names %s twice.", PCI_ADDRESS_STR(address));
        if (k == -E2BIG)
                return refuse_request(ret, NULL, "A request can name at most %u devices.", REQUEST_DEVICES_MAX);
        return k < 0 ? unreadable(ret) : VERDICT_NONE;
}

static Verdict read_host_nodes(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        uint32_t node;
        int k;

        (void) key;
        if (sd_bus_message_read_basic(m, 'u', &node) < 0)
                return unreadable(ret);
        if (node > INT_MAX)
                return refuse_request(ret, NULL, "There is no NUMA node %" PRIu32 ".", node);
        k = request_add_host_node(r, (int) node);
        if (k == -EEXIST)
                return refuse_request(ret, NULL, "The request names NUMA node %" PRIu32 " twice.", node);
        if (k == -E2BIG)
                return refuse_request(ret, NULL, "A request can name at most %u NUMA nodes.", ALLOCATION_CELLS_MAX);
        return VERDICT_NONE;
}

static Verdict read_set(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        CpuSet *set = member_of(r, key);
        bool nodes = set == &r->memory_from;
        const char *s;
        Verdict v = read_string(m, key, &s, ret);

        if (v != VERDICT_NONE || (cpuset_parse(s, set) >= 0 && !cpuset_is_empty(set)))
                return v;
        return refuse_request(
                ret, nodes ? "List node numbers and ranges: 2-3." : "List CPU numbers and ranges: 8-15,120-127.",
                "There is no set of %s '%s'.", nodes ? "NUMA nodes" : "CPUs", QUOTABLE(s));
}

/* Returns the page size in the form that Request has: REQUEST_PAGE_MIN, which means ordinary pages, becomes 0. */
static uint64_t hugepage(uint64_t size) {
        return size == REQUEST_PAGE_MIN ? 0 : size;
}

static Verdict read_page_size(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        Verdict v = read_number(m, key, r, ret);

        r->page_size = hugepage(r->page_size);
        return v;
}

static Verdict read_word(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        int *member = member_of(r, key);
        const char *s;
        Verdict v = read_string(m, key, &s, ret);

        if (v != VERDICT_NONE)
                return v;
        *member = key->find(s);
        if (*member >= 0)
                return VERDICT_NONE;
        return refuse_request(ret, key->remedy, "There is no %s '%s'.", key->what, QUOTABLE(s));
}

static int find_numa(const char *word) {
        return (int) numa_policy_from_string(word);
}

static int find_topology(const char *word) {
        return (int) guest_topology_from_string(word);
}

/* Returns the Confidential with this name; -EINVAL if the name is unknown, or is that of a guest without private
 * memory. */
static int find_confidential(const char *word) {
        Confidential c = confidential_from_string(word);

        return confidential_is_private(c) ? (int) c : -EINVAL;
}

static Verdict read_proximity(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        const char *s;
        Verdict v = read_string(m, key, &s, ret);

        return v != VERDICT_NONE ? v : proximity_parse(s, r, ret);
}

static Verdict read_fabric(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        const char *s;
        Verdict v = read_string(m, key, &s, ret);

        if (v != VERDICT_NONE)
                return v;
        r->no_fabric = streq(s, "off");
        if (r->no_fabric || streq(s, "partition"))
                return VERDICT_NONE;
        return refuse_request(ret, "Say partition or off.", "There is no use of the NVLink fabric '%s'.", QUOTABLE(s));
}

static Verdict read_vf_attributes(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        _cleanup_free_ char *problem = NULL;
        const char *slot, *text;
        VfAttributes attributes;
        Verdict v;
        int k;

        if (sd_bus_message_read(m, "{ss}", &slot, &text) < 0)
                return unreadable(ret);
        v = check_size(slot, NAME_SIZE_MAX, ret);
        if (v == VERDICT_NONE)
                v = check_size(text, key->max, ret);
        if (v != VERDICT_NONE)
                return v;
        k = vf_attributes_parse_wanted(text, &attributes, &problem);
        if (k == -EINVAL)
                return refuse_request(ret, NULL, "VF attributes of '%s': %s", QUOTABLE(slot), problem);
        if (k >= 0)
                k = request_add_attributes(r, slot, &attributes);
        if (k == -EEXIST)
                return refuse_request(ret, "Put all its attributes into one entry.",
                                      "The request has VF attributes of '%s' twice.", QUOTABLE(slot));
        if (k == -E2BIG)
                return refuse_request(ret, NULL, "A request can have VF attributes for at most %u slots.",
                                      REQUEST_DEVICES_MAX);
        return k < 0 ? unreadable(ret) : VERDICT_NONE;
}

static Verdict read_shared_memory(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        const char *name;
        uint64_t size, page_size;

        (void) key;
        if (sd_bus_message_read(m, "(stt)", &name, &size, &page_size) < 0)
                return unreadable(ret);
        return request_add_region(r, name, size, hugepage(page_size), ret);
}

static Verdict read_owner(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        Verdict v = read_number(m, key, r, ret);

        r->has_owner = true;
        if (v == VERDICT_NONE && r->owner == UINT32_MAX)
                return refuse_request(ret, "Set 'owner' to the uid of the owner, or leave it out.",
                                      "The owner %" PRIu32 " is not a valid uid.", r->owner);
        return v;
}

static Verdict read_hold(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        Verdict v = read_number(m, key, r, ret);

        if (v == VERDICT_NONE && r->hold == 0)
                return refuse_request(ret, NULL, "The lease must have 1 to %u seconds.", ALLOCATION_HOLD_MAX);
        return v;
}

static const RequestKey request_keys[] = {
        { REQUEST_KEY_DEVICES, "a(su)", read_devices, .max = NAME_SIZE_MAX },
        { REQUEST_KEY_AT, "a(ss)", read_at, .max = NAME_SIZE_MAX },
        { REQUEST_KEY_HOST_NODES, "au", read_host_nodes },
        { REQUEST_KEY_CPUS_FROM, "s", read_set, offsetof(Request, cpus_from), CPUS_SIZE_MAX },
        { REQUEST_KEY_MEMORY_FROM, "s", read_set, offsetof(Request, memory_from), CPUS_SIZE_MAX },
        { REQUEST_KEY_CPUS, "u", read_number, offsetof(Request, cpus) },
        { REQUEST_KEY_MEMORY, "t", read_number, offsetof(Request, memory) },
        { REQUEST_KEY_PAGE_SIZE, "t", read_page_size, offsetof(Request, page_size) },
        { REQUEST_KEY_CELLS, "u", read_number, offsetof(Request, cells) },
        { REQUEST_KEY_NUMA, "s", read_word, offsetof(Request, numa), NAME_SIZE_MAX, find_numa, "NUMA policy",
          "Say legacy, preferred, socket, required or single." },
        { REQUEST_KEY_PROXIMITY, "s", read_proximity, .max = PROXIMITY_SIZE_MAX },
        { REQUEST_KEY_TOPOLOGY, "s", read_word, offsetof(Request, topology), NAME_SIZE_MAX, find_topology, "topology",
          "Say mirror or flat." },
        { REQUEST_KEY_FABRIC, "s", read_fabric, .max = NAME_SIZE_MAX },
        { REQUEST_KEY_CONFIDENTIAL, "s", read_word, offsetof(Request, confidential), NAME_SIZE_MAX, find_confidential,
          "kind of confidential guest", "Say snp or tdx." },
        { REQUEST_KEY_VFS, "a{ss}", read_vf_attributes, .max = ATTRIBUTES_SIZE_MAX },
        { REQUEST_KEY_SHARED_MEMORY, "a(stt)", read_shared_memory },
        { REQUEST_KEY_OWNER, "u", read_owner, offsetof(Request, owner) },
        { REQUEST_KEY_HOLD, "u", read_hold, offsetof(Request, hold) },
        { REQUEST_KEY_TAG, "s", read_text, offsetof(Request, tag), ALLOCATION_TAG_MAX },
        { REQUEST_KEY_TOKEN, "s", read_text, offsetof(Request, token), ALLOCATION_TOKEN_MAX },
        { REQUEST_KEY_CONSUMER, "s", read_text, offsetof(Request, consumer), ALLOCATION_CONSUMER },
        { REQUEST_KEY_RELEASE_WITH_DOMAIN, "b", read_flag, offsetof(Request, release_with_domain) },
        { REQUEST_KEY_FORCE, "b", read_flag, offsetof(Request, force) },
        { REQUEST_KEY_REPEAT, "b", read_flag, offsetof(Request, repeat) },
};

static Verdict refuse_key(const char *name, Refusal *ret) {
        _cleanup_free_ char *remedy = NULL;

        for (size_t i = 0; i < ELEMENTSOF(request_keys); i++)
                if (string_append(&remedy, i + 1 < ELEMENTSOF(request_keys) ? ", " : " and ", "%s%s",
                                  i == 0 ? "The keys are " : "", request_keys[i].name) < 0)
                        return unreadable(ret);
        if (string_append(&remedy, "", ".") < 0)
                return unreadable(ret);
        return refuse_request(ret, remedy, "There is no request key '%s'.", QUOTABLE(name));
}

static Verdict read_elements(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        int end;

        if (sd_bus_message_enter_container(m, 'a', key->type + 1) < 0)
                return unreadable(ret);
        while ((end = sd_bus_message_at_end(m, false)) == 0) {
                Verdict v = key->read(m, key, r, ret);

                if (v != VERDICT_NONE)
                        return v;
        }
        return end < 0 || sd_bus_message_exit_container(m) < 0 ? unreadable(ret) : VERDICT_NONE;
}

/* Reads the value of a key. Refuses a value of another type than the key has. */
static Verdict read_value(sd_bus_message *m, const RequestKey *key, Request *r, Refusal *ret) {
        Verdict v;

        if (sd_bus_message_enter_container(m, 'v', key->type) < 0)
                return unreadable(ret);
        v = *key->type == 'a' ? read_elements(m, key, r, ret) : key->read(m, key, r, ret);
        if (v != VERDICT_NONE)
                return v;
        return sd_bus_message_exit_container(m) < 0 ? unreadable(ret) : VERDICT_NONE;
}

/* Reads one key and its value. seen: a bit for each key that was read; a key that occurs again is refused. */
static Verdict read_entry(sd_bus_message *m, Request *r, unsigned *seen, Refusal *ret) {
        const char *name, *contents;

        _Static_assert(ELEMENTSOF(request_keys) <= CHAR_BIT * sizeof(*seen), "seen has a bit for each key");
        if (sd_bus_message_read_basic(m, 's', &name) < 0 || sd_bus_message_peek_type(m, NULL, &contents) < 0)
                return unreadable(ret);
        for (size_t i = 0; i < ELEMENTSOF(request_keys); i++) {
                if (!streq(name, request_keys[i].name))
                        continue;
                if (*seen & (1U << i))
                        return refuse_request(ret, NULL, "The request has the key '%s' twice.", name);
                *seen |= 1U << i;
                if (!streq(contents, request_keys[i].type))
                        return refuse_request(ret, NULL, "The key '%s' has the D-Bus type '%s' instead of '%s'.", name,
                                              QUOTABLE(contents), request_keys[i].type);
                return read_value(m, &request_keys[i], r, ret);
        }
        return refuse_key(name, ret);
}

Verdict bus_read_request(sd_bus_message *m, Request *r, Refusal *ret) {
        unsigned seen = 0;
        int k;

        if (sd_bus_message_enter_container(m, 'a', "{sv}") < 0)
                return unreadable(ret);
        while ((k = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                Verdict v = read_entry(m, r, &seen, ret);

                if (v != VERDICT_NONE)
                        return v;
                if (sd_bus_message_exit_container(m) < 0)
                        return unreadable(ret);
        }
        return k < 0 || sd_bus_message_exit_container(m) < 0 ? unreadable(ret) : VERDICT_NONE;
}
