/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Lists of vGPU types, and the further vGPUs that a GPU has room for besides its present and promised ones. */

#include <stdio.h>

#include "unit.h"

#include "model/vgpu.h"
#include "nodefixture.h"

#define VFS   6U
#define EMPTY "1201 : NVIDIA H100XM-80C\n1202 : NVIDIA H100XM-40C\n1203 : NVIDIA H100XM-20C"
#define TYPE  "NVIDIA H100XM-20C"

/* --- lists --- */

TEST(test_list) {
        const char *rest = "ID    : vGPU Name\n  1414 : NVIDIA H200X-1-18C\n\nnonsense\n7:A\n0 : NVIDIA B\n12\n3 "
                           ":\n99999999999 : C\n";
        VgpuType t;

        assert_true(vgpu_types_next(&rest, &t));
        assert_int_equal(t.id, 1414);
        assert_int_equal(t.length, strlen("NVIDIA H200X-1-18C"));
        assert_memory_equal(t.name, "NVIDIA H200X-1-18C", t.length);
        assert_true(vgpu_types_next(&rest, &t));
        assert_int_equal(t.id, 7);
        assert_int_equal(t.length, 1);
        assert_false(vgpu_types_next(&rest, &t));
        rest = NULL;
        assert_false(vgpu_types_next(&rest, &t));
}

TEST(test_find) {
        assert_int_equal(vgpu_types_find(EMPTY, TYPE), 1203);
        assert_int_equal(vgpu_types_find(EMPTY, "NVIDIA H100XM-2"), 0);
        assert_int_equal(vgpu_types_find(EMPTY, ""), 0);
        assert_int_equal(vgpu_types_find(NULL, TYPE), 0);
}

/* The numbers are from NVIDIA's tables. */
TEST(test_capacity) {
        static const struct {
                const char *largest, *name;
                unsigned capacity;
        } cases[] = {
                { "NVIDIA H100L-94C", "NVIDIA H100L-11C", 8 },
                { "NVIDIA H100L-94C", "NVIDIA H100L-15C", 6 },
                { "NVIDIA H100L-94C", "NVIDIA H100L-94C", 1 },
                { "NVIDIA A100-40C", "NVIDIA A100-5C", 8 },
                { "NVIDIA L40-48Q", "NVIDIA L40-1B", 48 },
                { "NVIDIA RTX6000-Ada-48Q", "NVIDIA RTX6000-Ada-16Q", 3 },
                { "NVIDIA H200X-7-141C", "NVIDIA H200X-1-18C", 0 },
                { "NVIDIA A100-40C", "NVIDIA A100-1-5CME", 0 },
                { "NVIDIA X-8C", "odd", 0 },
                { "NVIDIA X-8C", "NVIDIA X-", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *list = string_format("5 : %s\n6 : %s\n", cases[i].largest, cases[i].name);

                if (vgpu_types_capacity(list, cases[i].name) != cases[i].capacity)
                        fail_msg("%s: %u", cases[i].name, vgpu_types_capacity(list, cases[i].name));
        }
}

TEST(test_names) {
        assert_true(vgpu_name_is_valid("NVIDIA RTX PRO 6000 Blackwell DC-1-24Q"));
        assert_false(vgpu_name_is_valid(""));
        assert_false(vgpu_name_is_valid("A\nB"));
        assert_false(vgpu_name_is_valid("A\xc3\xa4"));
        assert_false(vgpu_name_is_valid("0123456789012345678901234567890123456789012345678901234567890123"));
}

/* --- a GPU with VFs --- */

#define GPU "0000:41:00.0"

static TestNode *make_gpu(void) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 2, 16 * GIB);
        node_gpu(t, "pci0000:40/0000:40:01.0/" GPU, 0, 1)->total_vfs = VFS;
        for (unsigned i = 0; i < VFS; i++) {
                char path[64];
                PciDevice *vf;

                (void) snprintf(path, sizeof(path), "pci0000:40/0000:40:01.0/0000:41:01.%u", i);
                vf = node_vf(t, path, GPU, 0, 2 + (int) i);
                vf->class = 0x030200;
                assert_int_equal(string_copy(&vf->driver, "nvidia"), 0);
                assert_int_equal(string_copy(&vf->vgpu_types, EMPTY), 0);
        }
        node_ready(t, "[Pool vgpu]\nMatch=type=vf\nVgpuType=" TYPE "\n");
        return t;
}

