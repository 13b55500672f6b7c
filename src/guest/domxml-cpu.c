/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Writes CPUs and memory of the domain, on the CPUs and nodes of the allocation. */

#include <limits.h>

#include "domxml-internal.h"
#include "util/strings.h"

#define DISTANCE_SELF     10U  /* of a cell to itself: the only value that libvirt accepts */
#define DISTANCE_REMOTE   20U  /* when the host's distance is unknown */
#define DISTANCE_NEAREST  11U  /* the least between two cells: libvirt refuses 10 */
#define DISTANCE_FARTHEST 254U /* the most: 255 means unreachable */
#define IOTHREADS_MAX     1024U

/* Returns the ids of the allocation's guest cells, without memory cells of GPUs. <hugepages> takes these ids;
 * <numatune> takes host nodes. */
static CpuSet guest_cells(const Allocation *a) {
        CpuSet set = { 0 };

        for (unsigned i = 0; i < a->n_cells; i++)
                cpuset_add(&set, i);
        return set;
}

static CpuSet memory_nodes(const Allocation *a) {
        CpuSet set = { 0 };

        for (size_t i = 0; i < a->n_cells; i++) {
                int node = cell_memory_node(&a->cells[i]);

                if (node >= 0 && node < (int) CPUSET_MAX)
                        cpuset_add(&set, (unsigned) node);
        }
        return set;
}

static CpuSet pinned_cpus(const Allocation *a) {
        CpuSet set = a->cpus;

        for (size_t i = 0; i < a->n_pins; i++)
                if (a->pins[i].cpu < CPUSET_MAX)
                        cpuset_add(&set, a->pins[i].cpu);
        return set;
}

/* Returns the CPUs of a node for the emulator: the housekeeping CPUs of the node. If the node has none, returns the
 * empty set when housekeeping_only is true; otherwise the guest's CPUs on the node, or all CPUs of the node if the
 * guest has none there. */
static CpuSet emulator_cpus_of(const Domain *d, int node, bool housekeeping_only) {
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
        if (housekeeping_only || !cpuset_is_empty(&own))
                return own;
        return !cpuset_is_empty(&shared) ? shared : all;
}

static CpuSet emulator_cpus_of_cells(const Domain *d, bool housekeeping_only) {
        CpuSet set = { 0 };

        for (size_t i = 0; i < d->a->n_cells; i++) {
                const CpuSet cpus = emulator_cpus_of(d, d->a->cells[i].node, housekeeping_only);

                cpuset_merge(&set, &cpus);
        }
        return set;
}

/*
 * Returns true when libvirt may be one of the versions 8.10 to 9.2. These let QEMU allocate each cell's memory with
 * threads on its host node, so that the guest does not start unless the emulator has a CPU there. The features show
 * only a version from 8.7 (maxphysaddr) to before 10.0 (driver_model).
 */
static bool needs_emulator_on_each_node(const LibvirtFeatures *f) {
        return f->known && f->maxphysaddr && !f->driver_model;
}

/* Returns the CPUs of the emulator. Prefers housekeeping CPUs, where it disturbs no vCPU. */
static CpuSet emulator_cpus(const Domain *d) {
        CpuSet set = emulator_cpus_of_cells(d, !needs_emulator_on_each_node(&d->inv->libvirt));

        if (cpuset_is_empty(&set))
                set = emulator_cpus_of_cells(d, false);
        return cpuset_is_empty(&set) ? pinned_cpus(d->a) : set;
}

/*
 * The memory is allocated before the guest starts; otherwise it may be on another node. The template's <source> and
 * <access> stay, because virtiofs needs them. With SEV-SNP and TDX the whole element is removed: it would allocate
 * shared pages beside the guest's private pages, and other programs cannot read the guest's memory.
 */
