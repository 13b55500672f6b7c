/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Which pool has a device, and whether the device may be allocated (scenario B3). */

#include <stdio.h>

#include "unit.h"

#include "policyfixture.h"
#include "sentences.h"

TEST(test_B3_two_pools_match_one_device) {
        _cleanup_node_ TestNode *t = gpu_with_audio();
        _cleanup_refusal_ Refusal why = { 0 };

        node_ready(t, "[Pool a1]\nMatch=class=0302\n[Pool a2]\nMatch=vendor=10de class=0302\n");
        assert_string_equal(policy_pool(t->policy, node_find(t, GPU))->name, "a1");
        assert_int_equal(t->policy->n_problems, 1);
        assert_non_null(strstr(t->policy->problems[0], "test.conf:6: Pool 'a2' also matches " GPU));
        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "a1=1 a2=1"), &why), VERDICT_INSUFFICIENT_DEVICES);
        assert_says(&why, "Pool 'a2': 1 wanted, 0 of 0 free.");
        /* A device matches, but is in the other pool. */
        assert_says(&why, "match 1 device");
        assert_says(&why, "'a1'");
        assert_int_equal(node_available(t, "a1"), 1);
        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "a1=1"), NULL), VERDICT_NONE);
}

TEST(test_three_pools_match_one_device) {
        _cleanup_node_ TestNode *t = gpu_with_audio();

        node_ready(t, "[Pool a1]\nMatch=class=0302\n[Pool a2]\nMatch=vendor=10de class=0302\n"
                      "[Pool a3]\nMatch=class=0302\n");
        assert_int_equal(t->policy->n_problems, 2);
        assert_non_null(strstr(t->policy->problems[0], "Pool 'a2' also matches"));
        assert_non_null(strstr(t->policy->problems[1], "Pool 'a3' also matches"));
}

static void add_pf_with_vf(TestNode *t) {
        node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.0", 0, 1);
        node_vf(t, "pci0000:00/0000:00:01.0/0000:81:00.1", "0000:81:00.0", 0, 2);
}

