/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The effect of other members of its IOMMU group and slot on a device (scenarios D9, D10, E9). */

#include <stdio.h>

#include "unit.h"

#include "policyfixture.h"
#include "sentences.h"

TEST(test_D9_audio_goes_along) {
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

TEST(test_D9_another_card_in_no_pool_blocks) {
        _cleanup_node_ TestNode *t = gpu_with_audio();
        _cleanup_refusal_ Refusal why = { 0 };

        add_other(t, "snd_hda_intel");
        node_ready(t, "[Pool gpu]\nMatch=class=0302\n");
        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, "snd_hda_intel");
        assert_says(&why, OTHER);
        record("another card in no pool", why.message);
        assert_true(pci_address_equal(why.device, address_of(OTHER)));
        assert_non_null(why.remedy);
}

TEST(test_D9_another_card_is_held_when_it_may_be) {
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

/* A member that stays with the host blocks the group. The sentence names the member, with the right reason. */
static void assert_member_blocks(PciDevice *member, TestNode *t, const char *config) {
        _cleanup_refusal_ Refusal why = { 0 };

        node_ready(t, config);
        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, OTHER);
        record(config, why.message);
}

TEST(test_critical_member_blocks) {
        _cleanup_node_ TestNode *t = gpu_with_audio();
        PciDevice *member = add_other(t, "ahci");
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(string_copy(&member->critical, "vda1"), 0);
        assert_member_blocks(member, t, "[Pool gpu]\nMatch=class=0302\n");
        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, "vda1");
}

/* A job stops services for each device that it unbinds. */
TEST(test_member_whose_memory_is_online) {
        static const struct {
                const char *pools;
                Verdict verdict;
        } cases[] = {
                { "[Pool gpu]\nMatch=class=0302\n[Pool other]\nMatch=address=" OTHER "\n", VERDICT_GROUP_NOT_VIABLE },
                { "[Pool gpu]\nMatch=class=0302\nStopServices=x.service\n[Pool other]\nMatch=address=" OTHER "\n",
                  VERDICT_GROUP_NOT_VIABLE },
                { "[Pool gpu]\nMatch=class=0302\n[Pool other]\nMatch=address=" OTHER "\nStopServices=x.service\n",
                  VERDICT_NONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = gpu_with_audio();
                PciDevice *member = add_other(t, "nvidia");
                _cleanup_refusal_ Refusal why = { 0 };

                member->has_memory_node = true;
                member->memory_node = 5;
                node_ready(t, cases[i].pools);
                assert_verdict(t, GPU, VERDICT_NONE);
                ((PciDevice *) node_find(t, OTHER))->online_memory = GIB;
                t->policy = policy_free(t->policy);
                assert_int_equal(policy_new(t->config, t->inventory, &t->policy), 0);
                assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), cases[i].verdict);
                assert_int_equal(policy_offers(t->policy, node_find(t, OTHER)), cases[i].verdict == VERDICT_NONE);
                if (cases[i].verdict != VERDICT_NONE) {
                        assert_says(&why, OTHER);
                        record("a member whose memory is online", why.message);
                }
        }
}

TEST(test_boot_vga_member_blocks) {
        _cleanup_node_ TestNode *t = gpu_with_audio();
        PciDevice *member = add_other(t, "nvidia");

        member->boot_vga = true;
        assert_member_blocks(member, t, "[Pool gpu]\nMatch=class=0302\nMatch=address=" OTHER "\n");
}

/* The bridge is not unbound, so the host loses nothing. */
TEST(test_bridge_above_what_the_host_needs_is_left) {
        _cleanup_node_ TestNode *t = gpu_with_audio();
        PciDevice *member = add_other(t, "pcieport");

        member->is_bridge = true;
        assert_int_equal(string_copy(&member->critical, "A disk is below it."), 0);
        node_ready(t, "[Pool gpu]\nMatch=class=0302\n");
        assert_verdict(t, GPU, VERDICT_NONE);
}