static PciDevice *vf_of(TestNode *t, unsigned i) {
        PciAddress a = address_of(GPU);

        a.slot = 1;
        a.function = (uint8_t) i;
        return &t->inventory->devices[inventory_device_index(t->inventory, inventory_find(t->inventory, a))];
}

/* Sets the state that the GPU's driver shows. */
static void show(TestNode *t, unsigned i, unsigned type, const char *others) {
        vf_of(t, i)->vgpu_type = type;
        for (unsigned k = 0; k < VFS; k++)
                assert_int_equal(string_copy(&vf_of(t, k)->vgpu_types, vf_of(t, k)->vgpu_type > 0 ? "" : others), 0);
}

static Verdict claim(TestNode *t, const char *name, unsigned first, unsigned n, unsigned type, unsigned total) {
        Allocation *a = allocation_new(name);
        Verdict v;

        for (unsigned i = first; i < first + n; i++) {
                AllocationDevice *d = allocation_add_device(a, vf_of(t, i)->address, DEVICE_ROLE_ASSIGNED);

                d->is_vf = true;
                d->physfn = address_of(GPU);
                d->vgpu_type = type;
                d->vgpu_total = total;
                assert_int_equal(string_copy(&d->vgpu_name, type == 1203 ? TYPE : "NVIDIA H100XM-40C"), 0);
        }
        v = ledger_claim(t->ledger, t->inventory, t->config, a, NULL);
        if (v != VERDICT_NONE)
                allocation_free(a);
        return v;
}

static VgpuRoom room_of(TestNode *t, unsigned i, const char *name) {
        VgpuRoom room;

        ledger_vgpu_room(t->ledger, NULL, t->inventory, vf_of(t, i), name, &room);
        return room;
}

TEST(test_room) {
        _cleanup_node_ TestNode *t = make_gpu();

        assert_int_equal(room_of(t, 0, TYPE).further, 4);
        assert_int_equal(room_of(t, 0, TYPE).total, 4);
        assert_int_equal(room_of(t, 0, "NVIDIA H100XM-40C").further, 2);
        assert_int_equal(room_of(t, 0, "NVIDIA H100XM-16C").further, 0);
        /* Promised, and not created yet. */
        assert_int_equal(claim(t, "one", 0, 1, 1203, 4), VERDICT_NONE);
        assert_int_equal(room_of(t, 1, TYPE).further, 3);
        assert_int_equal(room_of(t, 1, "NVIDIA H100XM-40C").further, 0);
        assert_int_equal(claim(t, "many", 1, 4, 1203, 4), VERDICT_NO_VGPU);
        assert_int_equal(claim(t, "other", 1, 1, 1202, 2), VERDICT_NO_VGPU);
        /* Created: the driver lists only one size, and the ledger knows the number. */
        show(t, 0, 1203, "1203 : " TYPE);
        assert_int_equal(room_of(t, 1, TYPE).further, 3);
        assert_int_equal(claim(t, "rest", 1, 3, 1203, 4), VERDICT_NONE);
        assert_int_equal(room_of(t, 4, TYPE).further, 0);
        assert_int_equal(claim(t, "last", 4, 1, 1203, 4), VERDICT_NO_VGPU);
}

/* Beside unknown vGPUs of another program, only the next vGPU is certain. */
TEST(test_foreign) {
        _cleanup_node_ TestNode *t = make_gpu();

        show(t, 5, 1203, "1203 : " TYPE);
        assert_int_equal(room_of(t, 0, TYPE).further, 1);
        assert_int_equal(room_of(t, 0, TYPE).total, 0);
        assert_int_equal(claim(t, "two", 0, 2, 1203, 0), VERDICT_NO_VGPU);
        assert_int_equal(claim(t, "one", 0, 1, 1203, 0), VERDICT_NONE);
        assert_int_equal(room_of(t, 1, TYPE).further, 0);
        show(t, 0, 1203, "1203 : " TYPE);
        assert_int_equal(room_of(t, 1, TYPE).further, 1);
        show(t, 4, 1203, "");
        assert_int_equal(room_of(t, 1, TYPE).further, 0);
}

/* With several sizes, the total, which is that of one size, does not count. */
TEST(test_mixed) {
        _cleanup_node_ TestNode *t = make_gpu();

        assert_int_equal(claim(t, "one", 0, 1, 1203, 4), VERDICT_NONE);
        show(t, 0, 1203, "1202 : NVIDIA H100XM-40C\n1203 : " TYPE);
        assert_int_equal(claim(t, "other", 1, 1, 1202, 0), VERDICT_NONE);
        assert_int_equal(room_of(t, 2, TYPE).further, 0);
        show(t, 1, 1202, "1203 : " TYPE);
        assert_int_equal(room_of(t, 2, TYPE).further, 1);
}

