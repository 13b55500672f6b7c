/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The slots for mediated devices of a GPU without VFs: the device of each slot, the slots that a pool offers, and that
 * no more is promised than the driver has room for. */

#include <stdio.h>

#include "unit.h"

#include "model/mdev-slots.h"
#include "model/vgpu.h"
#include "nodefixture.h"

#define GPUS    2U
#define MEMORY  16U
#define SMALL   "GRID T4-4Q"
#define LARGE   "GRID T4-8Q"
#define FOREIGN "83b8f4f2-509f-382f-3c1e-e6bfe0fa10%02u"
#define ID      "4b20d080-1b54-4048-85b3-a6a62d165c01"

enum {
        ID_SMALL = 229,
        ID_LARGE = 230,
};

static unsigned size_of(unsigned type) {
        return type == ID_SMALL ? 4 : 8;
}

static PciAddress gpu_address(unsigned g) {
        return (PciAddress) { .bus = (uint8_t) (0x41 + g) };
}

static PciDevice *device_at(TestNode *t, PciAddress a) {
        const PciDevice *dev = inventory_find(t->inventory, a);

        assert_non_null(dev);
        return &t->inventory->devices[inventory_device_index(t->inventory, dev)];
}

static PciDevice *gpu_of(TestNode *t, unsigned g) {
        return device_at(t, gpu_address(g));
}

static PciDevice *slot_of(TestNode *t, unsigned g, unsigned instance) {
        PciAddress a = gpu_address(g);

        a.instance = (uint8_t) instance;
        return device_at(t, a);
}

/* Returns the memory of the GPU's mediated devices. */
static unsigned used_memory(const PciDevice *gpu) {
        const char *line = gpu->mdevs;
        char uuid[UUID_STRING_MAX];
        unsigned used = 0, type;

        for (; line && sscanf(line, "%36s %u", uuid, &type) == 2; line = strchr(line, '\n') + 1)
                used += size_of(type);
        return used;
}

/* Updates the driver's numbers by the free memory. All sizes share the memory. */
static void drive(TestNode *t, PciDevice *gpu) {
        unsigned left = MEMORY - used_memory(gpu);

        assert_int_equal(string_replace(&gpu->mdev_types,
                                        "229 %u nvidia-229 : " SMALL "\n230 %u nvidia-230 : " LARGE
                                        "\n231 %u nvidia-231 : GRID T4-16Q\n",
                                        left / 4, left / 8, left / 16),
                         0);
        if (t->policy)
                assert_int_equal(inventory_fill_slots(t->inventory, gpu), 0);
}

static void create(TestNode *t, PciDevice *gpu, const char *uuid, unsigned type) {
        assert_int_equal(string_append(&gpu->mdevs, "", "%s %u\n", uuid, type), 0);
        drive(t, gpu);
}

static void destroy(TestNode *t, PciDevice *gpu, const char *uuid) {
        char *line = strstr(gpu->mdevs, uuid), *end = strchr(line, '\n') + 1;

        memmove(line, end, strlen(end) + 1);
        drive(t, gpu);
}

static TestNode *make(const char *config) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 2, 16 * GIB);
        for (unsigned g = 0; g < GPUS; g++) {
                char path[64];
                PciDevice *gpu;

                (void) snprintf(path, sizeof(path), "pci0000:40/0000:40:0%u.0", g + 1);
                node_bridge(t, path, 0, 90 + (int) g);
                (void) snprintf(path, sizeof(path), "pci0000:40/0000:40:0%u.0/0000:4%u:00.0", g + 1, g + 1);
                gpu = node_gpu(t, path, 0, 80 + (int) g);
                gpu->mdev_parent = true;
                assert_int_equal(string_copy(&gpu->driver, "nvidia"), 0);
                drive(t, gpu);
        }
        node_ready(t, config);
        return t;
}

#define POOL "[Pool vgpu]\nMatch=class=03\nVgpuType="

