/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plans devices for an existing allocation, as one request that names the devices which the allocation has and asks for
 * the new ones. The planner chooses only the new ones. */

#include <errno.h>

#include "guest/confidential.h"
#include "plan-internal.h"
#include "plan/device-state.h"
#include "plan/vfidentity.h"
#include "util/strings.h"

/* Returns whether a plan can include `d`, a device that the allocation has. A device that no plan can include, for
 * example a missing one, does not influence where new devices are. */
static bool can_take(const HostView *view, const AllocationDevice *d) {
        const PciDevice *dev = inventory_find(view->inventory, d->address);
        const Pool *pool = dev ? policy_pool(view->policy, dev) : NULL;

        return d->role == DEVICE_ROLE_ASSIGNED && pool && streq_ptr(pool->name, d->pool) &&
               allocation_device_is(d, dev) && planner_check_device(view, dev, NULL) == VERDICT_NONE &&
               !device_is_in_use(view, dev);
}

/* Adds to HostView.in_use the assigned devices of `a` that no plan can include, except lost ones, so that the planner
 * skips them. *ret is the new in_use; the caller frees it. 0 or -ENOMEM. */
static int skip_others(HostView *view, const Allocation *a, PciAddress **ret) {
        PciAddress *skipped = calloc(view->n_in_use + a->n_devices + 1, sizeof(*skipped));
        size_t n = 0;

        if (!skipped)
                return -ENOMEM;
        for (size_t i = 0; i < view->n_in_use; i++)
                skipped[n++] = view->in_use[i];
        for (size_t i = 0; i < a->n_devices; i++)
                if (a->devices[i].role == DEVICE_ROLE_ASSIGNED && !a->devices[i].lost &&
                    !can_take(view, &a->devices[i]))
                        skipped[n++] = a->devices[i].address;
        view->in_use = *ret = skipped;
        view->n_in_use = n;
        return 0;
}

static int add_present(Request *whole, const char *pool, PciAddress address) {
        size_t i;
        int r = 0;

        if (request_find_pool(whole, pool, &i))
                whole->pools[i].count++;
        else
                r = request_add_pool(whole, pool, 1);
        return r < 0 ? r : request_add_device(whole, pool, address);
}

/* Makes a request for the new devices of r together with the devices of `a` that a plan can include, for the consumer
 * of `a` and on the nodes of its cells. 0, -ENOMEM, -E2BIG (too many pools or devices), or -EEXIST (`a` has a device
 * that r names). */
static int make_whole(const HostView *view, const Allocation *a, const Request *r, Request *whole) {
        int k;

        request_init(whole);
        k = string_copy(&whole->consumer, a->consumer);
        whole->numa = r->numa;
        whole->proximity = r->proximity;
        whole->topology = a->topology;
        /* The GPUs that `a` has may be a partition. check_fabric() has refused new GPUs that need one. */
        whole->no_fabric = true;
        for (size_t i = 0; k >= 0 && i < r->n_pools; i++)
                k = request_add_pool(whole, r->pools[i].pool, r->pools[i].count);
        for (size_t i = 0; k >= 0 && i < r->n_at; i++)
                k = request_add_device(whole, r->at[i].pool, r->at[i].address);
        for (size_t i = 0; k >= 0 && i < r->n_limits; i++)
                k = request_add_limit(whole, r->limits[i].pools[0], r->limits[i].pools[1], r->limits[i].limit);
        for (size_t i = 0; k >= 0 && i < a->n_devices; i++)
                if (can_take(view, &a->devices[i]))
                        k = add_present(whole, a->devices[i].pool, a->devices[i].address);
        for (size_t i = 0; k >= 0 && i < a->n_cells; i++)
                k = request_add_host_node(whole, a->cells[i].node);
        return k;
}

static bool has_slot(const Allocation *a, const char *slot) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (streq_ptr(a->devices[i].slot, slot))
                        return true;
        return false;
}

/* Returns the first slot name of the pool that neither `a` nor `part` has. NULL when out of memory. */
static char *find_slot(const Allocation *a, const Allocation *part, const char *pool) {
        char slot[SLOT_NAME_MAX];
        unsigned index = 0;

        while (has_slot(a, slot_name(pool, index, slot)) || has_slot(part, slot))
                index++;
        return strdup(slot);
}

/* Moves the new devices of the plan to part, with slot names that `a` does not have. Companions come right after their
 * device in the plan; a companion of a device that `a` has is left out. 0 or -ENOMEM. */
