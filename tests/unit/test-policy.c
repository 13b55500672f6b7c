/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Which pool has a device, and whether it may be handed out at all (scenarios B3, D9, D10, E9). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "nodefixture.h"

#define GPU   "0000:01:00.0"
#define AUDIO "0000:01:00.1"
#define OTHER "0000:02:00.0"

/* A GPU with its audio function in one group behind a root port, and a device of another card in the same group. */
static TestNode *gpu_with_audio(void) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 1, 64 * GIB);
        node_bridge(t, "pci0000:00/0000:00:01.0", 0, 1);
        node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, 0, 1);
        assert_int_equal(
                string_copy(&node_device(t, "pci0000:00/0000:00:01.0/" AUDIO, 0x040300, 0, 1)->driver, "snd_hda_intel"),
                0);
        return t;
}

static PciDevice *add_other(TestNode *t, const char *driver) {
        PciDevice *dev = node_device(t, "pci0000:00/0000:00:02.0/" OTHER, 0x040300, 0, 1);

        assert_int_equal(string_copy(&dev->driver, driver), 0);
        return dev;
}

static void assert_verdict(const TestNode *t, const char *address, Verdict expected) {
        Verdict v = policy_check(t->policy, node_find(t, address), NULL);

        if (v != expected)
                fail_msg("%s: %s, not %s", address, verdict_to_string(v), verdict_to_string(expected));
        assert_int_equal(policy_verdict(t->policy, node_find(t, address)), expected);
}

static void test_B3_two_pools_match_one_device(void **state) {
        _cleanup_node_ TestNode *t = gpu_with_audio();
        _cleanup_refusal_ Refusal why = { 0 };

        node_ready(t, "[Pool a1]\nMatch=class=0302\n[Pool a2]\nMatch=vendor=10de class=0302\n");
        assert_string_equal(policy_pool(t->policy, node_find(t, GPU))->name, "a1");
        assert_int_equal(t->policy->n_problems, 1);
        assert_non_null(strstr(t->policy->problems[0], "test.conf:6: Pool 'a2' also matches " GPU));
        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "a1=1 a2=1"), &why), VERDICT_INSUFFICIENT_DEVICES);
        assert_says(&why, "Pool 'a2' has 0 of its 0 devices free, 1 wanted.");
        assert_int_equal(node_available(t, "a1"), 1);
        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "a1=1"), NULL), VERDICT_NONE);
}

static void add_pf_with_vf(TestNode *t) {
        node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.0", 0, 1);
        node_vf(t, "pci0000:00/0000:00:01.0/0000:81:00.1", "0000:81:00.0", 0, 2);
}

static void test_pf_and_its_vf_offered(void **state) {
        _cleanup_node_ TestNode *t = node_new();

        add_pf_with_vf(t);
        node_ready(t, "[Pool nic]\nMatch=vendor=15b3\n");
        assert_int_equal(t->policy->conflict.verdict, VERDICT_INVALID_REQUEST);
        assert_says(&t->policy->conflict, "0000:81:00.0");
        assert_says(&t->policy->conflict, "0000:81:00.1");
        assert_says(&t->policy->conflict, "test.conf");
        assert_non_null(t->policy->conflict.remedy);
        assert_verdict(t, "0000:81:00.0", VERDICT_PF_HAS_VFS);
}

static void test_pf_and_vfs_to_be_made(void **state) {
        _cleanup_node_ TestNode *t = node_new();
        PciDevice *pf = node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.0", 0, 1);

        pf->total_vfs = 8;
        pf->vf_device = 0x1018;
        node_ready(
                t,
                "[Pool pf]\nMatch=address=0000:81:00.0\n[Pool vf]\nMatch=id=15b3:1018 type=vf\nVirtualFunctions=4\n");
        assert_int_equal(t->policy->conflict.verdict, VERDICT_INVALID_REQUEST);
        assert_says(&t->policy->conflict, "'pf'");
        assert_says(&t->policy->conflict, "'vf'");
        assert_string_equal(policy_vf_pool(t->policy, node_find(t, "0000:81:00.0"))->name, "vf");
}

static void test_types_settle_it(void **state) {
        _cleanup_node_ TestNode *t = node_new();

        add_pf_with_vf(t);
        node_ready(t, "[Pool nic]\nMatch=vendor=15b3 type=vf\n");
        assert_int_equal(t->policy->conflict.verdict, VERDICT_NONE);
        assert_verdict(t, "0000:81:00.0", VERDICT_NOT_IN_POOL);
        assert_verdict(t, "0000:81:00.1", VERDICT_NONE);
}

