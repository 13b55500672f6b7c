/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The arrays of the ledger: adds and removes allocations and quarantined devices. ledger-check.c decides what may be
 * added. */

#include "ledger/ledger.h"

#include <assert.h>
#include <errno.h>

#include "ledger-internal.h"
#include "util/strings.h"

Ledger *ledger_new(void) {
        return calloc(1, sizeof(Ledger));
}

Ledger *ledger_free(Ledger *l) {
        if (!l)
                return NULL;
        for (size_t i = 0; i < l->n_allocations; i++)
                allocation_free(l->allocations[i]);
        for (size_t i = 0; i < l->n_quarantined; i++)
                allocation_free(l->quarantined[i]);
        free(l->quarantined);
        ledger_free_regions(l);
        free(l->allocations);
        free(l->claims);
        free(l->pf_uses);
        free(l->memory);
        free(l->slots);
        free(l->read_only);
        free(l->unwritable);
        free(l);
        return NULL;
}

const char *ledger_problem(const Ledger *l) {
        return l->read_only ?: l->unwritable;
}

/* Returns the position of the allocation of this name, or where to insert it. */
static size_t find_name(const Ledger *l, const char *name, bool *ret_found) {
        size_t low = 0, high = l->n_allocations;

        *ret_found = false;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int c = strcmp(l->allocations[middle]->name, name);

                if (c == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (c < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* OPEN_GAP() makes room for a new element at the position; the caller has reserved the memory. CLOSE_GAP() removes the
 * element at the position. */
#define OPEN_GAP(array, n, position)                                                                                   \
        memmove(&(array)[(position) + 1], &(array)[position], ((n)++ - (position)) * sizeof(*(array)))
#define CLOSE_GAP(array, n, position)                                                                                  \
        memmove(&(array)[position], &(array)[(position) + 1], (--(n) - (position)) * sizeof(*(array)))

Allocation *ledger_find(const Ledger *l, const char *name) {
        bool found;
        size_t i = find_name(l, name, &found);

        return found ? l->allocations[i] : NULL;
}

const Allocation *ledger_holder(const Ledger *l, PciAddress address) {
        bool found;
        size_t i = PCI_ADDRESS_FIND(l->claims, l->n_claims, address, &found);

        return found ? l->claims[i].allocation : NULL;
}

unsigned ledger_pf_use(const Ledger *l, PciAddress pf) {
        bool found;
        size_t i = PCI_ADDRESS_FIND(l->pf_uses, l->n_pf_uses, pf, &found);

        return found ? l->pf_uses[i].vfs : 0;
}

static MemoryClaim *find_memory(const Ledger *l, int node, uint64_t page_size) {
        for (size_t i = 0; i < l->n_memory; i++)
                if (l->memory[i].node == node && l->memory[i].page_size == page_size)
                        return &l->memory[i];
        return NULL;
}

uint64_t ledger_memory(const Ledger *l, int node, uint64_t page_size) {
        const MemoryClaim *m = find_memory(l, node, page_size);

        return m ? m->bytes : 0;
}

uint64_t ledger_memory_idle(const Ledger *l, int node, uint64_t page_size) {
        const MemoryClaim *m = find_memory(l, node, page_size);

        return m ? m->bytes - m->backed : 0;
}

/* Reserves room in all arrays, so that a claim cannot fail halfway. 0 or -ENOMEM. */
static int reserve_room(Ledger *l, const Allocation *a) {
        if (ARRAY_RESERVE(l->allocations, l->n_allocations) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < a->n_devices; i++)
                if (ARRAY_RESERVE(l->claims, l->n_claims + i) < 0 || ARRAY_RESERVE(l->pf_uses, l->n_pf_uses + i) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < a->n_cells + a->n_regions; i++)
                if (ARRAY_RESERVE(l->memory, l->n_memory + i) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < a->n_services; i++)
                if (ARRAY_RESERVE(l->slots, l->n_slots + i) < 0)
                        return -ENOMEM;
        return ledger_reserve_regions(l, a);
}

static void enter_device(Ledger *l, const Allocation *a, const AllocationDevice *d) {
        bool found;
        size_t i = PCI_ADDRESS_FIND(l->claims, l->n_claims, d->address, &found);

        if (d->lost)
                return;
        assert(!found);
        OPEN_GAP(l->claims, l->n_claims, i);
        l->claims[i] = (Claim) { .address = d->address, .allocation = a };
        if (!d->is_vf)
                return;
        i = PCI_ADDRESS_FIND(l->pf_uses, l->n_pf_uses, d->physfn, &found);
        if (!found) {
                OPEN_GAP(l->pf_uses, l->n_pf_uses, i);
                l->pf_uses[i] = (PfUse) { .pf = d->physfn };
        }
        l->pf_uses[i].vfs++;
}

static void leave_device(Ledger *l, const AllocationDevice *d) {
        bool found;
        size_t i = PCI_ADDRESS_FIND(l->claims, l->n_claims, d->address, &found);

        if (d->lost)
                return;
        assert(found);
        CLOSE_GAP(l->claims, l->n_claims, i);
        if (!d->is_vf)
                return;
        i = PCI_ADDRESS_FIND(l->pf_uses, l->n_pf_uses, d->physfn, &found);
        assert(found && l->pf_uses[i].vfs > 0);
        if (--l->pf_uses[i].vfs == 0)
                CLOSE_GAP(l->pf_uses, l->n_pf_uses, i);
}

static size_t find_slots(const Ledger *l, const char *endpoint) {
        size_t i = 0;

        while (i < l->n_slots && !streq(l->slots[i].endpoint, endpoint))
                i++;
        return i;
}

unsigned ledger_slots(const Ledger *l, const char *endpoint) {
        size_t i = find_slots(l, endpoint);

        return i < l->n_slots ? l->slots[i].slots : 0;
}

static void enter_service(Ledger *l, const AllocationService *s) {
        size_t i = find_slots(l, s->endpoint);

        if (i == l->n_slots) {
                l->slots[l->n_slots++] = (SlotClaim) { 0 };
                memcpy(l->slots[i].endpoint, s->endpoint, sizeof(s->endpoint));
        }
        l->slots[i].slots += s->slots;
}

static void leave_service(Ledger *l, const AllocationService *s) {
        size_t i = find_slots(l, s->endpoint);

        assert(i < l->n_slots && l->slots[i].slots >= s->slots);
        l->slots[i].slots -= s->slots;
        if (l->slots[i].slots == 0)
                l->slots[i] = l->slots[--l->n_slots];
}

MemoryClaim *ledger_memory_claim(Ledger *l, int node, uint64_t page_size) {
        MemoryClaim *m = find_memory(l, node, page_size);

        if (!m) {
                m = &l->memory[l->n_memory++];
                *m = (MemoryClaim) { .node = node, .page_size = page_size };
        }
        return m;
}

static void back_cells(Ledger *l, const Allocation *a, bool backed) {
        for (size_t i = 0; i < a->n_cells; i++) {
                MemoryClaim *m = find_memory(l, cell_memory_node(&a->cells[i]), a->page_size);

                assert(m);
                m->backed = backed ? m->backed + a->cells[i].memory : m->backed - a->cells[i].memory;
        }
}

void ledger_set_running(Ledger *l, Allocation *a, bool running) {
        assert(ledger_find(l, a->name) == a);
        if (a->status.running == running)
                return;
        a->status.running = running;
        back_cells(l, a, running);
}

void ledger_set_state(Ledger *l, Allocation *a, AllocationState state) {
        bool was_ready = a->state == ALLOCATION_READY, is_ready = state == ALLOCATION_READY;

        assert(ledger_find(l, a->name) == a);
        a->state = state;
        if (was_ready != is_ready)
                ledger_count_ready(l, a, is_ready);
}

int ledger_enter(Ledger *l, Allocation *a) {
        bool found;
        size_t at = find_name(l, a->name, &found);
        int r;

        assert(!found);
        r = reserve_room(l, a);
        if (r < 0)
                return r;
        OPEN_GAP(l->allocations, l->n_allocations, at);
        l->allocations[at] = a;
        for (size_t i = 0; i < a->n_devices; i++)
                enter_device(l, a, &a->devices[i]);
        cpuset_merge(&l->cpus, &a->cpus);
        for (size_t i = 0; i < a->n_cells; i++)
                ledger_memory_claim(l, cell_memory_node(&a->cells[i]), a->page_size)->bytes += a->cells[i].memory;
        if (a->status.running)
                back_cells(l, a, true);
        for (size_t i = 0; i < a->n_services; i++)
                enter_service(l, &a->services[i]);
        ledger_enter_regions(l, a);
        return 0;
}

Allocation *ledger_remove(Ledger *l, const char *name) {
        Allocation *a;
        bool found;
        size_t at = find_name(l, name, &found);

        if (!found)
                return NULL;
        a = l->allocations[at];
        CLOSE_GAP(l->allocations, l->n_allocations, at);
        for (size_t i = 0; i < a->n_devices; i++)
                leave_device(l, &a->devices[i]);
        cpuset_subtract(&l->cpus, &a->cpus);
        if (a->status.running)
                back_cells(l, a, false);
        for (size_t i = 0; i < a->n_cells; i++) {
                MemoryClaim *m = find_memory(l, cell_memory_node(&a->cells[i]), a->page_size);

                assert(m);
                m->bytes -= a->cells[i].memory;
        }
        for (size_t i = 0; i < a->n_services; i++)
                leave_service(l, &a->services[i]);
        ledger_leave_regions(l, a);
        return a;
}

static size_t find_quarantined(const Ledger *l, PciAddress address) {
        size_t i = 0;

        while (i < l->n_quarantined && !pci_address_equal(l->quarantined[i]->devices[0].address, address))
                i++;
        return i;
}

Allocation *ledger_find_quarantined(const Ledger *l, PciAddress address) {
        size_t i = find_quarantined(l, address);

        return i < l->n_quarantined ? l->quarantined[i] : NULL;
}

const AllocationDevice *ledger_find_quarantined_of(const Ledger *l, const Allocation *a) {
        for (const AllocationDevice *d = a->devices; d < allocation_devices_end(a); d++)
                if (ledger_find_quarantined(l, d->address))
                        return d;
        return NULL;
}

int ledger_quarantine(Ledger *l, Allocation *a) {
        assert(a->n_devices == 1);
        if (ARRAY_RESERVE(l->quarantined, l->n_quarantined) < 0)
                return -ENOMEM;
        allocation_free(ledger_unquarantine(l, a->devices[0].address));
        l->quarantined[l->n_quarantined++] = a;
        return 0;
}

Allocation *ledger_unquarantine(Ledger *l, PciAddress address) {
        size_t i = find_quarantined(l, address);
        Allocation *a;

        if (i == l->n_quarantined)
                return NULL;
        a = l->quarantined[i];
        CLOSE_GAP(l->quarantined, l->n_quarantined, i);
        return a;
}
