/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocate: plans the request, reserves the devices in the ledger, and starts the job that prepares them. */

#include <errno.h>
#include <systemd/sd-id128.h>

#include "facts.h"
#include "host/holders.h"
#include "operations.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/strings.h"

/* The most plans that are made in a row. If the facts have changed after each of them, the request is refused. */
#define PLAN_ATTEMPTS_MAX 4
/* The most devices in use that one request skips, because each costs a scan of /proc/PID/fd of all processes. */
#define USED_MAX          8

/* Returns true when the host may use one of the devices. A device without a driver, or on a VFIO driver, has no disk
 * and no network interface of the host; but a GPU without a driver may show the console of the firmware. */
static bool may_affect_host(const Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, a->devices[i].address);

                if (dev && (!pci_device_driver_is_harmless(dev) || (!dev->driver && pci_device_is_gpu(dev))))
                        return true;
        }
        return false;
}

/* Returns true when a device is not bound to its allocation_driver() yet. */
static bool needs_driver(const Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, a->devices[i].address);

                if (dev && !streq_ptr(dev->driver, allocation_driver(a, &a->devices[i])))
                        return true;
        }
        return false;
}

/*
 * Reads again the facts on which the plan depends. `a`: the plan's allocation, whose devices are read. `a` NULL: the
 * plan was refused, so the facts are read that may have caused the refusal: the drivers, the devices that the host
 * needs, the vGPUs, and the PFs that could not set GUIDs. Returns 1 when a fact has changed, 0 when none has, or a
 * negative errno.
 */
static int refresh_planned(Manager *m, const Allocation *a) {
        int drivers = !a || needs_driver(m, a) ? manager_refresh_drivers(m) : 0;
        int host = drivers >= 0 && (!a || may_affect_host(m, a)) ? manager_refresh_host(m) : drivers;
        /* The kernel sends no event when another program creates or removes a vGPU on a VF, so read the vGPUs here. */
        int groups = host < 0 ? host : a ? manager_refresh_groups(m, a) : manager_refresh_refused(m);

        if (groups > 0 && a)
                note_devices_of(m, a);
        else if (groups > 0)
                note_all_devices(m);
        return groups < 0 ? groups : drivers | host | groups;
}

/* A request, and the devices that its plan must not have because they are in use. */
typedef struct Search {
        const Request *request;
        const Allocation *attach_to; /* the allocation that gets the devices; NULL: a new one */
        PciAddress in_use[USED_MAX];
        size_t n_in_use;
} Search;

/* Makes a plan. ledger: the ledger of the host state, or a copy in which more guests count as running. */
static Verdict make_plan(const Manager *m, const Search *s, const Ledger *ledger, Plan **ret, Refusal *ret_refusal) {
        HostView view = host_state_view(&m->host);

        view.ledger = ledger;
        view.in_use = s->in_use;
        view.n_in_use = s->n_in_use;
        return s->attach_to ? plan_attach(&view, s->attach_to, s->request, ret, ret_refusal)
                            : plan_make(&view, s->request, ret, ret_refusal);
}

/* Makes a plan from the known facts, and then reads again the facts on which the plan depends. Repeats both if the
 * facts have changed, at most PLAN_ATTEMPTS_MAX times. */
static Verdict plan_on_fresh_devices(Manager *m, const Search *s, Plan **ret, Refusal *ret_refusal) {
        for (int i = 0; i < PLAN_ATTEMPTS_MAX; i++) {
                _cleanup_refusal_ Refusal why = { 0 };
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;
                Verdict v = make_plan(m, s, m->host.ledger, &plan, &why);
                int r = refresh_planned(m, plan ? plan->allocation : NULL);

                if (r < 0)
                        return refuse_no_memory(ret_refusal);
                if (r == 0) {
                        *ret = TAKE_PTR(plan);
                        *ret_refusal = why;
                        why = (Refusal) { 0 };
                        return v;
                }
        }
        return refuse(ret_refusal, VERDICT_BUSY, NULL, "Find out which program binds and unbinds devices on this node.",
                      "The drivers of devices change faster than a plan can be made.");
}

/* Returns true when a guest that libvirt does not know may run with `a`. Until the guest of `a` has allocated its
 * memory, free memory is set aside for it. A guest that has the devices open has allocated its memory. */
static bool may_run(const Allocation *a) {
        return a->state == ALLOCATION_READY && !a->status.running && a->n_cells > 0 && a->n_devices > 0;
}