/* A Match= line for the one would be refused for the sake of the other. */
static void test_no_pool_for_the_other_end(void **state) {
        static const struct {
                const char *config, *outsider, *says, *also;
        } cases[] = {
                { "[Pool nic]\nMatch=vendor=15b3 type=vf\n", "0000:81:00.0", "its VFs are in pool 'nic'",
                  "a PF is not" },
                { "[Pool nic]\nMatch=vendor=15b3 type=pf\n", "0000:81:00.1", "PF 0000:81:00.0 is in pool 'nic'",
                  "a VF is not" },
                { "[Pool vf]\nMatch=id=15b3:1018 type=vf\nVirtualFunctions=4\n", "0000:82:00.0",
                  "the daemon makes VFs on it for pool 'vf'", "a PF is not" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_refusal_ Refusal why = { 0 };
                PciDevice *empty = node_nic(t, "pci0000:00/0000:00:02.0/0000:82:00.0", 0, 3);

                empty->total_vfs = 8;
                empty->vf_device = 0x1018;
                add_pf_with_vf(t);
                node_ready(t, cases[i].config);
                assert_int_equal(policy_check(t->policy, node_find(t, cases[i].outsider), &why), VERDICT_NOT_IN_POOL);
                assert_says(&why, cases[i].says);
                assert_says(&why, cases[i].also);
                assert_null(strstr(why.remedy, "Match="));
        }
}

/* Nothing is in the way of a line for the PF when its VF is not on offer. */
static void test_no_pool_for_either(void **state) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        add_pf_with_vf(t);
        node_ready(t, "[Pool nic]\nMatch=type=vf\n[Exclude]\nMatch=type=vf\n");
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:81:00.0"), &why), VERDICT_NOT_IN_POOL);
        assert_string_equal(why.message, "No pool offers it.");
        assert_non_null(strstr(why.remedy, "Match="));
}

/* What [Exclude] names is not on offer, so it is not offered twice. */
static void test_an_excluded_pf_is_no_conflict(void **state) {
        _cleanup_node_ TestNode *t = node_new();

        add_pf_with_vf(t);
        node_ready(t, "[Pool nic]\nMatch=vendor=15b3\n[Exclude]\nMatch=type=pf\n");
        assert_verdict(t, "0000:81:00.0", VERDICT_EXCLUDED);
        assert_int_equal(t->policy->conflict.verdict, VERDICT_NONE);
}

static void test_a_critical_pf_is_no_conflict(void **state) {
        _cleanup_node_ TestNode *t = node_new();

        assert_int_equal(string_copy(&node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.0", 0, 1)->critical,
                                     "It has the default route."),
                         0);
        node_vf(t, "pci0000:00/0000:00:01.0/0000:81:00.1", "0000:81:00.0", 0, 2);
        node_ready(t, "[Pool nic]\nMatch=vendor=15b3\n");
        assert_verdict(t, "0000:81:00.0", VERDICT_HOST_CRITICAL);
        assert_int_equal(t->policy->conflict.verdict, VERDICT_NONE);
}

static void test_D9_audio_goes_along(void **state) {
        _cleanup_node_ TestNode *t = gpu_with_audio();
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;

        node_ready(t, "[Pool gpu]\nMatch=class=0302\n");
        assert_verdict(t, GPU, VERDICT_NONE);
        assert_int_equal(policy_group_role(t->policy, node_find(t, GPU), node_find(t, AUDIO)), GROUP_ROLE_COMPANION);
        assert_int_equal(policy_group_role(t->policy, node_find(t, GPU), node_find(t, "0000:00:01.0")),
                         GROUP_ROLE_LEAVE);
        assert_int_equal(plan_single(&t->context, node_find(t, GPU), &a), 0);
        assert_devices(a, "gpu0=" GPU " gpu0-1=" AUDIO);
        assert_int_equal(a->devices[1].role, DEVICE_ROLE_COMPANION);
        assert_string_equal(a->devices[1].prior_driver, "snd_hda_intel");
        assert_null(a->devices[1].pool);
}

