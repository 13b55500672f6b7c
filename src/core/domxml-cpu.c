/* SPDX-License-Identifier: GPL-2.0-or-later */

/* CPUs and memory of the domain, pinned to what the allocation holds. */

#include <limits.h>

#include "core/domxml-internal.h"
#include "util/strings.h"

#define DISTANCE_SELF     10U  /* libvirt takes nothing else */
#define DISTANCE_REMOTE   20U  /* when the host does not say */
#define DISTANCE_NEAREST  11U  /* 10 is refused for two different cells */
#define DISTANCE_FARTHEST 254U /* 255 means unreachable */
#define IOTHREADS_MAX     1024U

/* Guest cell ids are dense; hugepage entries speak of guest cells, numatune of host nodes. */
static CpuSet guest_cells(const Allocation *a) {
        CpuSet set = { 0 };

        for (unsigned i = 0; i < a->n_cells; i++)
                cpuset_add(&set, i);
        return set;
}

static CpuSet host_nodes(const Allocation *a) {
        CpuSet set = { 0 };

        for (size_t i = 0; i < a->n_cells; i++)
                if (a->cells[i].node >= 0 && a->cells[i].node < (int) CPUSET_MAX)
                        cpuset_add(&set, (unsigned) a->cells[i].node);
        return set;
}

static CpuSet pinned_cpus(const Allocation *a) {
        CpuSet set = a->cpus;

        for (size_t i = 0; i < a->n_pins; i++)
                if (a->pins[i].cpu < CPUSET_MAX)
                        cpuset_add(&set, a->pins[i].cpu);
        return set;
}

/* Of a node: those that are the host's own, else those of the guest, else all. */
static CpuSet emulator_cpus_of(const Domain *d, int node) {
        const CpuSet guest = pinned_cpus(d->a);
        CpuSet own = { 0 }, shared = { 0 }, all = { 0 };

        for (size_t i = 0; i < d->inv->n_cpus; i++) {
                const Cpu *cpu = &d->inv->cpus[i];

                if (cpu->node != node)
                        continue;
                cpuset_add(&all, cpu->id);
                if (cpuset_has(&d->config->housekeeping, cpu->id))
                        cpuset_add(&own, cpu->id);
                if (cpuset_has(&guest, cpu->id))
                        cpuset_add(&shared, cpu->id);
        }
        return !cpuset_is_empty(&own) ? own : !cpuset_is_empty(&shared) ? shared : all;
}

/*
 * The emulator disturbs no vCPU where the host has CPUs of its own. It has some of each node with memory of the guest:
 * it fills that memory from there, and without any the guest does not start.
 */
static CpuSet emulator_cpus(const Domain *d) {
        CpuSet set = { 0 };

        for (size_t i = 0; i < d->a->n_cells; i++) {
                const CpuSet cpus = emulator_cpus_of(d, d->a->cells[i].node);

                cpuset_merge(&set, &cpus);
        }
        return cpuset_is_empty(&set) ? pinned_cpus(d->a) : set;
}

/* Memory is allocated before the guest starts, or it may land elsewhere (domain.md E9). source and access stay:
 * virtiofs needs them. */
static void write_backing(Domain *d) {
        static const char *const ours[] = { "hugepages", "nosharepages", "locked", "allocation" };
        const CpuSet cells = guest_cells(d->a);
        xmlNode *backing = domain_take(d, "memoryBacking");
        xmlNode *source = node_find(backing, "source");

        for (size_t i = 0; i < ELEMENTSOF(ours); i++)
                node_remove_all(backing, ours[i]);
        if (d->a->page_size > 0) {
                xmlNode *page = node_add(d, node_add(d, backing, "hugepages"), "page");

                node_set_size(d, page, "size", d->a->page_size);
                node_set_cpus(d, page, "nodeset", &cells);
                if (source && node_has(source, "type", "anonymous")) /* libvirt: not with hugepages */
                        node_remove(source);
        }
        (void) node_add(d, backing, "nosharepages");
        node_set(d, node_add(d, backing, "allocation"), "mode", "immediate");
}

/* VFIO pins all memory: libvirt works the limit out itself, and any other is too low (domain.md F10). */
static void drop_memory_limit(Domain *d) {
        xmlNode *memtune = node_find(d->root, "memtune");

        if (!memtune)
                return;
        node_remove_all(memtune, "hard_limit");
        if (!xmlFirstElementChild(memtune)) {
                if (memtune == d->anchor)
                        d->anchor = xmlNextElementSibling(memtune);
                node_remove(memtune);
        }
}

void domain_write_memory(Domain *d) {
        uint64_t memory = allocation_memory(d->a);

        node_set_size(d, domain_add(d, "memory"), NULL, memory);
        node_set_size(d, domain_add(d, "currentMemory"), NULL, memory);
        drop_memory_limit(d);
        write_backing(d);
}

/* The template's I/O threads run beside the emulator. Ids: those it lists, then the lowest free ones up to its count.
 */
