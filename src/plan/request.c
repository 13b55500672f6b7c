/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "config/config.h"
#include "plan/proximity.h"
#include "plan/request.h"
#include "util/strings.h"
#include "util/stringtable.h"

void request_init(Request *r) {
        *r = (Request) { .numa = NUMA_POLICY_LEGACY, .proximity = PROXIMITY_ANY, .topology = _GUEST_TOPOLOGY_INVALID };
}

void request_done(Request *r) {
        for (size_t i = 0; i < r->n_pools; i++)
                free(r->pools[i].pool);
        for (size_t i = 0; i < r->n_at; i++)
                free(r->at[i].pool);
        for (size_t i = 0; i < r->n_attributes; i++)
                free(r->attributes[i].slot);
        for (size_t i = 0; i < r->n_limits; i++) {
                free(r->limits[i].pools[0]);
                free(r->limits[i].pools[1]);
        }
        free(r->tag);
        free(r->token);
        free(r->consumer);
        request_init(r);
}

int request_add_pool(Request *r, const char *pool, unsigned count) {
        char *copy;

        for (size_t i = 0; i < r->n_pools; i++)
                if (streq(r->pools[i].pool, pool))
                        return -EEXIST;
        if (r->n_pools >= REQUEST_POOLS_MAX)
                return -E2BIG;

        copy = strdup(pool);
        if (!copy)
                return -ENOMEM;
        r->pools[r->n_pools++] = (RequestPool) { .pool = copy, .count = count };
        return 0;
}

bool request_find_pool(const Request *r, const char *pool, size_t *ret) {
        for (size_t i = 0; i < r->n_pools; i++)
                if (streq(r->pools[i].pool, pool)) {
                        if (ret)
                                *ret = i;
                        return true;
                }
        return false;
}

static void borrow_pool(Request *r, char *pool, unsigned count) {
        if (request_find_pool(r, pool, NULL))
                return;
        assert(r->n_pools < ELEMENTSOF(r->pools));
        r->pools[r->n_pools++] = (RequestPool) { pool, count };
}

/* A service that moves from pools to services frees a place in pools, so the pools of Via= have room. */
Request request_for_hardware(const Request *r, const Config *config) {
        Request h = *r;

        h.n_pools = 0;
        for (size_t i = 0; i < r->n_pools; i++)
                if (config_find_service(config, r->pools[i].pool))
                        h.services[h.n_services++] = r->pools[i];
                else
                        h.pools[h.n_pools++] = r->pools[i];
        for (size_t i = 0; i < h.n_services; i++) {
                const RemoteService *s = config_find_service(config, h.services[i].pool);

                if (s->via)
                        borrow_pool(&h, s->via, 1);
        }
        return h;
}

int request_add_limit(Request *r, const char *pool, const char *other, Proximity limit) {
        _cleanup_free_ char *first = strdup(pool), *second = strdup(other);

        if (r->n_limits >= REQUEST_LIMITS_MAX)
                return -E2BIG;
        if (!first || !second)
                return -ENOMEM;
        r->limits[r->n_limits++] = (RequestLimit) { .pools = { TAKE_PTR(first), TAKE_PTR(second) }, .limit = limit };
        return 0;
}

int request_add_device(Request *r, const char *pool, PciAddress address) {
        char *copy;

        for (size_t i = 0; i < r->n_at; i++)
                if (pci_address_equal(r->at[i].address, address))
                        return -EEXIST;
        if (r->n_at >= REQUEST_DEVICES_MAX)
                return -E2BIG;
        copy = strdup(pool);
        if (!copy)
                return -ENOMEM;
        r->at[r->n_at++] = (RequestDevice) { .pool = copy, .address = address };
        return 0;
}

int request_add_host_node(Request *r, int node) {
        for (size_t i = 0; i < r->n_host_nodes; i++)
                if (r->host_nodes[i] == node)
                        return -EEXIST;
        if (r->n_host_nodes >= ALLOCATION_CELLS_MAX)
                return -E2BIG;
        r->host_nodes[r->n_host_nodes++] = node;
        return 0;
}

bool request_is_again(const Request *r, uint32_t owner, const Allocation *a) {
        return r->token && a->owner == owner && streq_ptr(a->token, r->token);
}

