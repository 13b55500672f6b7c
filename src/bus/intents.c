/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The intent of each method, for polkit: org.passthroughd1(5), AUTHORIZATION. */

#include <inttypes.h>

#include "authorization.h"
#include "request.h"
#include "server-internal.h"
#include "util/strings.h"

typedef struct Holdings {
        uint64_t cpus, memory;
} Holdings;

/* Counts the assigned devices of the pool, or the slots of the service, that all allocations of the owner have
 * together. */
static uint64_t count_pool(const HostView *view, uint32_t owner, const char *pool) {
        uint64_t n = 0;

        for (size_t i = 0; i < view->ledger->n_allocations; i++) {
                const Allocation *a = view->ledger->allocations[i];

                for (size_t k = 0; k < a->n_devices && a->owner == owner; k++)
                        n += a->devices[k].role == DEVICE_ROLE_ASSIGNED && streq_ptr(a->devices[k].pool, pool);
                for (size_t k = 0; k < a->n_services && a->owner == owner; k++)
                        n += streq(a->services[k].name, pool) ? a->services[k].slots : 0;
        }
        return n;
}

/* Computes the memory that the request takes. The memory of a shared region counts only for the request that creates
 * the region. */
static uint64_t count_memory(const HostView *view, const Request *r) {
        uint64_t n = r->memory;

        for (size_t i = 0; i < r->n_regions; i++)
                if (!ledger_find_region(view->ledger, r->regions[i].name))
                        n += r->regions[i].size;
        return n;
}

/* Counts the CPUs and the memory that all allocations of the owner would have together with the request, so that a
 * polkit rule can limit them. again: the request repeats the one that made an allocation (request_is_again()), so it
 * adds nothing. */
static Holdings count_holdings(const HostView *view, const Request *r, bool again) {
        Holdings h = { .cpus = again ? 0 : r->cpus, .memory = again ? 0 : count_memory(view, r) };

        for (size_t i = 0; i < view->ledger->n_allocations; i++) {
                const Allocation *a = view->ledger->allocations[i];

                if (a->owner != r->owner)
                        continue;
                h.cpus += a->n_pins;
                for (size_t k = 0; k < a->n_cells; k++)
                        h.memory += a->cells[k].memory;
        }
        for (size_t i = 0; i < view->ledger->n_regions; i++)
                if (view->ledger->regions[i]->owner == r->owner)
                        h.memory += view->ledger->regions[i]->region.size;
        return h;
}

static void add_pools(Intent *i, const HostView *view, const Request *r, const RequestPool *pools, size_t n,
                      bool again) {
        for (size_t k = 0; k < n; k++) {
                _cleanup_free_ char *key = string_format("pool.%s", pools[k].pool);
                _cleanup_free_ char *total = string_format("total.pool.%s", pools[k].pool);

                intent_add(i, key ?: "", "%u", pools[k].count);
                intent_add(i, total ?: "", "%" PRIu64,
                           (again ? 0 : pools[k].count) + count_pool(view, r->owner, pools[k].pool));
        }
}

static void add_request(Intent *i, const HostView *view, const Request *r, bool again) {
        Request hardware = request_for_hardware(r, view->config);
        Holdings h = count_holdings(view, r, again);

        intent_add(i, "cpus", "%u", r->cpus);
        intent_add(i, "memory", "%" PRIu64, count_memory(view, r));
        intent_add(i, "total.cpus", "%" PRIu64, h.cpus);
        intent_add(i, "total.memory", "%" PRIu64, h.memory);
        add_pools(i, view, r, hardware.pools, hardware.n_pools, again);
        add_pools(i, view, r, hardware.services, hardware.n_services, again);
}

Verdict intent_to_allocate(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal) {
        _cleanup_request_ Request request = { 0 };
        HostView view = server_view(s);
        const Allocation *present;
        const char *name;

        request_init(&request);
        if (sd_bus_message_read(call, "s", &name) < 0)
                return refuse_request(ret_refusal, NULL, "The request could not be read.");
        if (bus_read_request(call, &request, ret_refusal) != VERDICT_NONE)
                return ret_refusal->verdict;
        if (!request.has_owner)
                request.owner = uid;
        intent_add(ret, "name", "%s", name);
        intent_add_owner(ret, request.owner, uid);
        if (request.force)
                ret->actions |= 1U << POLKIT_FORCE;
        if (request.tag)
                intent_add(ret, "tag", "%s", request.tag);
        present = ledger_find(view.ledger, name);
        add_request(ret, &view, &request, present && request_is_again(&request, request.owner, present));
        return VERDICT_NONE;
}

Verdict intent_to_attach(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal) {
        _cleanup_request_ Request request = { 0 };
        HostView view = server_view(s);
        const Allocation *a;
        uint64_t generation;
        const char *name;

        request_init(&request);
        if (sd_bus_message_read(call, "st", &name, &generation) < 0)
                return refuse_request(ret_refusal, NULL, "The request could not be read.");
        if (bus_read_request(call, &request, ret_refusal) != VERDICT_NONE)
                return ret_refusal->verdict;
        a = ledger_find(view.ledger, name);
        request.owner = a ? a->owner : uid;
        intent_add(ret, "name", "%s", name);
        intent_add_owner(ret, request.owner, uid);
        add_request(ret, &view, &request, false);
        return VERDICT_NONE;
}

/* If the allocation does not exist, the caller counts as its owner, so that a caller without rights cannot find out
 * which allocations exist. */
Verdict intent_on_allocation(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal) {
        HostView view = server_view(s);
        const Allocation *a;
        const char *name;

        if (sd_bus_message_read(call, "s", &name) < 0)
                return refuse_request(ret_refusal, NULL, "The name could not be read.");
        a = ledger_find(view.ledger, name);
        intent_add(ret, "name", "%s", name);
        intent_add_owner(ret, a ? a->owner : uid, uid);
        return VERDICT_NONE;
}

Verdict intent_to_read(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal) {
        ret->actions = 1U << POLKIT_READ;
        return VERDICT_NONE;
}

Verdict intent_to_configure(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal) {
        ret->actions = 1U << POLKIT_CONFIGURE;
        return VERDICT_NONE;
}