TEST(test_pf_and_its_vf_offered) {
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

/* Types of mediated devices do not make slots of the VFs of a PF. */
TEST(test_pf_with_types) {
        _cleanup_node_ TestNode *t = node_new();
        PciDevice *pf;

        add_pf_with_vf(t);
        pf = &t->inventory->devices[inventory_device_index(t->inventory, node_find(t, "0000:81:00.0"))];
        pf->total_vfs = 1;
        assert_int_equal(string_copy(&pf->mdev_types, ""), 0);
        node_ready(t, "[Pool nic]\nMatch=address=0000:81:00.0\n");
        assert_verdict(t, "0000:81:00.0", VERDICT_PF_HAS_VFS);
}

TEST(test_pf_and_vfs_to_be_made) {
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

/* VFs that another program creates: Match= lines by expected facts, or by the address of an existing VF. */
TEST(test_external_vfs) {
        static const char *const configs[] = { "[Pool vf]\nMatch=type=vf\nVirtualFunctions=external\n",
                                               "[Pool vf]\nMatch=address=0000:81:00.1\nVirtualFunctions=external\n"
                                               "[Pool more]\nMatch=type=vf\nVirtualFunctions=4\n" };

        for (size_t i = 0; i < ELEMENTSOF(configs); i++) {
                _cleanup_node_ TestNode *t = node_new();
                PciDevice *pf = node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.0", 0, 1);
                const PciDevice *found;

                pf->total_vfs = 8;
                node_vf(t, "pci0000:00/0000:00:01.0/0000:81:00.1", "0000:81:00.0", 0, 2);
                node_ready(t, configs[i]);
                found = node_find(t, "0000:81:00.0");
                assert_null(policy_vf_pool(t->policy, found));
                assert_string_equal(policy_external_pool(t->policy, found)->name, "vf");
        }
}

/* The daemon creates VFs even on a PF that the host needs. Only [Exclude] prevents that, and then all refusals say
 * so. */
TEST(test_vfs_on_a_kept_pf) {
        static const struct {
                const char *critical, *console, *exclude, *reason;
                bool boot_vga;
        } cases[] = {
                { .critical = "default route" },
                { .critical = "/ (mounted)" },
                { .console = "fb0" },
                { .boot_vga = true },
                { .exclude = "address=0000:81:00.0", .reason = "(test.conf:7)" },
                { .exclude = "address=0000:81:00.0", .reason = "(test.conf:7)", .critical = "default route" },
                { .exclude = "type=vf", .reason = "(test.conf:7)" },
                { .exclude = "pf=0000:81:*", .reason = "(test.conf:7)" },
                { .exclude = "address=0000:82:00.0" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_refusal_ Refusal why = { 0 }, told = { 0 };
                _cleanup_free_ char *config = NULL;
                PciDevice *dev = node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.0", 0, 1);
                const PciDevice *pf;

                dev->total_vfs = 8;
                dev->boot_vga = cases[i].boot_vga;
                assert_int_equal(string_copy(&dev->critical, cases[i].critical), 0);
                assert_int_equal(string_copy(&dev->console, cases[i].console), 0);
                assert_int_equal(string_replace(&config, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=4\n%s%s",
                                                cases[i].exclude ? "[Exclude]\nMatch=" : "", cases[i].exclude ?: ""),
                                 0);
                node_ready(t, config);
                pf = node_find(t, "0000:81:00.0");
                assert_string_equal(policy_asking_pool(t->policy, pf)->name, "vf");
                assert_int_equal(!!policy_vf_pool(t->policy, pf), !cases[i].reason);
                assert_int_equal(policy_check_vfs(t->policy, pf, &t->config->pools[0], &why),
                                 cases[i].reason ? VERDICT_EXCLUDED : VERDICT_NONE);
                assert_int_equal(t->policy->n_problems, cases[i].reason ? 1 : 0);
                if (!cases[i].reason)
                        continue;
                assert_says(&why, cases[i].reason);
                assert_says(&why, "'vf'");
                assert_int_not_equal(policy_check(t->policy, pf, &told), VERDICT_NONE);
                assert_says(&told, cases[i].reason);
                assert_non_null(strstr(t->policy->problems[0], why.message));
                assert_int_equal(strncmp(t->policy->problems[0], "test.conf:5: ", strlen("test.conf:5: ")), 0);
                record("no VFs", why.message);
        }
}

/* An admin who excludes one PF of several knows that it gets no VFs. */
TEST(test_one_of_two_pfs_excluded) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.0", 0, 1)->total_vfs = 8;
        node_nic(t, "pci0000:00/0000:00:02.0/0000:82:00.0", 0, 2)->total_vfs = 8;
        node_ready(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=4\n[Exclude]\nMatch=address=0000:81:00.0\n");
        assert_null(policy_vf_pool(t->policy, node_find(t, "0000:81:00.0")));
        assert_non_null(policy_vf_pool(t->policy, node_find(t, "0000:82:00.0")));
        assert_int_equal(t->policy->n_problems, 0);
        /* The VFs of the other PF are expected. */
        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "vf=1", .cpus = 1), &why), VERDICT_INSUFFICIENT_DEVICES);
        assert_null(strstr(why.message, "0000:81:00.0"));
}

/* VFs that exist on an excluded PF are offered, unless [Exclude] matches them too. */
TEST(test_vfs_of_an_excluded_pf) {
        static const struct {
                const char *exclude;
                Verdict verdict;
        } cases[] = {
                { "Match=address=0000:81:00.0\n", VERDICT_NONE },
                { "Match=address=0000:81:00.0\nMatch=pf=0000:81:00.0\n", VERDICT_EXCLUDED },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_free_ char *config = NULL;

                add_pf_with_vf(t);
                assert_int_equal(string_replace(&config, "[Pool vf]\nMatch=type=vf\n[Exclude]\n%s", cases[i].exclude),
                                 0);
                node_ready(t, config);
                assert_verdict(t, "0000:81:00.1", cases[i].verdict);
        }
}

