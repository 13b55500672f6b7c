/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The suggested configuration of a node. */

#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"
#include "plan/suggest.h"

/* Two nodes of 16 cores, each with a GPU. */
static TestNode *node_good(void) {
        TestNode *t = node_new();

        (void) node_numa(t, 0, 0, 16, 1, 64 * GIB);
        (void) node_numa(t, 1, 16, 16, 1, 64 * GIB);
        for (unsigned i = 0; i < 2; i++) {
                char path[64];
                PciDevice *gpu;

                (void) snprintf(path, sizeof(path), "pci0000:%02x/0000:%02x:00.0", i, i);
                gpu = node_gpu(t, path, (int) i, (int) i);
                gpu->device = 0x2330;
                assert_int_equal(string_copy(&gpu->name, "NVIDIA Corporation GH100 [H100 SXM5 80GB]"), 0);
        }
        t->inventory->iommu = true;
        return t;
}

static PciDevice *add_pf(TestNode *t, const char *path, uint16_t device, uint32_t class, int group) {
        PciDevice *pf = node_device(t, path, class, 0, group);

        pf->vendor = 0x15b3;
        pf->device = device;
        pf->total_vfs = 16;
        pf->vf_device = 0x101e;
        pf->vf_offset = 1;
        pf->vf_stride = 1;
        assert_int_equal(string_copy(&pf->name, "Mellanox Technologies MT2910 Family [ConnectX-7]"), 0);
        assert_int_equal(string_copy(&pf->driver, "mlx5_core"), 0);
        return pf;
}

/* Returns the suggestion, which must be a configuration without problems and with devices in each pool. Joins comments
 * into one line. */
static char *suggest(TestNode *t, const char *cmdline) {
        _cleanup_(cleanup_config_free) Config *config = NULL;
        _cleanup_(cleanup_policy_free) Policy *policy = NULL;
        char *text = NULL;

        assert_int_equal(inventory_finish(t->inventory), 0);
        assert_int_equal(suggest_configuration(t->inventory, cmdline, &text), 0);
        assert_int_equal(config_parse("suggested.conf", text, strlen(text), &config), 0);
        assert_int_equal(config->n_problems, 0);
        assert_null(config->block_reason);
        assert_int_equal(policy_new(config, t->inventory, &policy), 0);
        assert_int_equal(policy->n_problems, 0);
        assert_int_equal(policy->conflict.verdict, VERDICT_NONE);
        for (size_t i = 0; i < config->n_pools; i++) {
                bool any = false;

                for (size_t k = 0; k < t->inventory->n_devices; k++)
                        any = any || policy_pool(policy, &t->inventory->devices[k]) == &config->pools[i];
                assert_true(any);
        }
        for (char *next; (next = strstr(text, "\n# "));)
                memmove(next, next + 2, strlen(next + 2) + 1);
        return text;
}

static void assert_text(const char *text, const char *part) {
        if (!strstr(text, part))
                fail_msg("'%s' is not in:\n%s", part, text);
}

static void assert_no_text(const char *text, const char *part) {
        if (strstr(text, part))
                fail_msg("'%s' is in:\n%s", part, text);
}

TEST(test_gpus) {
        _cleanup_node_ TestNode *t = node_good();
        _cleanup_free_ char *text = suggest(t, "");

        assert_text(text, "[Pool gpu]\nMatch=id=10de:2330\n");
        assert_text(text, "HousekeepingCpus=0-1,16-17\n");
        assert_no_text(text, "VirtualFunctions=");
}

TEST(test_models) {
        _cleanup_node_ TestNode *t = node_good();
        _cleanup_free_ char *text = NULL;
        PciDevice *gpu = node_gpu(t, "pci0000:00/0000:00:08.0", 0, 8);

        gpu->device = 0x20b0;
        gpu->total_vfs = 16;
        assert_int_equal(string_copy(&gpu->name, "NVIDIA Corporation GA100 [A100 SXM4 40GB]"), 0);
        (void) node_gpu(t, "pci0000:00/0000:00:09.0", 0, 9);
        gpu = node_gpu(t, "pci0000:00/0000:00:0a.0", 0, 10);
        gpu->device = 0xfffe;
        assert_int_equal(string_copy(&gpu->name, "NVIDIA Corporation 3D controller [10de:fffe]"), 0);
        text = suggest(t, "");
        assert_text(text, "[Pool gpu-h100-sxm5-80gb]\nMatch=id=10de:2330\n");
        assert_text(text, "[Pool gpu-a100-sxm4-40gb]\nMatch=id=10de:20b0 type=pf\n");
        assert_text(text, "[Pool gpu]\nMatch=id=10de:0000\n");                              /* no name */
        assert_text(text, "NVIDIA Corporation 3D controller [10de:fffe], 0000:00:0a.0.\n"); /* not in pci.ids */
        assert_text(text, "[Pool gpu-10de-fffe]\nMatch=id=10de:fffe\n");
}