TEST(test_slots) {
        _cleanup_node_ TestNode *t = make(POOL LARGE "\n");
        const PciDevice *gpu = gpu_of(t, 0);
        size_t n = t->inventory->n_devices;

        assert_int_equal(n, GPUS * (2 + MDEV_SLOTS));
        assert_int_equal(inventory_finish(t->inventory), 0);
        assert_int_equal(t->inventory->n_devices, n);
        gpu = gpu_of(t, 0);
        assert_int_equal(gpu->type, PCI_TYPE_DEVICE);
        assert_int_equal(gpu->n_vfs, MDEV_SLOTS);
        for (unsigned i = 1; i <= MDEV_SLOTS; i++) {
                const PciDevice *slot = slot_of(t, 0, i);

                assert_true(pci_device_is_slot(slot) && !pci_device_has_slots(slot));
                assert_int_equal(slot->type, PCI_TYPE_VF);
                assert_true(pci_address_equal(slot->physfn, gpu->address));
                assert_int_equal(slot->vf_index, (int) i - 1);
                assert_int_equal(slot->parent, gpu->parent);
                assert_int_equal(slot->iommu_group, -1);
                assert_string_equal(slot->driver, "nvidia");
                assert_string_equal(slot->vgpu_types, gpu->mdev_types);
        }
}

TEST(test_no_slots) {
        PciDevice pf = { .mdev_types = (char *) "", .total_vfs = 16 }, vf = { .type = PCI_TYPE_VF }, plain = { 0 };
        PciDevice gpu = { .mdev_types = (char *) "", .n_vfs = MDEV_SLOTS };

        assert_false(pci_device_has_slots(&pf));
        assert_false(pci_device_has_slots(&vf));
        assert_false(pci_device_has_slots(&plain));

        assert_false(pci_device_has_vfs(&pf));
        pf.n_vfs = 1;
        assert_true(pci_device_has_vfs(&pf));
        assert_true(pci_device_has_slots(&gpu) && !pci_device_has_vfs(&gpu));
}

/* A mediated device is in the slot of its UUID. The others fill the slots from the last one on. */
TEST(test_fill) {
        _cleanup_node_ TestNode *t = make(POOL SMALL "\n");
        char second[UUID_STRING_MAX], elsewhere[UUID_STRING_MAX], text[UUID_STRING_MAX];
        PciAddress a = gpu_address(0);

        mdev_uuid_format(ID, a, text);
        assert_string_equal(text, "4b20d080-1b54-4048-85b3-a6a600004100");
        a.instance = 2;
        mdev_uuid_format(ID, a, second);
        assert_string_equal(second, "4b20d080-1b54-4048-85b3-a60200004100");
        a = gpu_address(1);
        a.instance = 2;
        mdev_uuid_format(ID, a, elsewhere);
        create(t, gpu_of(t, 0), elsewhere, ID_SMALL);
        create(t, gpu_of(t, 0), second, ID_SMALL);
        (void) snprintf(text, sizeof(text), FOREIGN, 7U);
        create(t, gpu_of(t, 0), text, ID_LARGE);
        assert_string_equal(slot_of(t, 0, 2)->mdev, second);
        assert_int_equal(slot_of(t, 0, 2)->vgpu_type, ID_SMALL);
        assert_string_equal(slot_of(t, 0, MDEV_SLOTS)->mdev, elsewhere);
        assert_string_equal(slot_of(t, 0, MDEV_SLOTS - 1)->mdev, text);
        assert_int_equal(slot_of(t, 0, MDEV_SLOTS - 1)->vgpu_type, ID_LARGE);
        assert_string_equal(slot_of(t, 0, 1)->mdev, "");
        assert_string_equal(slot_of(t, 1, 2)->mdev, "");
        destroy(t, gpu_of(t, 0), second);
        assert_string_equal(slot_of(t, 0, 2)->mdev, "");
        assert_int_equal(slot_of(t, 0, 2)->vgpu_type, 0);
}

static unsigned count_offered(TestNode *t, unsigned g) {
        unsigned n = 0;

        for (unsigned i = 1; i <= MDEV_SLOTS; i++)
                n += policy_pool(t->policy, slot_of(t, g, i)) &&
                     policy_verdict(t->policy, slot_of(t, g, i)) == VERDICT_NONE;
        return n;
}

