/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * No device is allocated twice: scenarios B1, B2, C11, D4, and thousands of random claims and releases. After each one
 * the invariants are recomputed from the allocations. LEDGER_SEED= repeats a run.
 */

#include <stdio.h>
#include <time.h>

#include "unit.h"

#include "ledger/ledger-file.h"
#include "nodefixture.h"

#define STEPS 4000U
#define PF    "0000:81:00.0"

/* --- scenarios --- */

/* One PF with any number of VFs, and a GPU with audio. */
static TestNode *make_node(unsigned n_vfs) {
        TestNode *t = node_new();

        node_hugepages(node_numa(t, 0, 0, 8, 2, 16 * GIB), GIB, 4, 4);
        node_nic(t, "pci0000:80/0000:80:01.0/" PF, 0, 1)->total_vfs = 8;
        for (unsigned i = 1; i <= n_vfs; i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "pci0000:80/0000:80:01.0/0000:81:00.%u", i);
                node_vf(t, path, PF, 0, 1 + (int) i);
        }
        node_gpu(t, "pci0000:00/0000:00:01.0/0000:01:00.0", 0, 20);
        node_device(t, "pci0000:00/0000:00:01.0/0000:01:00.1", 0x040300, 0, 20);
        node_ready(t, "HousekeepingCpus=0\nReserveMemory=2G\n[Pool pf]\nMatch=type=pf\n[Pool vf]\nMatch=type=vf\n[Pool "
                      "gpu]\nMatch=class=0302\n");
        return t;
}

static Allocation *make_claim(const TestNode *t, const char *name, const char *addresses) {
        Allocation *a = allocation_new(name);
        _cleanup_free_ char *copy = strdup(addresses);
        char *at = NULL;

        assert_non_null(a);
        for (char *word = strtok_r(copy, " ", &at); word; word = strtok_r(NULL, " ", &at)) {
                AllocationDevice *d = allocation_add_device(a, address_of(word), DEVICE_ROLE_ASSIGNED);
                const PciDevice *dev = inventory_find(t->inventory, d->address);

                assert_int_equal(string_copy(&d->slot, word), 0);
                d->is_vf = dev && dev->type == PCI_TYPE_VF;
                if (d->is_vf)
                        d->physfn = dev->physfn;
        }
        return a;
}

static Verdict claim(TestNode *t, const char *name, const char *addresses, Refusal *why) {
        Allocation *a = make_claim(t, name, addresses);
        Verdict v = ledger_claim(t->ledger, t->inventory, t->config, a, why);

        if (v != VERDICT_NONE)
                allocation_free(a);
        assert_true(ledger_verify(t->ledger, t->inventory, t->config));
        return v;
}

/* Formats the whole ledger as text. */
static char *ledger_text(const Ledger *l) {
        _cleanup_free_ char *cpus = cpuset_format(&l->cpus);
        size_t size;
        char *text;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        for (size_t i = 0; i < l->n_allocations; i++) {
                _cleanup_free_ char *one = ledger_file_format(l->allocations[i]);

                (void) fprintf(f, "%p %s\n", (void *) l->allocations[i], one);
        }
        for (size_t i = 0; i < l->n_claims; i++)
                (void) fprintf(f, "%s %p\n", PCI_ADDRESS_STR(l->claims[i].address),
                               (const void *) l->claims[i].allocation);
        for (size_t i = 0; i < l->n_pf_uses; i++)
                (void) fprintf(f, "%s %u\n", PCI_ADDRESS_STR(l->pf_uses[i].pf), l->pf_uses[i].vfs);
        for (size_t i = 0; i < l->n_memory; i++)
                (void) fprintf(f, "%d %llu %llu\n", l->memory[i].node, (unsigned long long) l->memory[i].page_size,
                               (unsigned long long) l->memory[i].bytes);
        (void) fprintf(f, "%s\n", cpus);
        (void) fclose(f);
        return text;
}

TEST(test_B1_pf_taken_means_no_vf) {
        _cleanup_node_ TestNode *t = make_node(4);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(claim(t, "vm1", PF, NULL), VERDICT_NONE);
        for (int i = 1; i <= 4; i++) {
                char vf[16];

                (void) snprintf(vf, sizeof(vf), "0000:81:00.%d", i);
                assert_int_equal(claim(t, "vm2", vf, &why), VERDICT_PF_ALLOCATED);
                assert_says(&why, PF);
        }
        assert_int_equal(node_available(t, "vf"), 0);
        node_release(t, "vm1");
        assert_int_equal(node_available(t, "vf"), 4);
}