bool request_is_exact(const Request *r) {
        return r->n_at > 0 || r->n_host_nodes > 0 || !cpuset_is_empty(&r->cpus_from) ||
               !cpuset_is_empty(&r->memory_from);
}

int request_add_attributes(Request *r, const char *slot, const VfAttributes *attributes) {
        char *copy;

        for (size_t i = 0; i < r->n_attributes; i++)
                if (streq(r->attributes[i].slot, slot))
                        return -EEXIST;
        if (r->n_attributes >= REQUEST_DEVICES_MAX)
                return -E2BIG;

        copy = strdup(slot);
        if (!copy)
                return -ENOMEM;
        r->attributes[r->n_attributes++] = (RequestAttributes) { .slot = copy, .attributes = *attributes };
        return 0;
}

/* Returns true when slot names of the pool need a '_': slot 1 of "gpu1" and slot 11 of "gpu" would both be "gpu11". */
static bool ends_in_digit(const char *name) {
        return *name && strchr("0123456789", name[strlen(name) - 1]);
}

const char *slot_name(const char *pool, unsigned index, char buf[static SLOT_NAME_MAX]) {
        (void) snprintf(buf, SLOT_NAME_MAX, "%s%s%u", pool, ends_in_digit(pool) ? "_" : "", index);
        return buf;
}

/* Checks the numbers of slots. The names are valid: request_for_hardware() found them in the configuration. */
static Verdict check_services(const Request *r, uint64_t *total, Refusal *ret) {
        for (size_t i = 0; i < r->n_services; i++) {
                if (r->services[i].count == 0)
                        return refuse_request(ret, "Ask for at least 1, or leave the service out.",
                                              "The request wants 0 slots of service '%s'.", r->services[i].pool);
                *total += r->services[i].count;
        }
        return VERDICT_NONE;
}

static Verdict check_devices(const Request *r, Refusal *ret) {
        uint64_t total = 0;
        Verdict v = check_services(r, &total, ret);

        if (v != VERDICT_NONE)
                return v;

        for (size_t i = 0; i < r->n_pools; i++) {
                const RequestPool *p = &r->pools[i];

                /* Do not quote the name: it may have any length and any characters. */
                if (!pool_name_is_valid(p->pool))
                        return refuse_request(ret,
                                              "Name a pool of the configuration; 'passthroughctl pools' shows them.",
                                              "Pool %zu of the request has a name that no pool can have.", i + 1);
                if (p->count == 0)
                        return refuse_request(ret, "Ask for at least 1, or leave the pool out.",
                                              "The request wants 0 devices of pool '%s'.", p->pool);
                total += p->count;
        }
        if (total > REQUEST_DEVICES_MAX)
                return refuse_request(ret, "Split it into several allocations.",
                                      "The request wants %" PRIu64 " devices; the limit is %u.", total,
                                      REQUEST_DEVICES_MAX);
        if (total == 0 && r->cpus == 0)
                return refuse_request(ret, "Ask for devices of a pool, for vCPUs with memory, or both.",
                                      "The request wants neither devices nor CPUs.");
        return VERDICT_NONE;
}

/* Checks the named devices, host nodes, CPUs and memory nodes. check_devices() has checked the counts. */
static Verdict check_exact(const Request *r, Refusal *ret) {
        for (size_t i = 0; i < r->n_pools; i++) {
                unsigned n = 0;

                for (size_t k = 0; k < r->n_at; k++)
                        n += streq(r->at[k].pool, r->pools[i].pool);
                if (n > r->pools[i].count)
                        return refuse_request(ret, "Ask for as many devices of the pool as are named.",
                                              "The request names %u devices of pool '%s', but wants %u.", n,
                                              r->pools[i].pool, r->pools[i].count);
        }
        for (size_t k = 0; k < r->n_at; k++)
                if (!request_find_pool(r, r->at[k].pool, NULL))
                        return refuse_request(ret, "Ask for the pool, with a count.",
                                              "The request names %s of pool '%s', of which it wants no device.",
                                              PCI_ADDRESS_STR(r->at[k].address), QUOTABLE(r->at[k].pool));
        if (r->n_host_nodes > 0 && r->cells > 0 && r->cells != r->n_host_nodes)
                return refuse_request(ret, "Leave the cells out: there is one for each host node.",
                                      "The request wants %u guest NUMA cells on %zu host nodes.", r->cells,
                                      r->n_host_nodes);
        if (!numa_policy_allows_several(r->numa) && MAX(r->cells, r->n_host_nodes) > 1)
                return refuse_request(ret, "Ask with the NUMA policy 'required'.",
                                      "The NUMA policy 'single' allows one NUMA node, but the guest is to be on %zu.",
                                      MAX((size_t) r->cells, r->n_host_nodes));
        if (!cpuset_is_empty(&r->cpus_from) && r->cpus == 0)
                return refuse_request(ret, "Say how many vCPUs the guest gets.",
                                      "The request names CPUs but wants no vCPUs.");
        if (!cpuset_is_empty(&r->memory_from) && r->cpus == 0)
                return refuse_request(ret, "Say how many vCPUs and how much memory the guest gets.",
                                      "The request names NUMA nodes to take memory from but wants no vCPUs.");
        return VERDICT_NONE;
}