/* Returns true when the request would fit if guests ran with these allocations, and so had allocated their memory. */
static bool fits_beside_guests(const Manager *m, const Search *s, Allocation *const *idle, size_t n) {
        _cleanup_(cleanup_ledger_free) Ledger *assumed = ledger_copy(m->host.ledger);
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        for (size_t i = 0; assumed && i < n; i++)
                ledger_set_running(assumed, ledger_find(assumed, idle[i]->name), true);
        return assumed && make_plan(m, s, assumed, &plan, NULL) == VERDICT_NONE;
}

/*
 * Finds guests that libvirt does not know, for example in a container, by the devices that they have open: QEMU
 * allocates the memory of a guest before it opens the devices. Each guest that is found costs a scan of /proc/PID/fd of
 * all processes. So the search is made only when the outcome of the request depends on it, and no scan begins after
 * HOLDER_LOOK_USEC. Allocations whose guest was not found by then count as without a guest. Returns true when it has
 * marked an allocation as running; manager_mark_all_running() undoes the marks.
 */
static bool find_unknown_guests(Manager *m, const Search *s) {
        _cleanup_free_ Allocation **idle = calloc(m->host.ledger->n_allocations + 1, sizeof(*idle));
        uint64_t end = clock_usec(CLOCK_MONOTONIC) + HOLDER_LOOK_USEC;
        bool helps, found = false;
        size_t n = 0, i;

        for (i = 0; idle && i < m->host.ledger->n_allocations; i++)
                if (may_run(m->host.ledger->allocations[i]))
                        idle[n++] = m->host.ledger->allocations[i];
        helps = n > 0 && fits_beside_guests(m, s, idle, n);
        while (helps && clock_usec(CLOCK_MONOTONIC) < end && manager_find_open(m, m->fs, idle, n, &i) > 0) {
                ledger_set_running(m->host.ledger, idle[i], true);
                idle[i] = idle[--n];
                found = true;
        }
        return found;
}

/* If the request has CPUs, first reads the free CPUs and memory again and marks the allocations whose guest runs; and
 * if no plan fits then, looks for guests that libvirt does not know, and plans again if it has found one. */
static Verdict plan_on_fresh_facts(Manager *m, const Search *s, Plan **ret, Refusal *ret_refusal) {
        Verdict v;

        if (s->request->cpus > 0 && manager_refresh_nodes(m) < 0)
                return refuse_no_memory(ret_refusal);
        /* Read the guests after the memory. In the other order, the memory of a guest that ends in between would count
         * as free, although its allocation still needs that memory. */
        if (s->request->cpus > 0)
                manager_mark_all_running(m);
        v = plan_on_fresh_devices(m, s, ret, ret_refusal);
        if (v == VERDICT_NONE || s->request->cpus == 0 || !find_unknown_guests(m, s))
                return v;
        refusal_done(ret_refusal);
        return plan_on_fresh_devices(m, s, ret, ret_refusal);
}

Verdict manager_plan_idle(Manager *m, const Request *request, const Allocation *attach_to, Plan **ret,
                          Refusal *ret_refusal) {
        Search s = { .request = request, .attach_to = attach_to };
        bool again = true;
        Verdict v = VERDICT_NONE;

        while (again) {
                _cleanup_refusal_ Refusal why = { 0 };
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;

                again = false;
                v = plan_on_fresh_facts(m, &s, &plan, &why);
                if (v == VERDICT_NONE) {
                        v = manager_check_use(m, plan->allocation, USE_ALLOCATE, &why);
                        again = v == VERDICT_BUSY && why.has_device && s.n_in_use < ELEMENTSOF(s.in_use);
                }
                if (again)
                        s.in_use[s.n_in_use++] = why.device;
                if (v == VERDICT_NONE) {
                        *ret = TAKE_PTR(plan);
                        refusal_done(ret_refusal);
                } else if (ret_refusal->verdict == VERDICT_NONE) {
                        *ret_refusal = why;
                        why = (Refusal) { 0 };
                }
        }
        return v == VERDICT_NONE ? v : ret_refusal->verdict;
}

/* Logs that a forced allocation takes the host's display, which goes dark. */
static void log_forced(const Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices && a->forced; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, a->devices[i].address);
                const char *address = PCI_ADDRESS_STR(a->devices[i].address);

                if (dev && pci_device_is_display(dev))
                        log_full(LOG_WARNING, 0, (&(LogFields) { .device = address, .allocation = a->name }),
                                 "%s is allocated to '%s', as uid %u forced it, although %s.", address, a->name,
                                 a->owner, dev->boot_vga ? "it is the boot VGA" : "the host's console is on it");
        }
}