/* VFs are not expected if the PF cannot have the number, or lacks its driver. */
TEST(test_impossible_vfs) {
        static const struct {
                const char *driver;
                unsigned total;
                Verdict verdict;
        } cases[] = {
                { "mlx5_core", 4, VERDICT_NONE },
                { "mlx5_core", 3, VERDICT_NOT_SUPPORTED },
                { NULL, 4, VERDICT_PF_ABSENT },
                { "vfio-pci", 4, VERDICT_PF_ABSENT },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_refusal_ Refusal why = { 0 }, outside = { 0 }, plan = { 0 };
                PciDevice *dev = node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.0", 0, 1);
                const PciDevice *pf;

                dev->total_vfs = cases[i].total;
                assert_int_equal(string_copy(&dev->driver, cases[i].driver), 0);
                node_ready(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=4\n");
                pf = node_find(t, "0000:81:00.0");
                assert_int_equal(policy_check_vf_number(t->policy, pf, &t->config->pools[0], &why), cases[i].verdict);
                assert_int_equal(policy_check(t->policy, pf, &outside), VERDICT_NOT_IN_POOL);
                assert_says(&outside, "'vf'");
                if (cases[i].verdict == VERDICT_NONE)
                        continue;
                assert_says(&outside, why.message);
                assert_int_equal(node_allocate(t, "vm", ASK(.pools = "vf=1", .cpus = 1), &plan),
                                 VERDICT_INSUFFICIENT_DEVICES);
                assert_says(&plan, why.message);
                record("no VFs", why.message);
        }
}

/* Without a line that names the PF, VFs are refused: the host would lose the RDMA device of a bond of two ports. */
TEST(test_roce_lag) {
        static const struct {
                const char *match, *bond, *driver, *names; /* attributes of the PF */
                const char *other_bond, *other_driver;     /* attributes of the other port */
                size_t other_vfs;
                Verdict verdict;
        } cases[] = {
                { "", "bond0", "mlx5_core", NULL, "bond0", "mlx5_core", 0, VERDICT_HOST_CRITICAL },
                { " pf=0000:81:*", "bond0", "mlx5_core", NULL, "bond0", "mlx5_core", 0, VERDICT_HOST_CRITICAL },
                { " pf=0000:81:00.1", "bond0", "mlx5_core", NULL, "bond0", "mlx5_core", 0, VERDICT_NONE },
                { " pf=0000:81:00.0", "bond0", "mlx5_core", NULL, "bond0", "mlx5_core", 0, VERDICT_NONE },
                { "", "bond0", "mlx5_core", NULL, "bond1", "mlx5_core", 0, VERDICT_NONE },
                { "", "bond0", "mlx5_core", NULL, NULL, "mlx5_core", 0, VERDICT_NONE },
                { "", "bond0", "mlx5_core", "mlx5_bond_0 eth0", NULL, "vfio-pci", 0, VERDICT_HOST_CRITICAL },
                { "", NULL, "mlx5_core", NULL, "bond0", "mlx5_core", 0, VERDICT_NONE },
                { "", "bond0", "mlx5_core", NULL, "bond0", "mlx5_core", 2, VERDICT_NONE },
                { "", "bond0", "i40e", NULL, "bond0", "i40e", 0, VERDICT_NONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_refusal_ Refusal why = { 0 }, outside = { 0 }, plan = { 0 };
                _cleanup_free_ char *config =
                        string_format("[Pool vf]\nMatch=type=vf%s\nVirtualFunctions=4\n", cases[i].match);
                PciDevice *pf = node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.0", 0, 1), *other;
                const PciDevice *found;
                bool refused;

                pf->total_vfs = 8;
                assert_int_equal(string_copy(&pf->bond, cases[i].bond), 0);
                assert_int_equal(string_copy(&pf->driver, cases[i].driver), 0);
                assert_int_equal(string_copy(&pf->kernel_names, cases[i].names), 0);
                /* The other port's firmware has SR-IOV off. */
                other = node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.1", 0, 2);
                other->n_virtfns = cases[i].other_vfs;
                assert_int_equal(string_copy(&other->bond, cases[i].other_bond), 0);
                assert_int_equal(string_copy(&other->driver, cases[i].other_driver), 0);
                if (strstr(cases[i].match, ".1"))
                        other->total_vfs = 8;
                node_ready(t, config);
                found = node_find(t, strstr(cases[i].match, ".1") ? "0000:81:00.1" : "0000:81:00.0");
                refused = cases[i].verdict != VERDICT_NONE;
                assert_int_equal(policy_check_vfs(t->policy, found, &t->config->pools[0], &why), cases[i].verdict);
                assert_int_equal(!policy_vf_pool(t->policy, found), refused);
                assert_int_equal(t->policy->n_problems, refused ? 1 : 0);
                if (!refused)
                        continue;
                assert_says(&why, "bond0");
                assert_says(&why, "'vf'");
                assert_int_equal(policy_check(t->policy, found, &outside), VERDICT_NOT_IN_POOL);
                assert_says(&outside, why.message);
                assert_int_equal(node_allocate(t, "vm", ASK(.pools = "vf=1", .cpus = 1), &plan),
                                 VERDICT_INSUFFICIENT_DEVICES);
                assert_says(&plan, why.message);
                record("no VFs", why.message);
        }
}

/* The VFs of any port of the card take away the shared RDMA device. */
TEST(test_roce_lag_of_three_ports) {
        _cleanup_node_ TestNode *t = node_new();
        static const char *const paths[] = { "pci0000:00/0000:00:01.0/0000:81:00.0",
                                             "pci0000:00/0000:00:01.0/0000:81:00.1",
                                             "pci0000:00/0000:00:01.0/0000:81:00.2" };

        for (unsigned i = 0; i < ELEMENTSOF(paths); i++) {
                PciDevice *port = node_nic(t, paths[i], 0, (int) i + 1);

                port->total_vfs = 8;
                port->n_virtfns = i == 2 ? 4 : 0;
                assert_int_equal(string_copy(&port->bond, "bond0"), 0);
                assert_int_equal(string_copy(&port->driver, "mlx5_core"), 0);
        }
        node_ready(t, "[Pool vf]\nMatch=type=vf\n");
        assert_false(policy_pf_has_roce_lag(t->policy, node_find(t, "0000:81:00.0")));
}

/* The VFs of the PF exist: the refusal says what the host lacks, also for a pool with other VFs. */
TEST(test_lost_roce_lag) {
        for (size_t n = 0; n <= 4; n += 4) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_refusal_ Refusal outside = { 0 };

                for (unsigned port = 0; port < 2; port++) {
                        PciDevice *pf = node_nic(t,
                                                 port ? "pci0000:00/0000:00:01.0/0000:81:00.1"
                                                      : "pci0000:00/0000:00:01.0/0000:81:00.0",
                                                 0, (int) port + 1);

                        pf->total_vfs = 8;
                        assert_int_equal(string_copy(&pf->bond, "bond0"), 0);
                        assert_int_equal(string_copy(&pf->driver, "mlx5_core"), 0);
                        pf->n_virtfns = port ? 0 : n;
                }
                node_nic(t, "pci0000:00/0000:00:02.0/0000:82:00.0", 0, 3)->total_vfs = 8;
                node_ready(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=4\n");
                assert_int_equal(!!policy_vf_pool(t->policy, node_find(t, "0000:81:00.0")), n > 0);
                assert_int_equal(t->policy->n_problems, n > 0 ? 0 : 1);
                assert_int_not_equal(policy_check(t->policy, node_find(t, "0000:81:00.0"), &outside), VERDICT_NONE);
                assert_says(&outside, "bond0");
                record("RoCE LAG", outside.message);
        }
}

TEST(test_types_settle_it) {
        _cleanup_node_ TestNode *t = node_new();

        add_pf_with_vf(t);
        node_ready(t, "[Pool nic]\nMatch=vendor=15b3 type=vf\n");
        assert_int_equal(t->policy->conflict.verdict, VERDICT_NONE);
        assert_verdict(t, "0000:81:00.0", VERDICT_NOT_IN_POOL);
        assert_verdict(t, "0000:81:00.1", VERDICT_NONE);
}

/* A Match= line for one end would be refused because of the other. */
TEST(test_no_pool_for_the_other_end) {
        static const struct {
                const char *config, *outsider, *names;
        } cases[] = {
                { "[Pool nic]\nMatch=vendor=15b3 type=vf\n", "0000:81:00.0", "'nic'" },
                { "[Pool nic]\nMatch=vendor=15b3 type=pf\n", "0000:81:00.1", "0000:81:00.0" },
                { "[Pool vf]\nMatch=id=15b3:1018 type=vf\nVirtualFunctions=4\n", "0000:82:00.0", "'vf'" },
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
                assert_says(&why, cases[i].names);
                record(cases[i].outsider, why.message);
                assert_null(strstr(why.remedy, "Match="));
        }
}

/* A line for the PF is accepted, because its VF is not offered. */
TEST(test_no_pool_for_either) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        add_pf_with_vf(t);
        node_ready(t, "[Pool nic]\nMatch=type=vf\n[Exclude]\nMatch=type=vf\n");
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:81:00.0"), &why), VERDICT_NOT_IN_POOL);
        record("in no pool", why.message);
        assert_non_null(strstr(why.remedy, "Match="));
}

/* Excluded devices are not offered, so no conflict arises. */
TEST(test_an_excluded_pf_is_no_conflict) {
        _cleanup_node_ TestNode *t = node_new();

        add_pf_with_vf(t);
        node_ready(t, "[Pool nic]\nMatch=vendor=15b3\n[Exclude]\nMatch=type=pf\n");
        assert_verdict(t, "0000:81:00.0", VERDICT_EXCLUDED);
        assert_int_equal(t->policy->conflict.verdict, VERDICT_NONE);
}

TEST(test_a_critical_pf_is_no_conflict) {
        _cleanup_node_ TestNode *t = node_new();

        assert_int_equal(string_copy(&node_nic(t, "pci0000:00/0000:00:01.0/0000:81:00.0", 0, 1)->critical,
                                     "It has the default route."),
                         0);
        node_vf(t, "pci0000:00/0000:00:01.0/0000:81:00.1", "0000:81:00.0", 0, 2);
        node_ready(t, "[Pool nic]\nMatch=vendor=15b3\n");
        assert_verdict(t, "0000:81:00.0", VERDICT_HOST_CRITICAL);
        assert_int_equal(t->policy->conflict.verdict, VERDICT_NONE);
}

static PciDevice *add_platform(TestNode *t, const char *path, uint32_t class, const char *driver) {
        PciDevice *dev = node_device(t, path, class, 0, 1);

        dev->is_bridge = false;
        assert_int_equal(string_copy(&dev->driver, driver), 0);
        return dev;
}

/* A12: host bridges, SMBus controllers and the like are listed as devices. */
TEST(test_A12_platform) {
        _cleanup_node_ TestNode *t = gpu_with_audio(), *bound = gpu_with_audio();
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        _cleanup_refusal_ Refusal why = { 0 }, blocked = { 0 };

        add_platform(t, "pci0000:00/0000:00:00.0", 0x060000, NULL);
        add_platform(t, "pci0000:00/0000:00:14.0", 0x0c0500, NULL);
        add_platform(t, "pci0000:00/0000:00:05.4", 0x080020, NULL);
        add_platform(t, "pci0000:00/0000:00:06.0", 0x068000, NULL); /* the class of NVSwitches */
        node_ready(t, "[Pool all]\nMatch=address=*\n");
        assert_verdict(t, GPU, VERDICT_NONE);
        assert_verdict(t, "0000:00:06.0", VERDICT_NONE);
        for (unsigned i = 0; i < 3; i++) {
                const char *address = ((const char *[]) { "0000:00:00.0", "0000:00:14.0", "0000:00:05.4" })[i];

                assert_verdict(t, address, VERDICT_BRIDGE);
                assert_null(policy_pool(t->policy, node_find(t, address)));
                assert_int_equal(policy_group_role(t->policy, node_find(t, GPU), node_find(t, address)),
                                 GROUP_ROLE_LEAVE);
        }
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:00:00.0"), &why), VERDICT_BRIDGE);
        record("platform", why.message);
        assert_int_equal(plan_single(&t->context, node_find(t, GPU), &a), 0);
        assert_devices(a, "all0=" GPU " all0-1=" AUDIO " held=0000:00:06.0");

        add_platform(bound, "pci0000:00/0000:00:14.0", 0x0c0500, "piix4_smbus");
        node_ready(bound, "[Pool all]\nMatch=address=*\n");
        assert_int_equal(policy_check(bound->policy, node_find(bound, GPU), &blocked), VERDICT_GROUP_NOT_VIABLE);
        assert_says(&blocked, "0000:00:14.0, bound to piix4_smbus");
}

/* The devices that the broken line should exclude are unknown. */
TEST(test_broken_exclude_holds_everything_back) {
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
        assert_says(&why, "(test.conf:7)");
        record("broken [Exclude]", why.message);
        assert_verdict(t, GPU, VERDICT_EXCLUDED);
        assert_verdict(t, AUDIO, VERDICT_NOT_IN_POOL);
        assert_null(policy_vf_pool(t->policy, node_find(t, "0000:02:00.0")));
}

TEST(test_order_of_verdicts) {
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
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:04:00.0"), &why), VERDICT_NO_IOMMU);
        assert_non_null(why.remedy);
        refusal_done(&why);
        assert_int_equal(policy_check(t->policy, node_find(t, "0000:03:00.0"), &why), VERDICT_EXCLUDED);
        assert_says(&why, "test.conf:6");
}

/* A recording may lack the list of drivers, which then are not known to be missing. */
TEST(test_vfio_driver_that_is_not_loaded) {
        static char nvidia[] = "nvidia", vfio[] = "vfio-pci";
        static char *loaded[] = { nvidia, vfio };
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_gpu(t, "pci0000:00/0000:01:00.0", 0, 1);
        node_ready(t, "[Pool gpu]\nMatch=class=0302\n");
        assert_verdict(t, "0000:01:00.0", VERDICT_NONE);
        t->inventory->drivers = loaded;
        t->inventory->drivers_known = true;
        for (t->inventory->n_drivers = 1; t->inventory->n_drivers <= 2; t->inventory->n_drivers++) {
                policy_recheck(t->policy, node_find(t, "0000:01:00.0"));
                assert_verdict(t, "0000:01:00.0", t->inventory->n_drivers == 1 ? VERDICT_NO_VFIO_DRIVER : VERDICT_NONE);
                if (t->inventory->n_drivers == 1) {
                        assert_int_equal(policy_check(t->policy, node_find(t, "0000:01:00.0"), &why),
                                         VERDICT_NO_VFIO_DRIVER);
                        assert_non_null(strstr(why.remedy, "modprobe@vfio-pci.service"));
                }
        }
        t->inventory->drivers = NULL;
        t->inventory->n_drivers = 0;
}

/* QEMU reads 16 bits of the domain of a host device. */
TEST(test_C12_domain_that_no_guest_can_have) {
        _cleanup_node_ TestNode *t = node_new();

        node_gpu(t, "pciffff:00/ffff:00:01.0", 0, 1);
        node_gpu(t, "pci10000:00/10000:00:01.0", 0, 2);
        node_gpu(t, "pci20000:00/20000:00:01.0", 0, 3)->critical = strdup("It has the root file system.");
        node_ready(t, "[Pool gpu]\nMatch=class=0302\n");
        assert_verdict(t, "ffff:00:01.0", VERDICT_NONE);
        assert_verdict(t, "10000:00:01.0", VERDICT_NOT_SUPPORTED);
        assert_verdict(t, "20000:00:01.0", VERDICT_NOT_SUPPORTED);
        assert_false(policy_offers(t->policy, node_find(t, "10000:00:01.0")));
}

/* Requirements of a pool of vGPUs, and remedies. */
TEST(test_pool_of_vgpus) {
        static const struct {
                const char *address, *types;
                bool mdev_parent;
                unsigned total_vfs;
                const char *remedy;
        } cases[] = {
                { "0000:03:00.1", "1 : A", false, 0, NULL },
                { "0000:03:00.1", NULL, false, 0, "vGPU manager" },
                { "0000:02:00.0", NULL, false, 0, "sriov-manage -e 0000:02:00.0" },
                { "0000:02:00.0", NULL, false, 1, "sriov-manage -e 0000:02:00.0" },
                { "0000:02:00.0", NULL, true, 1, "sriov-manage -e 0000:02:00.0" },
                { "0000:02:00.0", NULL, true, 0, "VgpuType=" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_refusal_ Refusal why = { 0 };
                PciDevice *dev;

                node_gpu(t, "pci0000:00/0000:00:02.0/0000:03:00.0", 0, 3);
                node_gpu(t, "pci0000:00/0000:00:01.0/0000:02:00.0", 0, 0);
                node_vf(t, "pci0000:00/0000:00:02.0/0000:03:00.1", "0000:03:00.0", 0, 4);
                dev = &t->inventory->devices[inventory_device_index(t->inventory, node_find(t, cases[i].address))];
                assert_int_equal(string_copy(&dev->vgpu_types, cases[i].types), 0);
                dev->mdev_parent = cases[i].mdev_parent;
                dev->total_vfs = cases[i].total_vfs;
                node_ready(t, "[Pool vgpu]\nMatch=address=0000:02:00.0\nMatch=type=vf\nVgpuType=A\n");
                assert_int_equal(policy_check(t->policy, node_find(t, cases[i].address), &why),
                                 cases[i].remedy ? VERDICT_NO_VGPU : VERDICT_NONE);
                if (cases[i].remedy) {
                        assert_non_null(why.remedy);
                        assert_non_null(strstr(why.remedy, cases[i].remedy));
                        assert_int_equal(strstr(why.message, "creatable_vgpu_types") != NULL, !cases[i].mdev_parent);
                }
        }
}

/* A VF with a vGPU keeps its driver. So no member of its group is held for it, and it is not held for others. */
TEST(test_group_of_a_vgpu) {
        static const struct {
                const char *driver;
                const char *pools;
                GroupRole role;
        } cases[] = {
                { "nvidia", "", GROUP_ROLE_BLOCK },
                { NULL, "", GROUP_ROLE_LEAVE },
                { NULL, "[Pool gpu]\nMatch=address=" OTHER "\n", GROUP_ROLE_BLOCK },
                { "nvidia", "[Pool gpu]\nMatch=address=" OTHER "\n", GROUP_ROLE_BLOCK },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_free_ char *text = NULL;
                _cleanup_refusal_ Refusal why = { 0 };
                const PciDevice *vf, *other;

                node_gpu(t, "pci0000:00/0000:00:02.0/0000:03:00.0", 0, 3);
                assert_int_equal(
                        string_copy(
                                &node_vf(t, "pci0000:00/0000:00:02.0/0000:03:00.1", "0000:03:00.0", 0, 4)->vgpu_types,
                                "1 : A"),
                        0);
                assert_int_equal(string_copy(&node_device(t, "pci0000:00/0000:00:01.0/" OTHER, 0x040300, 0, 4)->driver,
                                             cases[i].driver),
                                 0);
                assert_int_equal(string_replace(&text, "[Pool vgpu]\nMatch=type=vf\nVgpuType=A\n%s", cases[i].pools),
                                 0);
                node_ready(t, text);
                vf = node_find(t, "0000:03:00.1");
                other = node_find(t, OTHER);
                assert_int_equal(policy_group_role(t->policy, vf, other), cases[i].role);
                assert_int_equal(policy_check(t->policy, vf, &why),
                                 cases[i].role == GROUP_ROLE_LEAVE ? VERDICT_NONE : VERDICT_GROUP_NOT_VIABLE);
                if (cases[i].role == GROUP_ROLE_BLOCK) {
                        assert_says(&why, OTHER);
                        assert_null(strstr(why.remedy, "pool"));
                }
                assert_int_equal(policy_group_role(t->policy, other, vf), GROUP_ROLE_BLOCK);
        }
}

TEST(test_no_iommu_at_all) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_gpu(t, "pci0000:00/" GPU, 0, -1);
        node_ready(t, "[Pool gpu]\nMatch=class=0302\n");
        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), VERDICT_NO_IOMMU);
        record("no IOMMU", why.message);
        assert_non_null(strstr(why.remedy, "intel_iommu=on"));
}