TEST(test_offer) {
        static const struct {
                const char *config;
                unsigned slots;
                Verdict gpu;
        } cases[] = {
                { POOL LARGE "\n", 2, VERDICT_NOT_IN_POOL },
                { POOL SMALL "\n", 4, VERDICT_NOT_IN_POOL },
                { POOL "GRID T4-1-1Q\n", MDEV_SLOTS_UNKNOWN, VERDICT_NOT_IN_POOL },
                { POOL LARGE "\n[Exclude]\nMatch=address=0000:41:00.0\n", 0, VERDICT_EXCLUDED },
                { "[Pool gpu]\nMatch=class=03\n[Pool vgpu]\nMatch=class=03\nVgpuType=" LARGE "\n", 0, VERDICT_NONE },
                { "[Pool vgpu]\nMatch=class=03 type=vf\nVgpuType=" LARGE "\n", 0, VERDICT_NOT_IN_POOL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = make(cases[i].config);

                if (count_offered(t, 0) != cases[i].slots)
                        fail_msg("%s: %u slots", cases[i].config, count_offered(t, 0));
                assert_int_equal(policy_verdict(t->policy, gpu_of(t, 0)), cases[i].gpu);
        }
}

/* A GPU and its slots exclude each other in the ledger. */
TEST(test_whole) {
        _cleanup_node_ TestNode *t = make(POOL LARGE "\n"), *whole = make("[Pool gpu]\nMatch=class=03\n");
        _cleanup_refusal_ Refusal vgpus = { 0 }, gpu = { 0 };

        assert_int_equal(node_allocate(t, "a", ASK(.pools = "vgpu=1"), NULL), VERDICT_NONE);
        assert_true(ledger_holder(t->ledger, slot_of(t, 0, 1)->address));
        assert_int_equal(ledger_check_device(t->ledger, NULL, t->inventory, gpu_of(t, 0), NULL, &vgpus),
                         VERDICT_PF_HAS_VFS);
        assert_null(strstr(vgpus.message, "VF"));
        assert_int_equal(ledger_check_device(t->ledger, NULL, t->inventory, gpu_of(t, 1), NULL, NULL), VERDICT_NONE);
        assert_int_equal(ledger_check_device(t->ledger, NULL, t->inventory, slot_of(t, 0, 2), NULL, NULL),
                         VERDICT_NONE);

        assert_int_equal(node_allocate(whole, "b", ASK(.pools = "gpu=2"), NULL), VERDICT_NONE);
        assert_int_equal(ledger_check_device(whole->ledger, NULL, whole->inventory, slot_of(whole, 0, 1), NULL, &gpu),
                         VERDICT_PF_ALLOCATED);
        assert_null(strstr(gpu.message, "PF"));
}

static unsigned room_of(TestNode *t, const char *name) {
        VgpuRoom room;

        ledger_vgpu_room(t->ledger, NULL, t->inventory, slot_of(t, 0, 3), name, &room);
        return room.further;
}

/* The driver's number, without promised vGPUs that are not created; 0 if one of these is of another type. */
TEST(test_room) {
        _cleanup_node_ TestNode *t = make(POOL LARGE "\n");
        char uuid[UUID_STRING_MAX];

        assert_int_equal(room_of(t, LARGE), 2);
        assert_int_equal(room_of(t, SMALL), 4);
        assert_int_equal(node_allocate(t, "a", ASK(.pools = "vgpu=1"), NULL), VERDICT_NONE);
        assert_int_equal(room_of(t, LARGE), 1);
        assert_int_equal(room_of(t, SMALL), 0);
        mdev_uuid_format(ID, slot_of(t, 0, 1)->address, uuid);
        create(t, gpu_of(t, 0), uuid, ID_LARGE);
        assert_int_equal(room_of(t, LARGE), 1);
        assert_int_equal(room_of(t, SMALL), 2);
        (void) snprintf(uuid, sizeof(uuid), FOREIGN, 1U);
        create(t, gpu_of(t, 0), uuid, ID_SMALL);
        assert_int_equal(room_of(t, LARGE), 0);
        assert_int_equal(room_of(t, SMALL), 1);
        assert_int_equal(room_of(t, "GRID T4-2Q"), 0);
}

/* --- random requests, with a driver that tracks its memory --- */

#define STEPS 4000U

static uint64_t seed = 20260401;

static unsigned below(unsigned n) {
        uint64_t z = seed += 0x9e3779b97f4a7c15;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return (unsigned) ((z ^ z >> 31) % n);
}

/* Returns the promised memory that is not used yet. */
static unsigned pending_memory(TestNode *t, unsigned g) {
        unsigned n = 0;

        for (unsigned i = 1; i <= MDEV_SLOTS; i++)
                n += ledger_holder(t->ledger, slot_of(t, g, i)->address) && slot_of(t, g, i)->vgpu_type == 0 ? 4 : 0;
        return n;
}

static void allocate_some(TestNode *t, unsigned step) {
        unsigned n = 1 + below(4), room = 0;
        char pools[16], name[16];
        Verdict v;

        for (unsigned g = 0; g < GPUS; g++) {
                unsigned used = used_memory(gpu_of(t, g)) + pending_memory(t, g);

                room += (MEMORY - MIN(MEMORY, used)) / 4;
        }
        (void) snprintf(pools, sizeof(pools), "vgpu=%u", n);
        (void) snprintf(name, sizeof(name), "a%u", step);
        v = node_allocate(t, name, ASK(.pools = pools), NULL);
        assert_int_equal(v == VERDICT_NONE, n <= room);
        if (v == VERDICT_NONE) {
                Allocation *a = ledger_find(t->ledger, name);

                (void) snprintf(a->id, sizeof(a->id), "4b20d080-1b54-4048-85b3-%012x", step);
                allocation_assign_mdevs(a, t->inventory);
        }
}

/* Ends a job. Without room it changes nothing, as the kernel refuses. */
static void settle(TestNode *t, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                PciDevice *gpu = device_at(t, d->physfn);

                if (!allocation_device_has_vgpu(d, device_at(t, d->address)) && used_memory(gpu) + 4 <= MEMORY)
                        create(t, gpu, d->mdev, d->vgpu_type);
        }
}