TEST(test_B2_C11_vf_taken_means_no_pf) {
        _cleanup_node_ TestNode *t = make_node(4);
        _cleanup_free_ char *before = NULL, *after = NULL;
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(claim(t, "vm1", "0000:81:00.2", NULL), VERDICT_NONE);
        assert_int_equal(ledger_pf_use(t->ledger, address_of(PF)), 1);
        before = ledger_text(t->ledger);
        assert_int_equal(claim(t, "vm2", PF, &why), VERDICT_PF_HAS_VFS);
        assert_says(&why, "1 of its VFs");
        after = ledger_text(t->ledger);
        assert_string_equal(before, after);
        node_release(t, "vm1");
        assert_int_equal(ledger_pf_use(t->ledger, address_of(PF)), 0);
        assert_int_equal(claim(t, "vm2", PF, NULL), VERDICT_NONE);
}

/* vfio-pci refuses a PF with VFs, so a claim of both is refused. */
TEST(test_pf_and_its_vf_in_one_claim) {
        _cleanup_node_ TestNode *t = make_node(4);

        assert_int_not_equal(claim(t, "vm1", PF " 0000:81:00.1", NULL), VERDICT_NONE);
        assert_int_not_equal(claim(t, "vm2", "0000:81:00.1 " PF, NULL), VERDICT_NONE);
}

TEST(test_D4_the_same_twice) {
        _cleanup_node_ TestNode *t = make_node(4);
        _cleanup_refusal_ Refusal why = { 0 };
        static const char *const three = "0000:81:00.1 0000:81:00.2 0000:81:00.3";
        _cleanup_free_ char *before = NULL, *after = NULL;

        assert_int_equal(claim(t, "vm1", three, NULL), VERDICT_NONE);
        before = ledger_text(t->ledger);
        assert_int_equal(claim(t, "vm1", three, &why), VERDICT_NAME_TAKEN);
        assert_says(&why, "'vm1'");
        assert_int_equal(claim(t, "vm2", three, &why), VERDICT_ALLOCATED);
        assert_says(&why, "0000:81:00.1");
        assert_int_equal(claim(t, "vm2", "0000:81:00.4 0000:81:00.3", &why),
                         VERDICT_ALLOCATED); /* the second of the set */
        assert_int_equal(claim(t, "vm2", "0000:81:00.4 0000:81:00.4", &why), VERDICT_INVALID_REQUEST);
        assert_int_equal(claim(t, "vm2", "0000:99:00.0", &why), VERDICT_NO_SUCH_DEVICE);
        after = ledger_text(t->ledger);
        assert_string_equal(before, after);
}

TEST(test_groups_are_not_shared) {
        _cleanup_node_ TestNode *t = make_node(0);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(claim(t, "vm1", "0000:01:00.1", NULL), VERDICT_NONE);
        assert_int_equal(claim(t, "vm2", "0000:01:00.0", &why), VERDICT_ALLOCATED);
        assert_says(&why, "0000:01:00.0 shares IOMMU group 20 with 0000:01:00.1, which 'vm1' holds.");
}

/* A finding about a device blocks the device, its IOMMU group, its PF and its VFs, but not their claims. */
static void assert_blocked(const char *blocked, const char *wanted) {
        _cleanup_node_ TestNode *t = make_node(2);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(device_status_set(&t->status, address_of(blocked), DEVICE_STUCK, "It hangs."), 0);
        if (ledger_check_device(t->ledger, &t->status, t->inventory, node_find(t, wanted), NULL, &why) != VERDICT_STUCK)
                fail_msg("%s can be had while %s is stuck", wanted, blocked);
        assert_string_equal(why.message, "It hangs.");
        assert_int_equal(device_status_set(&t->status, address_of(blocked), DEVICE_STUCK, NULL), 0);
        assert_int_equal(ledger_check_device(t->ledger, &t->status, t->inventory, node_find(t, wanted), NULL, NULL),
                         VERDICT_NONE);
}

TEST(test_blocked_itself) {
        assert_blocked("0000:01:00.0", "0000:01:00.0");
}

TEST(test_blocked_pf) {
        assert_blocked(PF, "0000:81:00.1");
}