static void pin_iothreads(Domain *d, xmlNode *cputune, const CpuSet *cpus) {
        const xmlNode *count_node = node_find(d->root, "iothreads"), *list = node_find(d->root, "iothreadids");
        _cleanup_free_ char *text = count_node ? node_get_text(count_node) : NULL;
        uint64_t count = 0;
        CpuSet ids = { 0 };
        unsigned id;

        if (text && parse_unsigned(text, IOTHREADS_MAX, &count) < 0)
                count = 0;
        for (const xmlNode *n = list ? list->children : NULL; n; n = n->next)
                if (node_is(n, "iothread") && node_get_number(n, "id", CPUSET_MAX - 1, &id) == 0)
                        cpuset_add(&ids, id);
        for (id = 1; cpuset_count(&ids) < count; id++)
                cpuset_add(&ids, id);

        for (int i = cpuset_next(&ids, 0); i >= 0; i = cpuset_next(&ids, (unsigned) i + 1)) {
                xmlNode *pin = node_add(d, cputune, "iothreadpin");

                node_set(d, pin, "iothread", "%d", i);
                node_set_cpus(d, pin, "cpuset", cpus);
        }
}

static void write_pins(Domain *d) {
        const CpuSet emulator = emulator_cpus(d);
        xmlNode *cputune = domain_add(d, "cputune");

        for (size_t i = 0; i < d->a->n_pins; i++) {
                xmlNode *pin = node_add(d, cputune, "vcpupin");

                node_set(d, pin, "vcpu", "%u", d->a->pins[i].vcpu);
                node_set(d, pin, "cpuset", "%u", d->a->pins[i].cpu);
        }
        node_set_cpus(d, node_add(d, cputune, "emulatorpin"), "cpuset", &emulator);
        pin_iothreads(d, cputune, &emulator);
}

/* libvirt refuses 1:1 pins for an emulated CPU: its threads have one affinity, that of <vcpu>. */
static void write_vcpus(Domain *d) {
        const CpuSet cpus = pinned_cpus(d->a);
        xmlNode *vcpu = domain_add(d, "vcpu");

        node_set(d, vcpu, "placement", "static");
        if (d->emulated)
                node_set_cpus(d, vcpu, "cpuset", &cpus);
        node_set_text(d, vcpu, "%zu", d->a->n_pins);
        if (!d->emulated)
                write_pins(d);
}

static void write_numatune(Domain *d) {
        const CpuSet nodes = host_nodes(d->a);
        xmlNode *numatune = domain_add(d, "numatune"), *memory = node_add(d, numatune, "memory");

        node_set(d, memory, "mode", "strict");
        node_set_cpus(d, memory, "nodeset", &nodes);
        for (size_t i = 0; i < d->a->n_cells; i++) {
                xmlNode *memnode = node_add(d, numatune, "memnode");

                node_set(d, memnode, "cellid", "%zu", i);
                node_set(d, memnode, "mode", "strict");
                node_set(d, memnode, "nodeset", "%d", d->a->cells[i].node);
        }
}

/* The pins from i on are n CPUs of one core that no earlier pin is on. Adds the core and the CPUs to the sets. */
static bool take_core(const Domain *d, size_t i, unsigned n, CpuSet *cores, CpuSet *cpus) {
        const Cpu *head = inventory_find_cpu(d->inv, d->a->pins[i].cpu);

        if (!head || cpuset_has(cores, head->core))
                return false;
        cpuset_add(cores, head->core);
        for (unsigned t = 0; t < n; t++) {
                const Cpu *cpu = inventory_find_cpu(d->inv, d->a->pins[i + t].cpu);

                if (!cpu || cpu->core != head->core || cpuset_has(cpus, cpu->id))
                        return false;
                cpuset_add(cpus, cpu->id);
        }
        return true;
}

/* SMT threads per core, when the pins are whole cores, one after the other and all alike; else 1. */
static unsigned guest_threads(const Domain *d) {
        const Cpu *first = inventory_find_cpu(d->inv, d->a->pins[0].cpu);
        CpuSet cores = { 0 }, cpus = { 0 };
        unsigned threads = 0;

        for (size_t i = 0; first && i < d->inv->n_cpus; i++)
                threads += d->inv->cpus[i].core == first->core;
        if (threads < 2 || d->a->n_pins % threads != 0)
                return 1;

        for (size_t i = 0; i < d->a->n_pins; i += threads)
                if (!take_core(d, i, threads, &cores, &cpus))
                        return 1;
        for (size_t i = 0; i < d->inv->n_cpus; i++) /* a bigger core among them is not whole */
                if (cpuset_has(&cores, d->inv->cpus[i].core) && !cpuset_has(&cpus, d->inv->cpus[i].id))
                        return 1;
        return threads;
}

/* One socket per cell, when each cell has the same number of vCPUs, whole cores, in one run; else 1. */
static unsigned guest_sockets(const Allocation *a, unsigned threads) {
        size_t each = a->n_pins / a->n_cells;

        if (a->n_pins % a->n_cells != 0 || each % threads != 0)
                return 1;
        for (size_t i = 0; i < a->n_pins; i++)
                if (!cpuset_has(&a->cells[i / each].vcpus, (unsigned) i))
                        return 1;
        return (unsigned) a->n_cells;
}