static void write_backing(Domain *d) {
        static const char *const ours[] = { "hugepages", "nosharepages", "locked", "allocation" };
        const CpuSet cells = guest_cells(d->a);
        xmlNode *backing = domain_take(d, "memoryBacking");
        xmlNode *source = node_find(backing, "source");

        if (confidential_is_private(d->confidential)) {
                node_remove(backing);
                return;
        }
        for (size_t i = 0; i < ELEMENTSOF(ours); i++)
                node_remove_all(backing, ours[i]);
        if (d->a->page_size > 0) {
                xmlNode *page = node_add(d, node_add(d, backing, "hugepages"), "page");

                node_set_size(d, page, "size", d->a->page_size);
                node_set_cpus(d, page, "nodeset", &cells);
                if (source && node_has(source, "type", "anonymous")) /* libvirt refuses these together */
                        node_remove(source);
        }
        (void) node_add(d, backing, "nosharepages");
        if (d->confidential == CONFIDENTIAL_SEV) /* SEV pins all pages (libvirt, kbase/launch_security_sev) */
                (void) node_add(d, backing, "locked");
        node_set(d, node_add(d, backing, "allocation"), "mode", "immediate");
}

/* Removes the template's limit of locked memory: VFIO locks all memory, and libvirt computes the limit for that.
 * Another limit may be too low (qemu_domain.c). */
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

/*
 * Pins the template's I/O threads to the emulator's CPUs. The ids of the threads are those in <iothreadids>, then the
 * lowest free ids until there are as many as <iothreads> says.
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
        xmlNode *cputune = domain_take(d, "cputune");

        for (size_t i = 0; i < d->a->n_pins; i++) {
                xmlNode *pin = node_add(d, cputune, "vcpupin");

                node_set(d, pin, "vcpu", "%u", d->a->pins[i].vcpu);
                node_set(d, pin, "cpuset", "%u", d->a->pins[i].cpu);
        }
        if (d->xen) /* the emulator runs in dom0 */
                return;
        node_set_cpus(d, node_add(d, cputune, "emulatorpin"), "cpuset", &emulator);
        pin_iothreads(d, cputune, &emulator);
}

/* Without KVM libvirt refuses to pin single vCPUs, so <vcpu> names the CPUs of all vCPUs. */
void domain_write_vcpus(Domain *d) {
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
        const CpuSet nodes = memory_nodes(d->a);
        xmlNode *numatune = domain_add(d, "numatune"), *memory = node_add(d, numatune, "memory");

        node_set(d, memory, "mode", "strict");
        node_set_cpus(d, memory, "nodeset", &nodes);
        for (size_t i = 0; i < d->a->n_cells; i++) {
                xmlNode *memnode = node_add(d, numatune, "memnode");

                node_set(d, memnode, "cellid", "%zu", i);
                node_set(d, memnode, "mode", "strict");
                node_set(d, memnode, "nodeset", "%d", cell_memory_node(&d->a->cells[i]));
        }
}

unsigned guest_cell_distance(const Inventory *inv, const Allocation *a, unsigned each, size_t from, size_t to) {
        const NumaNode *node = inventory_find_node(inv, guest_cell_node(inv, a, each, from));
        int index = inventory_node_index(inv, guest_cell_node(inv, a, each, to));
        unsigned distance = node && index >= 0 ? node->distance[index] : 0;

        if (from == to)
                return DISTANCE_SELF;
        if (distance == 0)
                return DISTANCE_REMOTE;
        return MIN(MAX(distance, DISTANCE_NEAREST), DISTANCE_FARTHEST);
}

/* Writes guest cell i of n. Cells after those of the allocation are memory cells of coherent GPUs. */
static void write_cell(Domain *d, xmlNode *numa, size_t i, size_t n) {
        xmlNode *cell = node_add(d, numa, "cell"), *distances;

        node_set(d, cell, "id", "%zu", i);
        if (i < d->a->n_cells) {
                node_set_cpus(d, cell, "cpus", &d->a->cells[i].vcpus);
                node_set_size(d, cell, "memory", d->a->cells[i].memory);
        } else {
                node_set(d, cell, "memory", "0");
                node_set(d, cell, "unit", "KiB");
        }
        if (n == 1)
                return;

        distances = node_add(d, cell, "distances");
        for (size_t to = 0; to < n; to++) {
                xmlNode *sibling = node_add(d, distances, "sibling");

                node_set(d, sibling, "id", "%zu", to);
                node_set(d, sibling, "value", "%u", guest_cell_distance(d->inv, d->a, d->memory_cells, i, to));
        }
}