TEST(test_blocked_group_member) {
        assert_blocked("0000:01:00.1", "0000:01:00.0");
}

TEST(test_blocked_vf) {
        assert_blocked("0000:81:00.1", PF);
}

static void quarantine(Ledger *l, const char *device, const char *reason) {
        Allocation *a = allocation_new("gone");

        assert_non_null(a);
        assert_non_null(allocation_add_device(a, address_of(device), DEVICE_ROLE_ASSIGNED));
        assert_int_equal(string_copy(&a->reason, reason), 0);
        assert_int_equal(ledger_quarantine(l, a), 0);
}

static Verdict check_device(const TestNode *t, const char *address, const char *except) {
        return ledger_check_device(t->ledger, &t->status, t->inventory, node_find(t, address),
                                   except ? ledger_find(t->ledger, except) : NULL, NULL);
}

/* A quarantined device blocks itself, its IOMMU group, its PF and its VFs only. */
TEST(test_quarantine_refuses) {
        static const struct {
                const char *quarantined, *refused[3], *free;
        } cases[] = {
                { "0000:01:00.1", { "0000:01:00.0", "0000:01:00.1" }, PF },
                { PF, { PF, "0000:81:00.1", "0000:81:00.2" }, "0000:01:00.0" },
                { "0000:81:00.1", { PF, "0000:81:00.1" }, "0000:81:00.2" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = make_node(2);

                quarantine(t->ledger, cases[i].quarantined, "It did not come back.");
                for (size_t j = 0; j < 3 && cases[i].refused[j]; j++)
                        assert_int_equal(check_device(t, cases[i].refused[j], NULL), VERDICT_QUARANTINED);
                assert_int_equal(check_device(t, cases[i].free, NULL), VERDICT_NONE);
                assert_int_equal(ledger_check_kept(t->ledger, &t->status, address_of(cases[i].quarantined), NULL),
                                 VERDICT_QUARANTINED);
                quarantine(t->ledger, "0000:99:00.0", "It did not come back.");
                assert_int_equal(check_device(t, cases[i].refused[0], NULL), VERDICT_QUARANTINED);
        }
}

/* A check may ignore the claims of one allocation, but no others. */
TEST(test_except) {
        _cleanup_node_ TestNode *t = make_node(2);

        assert_int_equal(claim(t, "vm1", "0000:01:00.1", NULL), VERDICT_NONE);
        assert_int_equal(claim(t, "vm2", PF, NULL), VERDICT_NONE);
        assert_int_equal(check_device(t, "0000:01:00.0", "vm1"), VERDICT_NONE);
        assert_int_equal(check_device(t, "0000:01:00.1", "vm1"), VERDICT_NONE);
        assert_int_equal(check_device(t, "0000:01:00.0", "vm2"), VERDICT_ALLOCATED);
        assert_int_equal(check_device(t, "0000:01:00.1", "vm2"), VERDICT_ALLOCATED);
        assert_int_equal(check_device(t, "0000:81:00.1", "vm2"), VERDICT_NONE);
        assert_int_equal(check_device(t, "0000:81:00.1", "vm1"), VERDICT_PF_ALLOCATED);
        node_release(t, "vm2");
        assert_int_equal(check_device(t, "0000:81:00.1", "vm1"), VERDICT_NONE);
}

TEST(test_copy) {
        _cleanup_node_ TestNode *t = make_node(2);
        _cleanup_(cleanup_ledger_free) Ledger *copy = NULL;

        assert_int_equal(claim(t, "vm1", "0000:81:00.1", NULL), VERDICT_NONE);
        quarantine(t->ledger, "0000:01:00.0", "first");
        quarantine(t->ledger, "0000:02:00.0", "second");
        copy = ledger_copy(t->ledger);
        assert_non_null(copy);
        assert_int_equal(copy->n_allocations, 1);
        assert_string_equal(ledger_holder(copy, address_of("0000:81:00.1"))->name, "vm1");
        assert_int_equal(copy->n_quarantined, 2);
        assert_string_equal(ledger_find_quarantined(copy, address_of("0000:02:00.0"))->reason, "second");
}

TEST(test_most_allocations) {
        _cleanup_node_ TestNode *t = make_node(0);

        for (unsigned i = 0; i < LEDGER_ALLOCATIONS_MAX; i++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "vm%05u", i);
                assert_int_equal(ledger_adopt(t->ledger, make_claim(t, name, ""), NULL), VERDICT_NONE);
        }
        _cleanup_(cleanup_allocation_free) Allocation *more = make_claim(t, "vm", "");

        assert_int_equal(ledger_claim(t->ledger, t->inventory, t->config, more, NULL), VERDICT_LIMIT);
}