/* Gives *a its name, id and generation, and adds it to the ledger in memory and on disk. Sets *a to NULL when the
 * ledger has taken ownership: on VERDICT_NONE, and also on a refusal if the file may be on disk nevertheless. */
static Verdict reserve(Manager *m, const char *name, uint32_t owner, Allocation **a, Refusal *ret) {
        Allocation *claimed = *a;
        sd_id128_t id;
        Verdict v;
        int r = string_copy(&claimed->name, name);

        if (r < 0)
                return refuse_storage(ret, r);
        r = sd_id128_randomize(&id);
        if (r < 0)
                return refuse_storage(ret, r);
        r = store_next_generation(m->store, &claimed->generation);
        if (r < 0)
                return refuse_storage(ret, r);
        (void) sd_id128_to_uuid_string(id, claimed->id);
        claimed->owner = owner;
        claimed->state = claimed->hold > 0 ? ALLOCATION_RESERVED : ALLOCATION_PREPARING;
        if (claimed->hold > 0)
                manager_lease(claimed, claimed->hold);
        manager_note_serials(m, claimed);
        v = host_state_assign_identities(&m->host, claimed, ret);
        if (v == VERDICT_NONE)
                v = ledger_claim(m->host.ledger, m->host.inventory, m->host.config, claimed, ret);
        if (v != VERDICT_NONE)
                return v;
        r = store_add(m->store, claimed);
        if (r < 0 && (!store_may_have(m->store, claimed) || store_remove(m->store, name) >= 0)) {
                (void) ledger_remove(m->host.ledger, name);
                return refuse_storage(ret, r);
        }
        *a = NULL;
        if (r >= 0)
                return VERDICT_NONE;
        /* The file may exist, so keep the claim. Otherwise a later allocation could have a file with the same device,
         * and two such files would make the ledger read-only at the next start. */
        ledger_set_state(m->host.ledger, claimed, ALLOCATION_FAILED);
        claimed->hold = 0;
        claimed->lease_end = 0;
        (void) string_replace(&claimed->reason, "It was refused because the ledger could not be written, but the disk "
                                                "may have it. Release it.");
        note_allocation(m, claimed);
        return refuse_storage(ret, r);
}

/* Tells the journal and clients about a new lease. A lease has no job. */
static Verdict announce_lease(Manager *m, Allocation *a, uint32_t *ret_job) {
        *ret_job = 0;
        note_allocation(m, a);
        note_allocation_event(m, HISTORY_RESERVED, a, NULL);
        manager_follow_leases(m);
        return VERDICT_NONE;
}

Verdict manager_allocate(Manager *m, const char *name, const Request *request, uint32_t owner, uint32_t *ret_job,
                         Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Allocation *reserved, *present = ledger_find(m->host.ledger, name);
        Verdict v = allocation_name_check(name, ret);

        if (v == VERDICT_NONE && present && request_is_again(request, owner, present)) {
                *ret_job = job_queue_find_subject(&m->jobs, name);
                return VERDICT_NONE;
        }
        if (v == VERDICT_NONE)
                v = manager_check_may_change(m, ret);
        if (v == VERDICT_NONE && present)
                v = refuse(ret, VERDICT_NAME_TAKEN, NULL, "Release it first, or take another name.",
                           "There is already an allocation '%s'.", name);
        if (v == VERDICT_NONE)
                v = job_queue_check_room(&m->jobs, ret);
        if (v == VERDICT_NONE)
                v = manager_check_regions(m, request, ret);
        if (v == VERDICT_NONE)
                v = manager_plan_idle(m, request, NULL, &plan, ret);
        if (v != VERDICT_NONE)
                return v;
        a = TAKE_PTR(plan->allocation);
        reserved = a;
        v = reserve(m, name, owner, &a, ret);
        if (v != VERDICT_NONE)
                return v;
        log_forced(m, reserved);
        if (reserved->state == ALLOCATION_RESERVED)
                return announce_lease(m, reserved, ret_job);
        v = manager_start_prepare(m, reserved, false, ret_job, ret);
        if (v != VERDICT_NONE) {
                note_allocation_event(m, HISTORY_RESERVED, reserved, NULL);
                manager_delete_allocation(m, reserved);
                return v;
        }
        return VERDICT_NONE;
}
