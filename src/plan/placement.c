/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Makes guest NUMA cells from pins and memory. */

#include "placement.h"
#include "plan/request.h"

#include "util/strings.h"

typedef struct Cells {
        Cell cell[ALLOCATION_CELLS_MAX];
        size_t n;
} Cells;

/* The cell of a node. A missing cell is inserted, ascending by node. NULL when there are too many cells. */
static Cell *cells_get(Cells *cells, int node) {
        size_t i = 0;

        while (i < cells->n && cells->cell[i].node < node)
                i++;
        if (i < cells->n && cells->cell[i].node == node)
                return &cells->cell[i];
        if (cells->n == ELEMENTSOF(cells->cell))
                return NULL;

        memmove(&cells->cell[i + 1], &cells->cell[i], (cells->n - i) * sizeof(Cell));
        cells->cell[i] = (Cell) { .node = node };
        cells->n++;
        return &cells->cell[i];
}

static Verdict place_pin(const Inventory *inv, const Pin *pin, Cells *cells, Refusal *ret) {
        const Cpu *cpu = inventory_find_cpu(inv, pin->cpu);

        if (!cpu)
                return refuse_request(ret, "Pin it to an online CPU.",
                                      "vCPU %u is pinned to CPU %u, which is not online.", pin->vcpu, pin->cpu);
        if (!inventory_find_node(inv, cpu->node))
                return refuse_request(ret, "Pin it to a CPU of a NUMA node.",
                                      "vCPU %u is pinned to CPU %u, which is on no NUMA node.", pin->vcpu, pin->cpu);
        if (pin->vcpu >= CPUSET_MAX)
                return refuse_request(ret, NULL, "vCPU %u is beyond the limit of %u.", pin->vcpu, CPUSET_MAX);

        Cell *cell = cells_get(cells, cpu->node);
        if (!cell)
                return refuse_request(ret, "Ask for fewer CPUs, or fewer cells.",
                                      "The CPUs are on more than %u NUMA nodes, the most a guest can have.",
                                      ALLOCATION_CELLS_MAX);
        cpuset_add(&cell->vcpus, pin->vcpu);
        return VERDICT_NONE;
}

/* Splits memory evenly in whole pages; the first cells get the remainder. */
static Verdict share_memory(uint64_t memory, uint64_t page_size, Cells *cells, Refusal *ret) {
        uint64_t pages = memory / page_size;

        if (memory % page_size != 0)
                return refuse_request(ret, "Ask for a multiple of the page size.",
                                      "%s is not a whole number of %s pages.", FORMAT_SIZE_EXACT(memory),
                                      FORMAT_SIZE_EXACT(page_size));
        if (pages < cells->n)
                return refuse_request(ret, "Ask for more memory, or fewer cells.",
                                      "%s is less than one page of %s for each of %zu guest cells.",
                                      FORMAT_SIZE_EXACT(memory), FORMAT_SIZE_EXACT(page_size), cells->n);

        for (size_t i = 0; i < cells->n; i++)
                cells->cell[i].memory = (pages / cells->n + (i < pages % cells->n ? 1 : 0)) * page_size;
        return VERDICT_NONE;
}

Verdict placement_cells(const Inventory *inv, uint64_t memory, uint64_t page_size, Allocation *a, Refusal *ret) {
        Cells cells = { 0 };
        Verdict v;

        if (a->n_pins == 0 && memory > 0)
                return refuse_request(ret, "Ask for CPUs too.", "Memory without CPUs has no NUMA node to be on.");

        for (size_t i = 0; i < a->n_pins; i++) {
                v = place_pin(inv, &a->pins[i], &cells, ret);
                if (v != VERDICT_NONE)
                        return v;
        }
        v = share_memory(memory, page_size > 0 ? page_size : REQUEST_PAGE_MIN, &cells, ret);
        if (v != VERDICT_NONE)
                return v;

        memcpy(a->cells, cells.cell, sizeof(a->cells));
        a->n_cells = cells.n;
        return VERDICT_NONE;
}
