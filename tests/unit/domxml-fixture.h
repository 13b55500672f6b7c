/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A small node, an allocation and its domain document. Whole documents are compared with
 * tests/unit/golden/domxml-*.xml, which tests/check-xml validates with libvirt. UPDATE_GOLDEN=1 in the environment
 * writes these files.
 */

#include <fcntl.h>
#include <stdio.h>

#include <libxml/parser.h>

#include "guest/domxml.h"
#include "unit.h"
#include "util/fileio.h"
#include "util/strings.h"

#include "sentences.h"

#define GIB        (1ULL << 30)
#define GOLDEN_MAX (256U * 1024U)

#define CLASS_3D         0x030200U
#define CLASS_VGA        0x030000U
#define CLASS_AUDIO      0x040300U
#define CLASS_INFINIBAND 0x020700U

typedef struct Case {
        Inventory *inv;
        Config *config;
        Allocation *a;
} Case;

#define _cleanup_case_ _cleanup_(case_done)
static inline void case_done(Case *c) {
        inventory_free(c->inv);
        config_free(c->config);
        allocation_free(c->a);
}

static inline void set_node(NumaNode *node, int id, unsigned near, unsigned far, size_t self, size_t n) {
        node->id = id;
        node->memory = 64 * GIB;
        for (size_t i = 0; i < n; i++)
                node->distance[i] = i == self ? near : far;
}

/* Nodes with 16 CPUs each; with SMT, CPU n and n + 8 of a node share a core. */
static inline Case case_new(const char *name, size_t n_nodes, const int *nodes, bool smt) {
        Case c = { .inv = inventory_new(), .config = config_new(), .a = allocation_new(name) };

        assert_non_null(c.inv);
        assert_non_null(c.config);
        assert_non_null(c.a);
        assert_int_equal(string_copy(&c.a->vfio_driver, c.config->vfio_driver), 0);
        c.inv->nodes = calloc(n_nodes, sizeof(NumaNode));
        c.inv->cpus = calloc(n_nodes * 16, sizeof(Cpu));
        assert_non_null(c.inv->nodes);
        assert_non_null(c.inv->cpus);
        for (unsigned i = 0; i < n_nodes; i++) {
                set_node(&c.inv->nodes[i], nodes[i], 10, 21, i, n_nodes);
                c.inv->nodes[i].package = (int) i;
                for (unsigned j = 0; j < 16; j++)
                        c.inv->cpus[c.inv->n_cpus++] = (Cpu) {
                                .id = i * 16 + j,
                                .node = nodes[i],
                                .core = i * 16 + (smt ? j % 8 : j),
                        };
        }
        c.inv->n_nodes = n_nodes;
        (void) snprintf(c.a->id, sizeof(c.a->id), "6d6b0fd7-3b1d-4c0c-9d6f-2f3f7a5b0001");
        c.a->generation = 42;
        return c;
}

static inline PciAddress address_of(const char *s) {
        PciAddress a;

        assert_int_equal(pci_address_parse(s, &a), 0);
        return a;
}

static inline PciDevice *add_fact(Case *c, const char *address, int node, uint32_t class) {
        PciDevice *dev = inventory_add_device(c->inv, address_of(address));

        assert_non_null(dev);
        dev->numa_node = node;
        dev->class = class;
        return dev;
}

/* The fixture's inventory is not sorted yet. */
static inline int inventory_node_of(const Inventory *inv, PciAddress address) {
        for (size_t i = 0; i < inv->n_devices; i++)
                if (pci_address_equal(inv->devices[i].address, address))
                        return inv->devices[i].numa_node;
        return -1;
}

static inline AllocationDevice *take(Case *c, const char *address, DeviceRole role, const char *slot,
                                     const char *pool) {
        AllocationDevice *dev = allocation_add_device(c->a, address_of(address), role);

        assert_non_null(dev);
        dev->numa_node = inventory_node_of(c->inv, dev->address);
        dev->slot = slot ? strdup(slot) : NULL;
        dev->pool = pool ? strdup(pool) : NULL;
        return dev;
}

/* Sets the host path of the last device. */
static inline void take_path(Case *c, const char *path) {
        assert_int_equal(string_copy(&c->a->devices[c->a->n_devices - 1].path, path), 0);
}

static inline void add_gpu(Case *c, const char *address, int node, uint64_t bar, const char *slot) {
        add_fact(c, address, node, CLASS_3D)->bar_size[1] = bar;
        take(c, address, DEVICE_ROLE_ASSIGNED, slot, "gpu");
}

static inline void add_vf(Case *c, const char *address, const char *physfn, int node, const char *slot) {
        AllocationDevice *dev;

        add_fact(c, address, node, CLASS_INFINIBAND)->physfn = address_of(physfn);
        dev = take(c, address, DEVICE_ROLE_ASSIGNED, slot, "ib-vf");
        dev->is_vf = true;
        dev->physfn = address_of(physfn);
}