static int take_new(const Allocation *a, Allocation *plan, Allocation *part) {
        const char *owner = NULL;

        for (size_t i = 0; i < plan->n_devices; i++) {
                AllocationDevice *d = &plan->devices[i], *taken;
                char *slot = NULL;

                if (d->role == DEVICE_ROLE_ASSIGNED)
                        owner = NULL;
                if (allocation_find_device(a, d->address) || (d->role == DEVICE_ROLE_COMPANION && !owner))
                        continue;
                if (d->role == DEVICE_ROLE_ASSIGNED)
                        slot = find_slot(a, part, d->pool);
                else if (d->role == DEVICE_ROLE_COMPANION)
                        slot = string_format("%s-%u", owner, d->address.function);
                taken = d->role == DEVICE_ROLE_HELD || slot ? allocation_add_device(part, d->address, d->role) : NULL;
                if (!taken) {
                        free(slot);
                        return -ENOMEM;
                }
                *taken = *d;
                *d = (AllocationDevice) { .address = taken->address };
                free(taken->slot);
                taken->slot = slot;
                if (taken->role == DEVICE_ROLE_ASSIGNED)
                        owner = slot;
        }
        return 0;
}

/* Leaves only the new devices in the plan, and gives them the merged VF attributes of pool and request. */
static Verdict keep_new(const HostView *view, const Allocation *a, const Request *r, Plan *plan, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *part = allocation_new(a->name);
        Verdict v;

        if (!part || take_new(a, plan->allocation, part) < 0 ||
            string_copy(&part->vfio_driver, plan->allocation->vfio_driver) < 0)
                return refuse_no_memory(ret);
        memcpy(part->id, a->id, sizeof(part->id));
        part->owner = a->owner;
        v = vf_identity_merge(part, view, r, ret);
        if (v != VERDICT_NONE)
                return v;
        allocation_free(plan->allocation);
        plan->allocation = TAKE_PTR(part);
        return VERDICT_NONE;
}

/* Refuses a request for other things than devices, a request without devices, attributes for a slot that `a` has
 * already, and any request if `a` is for a confidential guest. */
static Verdict check_request(const Allocation *a, const Request *r, Refusal *ret) {
        if (r->cpus > 0 || r->memory > 0 || r->cells > 0 || r->n_host_nodes > 0 || r->n_regions > 0 ||
            !cpuset_is_empty(&r->cpus_from) || !cpuset_is_empty(&r->memory_from) ||
            r->confidential != CONFIDENTIAL_NONE || (int) r->topology >= 0 || r->release_with_domain || r->has_owner ||
            r->hold > 0 || r->tag || r->token || r->consumer || r->force || r->repeat)
                return refuse_request(ret, "Ask for devices, with at, numa, proximity and vf-attributes if needed.",
                                      "The CPUs, memory and other properties of '%s' do not change.", a->name);
        if (r->page_size > 0)
                return refuse_request(ret, "Ask without page-size.",
                                      "'%s' keeps the memory that it has, so an attach takes no page-size.", a->name);
        if (a->confidential != CONFIDENTIAL_NONE)
                return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, "Release the allocation, and allocate anew.",
                              "'%s' is for a confidential guest, whose devices do not change.", a->name);
        if (r->n_pools == 0)
                return refuse_request(ret, "Ask for POOL=COUNT.", "The request names no device to attach to '%s'.",
                                      a->name);
        for (size_t i = 0; i < r->n_attributes; i++)
                for (size_t k = 0; k < a->n_devices; k++)
                        if (streq_ptr(a->devices[k].slot, r->attributes[i].slot))
                                return refuse_request(ret, "Name the slot of a new device, or its pool.",
                                                      "'%s' has the slot '%s' already.", a->name,
                                                      r->attributes[i].slot);
        return VERDICT_NONE;
}

/* Refuses GPUs of pools with Fabric=yes: the NVLink partition of a guest stays the same while it runs. Accepts them
 * with fabric=off if `a` has no partition. */
static Verdict check_fabric(const HostView *view, const Allocation *a, const Request *r, Refusal *ret) {
        for (size_t i = 0; i < r->n_pools; i++) {
                const Pool *pool = config_find_pool(view->config, r->pools[i].pool);

                if (!pool || !pool->fabric || (r->no_fabric && a->partition < 0))
                        continue;
                return refuse(ret, VERDICT_NOT_SUPPORTED, NULL,
                              a->partition < 0 ? "Ask with fabric=off." : "Allocate anew.",
                              "'%s' cannot get further devices of pool '%s': the NVLink partition of a guest does not "
                              "change.",
                              a->name, pool->name);
        }
        return VERDICT_NONE;
}

static Verdict check_services(const HostView *view, const Allocation *a, const Request *r, Refusal *ret) {
        for (size_t i = 0; i < r->n_pools; i++)
                if (config_find_service(view->config, r->pools[i].pool))
                        return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, "Allocate anew.",
                                      "'%s' cannot get further slots of service '%s': its guest is told once.", a->name,
                                      r->pools[i].pool);
        return VERDICT_NONE;
}