TEST(test_vfs) {
        _cleanup_node_ TestNode *t = node_good();
        _cleanup_free_ char *text = NULL;

        (void) add_pf(t, "pci0000:00/0000:02:00.0", 0x1021, 0x020000, 20);
        add_pf(t, "pci0000:00/0000:03:00.0", 0x1021, 0x020000, 21)->total_vfs = 4;
        text = suggest(t, "");
        assert_text(text, "[Pool nic]\nMatch=id=15b3:101e type=vf\nVirtualFunctions=4\n");
        assert_true(node_find(t, "0000:02:00.4")->expected);
}

/* Linux before 4.13 does not show the ID of future VFs. */
TEST(test_unknown_vfs) {
        _cleanup_node_ TestNode *t = node_good();
        _cleanup_free_ char *text = NULL;

        add_pf(t, "pci0000:00/0000:02:00.0", 0x1021, 0x020000, 20)->vf_device = 0;
        text = suggest(t, "");
        assert_text(text, "[Pool nic]\nMatch=type=vf pf=0000:02:00.0\n");
}

/* Their VFs share one ID. */
TEST(test_several_nics) {
        _cleanup_node_ TestNode *t = node_good();
        _cleanup_free_ char *text = NULL;

        (void) add_pf(t, "pci0000:00/0000:02:00.0", 0x1021, 0x020000, 20);
        (void) add_pf(t, "pci0000:00/0000:03:00.0", 0x1021, 0x020700, 21);
        (void) add_pf(t, "pci0000:00/0000:04:00.0", 0x1021, 0x020700, 22);
        text = suggest(t, "");
        assert_text(text, "[Pool nic-connectx-7]\nMatch=type=vf pf=0000:02:00.0\nVirtualFunctions=8\n");
        assert_text(text, "[Pool nic-connectx-7-ib]\nMatch=type=vf pf=0000:03:00.0\nMatch=type=vf pf=0000:04:00.0\n");
}

TEST(test_present_vfs) {
        _cleanup_node_ TestNode *t = node_good();
        _cleanup_free_ char *text = NULL;

        (void) add_pf(t, "pci0000:00/0000:02:00.0", 0x1021, 0x020000, 20);
        node_vf(t, "pci0000:00/0000:02:00.1", "0000:02:00.0", 0, 21)->device = 0x101e;
        text = suggest(t, "");
        assert_text(text, "VirtualFunctions=1\n");
}

/* VFs of NVIDIA's GPUs are for vGPUs. Those of AMD and Intel are GPUs. */
TEST(test_gpu_vfs) {
        static const struct {
                uint16_t vendor, vf_device;
                const char *driver, *types, *section;
        } cases[] = {
                { 0x1002, 0x74b5, "gim", NULL, "Match=id=1002:74b5 type=vf\nVirtualFunctions=external\n" },
                { 0x1002, 0, "gim", NULL, "Match=type=vf pf=0000:03:00.0\nVirtualFunctions=external\n" },
                { 0x8086, 0x56c0, "xe", NULL, "Match=id=8086:56c0 type=vf\nVirtualFunctions=external\n" },
                { 0x10de, 0x2331, "nvidia", "", NULL },
                { 0x10de, 0x2331, "nvidia", NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_good();
                _cleanup_free_ char *text = NULL;
                PciDevice *dev = node_gpu(t, "pci0000:00/0000:03:00.0", 0, 30);

                dev->vendor = cases[i].vendor;
                dev->device = 0x74a1;
                dev->total_vfs = 8;
                dev->vf_device = cases[i].vf_device;
                assert_int_equal(string_copy(&dev->driver, cases[i].driver), 0);
                for (int k = 0; k < 2; k++) {
                        dev = node_vf(t, k == 0 ? "pci0000:00/0000:03:02.0" : "pci0000:00/0000:03:02.1", "0000:03:00.0",
                                      0, 31 + k);
                        dev->class = 0x120000;
                        dev->vendor = cases[i].vendor;
                        dev->device = cases[i].vf_device;
                        assert_int_equal(string_copy(&dev->vgpu_types, cases[i].types), 0);
                }
                text = suggest(t, "");
                if (cases[i].section)
                        assert_text(text, cases[i].section);
                else
                        assert_no_text(text, "type=vf");
                assert_int_equal(strstr(text, "VgpuType=") != NULL, !cases[i].section);
        }
}

/* The VFs of one GPU are offered, and others of its model as a whole. */
TEST(test_gpu_vfs_of_some) {
        static const struct {
                uint16_t vendor, vf_device;
                unsigned total_vfs; /* of the other GPUs; 0: SR-IOV is off */
                bool last;          /* the GPU with VFs is the last */
        } cases[] = { { 0x1002, 0x74b5, 8, true },
                      { 0x1002, 0x74b5, 8, false },
                      { 0x1002, 0x74b5, 0, false },
                      { 0x8086, 0, 8, true },
                      { 0x10de, 0x2331, 8, true } };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_good();
                _cleanup_free_ char *text = NULL;
                const char *with = cases[i].last ? "0000:05:00.0" : "0000:03:00.0";
                PciDevice *dev;

                for (int k = 3; k <= 5; k++) {
                        char path[64];
                        bool has;

                        (void) snprintf(path, sizeof(path), "pci0000:00/0000:%02x:00.0", (unsigned) k);
                        has = strstr(path, with);
                        dev = node_gpu(t, path, 0, 30 + k);
                        dev->vendor = cases[i].vendor;
                        dev->device = 0x74a1;
                        dev->total_vfs = has ? 8 : cases[i].total_vfs;
                        dev->vf_device = dev->total_vfs > 0 ? cases[i].vf_device : 0;
                }
                dev = node_vf(t, cases[i].last ? "pci0000:00/0000:05:02.0" : "pci0000:00/0000:03:02.0", with, 0, 50);
                dev->class = 0x120000;
                dev->vendor = cases[i].vendor;
                dev->device = cases[i].vf_device;
                text = suggest(t, "");
                assert_text(text, cases[i].last ? "Match=address=0000:03:00.0\nMatch=address=0000:04:00.0\n"
                                                : "Match=address=0000:04:00.0\nMatch=address=0000:05:00.0\n");
                assert_int_equal(strstr(text, "\nVirtualFunctions=external") != NULL, cases[i].vendor != 0x10de);
        }
}