/* --- plans --- */

TEST(test_plan) {
        _cleanup_node_ TestNode *t = make_gpu();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };

        assert_int_equal(node_plan(t, ASK(.pools = "vgpu=5"), &plan, &refusal), VERDICT_INSUFFICIENT_DEVICES);
        assert_int_equal(node_plan(t, ASK(.pools = "vgpu=4"), &plan, NULL), VERDICT_NONE);
        assert_int_equal(plan->allocation->n_devices, 4);
        for (unsigned i = 0; i < 4; i++) {
                const AllocationDevice *d = &plan->allocation->devices[i];

                assert_true(pci_address_equal(d->address, vf_of(t, i)->address));
                assert_int_equal(d->vgpu_type, 1203);
                assert_int_equal(d->vgpu_total, 4);
                assert_string_equal(d->vgpu_name, TYPE);
                assert_string_equal(d->vfio_driver, "nvidia");
        }
}

/* A VF of another card keeps the host driver of that card, which makes its vGPU. */
TEST(test_accept) {
        _cleanup_node_ TestNode *t = make_gpu();
        Allocation *a;

        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "vgpu=1"), NULL), VERDICT_NONE);
        a = ledger_find(t->ledger, "vm");
        vf_of(t, 0)->subsystem_device++;
        assert_int_equal(plan_check_accept(&t->context, a, NULL), VERDICT_NONE);
        assert_int_equal(plan_accept(&t->context, a), 0);
        assert_string_equal(a->devices[0].vfio_driver, "nvidia");
        assert_int_equal(a->devices[0].vgpu_type, 1203);
        show(t, 0, 1203, "1203 : " TYPE);
        assert_true(allocation_is_bound(a, t->inventory));
}

/* --- random requests, with a driver that tracks its memory --- */

#define GPUS     3U
#define STEPS    4000U
#define MEMORY   80U
#define ID_LARGE 1202U
#define ID_SMALL 1203U

static unsigned size_of(unsigned type) {
        return type == ID_LARGE ? 40 : 20;
}

static uint64_t seed = 20160401;

static unsigned below(unsigned n) {
        uint64_t z = seed += 0x9e3779b97f4a7c15;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return (unsigned) ((z ^ z >> 31) % n);
}

/* The VFs 0 to 3 of each GPU are in pool "small", the others in pool "large". */
static TestNode *make_gpus(void) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 2, 16 * GIB);
        for (unsigned g = 0; g < GPUS; g++) {
                char path[96], pf[16];

                (void) snprintf(pf, sizeof(pf), "0000:4%u:00.0", g + 1);
                (void) snprintf(path, sizeof(path), "pci0000:40/0000:40:0%u.0", g + 1);
                node_bridge(t, path, 0, 90 + (int) g);
                (void) snprintf(path, sizeof(path), "pci0000:40/0000:40:0%u.0/%s", g + 1, pf);
                node_gpu(t, path, 0, 80 + (int) g)->total_vfs = VFS;
                for (unsigned i = 0; i < VFS; i++) {
                        PciDevice *vf;

                        (void) snprintf(path, sizeof(path), "pci0000:40/0000:40:0%u.0/0000:4%u:01.%u", g + 1, g + 1, i);
                        vf = node_vf(t, path, pf, 0, 2 + (int) (g * VFS + i));
                        vf->class = 0x030200;
                        assert_int_equal(string_copy(&vf->driver, "nvidia"), 0);
                        assert_int_equal(string_copy(&vf->vgpu_types, EMPTY), 0);
                }
        }
        node_ready(t, "[Pool small]\nMatch=type=vf address=*.0\nMatch=type=vf address=*.1\nMatch=type=vf "
                      "address=*.2\nMatch=type=vf address=*.3\nVgpuType=" TYPE
                      "\n[Pool large]\nMatch=type=vf\nVgpuType=NVIDIA H100XM-40C\n[Exclude]\nMatch=type=pf\n");
        return t;
}

static PciDevice *vf_of_gpu(TestNode *t, unsigned g, unsigned i) {
        char address[16];

        (void) snprintf(address, sizeof(address), "0000:4%u:01.%u", g + 1, i);
        return &t->inventory->devices[inventory_device_index(t->inventory, node_find(t, address))];
}