static void test_D9_another_card_in_no_pool_blocks(void **state) {
        _cleanup_node_ TestNode *t = gpu_with_audio();
        _cleanup_refusal_ Refusal why = { 0 };

        add_other(t, "snd_hda_intel");
        node_ready(t, "[Pool gpu]\nMatch=class=0302\n");
        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, "IOMMU group 1 also holds " OTHER ", bound to snd_hda_intel, which no pool offers.");
        assert_true(pci_address_equal(why.device, address_of(OTHER)));
        assert_non_null(why.remedy);
}

static void test_D9_another_card_is_held_when_it_may_be(void **state) {
        static const struct {
                const char *driver, *config;
        } cases[] = {
                { NULL, "[Pool gpu]\nMatch=class=0302\n" },
                { "vfio-pci", "[Pool gpu]\nMatch=class=0302\n" },
                { "snd_hda_intel", "[Pool gpu]\nMatch=class=0302\n[Pool sound]\nMatch=address=" OTHER "\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = gpu_with_audio();
                _cleanup_(cleanup_allocation_free) Allocation *a = NULL;

                add_other(t, cases[i].driver);
                node_ready(t, cases[i].config);
                assert_verdict(t, GPU, VERDICT_NONE);
                assert_int_equal(plan_single(&t->context, node_find(t, GPU), &a), 0);
                assert_devices(a, "gpu0=" GPU " gpu0-1=" AUDIO " held=" OTHER);
        }
}

/* Members that stay with the host block; the sentence names the member and does not give a wrong reason. */
static void assert_member_blocks(PciDevice *member, TestNode *t, const char *config, const char *wrong) {
        _cleanup_refusal_ Refusal why = { 0 };

        node_ready(t, config);
        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, OTHER);
        if (wrong && strstr(why.message, wrong))
                fail_msg("wrong reason: %s", why.message);
}

static void test_critical_member_blocks(void **state) {
        _cleanup_node_ TestNode *t = gpu_with_audio();
        PciDevice *member = add_other(t, "ahci");
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(string_copy(&member->critical, "The root file system is on it."), 0);
        assert_member_blocks(member, t, "[Pool gpu]\nMatch=class=0302\n", "no pool");
        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, "The root file system is on it.");
}

static void test_boot_vga_member_blocks(void **state) {
        _cleanup_node_ TestNode *t = gpu_with_audio();
        PciDevice *member = add_other(t, "nvidia");

        member->boot_vga = true;
        assert_member_blocks(member, t, "[Pool gpu]\nMatch=class=0302\nMatch=address=" OTHER "\n", "no pool offers");
}

static void test_excluded_member_blocks(void **state) {
        _cleanup_node_ TestNode *t = gpu_with_audio();

        assert_member_blocks(add_other(t, "nvidia"), t,
                             "[Pool gpu]\nMatch=class=0302\nMatch=address=" OTHER "\n[Exclude]\nMatch=address=" OTHER
                             "\n",
                             "no pool offers");
}

static void test_excluded_member_without_driver_is_left(void **state) {
        _cleanup_node_ TestNode *t = gpu_with_audio();

        add_other(t, NULL);
        node_ready(t, "[Pool gpu]\nMatch=class=0302\n[Exclude]\nMatch=address=" OTHER "\n");
        assert_verdict(t, GPU, VERDICT_NONE);
        assert_int_equal(policy_group_role(t->policy, node_find(t, GPU), node_find(t, OTHER)), GROUP_ROLE_LEAVE);
}

/* PF 01:00.0, .1 and their VFs all in one group: no ACS. */
static TestNode *one_group_for_all(const char *pf_driver) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 1, 64 * GIB);
        for (unsigned i = 0; i < 2; i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "pci0000:00/0000:00:01.0/0000:01:00.%u", i);
                assert_int_equal(string_copy(&node_nic(t, path, 0, 1)->driver, pf_driver), 0);
        }
        for (unsigned i = 2; i < 6; i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "pci0000:00/0000:00:01.0/0000:01:00.%u", i);
                node_vf(t, path, i < 4 ? "0000:01:00.0" : "0000:01:00.1", 0, 1);
        }
        return t;
}