TEST(test_read_only) {
        _cleanup_node_ TestNode *t = make_node(0);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(string_copy(&t->ledger->read_only, "Too new."), 0);
        assert_int_equal(claim(t, "vm", PF, &why), VERDICT_READ_ONLY);
        assert_says(&why, "Too new.");
}

static Verdict claim_cells(TestNode *t, const char *cpus, uint64_t page_size, uint64_t first, uint64_t second,
                           Refusal *why) {
        Allocation *a = make_claim(t, "vm", "");
        Verdict v;

        assert_int_equal(cpuset_parse(cpus, &a->cpus), 0);
        a->page_size = page_size;
        a->cells[a->n_cells++] = (Cell) { .node = 0, .memory = first };
        if (second > 0)
                a->cells[a->n_cells++] = (Cell) { .node = 0, .memory = second };
        v = ledger_claim(t->ledger, t->inventory, t->config, a, why);
        if (v != VERDICT_NONE)
                allocation_free(a);
        return v;
}

/* 16 GiB without 4 hugepages and 2 GiB for the host. The core of CPU 0 is the host's. */
TEST(test_capacity) {
        _cleanup_node_ TestNode *t = make_node(0);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(claim_cells(t, "2", 0, 10 * GIB + 1, 0, &why), VERDICT_INSUFFICIENT_MEMORY);
        assert_says(&why, "10 GiB");
        assert_int_equal(claim_cells(t, "2", 0, 6 * GIB, 5 * GIB, &why),
                         VERDICT_INSUFFICIENT_MEMORY); /* two cells of one node */
        assert_int_equal(claim_cells(t, "2", GIB, 5 * GIB, 0, &why), VERDICT_INSUFFICIENT_MEMORY);
        assert_says(&why, "4 GiB");
        assert_int_equal(claim_cells(t, "2", 2 * GIB, 2 * GIB, 0, &why),
                         VERDICT_INSUFFICIENT_MEMORY); /* no pages of this size */
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, &t->inventory->nodes[0], 2 * GIB), 0);
        assert_int_equal(claim_cells(t, "0", 0, GIB, 0, &why), VERDICT_INSUFFICIENT_CPUS);
        assert_says(&why, "CPU 0");
        assert_int_equal(claim_cells(t, "1", 0, GIB, 0, &why),
                         VERDICT_INSUFFICIENT_CPUS); /* sibling of a housekeeping CPU */
        assert_says(&why, "CPU 1");
        assert_int_equal(claim_cells(t, "2-3", 0, 10 * GIB, 0, NULL), VERDICT_NONE);
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, &t->inventory->nodes[0], 0), 0);
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, &t->inventory->nodes[0], GIB), 4 * GIB);
}

TEST(test_memory_of_cells_does_not_wrap) {
        _cleanup_node_ TestNode *t = make_node(0);

        assert_int_equal(claim_cells(t, "2", 0, 1ULL << 63, 1ULL << 63, NULL), VERDICT_INSUFFICIENT_MEMORY);
}

/* Files of the ledger may promise any memory. A sum that wraps is right again when the allocations are gone. */
TEST(test_promised_memory_may_wrap) {
        static const char *const names[] = { "vm1", "vm2", "vm3" };
        _cleanup_node_ TestNode *t = make_node(0);

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                Allocation *a = make_claim(t, names[i], "");

                a->cells[a->n_cells++] = (Cell) { .node = 0, .memory = 1ULL << 63 };
                assert_int_equal(ledger_adopt(t->ledger, a, NULL), VERDICT_NONE);
                ledger_set_running(t->ledger, a, true);
        }
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                allocation_free(ledger_remove(t->ledger, names[i]));
        assert_int_equal(ledger_memory(t->ledger, 0, 0), 0);
        assert_int_equal(ledger_memory_idle(t->ledger, 0, 0), 0);
}

/* Hugepages in use are not available. */
TEST(test_pages_in_use) {
        _cleanup_node_ TestNode *t = make_node(0);

        t->inventory->nodes[0].pages[0].free = 1;
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, &t->inventory->nodes[0], GIB), GIB);
        t->inventory->nodes[0].pages[0].free = 9; /* more than the total */
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, &t->inventory->nodes[0], GIB), 4 * GIB);
}