/* A remedy does not suggest what the kernel command line already has. */
TEST(test_iommu_remedies) {
        Inventory inv = { .iommu_boot = IOMMU_BOOT_ON };

        assert_null(strstr(inventory_iommu_remedy(&inv), "command line"));
        assert_null(strstr(inventory_iommu_remedy(&inv), "intel_iommu"));
        inv.iommu_boot = IOMMU_BOOT_OFF;
        assert_null(strstr(inventory_iommu_remedy(&inv), "firmware"));
        inv.iommu_boot = IOMMU_BOOT_DEFAULT;
        assert_non_null(strstr(inventory_iommu_remedy(&inv), "intel_iommu=on"));
        (void) strcpy(inv.architecture, ARCHITECTURE_AARCH64);
        assert_non_null(strstr(inventory_iommu_remedy(&inv), "SMMU"));
}

/* The first necessary action is the remedy. */
TEST(test_no_iommu_and_no_pool) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_gpu(t, "pci0000:00/" GPU, 0, -1);
        node_ready(t, "");
        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), VERDICT_NOT_IN_POOL);
        record("no IOMMU", why.message);
        assert_non_null(strstr(why.remedy, "intel_iommu=on"));
        assert_true(strstr(why.remedy, "Match=") > strstr(why.remedy, "intel_iommu=on"));
}

TEST(test_sentences) {
        assert_sentences("policy.txt");
}