static void test_D10_vfs_beside_their_pf(void **state) {
        _cleanup_node_ TestNode *t = one_group_for_all("mlx5_core");
        _cleanup_refusal_ Refusal why = { 0 };

        node_ready(t, "[Pool vf]\nMatch=type=vf\n");
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:01:00.2"), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, "0000:01:00.0, bound to mlx5_core, its own PF.");
        assert_non_null(strstr(why.remedy, "ACS"));
        for (unsigned i = 0; i < 4; i++)
                assert_verdict(t,
                               ((const char *[]){ "0000:01:00.2", "0000:01:00.3", "0000:01:00.4", "0000:01:00.5" })[i],
                               VERDICT_GROUP_NOT_VIABLE);
        assert_int_equal(node_available(t, "vf"), 0);
}

/* Even with the PFs off their driver the group goes to one allocation as a whole. */
static void test_D10_vfs_are_never_separate(void **state) {
        _cleanup_node_ TestNode *t = one_group_for_all(NULL);
        _cleanup_refusal_ Refusal why = { 0 };

        node_ready(t, "[Pool vf]\nMatch=type=vf\n");
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "vf=1"), NULL), VERDICT_NONE);
        assert_devices(ledger_find(t->ledger, "vm1"),
                       "vf0=0000:01:00.2 held=0000:01:00.3 held=0000:01:00.4 held=0000:01:00.5");
        assert_int_equal(node_available(t, "vf"), 0);
        assert_int_equal(node_allocate(t, "vm2", ASK(.pools = "vf=1"), &why), VERDICT_INSUFFICIENT_DEVICES);
        assert_says(&why, "0 of its 4 devices free, 1 wanted");
}

static void test_E9_dual_port(void **state) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;

        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.0", 0, 15);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.1", 0, 15);
        node_ready(t, "[Pool nic]\nMatch=address=0000:05:00.*\n");
        assert_int_equal(plan_single(&t->context, node_find(t, "0000:05:00.0"), &a), 0);
        assert_devices(a, "nic0=0000:05:00.0 nic0-1=0000:05:00.1");
}

/* The other port may be the host's: it does not go to the guest because the first does. */
static void test_E9_port_in_no_pool(void **state) {
        _cleanup_node_ TestNode *t = node_new(), *unbound = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.0", 0, 15);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.1", 0, 15);
        node_ready(t, "[Pool nic]\nMatch=address=0000:05:00.0\n");
        assert_int_equal(policy_group_role(t->policy, node_find(t, "0000:05:00.0"), node_find(t, "0000:05:00.1")),
                         GROUP_ROLE_BLOCK);
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:05:00.0"), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, "IOMMU group 15 also holds 0000:05:00.1, bound to mlx5_core, which no pool offers.");

        node_nic(unbound, "pci0000:00/0000:00:01.0/0000:05:00.0", 0, 15);
        assert_int_equal(string_copy(&node_nic(unbound, "pci0000:00/0000:00:01.0/0000:05:00.1", 0, 15)->driver, NULL),
                         0);
        node_ready(unbound, "[Pool nic]\nMatch=address=0000:05:00.0\n");
        assert_int_equal(policy_group_role(unbound->policy, node_find(unbound, "0000:05:00.0"),
                                           node_find(unbound, "0000:05:00.1")),
                         GROUP_ROLE_COMPANION);
}

/* USB and UCSI of its USB-C port go with a GPU; what else sits in its slot does not. */
static void test_functions_of_a_gpu(void **state) {
        static const uint32_t classes[] = { 0x0c0330, 0x0c8000, 0x020000 };

        for (size_t i = 0; i < ELEMENTSOF(classes); i++) {
                _cleanup_node_ TestNode *t = gpu_with_audio();

                assert_int_equal(
                        string_copy(&node_device(t, "pci0000:00/0000:00:01.0/0000:01:00.2", classes[i], 0, 1)->driver,
                                    "host"),
                        0);
                node_ready(t, "[Pool gpu]\nMatch=class=0302\n");
                assert_verdict(t, GPU, i < 2 ? VERDICT_NONE : VERDICT_GROUP_NOT_VIABLE);
        }
}

static PciDevice *add_platform(TestNode *t, const char *path, uint32_t class, const char *driver) {
        PciDevice *dev = node_device(t, path, class, 0, 1);

        dev->is_bridge = false;
        assert_int_equal(string_copy(&dev->driver, driver), 0);
        return dev;
}