/* The vGPUs that a GPU has or is promised. */
typedef struct Fill {
        unsigned type, n; /* type 0: none */
        bool mixed;
} Fill;

static Fill fill_of(TestNode *t, unsigned g, bool promised) {
        Fill f = { 0 };

        for (unsigned i = 0; i < VFS; i++) {
                const PciDevice *vf = vf_of_gpu(t, g, i);
                const Allocation *a = ledger_holder(t->ledger, vf->address);
                unsigned type = vf->vgpu_type ?: a && promised ? allocation_find_device(a, vf->address)->vgpu_type : 0;

                if (type == 0)
                        continue;
                f.mixed = f.mixed || (f.type > 0 && f.type != type);
                f.type = type;
                f.n++;
        }
        return f;
}

/* Lists the types that fit beside the GPU's vGPUs: those of one size. */
static void drive(TestNode *t, unsigned g) {
        Fill f = fill_of(t, g, false);
        const char *list = f.type == 0                            ? EMPTY
                           : (f.n + 1) * size_of(f.type) > MEMORY ? ""
                           : f.type == ID_LARGE                   ? "1202 : NVIDIA H100XM-40C"
                                                                  : "1203 : " TYPE;

        for (unsigned i = 0; i < VFS; i++)
                assert_int_equal(
                        string_copy(&vf_of_gpu(t, g, i)->vgpu_types, vf_of_gpu(t, g, i)->vgpu_type > 0 ? "" : list), 0);
}

/* Returns the most further vGPUs of a type, limited by the free VFs of its pool. */
static unsigned room_for(TestNode *t, unsigned g, unsigned type) {
        Fill f = fill_of(t, g, true);
        unsigned n = 0;

        for (unsigned i = 0; i < VFS; i++)
                n += (i < 4) == (type == ID_SMALL) && !ledger_holder(t->ledger, vf_of_gpu(t, g, i)->address);
        return f.type > 0 && f.type != type ? 0 : MIN(n, MEMORY / size_of(type) - f.n);
}

/* Tries each assignment of the GPUs to the two types. */
static bool is_possible(TestNode *t, unsigned small, unsigned large) {
        for (unsigned choice = 0; choice < 1U << GPUS; choice++) {
                unsigned rooms[2] = { 0 };

                for (unsigned g = 0; g < GPUS; g++)
                        rooms[choice >> g & 1] += room_for(t, g, choice >> g & 1 ? ID_LARGE : ID_SMALL);
                if (rooms[0] >= small && rooms[1] >= large)
                        return true;
        }
        return false;
}

static void check_gpus(TestNode *t) {
        for (unsigned g = 0; g < GPUS; g++) {
                Fill f = fill_of(t, g, true);

                assert_false(f.mixed);
                assert_true(f.n * (f.type > 0 ? size_of(f.type) : 0) <= MEMORY);
        }
}

static void allocate_some(TestNode *t, unsigned step) {
        unsigned small = below(6), large = below(4);
        char pools[32] = "", name[16];
        bool possible;

        if (small > 0)
                (void) snprintf(pools, sizeof(pools), "small=%u ", small);
        if (large > 0)
                (void) snprintf(pools + strlen(pools), sizeof(pools) - strlen(pools), "large=%u", large);
        if (!*pools)
                return;
        (void) snprintf(name, sizeof(name), "a%u", step);
        possible = is_possible(t, small, large);
        assert_int_equal(node_allocate(t, name, ASK(.pools = pools), NULL) == VERDICT_NONE, possible);
}

/* Ends a job: creates the promised vGPUs in the driver, or releases the allocation. */
static void settle(TestNode *t, const Allocation *a, bool released) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *vf = inventory_find(t->inventory, a->devices[i].address);

                t->inventory->devices[inventory_device_index(t->inventory, vf)].vgpu_type =
                        released ? 0 : a->devices[i].vgpu_type;
        }
        for (unsigned g = 0; g < GPUS; g++)
                drive(t, g);
}

TEST(test_random) {
        _cleanup_node_ TestNode *t = make_gpus();

        for (unsigned step = 0; step < STEPS; step++) {
                unsigned n = (unsigned) t->ledger->n_allocations, kind = below(4);
                const Allocation *a = n > 0 ? t->ledger->allocations[below(n)] : NULL;

                if (kind <= 1)
                        allocate_some(t, step);
                else if (a && kind == 2)
                        settle(t, a, false);
                else if (a) {
                        settle(t, a, true);
                        node_release(t, a->name);
                }
                check_gpus(t);
        }
}