TEST(test_display_only_by_force) {
        static const char text[] = "[Pool gpu]\nMatch=class=0302\nMatch=address=" OTHER "\n";
        static const struct {
                bool boot_vga;
                const char *console, *critical, *says;
                Verdict forced;
        } cases[] = {
                { true, NULL, NULL, "boot VGA", VERDICT_NONE },
                { false, "fb0 <- console", NULL, "fb0 <- console", VERDICT_NONE },
                { true, "fb0 <- console", "BMC", "BMC", VERDICT_HOST_CRITICAL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = gpu_with_audio();
                _cleanup_(cleanup_policy_free) Policy *forced = NULL;
                PciDevice *member = add_other(t, "nvidia");
                _cleanup_refusal_ Refusal why = { 0 };

                member->boot_vga = cases[i].boot_vga;
                assert_int_equal(string_copy(&member->console, cases[i].console), 0);
                assert_int_equal(string_copy(&member->critical, cases[i].critical), 0);
                node_ready(t, text);
                assert_int_equal(policy_check(t->policy, node_find(t, OTHER), &why),
                                 cases[i].critical ? VERDICT_HOST_CRITICAL : VERDICT_BOOT_VGA);
                assert_verdict(t, GPU, VERDICT_GROUP_NOT_VIABLE);
                assert_says(&why, cases[i].says);
                assert_int_equal(policy_new_forced(t->config, t->inventory, &forced), 0);
                assert_int_equal(policy_verdict(forced, node_find(t, OTHER)), cases[i].forced);
                assert_int_equal(policy_verdict(forced, node_find(t, GPU)),
                                 cases[i].critical ? VERDICT_GROUP_NOT_VIABLE : VERDICT_NONE);
        }
}

TEST(test_excluded_member_blocks) {
        _cleanup_node_ TestNode *t = gpu_with_audio();

        assert_member_blocks(add_other(t, "nvidia"), t,
                             "[Pool gpu]\nMatch=class=0302\nMatch=address=" OTHER "\n[Exclude]\nMatch=address=" OTHER
                             "\n");
}

TEST(test_excluded_member_without_driver_is_left) {
        _cleanup_node_ TestNode *t = gpu_with_audio();

        add_other(t, NULL);
        node_ready(t, "[Pool gpu]\nMatch=class=0302\n[Exclude]\nMatch=address=" OTHER "\n");
        assert_verdict(t, GPU, VERDICT_NONE);
        assert_int_equal(policy_group_role(t->policy, node_find(t, GPU), node_find(t, OTHER)), GROUP_ROLE_LEAVE);
}

/* The functions behind an Intel VMD controller are in its group, and in a PCI domain of their own. */
TEST(test_C12_member_that_no_guest_can_have) {
        static const struct {
                const char *driver;
                GroupRole role;
                Verdict verdict;
        } cases[] = {
                { "nvme", GROUP_ROLE_BLOCK, VERDICT_GROUP_NOT_VIABLE },
                { NULL, GROUP_ROLE_LEAVE, VERDICT_NONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = gpu_with_audio();
                PciDevice *member = node_device(t, "pci10000:00/10000:00:02.0", 0x010802, 0, 1);

                assert_int_equal(string_copy(&member->driver, cases[i].driver), 0);
                node_ready(t, "[Pool gpu]\nMatch=class=0302\n[Pool disk]\nMatch=class=0108\n");
                assert_verdict(t, GPU, cases[i].verdict);
                assert_int_equal(policy_group_role(t->policy, node_find(t, GPU), node_find(t, "10000:00:02.0")),
                                 cases[i].role);
        }
}

/* PF 01:00.0, .1 and their VFs are in one group, as without ACS. */
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

TEST(test_D10_vfs_beside_their_pf) {
        _cleanup_node_ TestNode *t = one_group_for_all("mlx5_core");
        _cleanup_refusal_ Refusal why = { 0 };

        node_ready(t, "[Pool vf]\nMatch=type=vf\n");
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:01:00.2"), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, "0000:01:00.0, bound to mlx5_core");
        assert_non_null(strstr(why.remedy, "ACS"));
        for (unsigned i = 0; i < 4; i++)
                assert_verdict(t,
                               ((const char *[]) { "0000:01:00.2", "0000:01:00.3", "0000:01:00.4", "0000:01:00.5" })[i],
                               VERDICT_GROUP_NOT_VIABLE);
        assert_int_equal(node_available(t, "vf"), 0);
}

/* With unbound PFs the group would be viable, but no pool or allocation has its VFs. */
TEST(test_D10_vfs_without_their_pf) {
        static const char *const drivers[] = { NULL, "pci-stub", "vfio-pci" };

        for (size_t i = 0; i < ELEMENTSOF(drivers); i++) {
                _cleanup_node_ TestNode *t = one_group_for_all(drivers[i]);
                _cleanup_refusal_ Refusal why = { 0 };

                node_ready(t, "[Pool vf]\nMatch=type=vf\n");
                assert_int_equal(policy_check(t->policy, node_find(t, "0000:01:00.2"), &why), VERDICT_PF_ABSENT);
                assert_says(&why, drivers[i] ?: "driver");
                assert_int_equal(node_available(t, "vf"), 0);
        }
}

/* The PF was unplugged, and its driver left VFs behind. */
TEST(test_vf_of_no_pf) {
        _cleanup_node_ TestNode *t = node_new();

        node_vf(t, "pci0000:00/0000:00:01.0/0000:01:00.2", "0000:01:00.0", 0, 1);
        node_ready(t, "[Pool vf]\nMatch=type=vf\n");
        assert_verdict(t, "0000:01:00.2", VERDICT_PF_ABSENT);
        assert_int_equal(node_available(t, "vf"), 0);
}

TEST(test_E9_dual_port) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;

        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.0", 0, 15);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.1", 0, 15);
        node_ready(t, "[Pool nic]\nMatch=address=0000:05:00.*\n");
        assert_int_equal(plan_single(&t->context, node_find(t, "0000:05:00.0"), &a), 0);
        assert_devices(a, "nic0=0000:05:00.0 nic0-1=0000:05:00.1");
}