/* Refuses a plan with too few new devices: such a plan chose devices that `a` holds already as members of an IOMMU
 * group. */
static Verdict check_count(const Allocation *a, const Allocation *part, const Request *r, Refusal *ret) {
        unsigned wanted = 0, n = 0;

        for (size_t i = 0; i < r->n_pools; i++)
                wanted += r->pools[i].count;
        for (size_t i = 0; i < part->n_devices; i++)
                n += part->devices[i].role == DEVICE_ROLE_ASSIGNED;
        if (n == wanted)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_ALLOCATED, NULL, "Allocate anew.",
                      "The best devices for '%s' are in IOMMU groups that it holds already.", a->name);
}

/* Refuses new GPUs in a confidential mode if `a` has CPUs: its guest is not confidential (check_request()). Devices
 * that `a` has are not checked, and stay even if their pool has another mode now. */
static Verdict check_confidential(const HostView *view, const Allocation *a, const Allocation *part, Refusal *ret) {
        ConfidentialFacts f = confidential_facts(view->inventory, view->config, part, a->confidential);

        f.vcpus = (unsigned) a->n_pins;
        return confidential_check(&f, ret);
}

/* Refuses attributes for a name that is neither the slot of a new device nor a pool of the request. */
static Verdict check_slots(const Allocation *part, const Request *r, Refusal *ret) {
        for (size_t i = 0; i < r->n_attributes; i++) {
                bool found = request_find_pool(r, r->attributes[i].slot, NULL) || has_slot(part, r->attributes[i].slot);

                if (!found)
                        return refuse_request(ret, "Name the slot of a new device, or its pool.",
                                              "VF attributes are for '%s', but no new device gets that slot.",
                                              QUOTABLE(r->attributes[i].slot));
        }
        return VERDICT_NONE;
}

/* Plans the new devices alone. If too few devices are free for this plan too, replaces *ret by its refusal, whose
 * figures count only the new devices as wanted. */
static void refuse_new_alone(const HostView *view, const Request *r, Refusal *ret) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal alone = { 0 };

        if (plan_make(view, r, &plan, &alone) != VERDICT_INSUFFICIENT_DEVICES)
                return;
        refusal_done(ret);
        *ret = alone;
        alone = (Refusal) { 0 };
}

Verdict plan_attach(const HostView *view, const Allocation *a, const Request *r, Plan **ret, Refusal *ret_refusal) {
        _cleanup_(cleanup_ledger_free) Ledger *rest = NULL;
        _cleanup_request_ Request whole = { 0 };
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_free_ PciAddress *skipped = NULL;
        HostView alone = *view;
        Verdict v = check_request(a, r, ret_refusal);
        int k;

        if (v == VERDICT_NONE)
                v = check_fabric(view, a, r, ret_refusal);
        if (v == VERDICT_NONE)
                v = check_services(view, a, r, ret_refusal);
        if (v != VERDICT_NONE)
                return v;
        rest = ledger_copy(view->ledger);
        if (!rest)
                return refuse_no_memory(ret_refusal);
        allocation_free(ledger_remove(rest, a->name));
        alone.ledger = rest;
        alone.grown = a;
        k = skip_others(&alone, a, &skipped);
        if (k >= 0)
                k = make_whole(&alone, a, r, &whole);
        if (k == -E2BIG)
                return refuse(ret_refusal, VERDICT_LIMIT, NULL, NULL,
                              "'%s' would have more than %u devices, or devices of more than %u pools.", a->name,
                              REQUEST_DEVICES_MAX, REQUEST_POOLS_MAX);
        if (k == -EEXIST)
                return refuse(ret_refusal, VERDICT_ALLOCATED, NULL, NULL, "'%s' has one of these devices already.",
                              a->name);
        if (k < 0)
                return refuse_no_memory(ret_refusal);
        v = plan_make(&alone, &whole, &plan, ret_refusal);
        if (v == VERDICT_INSUFFICIENT_DEVICES)
                refuse_new_alone(view, r, ret_refusal);
        if (v == VERDICT_NONE)
                v = keep_new(view, a, r, plan, ret_refusal);
        if (v == VERDICT_NONE)
                v = check_count(a, plan->allocation, r, ret_refusal);
        if (v == VERDICT_NONE)
                v = check_slots(plan->allocation, r, ret_refusal);
        if (v == VERDICT_NONE)
                v = check_confidential(view, a, plan->allocation, ret_refusal);
        if (v == VERDICT_NONE)
                *ret = TAKE_PTR(plan);
        return v;
}