/* 4 pages of 1 GiB, and 8 GiB of ordinary memory. Promised memory is subtracted from free memory only once. */
TEST(test_idle_guests) {
        _cleanup_node_ TestNode *t = make_node(0);
        NumaNode *node = &t->inventory->nodes[0];
        Allocation *a;

        assert_int_equal(claim_cells(t, "2-3", GIB, GIB, GIB, NULL), VERDICT_NONE);
        a = ledger_find(t->ledger, "vm");
        assert_int_equal(ledger_memory_idle(t->ledger, 0, GIB), 2 * GIB);
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, GIB), 2 * GIB);
        node->pages[0].free = 3; /* another process has one */
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, GIB), GIB);
        node->pages[0].free = 2;
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, GIB), 0);
        node->pages[0].free = 1;
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, GIB), 0);
        ledger_set_running(t->ledger, a, true);
        ledger_set_running(t->ledger, a, true);
        assert_int_equal(ledger_memory_idle(t->ledger, 0, GIB), 0);
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, GIB), GIB);
        assert_true(ledger_verify(t->ledger, t->inventory, t->config));
        node_release(t, "vm");
        assert_int_equal(ledger_memory_idle(t->ledger, 0, GIB), 0);
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, GIB), GIB);
}

TEST(test_ordinary_memory_that_is_free) {
        _cleanup_node_ TestNode *t = make_node(0);
        NumaNode *node = &t->inventory->nodes[0];

        node->available_known = true;
        node->available = 20 * GIB;
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, 0), 10 * GIB);
        node->available = 5 * GIB;
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, 0), 5 * GIB);
        assert_int_equal(claim_cells(t, "2-3", 0, 3 * GIB, 0, NULL), VERDICT_NONE);
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, 0), 2 * GIB);
        ledger_set_running(t->ledger, ledger_find(t->ledger, "vm"), true);
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, 0), 5 * GIB);
        node->available_known = false;
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, 0), 7 * GIB);
}

/* Memory of a node without CPUs is given only to requests that name the node. */
TEST(test_node_without_cpus) {
        _cleanup_node_ TestNode *t = make_node(0);
        NumaNode *node = &t->inventory->nodes[0];

        node->cpus = (CpuSet) { 0 };
        assert_int_equal(ledger_memory_offered(t->ledger, t->inventory, t->config, node, 0), 0);
        assert_int_equal(ledger_memory_offered(t->ledger, t->inventory, t->config, node, GIB), 0);
        assert_int_equal(ledger_memory_free(t->ledger, t->inventory, t->config, node, 0), 10 * GIB);
}

TEST(test_adopt_asks_no_capacity) {
        _cleanup_node_ TestNode *t = make_node(0);
        Allocation *gone = make_claim(t, "vm1", "0000:99:00.0"), *again = make_claim(t, "vm2", "0000:99:00.0");
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(ledger_adopt(t->ledger, gone, NULL), VERDICT_NONE);
        assert_int_equal(ledger_adopt(t->ledger, again, &why), VERDICT_ALLOCATED);
        allocation_free(again);
        assert_ptr_equal(ledger_holder(t->ledger, address_of("0000:99:00.0")), gone);
        assert_null(ledger_remove(t->ledger, "vm2"));
}

/* Breaks this invariant: "A device, and every device of its IOMMU group, is in at most one allocation". */
TEST(test_verify_sees_a_shared_group) {
        _cleanup_node_ TestNode *t = make_node(0);

        assert_int_equal(ledger_adopt(t->ledger, make_claim(t, "vm1", "0000:01:00.0"), NULL), VERDICT_NONE);
        assert_int_equal(ledger_adopt(t->ledger, make_claim(t, "vm2", "0000:01:00.1"), NULL), VERDICT_NONE);
        assert_false(ledger_verify(t->ledger, t->inventory, t->config));
}

TEST(test_verify_sees_damage) {
        _cleanup_node_ TestNode *t = make_node(2);

        assert_int_equal(claim(t, "vm1", "0000:81:00.1", NULL), VERDICT_NONE);
        t->ledger->pf_uses[0].vfs++;
        assert_false(ledger_verify(t->ledger, t->inventory, t->config));
        t->ledger->pf_uses[0].vfs--;
        cpuset_add(&t->ledger->cpus, 3);
        assert_false(ledger_verify(t->ledger, t->inventory, t->config));
        cpuset_remove(&t->ledger->cpus, 3);
        assert_true(ledger_verify(t->ledger, t->inventory, t->config));
}