static Verdict check_cpus(const Request *r, Refusal *ret) {
        if (r->cpus > ALLOCATION_CPUS_MAX)
                return refuse_request(ret, NULL, "The request wants %u vCPUs; the limit is %u.", r->cpus,
                                      ALLOCATION_CPUS_MAX);
        if (r->cpus > 0 && r->memory == 0)
                return refuse_request(ret, "Say how much memory the guest gets.",
                                      "The request wants %u vCPUs but no memory.", r->cpus);
        if (r->cpus == 0 && r->memory > 0)
                return refuse_request(ret, "Say how many vCPUs the guest gets.",
                                      "The request wants %s of memory but no vCPUs.", FORMAT_SIZE_WANTED(r->memory));
        return VERDICT_NONE;
}

uint64_t request_page(const Request *r) {
        return r->page_size ?: r->base_page ?: REQUEST_PAGE_MIN;
}

static Verdict check_memory(const Request *r, Refusal *ret) {
        uint64_t page = request_page(r);

        if (page < REQUEST_PAGE_MIN || (page & (page - 1)) != 0)
                return refuse_request(ret, "Use a page size of this node, such as 2 MiB or 1 GiB.",
                                      "A page size of %s is not possible: it must be a power of two of at least %s.",
                                      FORMAT_SIZE_EXACT(page), FORMAT_SIZE_EXACT(REQUEST_PAGE_MIN));
        if (r->memory > ALLOCATION_MEMORY_MAX)
                return refuse_request(ret, NULL, "The request wants %s of memory; the limit is %s.",
                                      FORMAT_SIZE_EXACT(r->memory), FORMAT_SIZE_EXACT(ALLOCATION_MEMORY_MAX));
        if (r->memory > 0 && r->memory < REQUEST_PAGE_MIN)
                return refuse_request(ret, "Memory is in bytes: for gibibytes, write it as 20G with passthroughctl.",
                                      "The request wants %s of memory, which is less than a page.",
                                      FORMAT_SIZE_EXACT(r->memory));
        if (r->memory % page != 0)
                return refuse_request(ret, "Round the memory up to whole pages.",
                                      "%s of memory is not a whole number of %s pages.", FORMAT_SIZE_EXACT(r->memory),
                                      FORMAT_SIZE_EXACT(page));
        return VERDICT_NONE;
}

static Verdict check_cells(const Request *r, Refusal *ret) {
        size_t n_nodes = r->cpus > 0 ? r->n_host_nodes : 0;

        if (r->cells > ALLOCATION_CELLS_MAX)
                return refuse_request(ret, NULL, "The request wants %u guest NUMA cells; the limit is %u.", r->cells,
                                      ALLOCATION_CELLS_MAX);
        if (r->cells > r->cpus)
                return refuse_request(ret, "Ask for fewer cells; each needs a vCPU.",
                                      "The request wants %u guest NUMA cells for %u vCPUs.", r->cells, r->cpus);
        if (r->memory / request_page(r) < r->cells)
                return refuse_request(ret, "Ask for more memory, or fewer cells.",
                                      "%s of memory is less than one page of %s for each of %u guest NUMA cells.",
                                      FORMAT_SIZE_EXACT(r->memory), FORMAT_SIZE_EXACT(request_page(r)), r->cells);
        if (n_nodes > r->cpus)
                return refuse_request(ret, "Name fewer host nodes; each needs a vCPU.",
                                      "The request wants %u vCPU%s on %zu host nodes.", r->cpus, PLURAL(r->cpus),
                                      n_nodes);
        if (r->memory / request_page(r) < n_nodes)
                return refuse_request(ret, "Ask for more memory, or name fewer host nodes.",
                                      "%s of memory is less than one page of %s for each of %zu host nodes.",
                                      FORMAT_SIZE_EXACT(r->memory), FORMAT_SIZE_EXACT(request_page(r)), n_nodes);
        return VERDICT_NONE;
}