/* A GPU with its audio function, and a disk that is held because it shares their IOMMU group. */
static inline void add_card_of_group(Case *c) {
        add_fact(c, "0000:41:00.0", 0, CLASS_VGA);
        add_fact(c, "0000:41:00.1", 0, CLASS_AUDIO);
        add_fact(c, "0000:42:00.0", 0, 0x010802);
        take(c, "0000:41:00.0", DEVICE_ROLE_ASSIGNED, "gpu0", "gpu");
        take(c, "0000:41:00.1", DEVICE_ROLE_COMPANION, "gpu0-1", NULL);
        take(c, "0000:42:00.0", DEVICE_ROLE_HELD, NULL, NULL);
}

/* A cell for each node that has one of the CPUs, each with an equal share of the memory. */
static inline void add_cells(Case *c, uint64_t memory) {
        for (size_t i = 0; i < c->inv->n_nodes; i++) {
                Cell cell = { .node = c->inv->nodes[i].id };

                for (size_t j = 0; j < c->a->n_pins; j++)
                        if (inventory_find_cpu(c->inv, c->a->pins[j].cpu)->node == cell.node)
                                cpuset_add(&cell.vcpus, c->a->pins[j].vcpu);
                if (!cpuset_is_empty(&cell.vcpus))
                        c->a->cells[c->a->n_cells++] = cell;
        }
        for (size_t i = 0; i < c->a->n_cells; i++)
                c->a->cells[i].memory = memory / c->a->n_cells;
}

/* n vCPUs on the listed CPUs, memory shared among their nodes. */
static inline void pin(Case *c, const char *cpus, uint64_t memory, uint64_t page_size) {
        CpuSet set;

        assert_int_equal(cpuset_parse(cpus, &set), 0);
        c->a->pins = calloc(cpuset_count(&set) + 1, sizeof(Pin));
        assert_non_null(c->a->pins);
        for (int cpu = cpuset_next(&set, 0); cpu >= 0; cpu = cpuset_next(&set, (unsigned) cpu + 1)) {
                c->a->pins[c->a->n_pins] = (Pin) { (unsigned) c->a->n_pins, (unsigned) cpu };
                c->a->n_pins++;
        }
        c->a->cpus = set;
        c->a->page_size = page_size;
        assert_int_equal(inventory_finish(c->inv), 0);
        add_cells(c, memory);
}

static inline char *make(const Case *c, const char *template) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        char *text = NULL;
        const DomainTemplate filled = { template, .qemu_commandline = true };
        Verdict v = domxml_make(c->inv, c->config, c->a, template ? &filled : NULL, GUEST_INFO_GUEST, &text, &refusal);

        if (v != VERDICT_NONE)
                fail_msg("%s: %s", verdict_to_string(v), refusal.message);
        assert_non_null(text);
        return text;
}

static inline void assert_golden(const Case *c, const char *template, const char *name) {
        _cleanup_free_ char *text = make(c, template), *expected = NULL;
        _cleanup_close_ int dir = open(SRCDIR "/tests/unit/golden", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_true(dir >= 0);
        if (getenv("UPDATE_GOLDEN"))
                assert_int_equal(write_file_atomic_at(dir, name, text, strlen(text)), 0);
        assert_int_equal(read_file_at(dir, name, GOLDEN_MAX, &expected, NULL), 0);
        assert_string_equal(text, expected);
}

static inline void assert_has(const char *text, const char *part) {
        if (!strstr(text, part))
                fail_msg("'%s' is missing in:\n%s", part, text);
}

static inline void assert_has_not(const char *text, const char *part) {
        if (strstr(text, part))
                fail_msg("'%s' should not be in:\n%s", part, text);
}

/* The case of the paper: a GPU and an InfiniBand VF on one node, with eight vCPUs pinned there. */
static inline Case one_node(const char *name) {
        Case c = case_new(name, 2, (int[]) { 0, 1 }, false);

        add_gpu(&c, "0000:82:00.0", 1, 8 * GIB, "gpu0");
        add_vf(&c, "0000:83:00.1", "0000:83:00.0", 1, "ib-vf0");
        assert_int_equal(cpuset_parse("0-1,16-17", &c.config->housekeeping), 0);
        pin(&c, "18-25", 20 * GIB, 0);
        return c;
}

static inline void assert_refused(const Case *c, const char *text, Verdict expected, const char *word) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        const DomainTemplate template = { text };
        char *ret = NULL;

        assert_int_equal(
                domxml_make(c->inv, c->config, c->a, text ? &template : NULL, GUEST_INFO_GUEST, &ret, &refusal),
                expected);
        assert_null(ret);
        assert_int_equal(refusal.verdict, expected);
        assert_has(refusal.message, word);
        record(text ?: "no template", refusal.message);
        assert_int_equal(domxml_make(c->inv, c->config, c->a, text ? &template : NULL, GUEST_INFO_GUEST, &ret, NULL),
                         expected);
}

static inline int teardown(void **state) {
        xmlCleanupParser();
        return 0;
}
