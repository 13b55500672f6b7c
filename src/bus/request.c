/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses the request (a{sv}) of Plan and Allocate. */

#include "request.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>

#include "bus/names.h"
#include "plan/proximity.h"
#include "server-internal.h"
#include "util/strings.h"

/* The longest strings of a request, in bytes: longer than any that is valid, but short enough for calls that wait. */
#define NAME_SIZE_MAX       255U
#define ATTRIBUTES_SIZE_MAX 1023U
#define PROXIMITY_SIZE_MAX  8191U
#define CPUS_SIZE_MAX       16383U

/* Checks a string before it is copied. */
static int check_size(const char *text, size_t max, Refusal *ret) {
        if (strnlen(text, max + 1) <= max)
                return 0;
        (void) refuse_request(ret, NULL, "The request has the string '%s' of more than %zu bytes.", QUOTABLE(text),
                              max);
        return -EINVAL;
}

static int read_devices(sd_bus_message *m, Request *r, Refusal *ret) {
        const char *pool;
        uint32_t count;
        int k = sd_bus_message_enter_container(m, 'a', "(su)");

        if (k < 0)
                return k;
        while ((k = sd_bus_message_read(m, "(su)", &pool, &count)) > 0) {
                k = check_size(pool, NAME_SIZE_MAX, ret);
                if (k >= 0)
                        k = request_add_pool(r, pool, count);
                if (k == -EEXIST)
                        (void) refuse_request(ret, "Ask for each pool once, with the count.",
                                              "The request names pool '%s' twice.", QUOTABLE(pool));
                else if (k == -E2BIG)
                        (void) refuse_request(ret, NULL, "A request can name at most %u pools.", REQUEST_POOLS_MAX);
                if (k < 0)
                        return k;
        }
        return k < 0 ? k : sd_bus_message_exit_container(m);
}

static int read_numa(sd_bus_message *m, Request *r, Refusal *ret) {
        const char *s;
        int k = sd_bus_message_read(m, "s", &s);

        if (k < 0)
                return k;
        r->numa = numa_policy_from_string(s);
        if ((int) r->numa >= 0)
                return 0;
        (void) refuse_request(ret, "Say legacy, preferred, socket, required or single.",
                              "There is no NUMA policy '%s'.", QUOTABLE(s));
        return -EINVAL;
}

static int read_proximity(sd_bus_message *m, Request *r, Refusal *ret) {
        const char *s;
        int k = sd_bus_message_read(m, "s", &s);

        if (k >= 0)
                k = check_size(s, PROXIMITY_SIZE_MAX, ret);
        if (k < 0)
                return k;
        return proximity_parse(s, r, ret) == VERDICT_NONE ? 0 : -EINVAL;
}

static int read_topology(sd_bus_message *m, Request *r, Refusal *ret) {
        const char *s;
        int k = sd_bus_message_read(m, "s", &s);

        if (k < 0)
                return k;
        r->topology = guest_topology_from_string(s);
        if ((int) r->topology >= 0)
                return 0;
        (void) refuse_request(ret, "Say mirror or flat.", "There is no topology '%s'.", QUOTABLE(s));
        return -EINVAL;
}

static int read_fabric(sd_bus_message *m, Request *r, Refusal *ret) {
        const char *s;
        int k = sd_bus_message_read(m, "s", &s);

        if (k < 0)
                return k;
        r->no_fabric = streq(s, "off");
        if (r->no_fabric || streq(s, "partition"))
                return 0;
        (void) refuse_request(ret, "Say partition or off.", "There is no use of the NVLink fabric '%s'.", QUOTABLE(s));
        return -EINVAL;
}

static int read_confidential(sd_bus_message *m, Request *r, Refusal *ret) {
        const char *s;
        int k = sd_bus_message_read(m, "s", &s);

        if (k < 0)
                return k;
        r->confidential = confidential_from_string(s);
        if (r->confidential == CONFIDENTIAL_SNP || r->confidential == CONFIDENTIAL_TDX)
                return 0;
        (void) refuse_request(ret, "Say snp or tdx.", "There is no kind of confidential guest '%s'.", QUOTABLE(s));
        return -EINVAL;
}