static unsigned die_of(const Domain *d, size_t pin) {
        const Cpu *cpu = inventory_find_cpu(d->inv, d->a->pins[pin].cpu);

        return cpu ? cpu->die : 0;
}

static unsigned bits(size_t n) {
        unsigned b = 0;

        while ((size_t) 1 << b < n)
                b++;
        return b;
}

/* The APIC id of the last vCPU: QEMU gives each level of the topology bits of its own. */
static size_t last_apic_id(size_t sockets, size_t dies, size_t cores, size_t threads) {
        unsigned core = bits(threads), die = core + bits(cores), socket = die + bits(dies);

        return (sockets - 1) << socket | (dies - 1) << die | (cores - 1) << core | (threads - 1);
}

/* That costs no <iommu>, or there is one anyway, see domain_needs_iommu(). */
static bool fits_apic_ids(const Domain *d, size_t sockets, size_t dies, size_t threads) {
        size_t cores = d->a->n_pins / sockets / dies / threads;

        return d->aarch64 || domain_needs_iommu(d) ||
               last_apic_id(sockets, dies, cores, threads) < DOMXML_PLAIN_VCPUS_MAX;
}

/* Dies per socket, when each has the same number of vCPUs, whole cores, in one run; else 1. */
static unsigned guest_dies(const Domain *d, unsigned sockets, unsigned threads) {
        size_t socket = d->a->n_pins / sockets, die = 1;
        CpuSet seen = { 0 };

        while (die < socket && die_of(d, die) == die_of(d, 0))
                die++;
        if (socket % die != 0 || die % threads != 0)
                return 1;
        for (size_t i = 0; i < d->a->n_pins; i++) {
                if (i % die == 0 ? cpuset_has(&seen, die_of(d, i)) : die_of(d, i) != die_of(d, i - 1))
                        return 1;
                cpuset_add(&seen, die_of(d, i));
        }
        return (unsigned) (socket / die);
}

static void write_topology(Domain *d, xmlNode *cpu) {
        unsigned threads = guest_threads(d), sockets = guest_sockets(d->a, threads), dies;
        xmlNode *topology = node_add(d, cpu, "topology");

        if (!fits_apic_ids(d, sockets, 1, threads))
                sockets = 1;
        dies = d->aarch64 ? 1 : guest_dies(d, sockets, threads); /* QEMU's 'virt' has none */
        if (!fits_apic_ids(d, sockets, dies, threads))
                dies = 1;
        node_set(d, topology, "sockets", "%u", sockets);
        node_set(d, topology, "dies", "%u", dies);
        node_set(d, topology, "cores", "%zu", d->a->n_pins / sockets / dies / threads);
        node_set(d, topology, "threads", "%u", threads);
}

static unsigned cell_distance(const Domain *d, size_t from, size_t to) {
        const NumaNode *node = inventory_find_node(d->inv, d->a->cells[from].node);
        int index = inventory_node_index(d->inv, d->a->cells[to].node);
        unsigned distance = node && index >= 0 ? node->distance[index] : 0;

        if (from == to)
                return DISTANCE_SELF;
        if (distance == 0)
                return DISTANCE_REMOTE;
        return MIN(MAX(distance, DISTANCE_NEAREST), DISTANCE_FARTHEST);
}

static void write_cell(Domain *d, xmlNode *numa, size_t i) {
        xmlNode *cell = node_add(d, numa, "cell"), *distances;

        node_set(d, cell, "id", "%zu", i);
        node_set_cpus(d, cell, "cpus", &d->a->cells[i].vcpus);
        node_set_size(d, cell, "memory", d->a->cells[i].memory);
        if (d->a->n_cells == 1)
                return;

        distances = node_add(d, cell, "distances");
        for (size_t to = 0; to < d->a->n_cells; to++) {
                xmlNode *sibling = node_add(d, distances, "sibling");

                node_set(d, sibling, "id", "%zu", to);
                node_set(d, sibling, "value", "%u", cell_distance(d, i, to));
        }
}

static void write_cpu(Domain *d) {
        xmlNode *cpu = domain_add(d, "cpu"), *numa;

        node_set(d, cpu, "mode", "%s", d->emulated ? "maximum" : "host-passthrough");
        node_set(d, cpu, "check", "none");
        if (!d->aarch64)
                node_set(d, cpu, "migratable", "off");
        write_topology(d, cpu);
        if (!d->emulated && !d->aarch64) { /* of x86 */
                node_set(d, node_add(d, cpu, "cache"), "mode", "passthrough");
                if (!d->inv->libvirt.known || d->inv->libvirt.maxphysaddr)
                        node_set(d, node_add(d, cpu, "maxphysaddr"), "mode", "passthrough");
        }
        numa = node_add(d, cpu, "numa");
        for (size_t i = 0; i < d->a->n_cells; i++)
                write_cell(d, numa, i);
}

void domain_write_cpus(Domain *d) {
        write_vcpus(d);
        write_numatune(d);
        write_cpu(d);
}