static void release(TestNode *t, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (allocation_device_has_vgpu(&a->devices[i], device_at(t, a->devices[i].address)))
                        destroy(t, device_at(t, a->devices[i].physfn), a->devices[i].mdev);
        node_release(t, a->name);
}

/* Creates or removes a mediated device of another program, of any type. */
static void change_foreign(TestNode *t) {
        PciDevice *gpu = gpu_of(t, below(GPUS));
        unsigned type = below(2) ? ID_SMALL : ID_LARGE, number = below(4);
        char uuid[UUID_STRING_MAX];

        (void) snprintf(uuid, sizeof(uuid), FOREIGN, number);
        if (gpu->mdevs && strstr(gpu->mdevs, uuid))
                destroy(t, gpu, uuid);
        else if (used_memory(gpu) + size_of(type) <= MEMORY)
                create(t, gpu, uuid, type);
}

/* Checks that each mediated device is in one slot, and those of allocations in their slots. */
static void check(TestNode *t) {
        for (unsigned g = 0; g < GPUS; g++) {
                unsigned used = 0;

                for (unsigned i = 1; i <= MDEV_SLOTS; i++) {
                        const PciDevice *slot = slot_of(t, g, i);
                        const Allocation *a = ledger_holder(t->ledger, slot->address);

                        used += slot->vgpu_type > 0 ? size_of(slot->vgpu_type) : 0;
                        assert_true(!a || slot->vgpu_type == 0 ||
                                    streq(slot->mdev, allocation_find_device(a, slot->address)->mdev));
                }
                assert_int_equal(used, used_memory(gpu_of(t, g)));
        }
}

TEST(test_random) {
        _cleanup_node_ TestNode *t = make(POOL SMALL "\n");
        unsigned allocated = 0;

        for (unsigned step = 0; step < STEPS; step++) {
                unsigned n = (unsigned) t->ledger->n_allocations, kind = below(6);
                const Allocation *a = n > 0 ? t->ledger->allocations[below(n)] : NULL;

                if (kind <= 1)
                        allocate_some(t, step);
                else if (a && kind <= 3)
                        settle(t, a);
                else if (a && kind == 4)
                        release(t, a);
                else if (kind == 5)
                        change_foreign(t);
                check(t);
                allocated += (unsigned) t->ledger->n_allocations > n;
        }
        assert_true(allocated > STEPS / 20);
}