void domain_write_cells(Domain *d, xmlNode *cpu) {
        xmlNode *numa = node_add(d, cpu, "numa");
        size_t n = d->a->n_cells + memory_cells_count(d->a, d->memory_cells);

        for (size_t i = 0; i < n; i++)
                write_cell(d, numa, i, n);
}

static xmlNode *find_feature(const xmlNode *cpu, const char *name) {
        for (xmlNode *n = cpu ? cpu->children : NULL; n; n = n->next)
                if (node_is(n, "feature") && node_has(n, "name", name))
                        return n;
        return NULL;
}

/*
 * Without topoext, a guest on an AMD CPU cannot read which threads share a core and a cache. QEMU does not enable
 * topoext by itself, because topoext must fit the caches (no_autoenable_flags in QEMU's target/i386/cpu.c; the other
 * flags there are KVM's hints, ht, which QEMU derives from the topology, and vmx-dual-monitor).
 * The caches of the host do not fit: QEMU passes AMD's leaf 8000001D unchanged, with the host's number of threads for
 * each cache. QEMU's emulated caches fit the topology, with one L3 cache for each die.
 */
static void write_caches(Domain *d, xmlNode *cpu) {
        xmlNode *cache = node_add(d, cpu, "cache"), *feature;

        node_set(d, cache, "mode", "%s", d->inv->amd ? "emulate" : "passthrough");
        if (!d->inv->amd)
                return;
        node_set(d, cache, "level", "3");
        if (find_feature(cpu, "topoext"))
                return;
        feature = node_add(d, cpu, "feature");
        node_set(d, feature, "policy", "require");
        node_set(d, feature, "name", "topoext");
}

static void write_cpu(Domain *d) {
        xmlNode *cpu = domain_take(d, "cpu");

        node_set(d, cpu, "mode", "%s", d->emulated ? "maximum" : "host-passthrough");
        node_set(d, cpu, "check", "none");
        if (!d->aarch64)
                node_set(d, cpu, "migratable", "off");
        domain_write_topology(d, cpu);
        if (!d->emulated && !d->aarch64) { /* only for x86 */
                write_caches(d, cpu);
                if (!d->inv->libvirt.known || d->inv->libvirt.maxphysaddr)
                        node_set(d, node_add(d, cpu, "maxphysaddr"), "mode", "passthrough");
        }
        domain_write_cells(d, cpu);
}

/* Writes KVM's hint that each vCPU has a CPU of its own: the guest may spin instead of yielding. */
static void write_hints(Domain *d) {
        xmlNode *features = node_find(d->root, "features"), *kvm = node_find(features, "kvm");

        if (d->emulated || d->aarch64 || node_find(kvm, "hint-dedicated"))
                return;
        if (!features)
                features = node_add(d, d->root, "features");
        if (!kvm)
                kvm = node_add(d, features, "kvm");
        node_set(d, node_add(d, kvm, "hint-dedicated"), "state", "on");
}

/* Adds a comment if the cores of the guest are of several kinds. The guest cannot see the kinds: QEMU gives all vCPUs
 * the same CPUID. */
static void tell_kinds(Domain *d) {
        static const char *const names[_CORE_KIND_MAX] = { "performance", "efficient", "low-power" };
        CpuSet vcpus[_CORE_KIND_MAX] = { 0 };
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < d->a->n_pins; i++) {
                const Cpu *cpu = inventory_find_cpu(d->inv, d->a->pins[i].cpu);

                cpuset_add(&vcpus[cpu ? cpu->kind : CORE_PERFORMANCE], d->a->pins[i].vcpu);
        }
        for (CoreKind kind = 0; kind < _CORE_KIND_MAX; kind++) {
                _cleanup_free_ char *set = cpuset_format(&vcpus[kind]);

                if (cpuset_count(&vcpus[kind]) == d->a->n_pins)
                        return;
                if (!set || (*set && string_append(&text, ", ", "%s on %s cores", set, names[kind]) < 0))
                        d->failed = true;
        }
        domain_add_comment(d, "The guest does not see its kinds of cores: vCPUs %s.", text ?: "");
}

void domain_write_cpus(Domain *d) {
        tell_kinds(d);
        domain_write_vcpus(d);
        write_numatune(d);
        write_cpu(d);
        write_hints(d);
}