/* Which devices a RequestAttributes is for: one slot of a pool, or all slots. */
typedef struct Target {
        const RequestPool *pool; /* NULL: the name is that of no pool and no slot */
        unsigned first, n;       /* the first slot, and how many */
        bool ambiguous;          /* the name is that of a slot and of another pool */
} Target;

static Target find_target(const Request *r, const char *name) {
        char slot[SLOT_NAME_MAX];
        Target t = { 0 };

        for (size_t i = 0; i < r->n_pools; i++) {
                const RequestPool *p = &r->pools[i];

                if (streq(p->pool, name))
                        t = (Target) { .pool = p, .n = p->count, .ambiguous = t.pool };
                for (unsigned j = 0; j < p->count; j++)
                        if (streq(slot_name(p->pool, j, slot), name))
                                t = (Target) { .pool = p, .first = j, .n = 1, .ambiguous = t.pool };
        }
        return t;
}

/* The most slots that a refusal names. */
#define SLOTS_NAMED_MAX 16U

static Verdict refuse_slot(const Request *r, const char *name, Refusal *ret) {
        _cleanup_free_ char *slots = NULL;
        char slot[SLOT_NAME_MAX];
        unsigned n = 0;

        for (size_t i = 0; i < r->n_pools; i++)
                for (unsigned j = 0; j < r->pools[i].count; j++)
                        if (n++ < SLOTS_NAMED_MAX &&
                            string_append(&slots, ", ", "%s", slot_name(r->pools[i].pool, j, slot)) < 0)
                                return refuse_request(ret, NULL, "The request has no such slot.");
        return refuse_request(ret,
                              "Give attributes to a slot of the request, or to a pool, which means all of its slots.",
                              "VF attributes are for '%s', but the slots of the request are: %s%s.", QUOTABLE(name),
                              slots ?: "none", AND_MORE(n - MIN(n, SLOTS_NAMED_MAX)));
}

/* Returns the first MAC or GUID of `a` that `b` has too, or _VF_ATTRIBUTE_MAX. A node GUID can equal a port GUID. */
static VfAttribute shared_identity(const VfAttributes *a, const VfAttributes *b) {
        for (VfAttribute i = 0; i < _VF_ATTRIBUTE_MAX; i++)
                if (a->set & VF_IDENTITY_BITS & VF_ATTRIBUTE_BIT(i) &&
                    vf_attributes_have_identity(b, i != VF_MAC, a->value[i], a->value[i]))
                        return i;
        return _VF_ATTRIBUTE_MAX;
}

static Verdict check_identity(const Request *r, const RequestAttributes *a, Refusal *ret) {
        Target own = find_target(r, a->slot);

        if (!(a->attributes.set & VF_IDENTITY_BITS))
                return VERDICT_NONE;
        if (own.n > 1)
                return refuse_request(
                        ret, "Give each slot its own.",
                        "The %u VFs of pool '%s' cannot all have the same mac=, node-guid=, port-guid= or "
                        "second-port-guid=.",
                        own.n, a->slot);
        for (const RequestAttributes *b = r->attributes; b < a; b++) {
                VfAttribute same = shared_identity(&a->attributes, &b->attributes);
                char value[VF_VALUE_MAX];
                Target other;

                if (same == _VF_ATTRIBUTE_MAX)
                        continue;
                other = find_target(r, b->slot);
                if (other.pool == own.pool && other.first == own.first)
                        continue;
                return refuse_request(ret, "Give each slot its own.", "'%s' and '%s' cannot both have the %s %s.",
                                      b->slot, a->slot, vf_attribute_to_string(same),
                                      vf_value_format(same, a->attributes.value[same], value));
        }
        return VERDICT_NONE;
}