/* The only NIC of a node stays with the host, but its VFs may be offered. */
TEST(test_needed_pf) {
        _cleanup_node_ TestNode *t = node_good();
        _cleanup_free_ char *text = NULL;
        PciDevice *pf = add_pf(t, "pci0000:00/0000:00:04.0/0000:03:00.0", 0x1021, 0x020000, 7);

        assert_int_equal(string_copy(&pf->critical, "default route"), 0);
        text = suggest(t, "");
        assert_null(strstr(text, "\nVirtualFunctions="));
        assert_non_null(strstr(text, "pf=ADDRESS and"));
}

TEST(test_left_out) {
        _cleanup_node_ TestNode *t = node_good();
        _cleanup_free_ char *text = NULL;
        PciDevice *dev;

        dev = add_pf(t, "pci0000:00/0000:02:00.0", 0x1021, 0x020000, 20);
        assert_int_equal(string_copy(&dev->critical, "default route -> \nMatch=type=vf"), 0);
        (void) add_pf(t, "pci0000:00/0000:03:00.0", 0x1021, 0x020000, 21);
        dev = add_pf(t, "pci0000:00/0000:04:00.0", 0x1019, 0x020000, 22);
        assert_int_equal(string_copy(&dev->driver, NULL), 0);
        add_pf(t, "pci0000:00/0000:05:00.0", 0x1019, 0x020000, 23)->total_vfs = 0;
        node_gpu(t, "pci0000:00/0000:06:00.0", 0, 24)->boot_vga = true;
        (void) node_device(t, "pci0000:00/0000:07:00.0", 0x010802, 0, 25);
        assert_int_equal(string_copy(&node_gpu(t, "pci0000:00/0000:08:00.0", 0, 26)->mdev_types, ""), 0);
        dev = node_device(t, "pci0000:00/0000:09:00.0", 0x068000, 0, 27);
        dev->vendor = 0x10de;
        dev->is_bridge = false;
        text = suggest(t, "");
        assert_text(text, "[Pool nic]\nMatch=type=vf pf=0000:03:00.0\n");
        for (unsigned i = 2; i < 10; i++) {
                char line[32];

                (void) snprintf(line, sizeof(line), "- 0000:%02x:00.0 (", i);
                if (i != 3)
                        assert_text(text, line);
        }
        assert_text(text, "mlxconfig");
        assert_text(text, "VgpuType=");
        assert_text(text, "Fabric=yes");
}

TEST(test_not_yet) {
        _cleanup_node_ TestNode *t = node_good();
        _cleanup_free_ char *text = NULL;
        PciDevice *sound = node_device(t, "pci0000:00/0000:00:1b.0", 0x040300, 0, 0);

        assert_int_equal(string_copy(&sound->driver, "snd_hda_intel"), 0);
        text = suggest(t, "");
        assert_text(text, "0000:00:00.0 cannot be allocated yet.");
        assert_text(text, "0000:00:1b.0");
        assert_no_text(text, "0000:01:00.0 cannot");
}

TEST(test_cpus) {
        _cleanup_node_ TestNode *t = node_good();
        _cleanup_free_ char *isolated = suggest(t, "quiet isolcpus=managed_irq,domain,1-15,20-31"),
                            *all = suggest(t, "isolcpus=0-31"), *none = suggest(t, "isolcpus=64");
        _cleanup_node_ TestNode *small = node_new();
        _cleanup_free_ char *few = NULL, *text = NULL;

        assert_text(isolated, "HousekeepingCpus=0,16-19\n");
        assert_text(all, "HousekeepingCpus=0-1,16-17\n");
        assert_text(none, "HousekeepingCpus=0-1,16-17\n");

        (void) node_numa(small, 0, 0, 1, 1, GIB);
        few = suggest(small, "");
        assert_no_text(few, "HousekeepingCpus=");
        (void) node_numa(small, 1, 8, 8, 2, GIB);
        text = suggest(small, "");
        assert_text(text, "HousekeepingCpus=8-9");
}