/* A12: host bridge, SMBus and such are listed like devices. */
static void test_A12_platform(void **state) {
        _cleanup_node_ TestNode *t = gpu_with_audio(), *bound = gpu_with_audio();
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        _cleanup_refusal_ Refusal why = { 0 }, blocked = { 0 };

        add_platform(t, "pci0000:00/0000:00:00.0", 0x060000, NULL);
        add_platform(t, "pci0000:00/0000:00:14.0", 0x0c0500, NULL);
        add_platform(t, "pci0000:00/0000:00:05.4", 0x080020, NULL);
        add_platform(t, "pci0000:00/0000:00:06.0", 0x068000, NULL); /* as NVSwitch is */
        node_ready(t, "[Pool all]\nMatch=address=*\n");
        assert_verdict(t, GPU, VERDICT_NONE);
        assert_verdict(t, "0000:00:06.0", VERDICT_NONE);
        for (unsigned i = 0; i < 3; i++) {
                const char *address = ((const char *[]){ "0000:00:00.0", "0000:00:14.0", "0000:00:05.4" })[i];

                assert_verdict(t, address, VERDICT_BRIDGE);
                assert_null(policy_pool(t->policy, node_find(t, address)));
                assert_int_equal(policy_group_role(t->policy, node_find(t, GPU), node_find(t, address)),
                                 GROUP_ROLE_LEAVE);
        }
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:00:00.0"), &why), VERDICT_BRIDGE);
        assert_says(&why, "It is part of the platform, not a device for guests.");
        assert_int_equal(plan_single(&t->context, node_find(t, GPU), &a), 0);
        assert_devices(a, "all0=" GPU " all0-1=" AUDIO " held=0000:00:06.0");

        add_platform(bound, "pci0000:00/0000:00:14.0", 0x0c0500, "piix4_smbus");
        node_ready(bound, "[Pool all]\nMatch=address=*\n");
        assert_int_equal(policy_check(bound->policy, node_find(bound, GPU), &blocked), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&blocked, "0000:00:14.0, bound to piix4_smbus, a part of the platform.");
}

/* It cannot be known what the broken line was to keep. */
static void test_broken_exclude_holds_everything_back(void **state) {
        static const char config[] = "[Pool gpu]\nMatch=class=0302\n[Pool "
                                     "vf]\nMatch=type=vf\nVirtualFunctions=2\n[Exclude]\nMatch=bdf=x\n";
        _cleanup_node_ TestNode *t = gpu_with_audio();
        _cleanup_refusal_ Refusal why = { 0 };
        PciDevice *pf = node_nic(t, "pci0000:00/0000:00:02.0/0000:02:00.0", 0, 2);

        pf->total_vfs = 4;
        assert_int_equal(inventory_finish(t->inventory), 0);
        assert_int_equal(config_parse("test.conf", config, strlen(config), &t->config), 0);
        assert_int_equal(policy_new(t->config, t->inventory, &t->policy), 0);
        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), VERDICT_EXCLUDED);
        assert_string_equal(
                why.message,
                "A line of [Exclude] could not be read (test.conf:7), so nothing is offered until it is mended.");
        assert_verdict(t, GPU, VERDICT_EXCLUDED);
        assert_verdict(t, AUDIO, VERDICT_NOT_IN_POOL);
        assert_null(policy_vf_pool(t->policy, node_find(t, "0000:02:00.0")));
}

static void test_E9_vfs_are_independent(void **state) {
        _cleanup_node_ TestNode *t = node_new();

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.0", 0, 15);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.1", 0, 15);
        node_vf(t, "pci0000:00/0000:00:01.0/0000:05:10.5", "0000:05:00.1", 0, 24);
        node_vf(t, "pci0000:00/0000:00:01.0/0000:05:10.7", "0000:05:00.1", 0, 25);
        node_ready(t, "[Pool vf]\nMatch=type=vf\n");
        assert_int_equal(node_find(t, "0000:05:00.1")->n_vfs, 2);
        for (unsigned i = 0; i < 2; i++)
                assert_int_equal(node_allocate(t, i ? "vm1" : "vm0", ASK(.pools = "vf=1"), NULL), VERDICT_NONE);
        assert_devices(ledger_find(t->ledger, "vm0"), "vf0=0000:05:10.5");
        assert_devices(ledger_find(t->ledger, "vm1"), "vf0=0000:05:10.7");
}