/* The other port may be the host's, so it is not given to the guest with the first. */
TEST(test_E9_port_in_no_pool) {
        _cleanup_node_ TestNode *t = node_new(), *unbound = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.0", 0, 15);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.1", 0, 15);
        node_ready(t, "[Pool nic]\nMatch=address=0000:05:00.0\n");
        assert_int_equal(policy_group_role(t->policy, node_find(t, "0000:05:00.0"), node_find(t, "0000:05:00.1")),
                         GROUP_ROLE_BLOCK);
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:05:00.0"), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, "0000:05:00.1, bound to mlx5_core");

        node_nic(unbound, "pci0000:00/0000:00:01.0/0000:05:00.0", 0, 15);
        assert_int_equal(string_copy(&node_nic(unbound, "pci0000:00/0000:00:01.0/0000:05:00.1", 0, 15)->driver, NULL),
                         0);
        node_ready(unbound, "[Pool nic]\nMatch=address=0000:05:00.0\n");
        assert_int_equal(policy_group_role(unbound->policy, node_find(unbound, "0000:05:00.0"),
                                           node_find(unbound, "0000:05:00.1")),
                         GROUP_ROLE_COMPANION);
}

/* USB and UCSI functions of a GPU's USB-C port are companions. Other functions of its slot are not. */
TEST(test_functions_of_a_gpu) {
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

/* An audio function is a companion of a GPU, not of a NIC. */
TEST(test_function_of_a_nic) {
        _cleanup_node_ TestNode *t = node_new();

        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.0", 0, 15);
        assert_int_equal(
                string_copy(&node_device(t, "pci0000:00/0000:00:01.0/0000:05:00.1", 0x040300, 0, 15)->driver, "host"),
                0);
        node_ready(t, "[Pool nic]\nMatch=class=02\n");
        assert_verdict(t, "0000:05:00.0", VERDICT_GROUP_NOT_VIABLE);
}

/* For a VF in a group with a device that is not its PF, the pool of that device decides. */
TEST(test_vf_beside_another_card) {
        static const struct {
                const char *config;
                GroupRole role;
        } cases[] = {
                { "[Pool vf]\nMatch=type=vf\n[Pool gpu]\nMatch=class=0302\n", GROUP_ROLE_HOLD },
                { "[Pool vf]\nMatch=type=vf\n", GROUP_ROLE_BLOCK },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_refusal_ Refusal why = { 0 };
                const char *vf = "0000:81:00.1";

                node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.0", 0, 1);
                node_vf(t, "pci0000:00/0000:00:01.0/0000:81:00.1", "0000:81:00.0", 0, 2);
                node_gpu(t, "pci0000:00/0000:00:02.0/" OTHER, 0, 2);
                node_ready(t, cases[i].config);
                assert_int_equal(policy_group_role(t->policy, node_find(t, vf), node_find(t, OTHER)), cases[i].role);
                assert_int_equal(policy_check(t->policy, node_find(t, vf), &why),
                                 cases[i].role == GROUP_ROLE_HOLD ? VERDICT_NONE : VERDICT_GROUP_NOT_VIABLE);
                if (why.verdict != VERDICT_NONE) {
                        assert_says(&why, OTHER);
                        assert_null(strstr(why.remedy, "ACS"));
                }
        }
}

TEST(test_E9_vfs_are_independent) {
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

/* A port's sibling with VFs cannot be held: vfio-pci refuses a PF with VFs. */
TEST(test_E9_port_beside_a_port_with_vfs) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.0", 0, 15);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:05:00.1", 0, 15);
        node_vf(t, "pci0000:00/0000:00:01.0/0000:05:10.7", "0000:05:00.1", 0, 25);
        node_ready(t, "[Pool nic]\nMatch=type=device class=02\nMatch=address=0000:05:00.1\n");
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:05:00.0"), &why), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&why, "0000:05:00.1");
        record("a member that a pool offers", why.message);
}

TEST(test_sentences) {
        assert_sentences("groups.txt");
}