static int read_cpus(sd_bus_message *m, Request *r, Refusal *ret) {
        return sd_bus_message_read(m, "u", &r->cpus);
}

static int read_memory(sd_bus_message *m, Request *r, Refusal *ret) {
        return sd_bus_message_read(m, "t", &r->memory);
}

/* The page size of base pages is 0 in a Request. */
static uint64_t hugepage(uint64_t size) {
        return size == REQUEST_PAGE_MIN ? 0 : size;
}

static int read_page_size(sd_bus_message *m, Request *r, Refusal *ret) {
        uint64_t size;
        int k = sd_bus_message_read(m, "t", &size);

        if (k >= 0)
                r->page_size = hugepage(size);
        return k;
}

static int read_cells(sd_bus_message *m, Request *r, Refusal *ret) {
        return sd_bus_message_read(m, "u", &r->cells);
}

static int refuse_slot(const char *slot, int error, Refusal *ret) {
        if (error == -EEXIST)
                (void) refuse_request(ret, "Put all its attributes into one entry.",
                                      "The request has VF attributes of '%s' twice.", QUOTABLE(slot));
        else if (error == -E2BIG)
                (void) refuse_request(ret, NULL, "A request can have VF attributes for at most %u slots.",
                                      REQUEST_DEVICES_MAX);
        return error;
}

static int read_at(sd_bus_message *m, Request *r, Refusal *ret) {
        const char *pool, *text;
        int k = sd_bus_message_enter_container(m, 'a', "(ss)");

        if (k < 0)
                return k;
        while ((k = sd_bus_message_read(m, "(ss)", &pool, &text)) > 0) {
                PciAddress address;

                if (check_size(pool, NAME_SIZE_MAX, ret) < 0 || bus_read_address(text, &address, ret) != VERDICT_NONE)
                        return -EINVAL;
                k = request_add_device(r, pool, address);
                if (k == -EEXIST)
                        (void) refuse_request(ret, NULL, "The request names %s twice.", PCI_ADDRESS_STR(address));
                else if (k == -E2BIG)
                        (void) refuse_request(ret, NULL, "A request can name at most %u devices.", REQUEST_DEVICES_MAX);
                if (k < 0)
                        return k;
        }
        return k < 0 ? k : sd_bus_message_exit_container(m);
}

static int read_host_nodes(sd_bus_message *m, Request *r, Refusal *ret) {
        uint32_t node;
        int k = sd_bus_message_enter_container(m, 'a', "u");

        if (k < 0)
                return k;
        while ((k = sd_bus_message_read(m, "u", &node)) > 0) {
                k = node > INT_MAX ? -EINVAL : request_add_host_node(r, (int) node);
                if (k == -EINVAL)
                        (void) refuse_request(ret, NULL, "There is no NUMA node %" PRIu32 ".", node);
                else if (k == -EEXIST)
                        (void) refuse_request(ret, NULL, "The request names NUMA node %" PRIu32 " twice.", node);
                else if (k == -E2BIG)
                        (void) refuse_request(ret, NULL, "A request can name at most %u NUMA nodes.",
                                              ALLOCATION_CELLS_MAX);
                if (k < 0)
                        return k;
        }
        return k < 0 ? k : sd_bus_message_exit_container(m);
}

/* remedy, what: for the refusal. */
static int read_set(sd_bus_message *m, CpuSet *set, const char *remedy, const char *what, Refusal *ret) {
        const char *s;
        int k = sd_bus_message_read(m, "s", &s);

        if (k < 0)
                return k;
        if (check_size(s, CPUS_SIZE_MAX, ret) < 0)
                return -EINVAL;
        if (cpuset_parse(s, set) >= 0 && !cpuset_is_empty(set))
                return 0;
        (void) refuse_request(ret, remedy, "There is no set of %s '%s'.", what, QUOTABLE(s));
        return -EINVAL;
}

static int read_cpus_from(sd_bus_message *m, Request *r, Refusal *ret) {
        return read_set(m, &r->cpus_from, "List CPU numbers and ranges: 8-15,120-127.", "CPUs", ret);
}