/* A port whose sibling has VFs cannot take it along: vfio-pci refuses a PF with VFs. */
static void test_E9_port_beside_a_port_with_vfs(void **state) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.0", 0, 15);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.1", 0, 15);
        node_vf(t, "pci0000:00/0000:00:01.0/0000:05:10.7", "0000:05:00.1", 0, 25);
        node_ready(t, "[Pool nic]\nMatch=type=device class=02\nMatch=address=0000:05:00.1\n");
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:05:00.0"), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, "0000:05:00.1");
        if (strstr(why.message, "which no pool offers"))
                fail_msg("wrong reason: %s", why.message);
}

static void test_order_of_verdicts(void **state) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_bridge(t, "pci0000:00/0000:00:01.0", 0, 1);
        node_gpu(t, "pci0000:00/0000:01:00.0", 0, 2)->boot_vga = true;
        assert_int_equal(
                string_copy(&node_nic(t, "pci0000:00/0000:02:00.0", 0, 3)->critical, "It has the default route."), 0);
        node_gpu(t, "pci0000:00/0000:03:00.0", 0, 4);
        node_gpu(t, "pci0000:00/0000:04:00.0", 0, -1);
        node_gpu(t, "pci0000:00/0000:05:00.0", 0, 5)->has_override = false;
        node_gpu(t, "pci0000:00/0000:06:00.0", 0, 6);
        node_gpu(t, "pci0000:00/0000:07:00.0", 0, 7);
        assert_int_equal(inventory_set_group_direct(t->inventory, 6), 0);
        node_ready(t, "[Pool gpu]\nMatch=address=0000:0[0-6]:*\n[Exclude]\nMatch=address=0000:03:*\n");
        assert_verdict(t, "0000:00:01.0", VERDICT_BRIDGE);
        assert_verdict(t, "0000:01:00.0", VERDICT_BOOT_VGA);
        assert_verdict(t, "0000:02:00.0", VERDICT_HOST_CRITICAL);
        assert_verdict(t, "0000:03:00.0", VERDICT_EXCLUDED);
        assert_verdict(t, "0000:04:00.0", VERDICT_NO_IOMMU);
        assert_verdict(t, "0000:05:00.0", VERDICT_NO_DRIVER_OVERRIDE);
        assert_verdict(t, "0000:06:00.0", VERDICT_RESERVED_REGION);
        assert_verdict(t, "0000:07:00.0", VERDICT_NOT_IN_POOL);
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:03:00.0"), &why), VERDICT_EXCLUDED);
        assert_says(&why, "test.conf:6");
}

static void test_no_iommu_at_all(void **state) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_gpu(t, "pci0000:00/" GPU, 0, -1);
        node_ready(t, "[Pool gpu]\nMatch=class=0302\n");
        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), VERDICT_NO_IOMMU);
        assert_says(&why, "IOMMU is off");
        assert_non_null(strstr(why.remedy, "intel_iommu=on"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_B3_two_pools_match_one_device),
                cmocka_unit_test(test_pf_and_its_vf_offered),
                cmocka_unit_test(test_pf_and_vfs_to_be_made),
                cmocka_unit_test(test_types_settle_it),
                cmocka_unit_test(test_no_pool_for_the_other_end),
                cmocka_unit_test(test_no_pool_for_either),
                cmocka_unit_test(test_an_excluded_pf_is_no_conflict),
                cmocka_unit_test(test_a_critical_pf_is_no_conflict),
                cmocka_unit_test(test_D9_audio_goes_along),
                cmocka_unit_test(test_D9_another_card_in_no_pool_blocks),
                cmocka_unit_test(test_D9_another_card_is_held_when_it_may_be),
                cmocka_unit_test(test_critical_member_blocks),
                cmocka_unit_test(test_boot_vga_member_blocks),
                cmocka_unit_test(test_excluded_member_blocks),
                cmocka_unit_test(test_excluded_member_without_driver_is_left),
                cmocka_unit_test(test_D10_vfs_beside_their_pf),
                cmocka_unit_test(test_D10_vfs_are_never_separate),
                cmocka_unit_test(test_E9_dual_port),
                cmocka_unit_test(test_E9_port_in_no_pool),
                cmocka_unit_test(test_functions_of_a_gpu),
                cmocka_unit_test(test_A12_platform),
                cmocka_unit_test(test_broken_exclude_holds_everything_back),
                cmocka_unit_test(test_E9_vfs_are_independent),
                cmocka_unit_test(test_E9_port_beside_a_port_with_vfs),
                cmocka_unit_test(test_order_of_verdicts),
                cmocka_unit_test(test_no_iommu_at_all),
        };

        return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