/* The check finds wrong sums of a node's promised memory, and of the part that the kernel has given already. */
TEST(test_verify_sees_damaged_memory) {
        _cleanup_node_ TestNode *t = make_node(2);
        Allocation *a = make_claim(t, "vm1", "");
        MemoryClaim *m;

        a->cells[a->n_cells++] = (Cell) { .node = 0, .memory = GIB };
        assert_int_equal(ledger_adopt(t->ledger, a, NULL), VERDICT_NONE);
        ledger_set_running(t->ledger, a, true);
        assert_true(ledger_verify(t->ledger, t->inventory, t->config));
        m = &t->ledger->memory[0];
        for (int both = 0; both < 2; both++) {
                m->bytes += GIB;
                m->backed += both ? GIB : 0;
                assert_false(ledger_verify(t->ledger, t->inventory, t->config));
                m->bytes -= GIB;
                m->backed -= both ? GIB : 0;
        }
        m->backed -= GIB / 2;
        assert_false(ledger_verify(t->ledger, t->inventory, t->config));
        m->backed += GIB / 2;
        assert_true(ledger_verify(t->ledger, t->inventory, t->config));
}

/* A device is quarantined once. The last reason counts. */
TEST(test_quarantine_again_replaces) {
        _cleanup_(cleanup_ledger_free) Ledger *l = ledger_new();

        assert_non_null(l);
        quarantine(l, "0000:01:00.0", "first");
        quarantine(l, "0000:02:00.0", "other");
        quarantine(l, "0000:01:00.0", "second");
        assert_int_equal(l->n_quarantined, 2);
        assert_string_equal(ledger_find_quarantined(l, address_of("0000:01:00.0"))->reason, "second");
        allocation_free(ledger_unquarantine(l, address_of("0000:01:00.0")));
        assert_null(ledger_find_quarantined(l, address_of("0000:01:00.0")));
        assert_string_equal(ledger_find_quarantined(l, address_of("0000:02:00.0"))->reason, "other");
}

/* --- random claims and releases --- */

static uint64_t seed;

static unsigned below(unsigned n) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return (unsigned) (seed % n);
}

static TestNode *random_node(void) {
        TestNode *t = node_new();
        int group = 0;

        for (int i = 0; i < 2; i++)
                node_hugepages(node_numa(t, i * 3, (unsigned) i * 16, 16, 2, (8 + below(8)) * GIB), 2 << 20, 512, 512);
        for (int bus = 1; bus < 12; bus++) {
                char path[64], pf[16];
                unsigned functions = 1 + below(4);

                (void) snprintf(pf, sizeof(pf), "0000:%02x:00.0", bus);
                for (unsigned f = 0; f < functions; f++) {
                        (void) snprintf(path, sizeof(path), "pci0000:00/0000:00:%02x.0/0000:%02x:00.%u", bus, bus, f);
                        group += below(3) > 0;
                        if (bus % 2 && f > 0)
                                node_vf(t, path, pf, 0, group);
                        else
                                node_nic(t, path, 0, group);
                }
        }
        node_ready(t, "HousekeepingCpus=0,17\nReserveMemory=1G\n[Pool nic]\nMatch=class=02 type=vf\n[Service s]\n"
                      "Kind=rcuda\nEndpoint=a:1 slots=1\nEndpoint=b:1 slots=5\nEndpoint=c:1 slots=0\n");
        return t;
}

static const char *const endpoints[] = { "a:1", "b:1", "c:1" };

static void add_slots(Allocation *a, const char *endpoint, unsigned slots) {
        AllocationService s = { .name = "s", .kind = REMOTE_KIND_RCUDA, .slots = slots };

        (void) snprintf(s.endpoint, sizeof(s.endpoint), "%s", endpoint);
        assert_int_equal(allocation_add_service(a, &s), 0);
}

static unsigned count_slots(const Ledger *l, const char *endpoint) {
        unsigned n = 0;

        for (size_t i = 0; i < l->n_allocations; i++)
                for (size_t k = 0; k < l->allocations[i]->n_services; k++)
                        if (streq(l->allocations[i]->services[k].endpoint, endpoint))
                                n += l->allocations[i]->services[k].slots;
        return n;
}