/* Checks the VF attributes. check_devices() has checked the counts. */
static Verdict check_attributes(const Request *r, Refusal *ret) {
        for (size_t i = 0; i < r->n_attributes; i++) {
                const RequestAttributes *a = &r->attributes[i];
                Target t = find_target(r, a->slot);
                Verdict v;

                if (!t.pool)
                        return refuse_slot(r, a->slot, ret);
                if (t.ambiguous)
                        return refuse_request(ret, "Ask for one of the two pools only.",
                                              "'%s' is the name of a pool and of another pool's slot.", a->slot);
                v = check_identity(r, a, ret);
                if (v != VERDICT_NONE)
                        return v;
        }
        return VERDICT_NONE;
}

Verdict request_add_region(Request *r, const char *name, uint64_t size, uint64_t page_size, Refusal *ret) {
        Region region = { .size = size, .page_size = page_size, .node = -1 };
        Verdict v = region_name(&region, name, ret);

        if (v != VERDICT_NONE)
                return v;
        if (region_is_among(r->regions, r->n_regions, name))
                return refuse_request(ret, "Ask for each once.", "The request names the shared memory '%s' twice.",
                                      name);
        if (r->n_regions >= ALLOCATION_REGIONS_MAX)
                return refuse_request(ret, NULL, "A request can name at most %u pieces of shared memory.",
                                      ALLOCATION_REGIONS_MAX);
        r->regions[r->n_regions++] = region;
        return VERDICT_NONE;
}

/* Checks the shared memory. Without a guest's CPUs, nothing decides on which NUMA node it should be, so such a request
 * is refused. */
static Verdict check_regions(const Request *r, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        if (r->n_regions > 0 && r->cpus == 0)
                return refuse_request(
                        ret, "Ask for vCPUs and memory too.",
                        "The request wants shared memory without CPUs, so that it has no NUMA node to be on.");
        for (size_t i = 0; v == VERDICT_NONE && i < r->n_regions; i++)
                v = region_check(&r->regions[i], ret);
        return v;
}

static Verdict check_text(const char *key, const char *text, size_t max, Refusal *ret) {
        if (!text || (*text && strlen(text) <= max && text_is_clean(text)))
                return VERDICT_NONE;
        return refuse_request(ret, NULL, "The %s must have 1 to %zu bytes of printable UTF-8 text.", key, max);
}

/* Refuses a consumer that is not a UUID in lower case. Placement and Kubernetes write UUIDs in lower case, and
 * consumers are compared as text. */
static Verdict check_consumer(const char *consumer, Refusal *ret) {
        return !consumer || text_is_uuid(consumer)
                       ? VERDICT_NONE
                       : refuse_request(
                                 ret,
                                 "Name the UUID of the consumer in Placement, or of the ResourceClaim, in lower case.",
                                 "The consumer '%s' is not a UUID.", QUOTABLE(consumer));
}

/* Checks who asks and what for: tag, token, consumer and lease. */
static Verdict check_caller(const Request *r, Refusal *ret) {
        Verdict v = r->hold <= ALLOCATION_HOLD_MAX
                            ? VERDICT_NONE
                            : refuse_request(ret, NULL, "The lease must have 1 to %u seconds.", ALLOCATION_HOLD_MAX);

        if (v == VERDICT_NONE)
                v = check_text("tag", r->tag, ALLOCATION_TAG_MAX, ret);

        if (v == VERDICT_NONE)
                v = check_text("token", r->token, ALLOCATION_TOKEN_MAX, ret);
        return v != VERDICT_NONE ? v : check_consumer(r->consumer, ret);
}

Verdict request_check(const Request *r, Refusal *ret) {
        Verdict (*const checks[])(const Request *, Refusal *) = { check_devices, check_exact,          check_cpus,
                                                                  check_memory,  check_cells,          check_attributes,
                                                                  check_regions, request_check_limits, check_caller };

        for (size_t i = 0; i < ELEMENTSOF(checks); i++) {
                Verdict v = checks[i](r, ret);

                if (v != VERDICT_NONE)
                        return v;
        }
        return VERDICT_NONE;
}