static int read_memory_from(sd_bus_message *m, Request *r, Refusal *ret) {
        return read_set(m, &r->memory_from, "List node numbers and ranges: 2-3.", "NUMA nodes", ret);
}

static int read_vf_attributes(sd_bus_message *m, Request *r, Refusal *ret) {
        const char *slot, *text;
        int k = sd_bus_message_enter_container(m, 'a', "{ss}");

        if (k < 0)
                return k;
        while ((k = sd_bus_message_read(m, "{ss}", &slot, &text)) > 0) {
                _cleanup_free_ char *problem = NULL;
                VfAttributes v;

                if (check_size(slot, NAME_SIZE_MAX, ret) < 0 || check_size(text, ATTRIBUTES_SIZE_MAX, ret) < 0)
                        return -EINVAL;
                k = vf_attributes_parse_wanted(text, &v, &problem);
                if (k == -EINVAL)
                        (void) refuse_request(ret, NULL, "VF attributes of '%s': %s", QUOTABLE(slot), problem);
                if (k < 0)
                        return k;
                k = request_add_attributes(r, slot, &v);
                if (k < 0)
                        return refuse_slot(slot, k, ret);
        }
        return k < 0 ? k : sd_bus_message_exit_container(m);
}

static int read_owner(sd_bus_message *m, Request *r, Refusal *ret) {
        int k = sd_bus_message_read(m, "u", &r->owner);

        if (k >= 0 && r->owner == UINT32_MAX) {
                (void) refuse_request(ret, "Set 'owner' to the uid of the owner, or leave it out.",
                                      "The owner %" PRIu32 " is not a valid uid.", r->owner);
                return -EINVAL;
        }
        if (k >= 0)
                r->has_owner = true;
        return k;
}

static int read_shared_memory(sd_bus_message *m, Request *r, Refusal *ret) {
        const char *name;
        uint64_t size, page_size;
        int k = sd_bus_message_enter_container(m, 'a', "(stt)");

        if (k < 0)
                return k;
        while ((k = sd_bus_message_read(m, "(stt)", &name, &size, &page_size)) > 0)
                if (request_add_region(r, name, size, hugepage(page_size), ret) != VERDICT_NONE)
                        return -EINVAL;
        return k < 0 ? k : sd_bus_message_exit_container(m);
}

static int read_text(sd_bus_message *m, size_t max, char **text, Refusal *ret) {
        const char *s;
        int k = sd_bus_message_read(m, "s", &s);

        if (k >= 0)
                k = check_size(s, max, ret);
        return k < 0 ? k : string_copy(text, s);
}

static int read_hold(sd_bus_message *m, Request *r, Refusal *ret) {
        int k = sd_bus_message_read(m, "u", &r->hold);

        if (k >= 0 && r->hold == 0) {
                (void) refuse_request(ret, NULL, "The lease must have 1 to %u seconds.", ALLOCATION_HOLD_MAX);
                return -EINVAL;
        }
        return k;
}

static int read_tag(sd_bus_message *m, Request *r, Refusal *ret) {
        return read_text(m, ALLOCATION_TAG_MAX, &r->tag, ret);
}

static int read_token(sd_bus_message *m, Request *r, Refusal *ret) {
        return read_text(m, ALLOCATION_TOKEN_MAX, &r->token, ret);
}

static int read_consumer(sd_bus_message *m, Request *r, Refusal *ret) {
        return read_text(m, ALLOCATION_CONSUMER, &r->consumer, ret);
}

static int read_force(sd_bus_message *m, Request *r, Refusal *ret) {
        int force, k = sd_bus_message_read(m, "b", &force);

        if (k >= 0)
                r->force = force;
        return k;
}

static int read_release_with_domain(sd_bus_message *m, Request *r, Refusal *ret) {
        int with, k = sd_bus_message_read(m, "b", &with);

        if (k >= 0)
                r->release_with_domain = with;
        return k;
}

static int read_repeat(sd_bus_message *m, Request *r, Refusal *ret) {
        int repeat, k = sd_bus_message_read(m, "b", &repeat);

        if (k >= 0)
                r->repeat = repeat;
        return k;
}