static Allocation *random_claim(const TestNode *t, unsigned number) {
        char name[16];
        Allocation *a;

        (void) snprintf(name, sizeof(name), "vm%u", below(20) ? number : number / 2);
        a = make_claim(t, name, "");
        for (unsigned i = below(4); i > 0; i--) {
                const PciDevice *dev = &t->inventory->devices[below((unsigned) t->inventory->n_devices)];
                AllocationDevice *d = allocation_add_device(a, dev->address, (DeviceRole) below(_DEVICE_ROLE_MAX));

                assert_non_null(d);
                d->is_vf = dev->type == PCI_TYPE_VF;
                d->physfn = dev->physfn;
                if (below(40) == 0)
                        d->address.bus = 0xee;
        }
        if (below(2)) { /* whole cores, and parts of some */
                unsigned node = below(2), core = below(8), n = 1 + below(6);

                for (unsigned i = 0; i < n; i++)
                        cpuset_add(&a->cpus, node * 16 + (core * 2 + i) % 16);
                a->page_size = below(3) ? 0 : 2 << 20;
                a->cells[a->n_cells++] =
                        (Cell) { .node = (int) node * 3,
                                 .memory = (uint64_t) (1 + below(40)) * (a->page_size ? 16 << 20 : GIB / 4) };
                if (below(8) == 0)
                        a->cells[a->n_cells++] = (Cell) { .node = below(2) ? 3 : 1, .memory = GIB };
        }
        for (unsigned i = 0; i < 2 + (below(20) == 0); i++)
                if (below(3) == 0)
                        add_slots(a, endpoints[i], 1 + below(3));
        return a;
}

static bool family(const AllocationDevice *a, const AllocationDevice *b) {
        return (a->is_vf && pci_address_equal(a->physfn, b->address)) ||
               (b->is_vf && pci_address_equal(b->physfn, a->address));
}

/* Checks that two allocations share no resource. */
static void assert_apart(const TestNode *t, const Allocation *a, const Allocation *b) {
        for (size_t i = 0; i < a->n_devices; i++)
                for (size_t j = 0; j < b->n_devices; j++) {
                        assert_false(pci_address_equal(a->devices[i].address, b->devices[j].address));
                        assert_false(family(&a->devices[i], &b->devices[j]));
                        assert_int_not_equal(inventory_find(t->inventory, a->devices[i].address)->iommu_group,
                                             inventory_find(t->inventory, b->devices[j].address)->iommu_group);
                }
        for (unsigned cpu = 0; cpu < 32; cpu += 2) /* whole cores */
                assert_false((cpuset_has(&a->cpus, cpu) || cpuset_has(&a->cpus, cpu + 1)) &&
                             (cpuset_has(&b->cpus, cpu) || cpuset_has(&b->cpus, cpu + 1)));
}

static void assert_invariants(const TestNode *t) {
        const Ledger *l = t->ledger;

        assert_true(ledger_verify(l, t->inventory, t->config));
        for (size_t i = 0; i < l->n_allocations; i++) {
                for (size_t j = 0; j < i; j++)
                        assert_apart(t, l->allocations[i], l->allocations[j]);
                for (unsigned cpu = 0; cpu < 32; cpu++)
                        if (cpuset_has(&l->allocations[i]->cpus, cpu))
                                assert_true(cpu > 1 && cpu != 16 && cpu != 17); /* cores with a housekeeping CPU */
        }
        for (size_t n = 0; n < t->inventory->n_nodes; n++) {
                const NumaNode *node = &t->inventory->nodes[n];
                uint64_t small = 0, large = 0;

                for (size_t i = 0; i < l->n_allocations; i++)
                        for (size_t c = 0; c < l->allocations[i]->n_cells; c++)
                                if (l->allocations[i]->cells[c].node == node->id)
                                        *(l->allocations[i]->page_size ? &large : &small) +=
                                                l->allocations[i]->cells[c].memory;
                assert_true(small + GIB + GIB <= node->memory); /* 1 GiB of hugepages, 1 GiB reserve */
                assert_true(large <= GIB);
                assert_int_equal(ledger_memory(l, node->id, 0), small);
                assert_int_equal(ledger_memory(l, node->id, 2 << 20), large);
        }
        for (size_t i = 0; i < ELEMENTSOF(endpoints); i++) {
                assert_int_equal(ledger_slots(l, endpoints[i]), count_slots(l, endpoints[i]));
                assert_true(count_slots(l, endpoints[i]) <= config_endpoint_slots(t->config, endpoints[i]));
        }
}

static void try_random_claim(TestNode *t, unsigned number, unsigned *claimed, unsigned *refused) {
        _cleanup_free_ char *before = ledger_text(t->ledger);
        _cleanup_refusal_ Refusal why = { 0 };
        Allocation *a = random_claim(t, number);

        if (ledger_claim(t->ledger, t->inventory, t->config, a, &why) == VERDICT_NONE) {
                (*claimed)++;
                return;
        }
        _cleanup_free_ char *after = ledger_text(t->ledger);

        assert_string_equal(before, after);
        assert_non_null(why.message);
        allocation_free(a);
        (*refused)++;
}

TEST(test_random_claims_and_releases) {
        const char *given = getenv("LEDGER_SEED");
        uint64_t first = given ? strtoull(given, NULL, 10) : (uint64_t) time(NULL);
        unsigned claimed = 0, refused = 0;
        TestNode *t;

        print_message("# LEDGER_SEED=%llu\n", (unsigned long long) first);
        seed = first * 2654435761 + 1;
        t = random_node();
        for (unsigned i = 0; i < STEPS; i++) {
                if (i % 500 == 499) {
                        node_free(t);
                        t = random_node();
                }
                if (t->ledger->n_allocations > 0 && below(3) == 0)
                        node_release(t, t->ledger->allocations[below((unsigned) t->ledger->n_allocations)]->name);
                else
                        try_random_claim(t, i, &claimed, &refused);
                if (t->ledger->n_allocations > 0)
                        ledger_set_running(t->ledger,
                                           t->ledger->allocations[below((unsigned) t->ledger->n_allocations)],
                                           below(2));
                assert_invariants(t);
        }
        node_free(t);
        assert_in_range(claimed, STEPS / 10, STEPS);
        assert_in_range(refused, STEPS / 10, STEPS);
}

/* A configuration with fewer slots takes no slots from allocations, and gives none until enough are released. */
TEST(test_fewer_slots_than_taken) {
        _cleanup_node_ TestNode *t = make_node(0);
        Config *before = t->config, *fewer;
        Allocation *a = make_claim(t, "a", ""), *b = make_claim(t, "b", ""), *c = make_claim(t, "c", "");
        _cleanup_refusal_ Refusal why = { 0 };
        Ledger *after = ledger_new();

        add_slots(a, "e:1", 2);
        add_slots(b, "e:1", 1);
        add_slots(c, "e:1", 1);
        assert_int_equal(config_parse("test.conf", "[Service s]\nKind=rcuda\nEndpoint=e:1 slots=3\n", 44, &fewer), 0);
        assert_int_equal(ledger_claim(t->ledger, t->inventory, before, a, &why), VERDICT_INSUFFICIENT_SLOTS);
        assert_int_equal(ledger_claim(t->ledger, t->inventory, fewer, a, NULL), VERDICT_NONE);
        assert_int_equal(ledger_claim(t->ledger, t->inventory, fewer, b, NULL), VERDICT_NONE);
        fewer->services[0].endpoints[0].slots = 1;
        assert_int_equal(ledger_slots_free(t->ledger, fewer, NULL, "e:1"), 0);
        assert_int_equal(ledger_claim(t->ledger, t->inventory, fewer, c, NULL), VERDICT_INSUFFICIENT_SLOTS);
        /* A daemon that starts with fewer slots adopts both allocations. */
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(ledger_adopt(after, allocation_copy(i ? a : b), NULL), VERDICT_NONE);
        assert_int_equal(ledger_slots(after, "e:1"), 3);
        ledger_free(after);
        node_release(t, "a");
        assert_int_equal(ledger_claim(t->ledger, t->inventory, fewer, c, NULL), VERDICT_INSUFFICIENT_SLOTS);
        node_release(t, "b");
        assert_int_equal(ledger_claim(t->ledger, t->inventory, fewer, c, NULL), VERDICT_NONE);
        assert_int_equal(ledger_slots(t->ledger, "e:1"), 1);
        node_release(t, "c");
        assert_int_equal(t->ledger->n_slots, 0);
        config_free(fewer);
}