static const struct {
        const char *key;
        const char *type;
        int (*read)(sd_bus_message *m, Request *r, Refusal *ret);
} request_keys[] = {
        { REQUEST_KEY_DEVICES, "a(su)", read_devices },
        { REQUEST_KEY_AT, "a(ss)", read_at },
        { REQUEST_KEY_HOST_NODES, "au", read_host_nodes },
        { REQUEST_KEY_CPUS_FROM, "s", read_cpus_from },
        { REQUEST_KEY_MEMORY_FROM, "s", read_memory_from },
        { REQUEST_KEY_CONFIDENTIAL, "s", read_confidential },
        { REQUEST_KEY_CPUS, "u", read_cpus },
        { REQUEST_KEY_MEMORY, "t", read_memory },
        { REQUEST_KEY_PAGE_SIZE, "t", read_page_size },
        { REQUEST_KEY_CELLS, "u", read_cells },
        { REQUEST_KEY_NUMA, "s", read_numa },
        { REQUEST_KEY_PROXIMITY, "s", read_proximity },
        { REQUEST_KEY_TOPOLOGY, "s", read_topology },
        { REQUEST_KEY_VFS, "a{ss}", read_vf_attributes },
        { REQUEST_KEY_OWNER, "u", read_owner },
        { REQUEST_KEY_SHARED_MEMORY, "a(stt)", read_shared_memory },
        { REQUEST_KEY_HOLD, "u", read_hold },
        { REQUEST_KEY_TAG, "s", read_tag },
        { REQUEST_KEY_TOKEN, "s", read_token },
        { REQUEST_KEY_CONSUMER, "s", read_consumer },
        { REQUEST_KEY_FABRIC, "s", read_fabric },
        { REQUEST_KEY_FORCE, "b", read_force },
        { REQUEST_KEY_REPEAT, "b", read_repeat },
        { REQUEST_KEY_RELEASE_WITH_DOMAIN, "b", read_release_with_domain },
};

/* Parses one entry of the dictionary. Returns 0 or negative errno. If *ret has a verdict, the error is a refusal;
 * otherwise sd-bus could not read the message. */
static int read_entry(sd_bus_message *m, Request *r, unsigned *seen, Refusal *ret) {
        const char *key, *contents;
        int k = sd_bus_message_read(m, "s", &key);

        if (k < 0)
                return k;
        for (size_t i = 0; i < ELEMENTSOF(request_keys); i++) {
                if (!streq(key, request_keys[i].key))
                        continue;
                if (*seen & (1U << i)) {
                        (void) refuse_request(ret, NULL, "The request has the key '%s' twice.", key);
                        return -EINVAL;
                }
                *seen |= 1U << i;
                k = sd_bus_message_peek_type(m, NULL, &contents);
                if (k < 0)
                        return k;
                if (!streq(contents, request_keys[i].type)) {
                        (void) refuse_request(ret, NULL, "The key '%s' has the D-Bus type '%s' instead of '%s'.", key,
                                              QUOTABLE(contents), request_keys[i].type);
                        return -EINVAL;
                }
                k = sd_bus_message_enter_container(m, 'v', request_keys[i].type);
                if (k >= 0)
                        k = request_keys[i].read(m, r, ret);
                return k < 0 ? k : sd_bus_message_exit_container(m);
        }
        (void) refuse_request(
                ret,
                "The keys are devices, at, host-nodes, cpus-from, memory-from, cpus, memory, page-size, cells, "
                "numa, proximity, topology, fabric, confidential, vf-attributes, "
                "shared-memory, owner, hold, tag, token, consumer, release-with-domain, force and repeat.",
                "There is no request key '%s'.", QUOTABLE(key));
        return -EINVAL;
}

Verdict bus_read_request(sd_bus_message *m, Request *r, Refusal *ret) {
        unsigned seen = 0;
        int k = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (k >= 0 && (k = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                k = read_entry(m, r, &seen, ret);
                if (k >= 0)
                        k = sd_bus_message_exit_container(m);
        }
        if (k >= 0)
                k = sd_bus_message_exit_container(m);
        if (k >= 0)
                return VERDICT_NONE;
        if (ret->verdict != VERDICT_NONE)
                return ret->verdict;
        return refuse_request(ret, NULL, "The request could not be read.");
}
