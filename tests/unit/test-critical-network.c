/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "criticalfixture.h"

#define PORT    "pci0000:00/0000:00:01.0"
#define PF      PORT "/0000:01:00.0"
#define VF      PORT "/0000:01:10.0"
#define OTHER   "pci0000:00/0000:00:1f.6"
#define VIRTUAL "sys/devices/virtual/net/"
#define ROUTES  "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"

static void add_interface(const Fixture *f, const char *path, const char *name) {
        char dir[160], link[64], target[200];

        (void) snprintf(dir, sizeof(dir), "sys/devices/%s/net/%s", path, name);
        (void) snprintf(link, sizeof(link), "sys/class/net/%s", name);
        (void) snprintf(target, sizeof(target), "../../../%s", dir);
        tree_dir(f->root, dir);
        tree_link(f->root, link, target);
}

/* A virtual interface on another, whose directory is given. */
static void stack(const Fixture *f, const char *upper, const char *lower) {
        char link[160], target[200];

        add_interface(f, "virtual", upper);
        (void) snprintf(link, sizeof(link), VIRTUAL "%s/lower_%s", upper, strrchr(lower, '/') + 1);
        (void) snprintf(target, sizeof(target), "../../../../../%s", lower);
        tree_link(f->root, link, target);
}

static void default_route(const Fixture *f, const char *interface) {
        char text[400];

        (void) snprintf(text, sizeof(text), ROUTES "%s\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
                        interface);
        tree_file(f->root, "proc/net/route", text);
}

static int setup(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, PORT, "0x8086", "0x3c02", "0x060400");
        tree_device(f->root, PF, "0x8086", "0x10c9", "0x020000");
        tree_device(f->root, VF, "0x8086", "0x10ca", "0x020000");
        tree_device(f->root, OTHER, "0x8086", "0x15b7", "0x020000");
        tree_attribute_link(f->root, "0000:01:10.0", "physfn", "../0000:01:00.0");
        add_interface(f, PF, "eth0");
        add_interface(f, VF, "eth0v0");
        add_interface(f, OTHER, "mgmt");
        mounts(f, "");
        return 0;
}

static Config *config(const char *text) {
        Config *c;

        assert_int_equal(config_parse("test.conf", text, strlen(text), &c), 0);
        return c;
}

static void test_vlan_on_team_on_macvlan(void **state) {
        Fixture *f = *state;

        stack(f, "macvlan0", "sys/devices/" PF "/net/eth0");
        stack(f, "team0", VIRTUAL "macvlan0");
        stack(f, "team0.100", VIRTUAL "team0");
        default_route(f, "team0.100");
        assert_string_equal(critical(f, "0000:01:00.0"),
                            "0000:01:00.0 <- eth0 <- macvlan0 <- team0 <- team0.100 <- default route");
        assert_string_equal(critical(f, "0000:00:01.0"), "0000:00:01.0 <- 0000:01:00.0 <- eth0 <- macvlan0 <- team0 "
                                                         "<- team0.100 <- default route");
        assert_null(critical(f, "0000:01:10.0"));
        assert_null(critical(f, "0000:00:1f.6"));
}

static void test_bond_of_a_vf_keeps_its_pf(void **state) {
        Fixture *f = *state;

        stack(f, "bond0", "sys/devices/" VF "/net/eth0v0");
        default_route(f, "bond0");
        assert_string_equal(critical(f, "0000:01:00.0"),
                            "0000:01:00.0 <- 0000:01:10.0 <- eth0v0 <- bond0 <- default route");
}

/* The bridge has no link to its ports, only the kernel's side of the switch does. */
static void test_bridge_of_open_vswitch(void **state) {
        Fixture *f = *state;

        add_interface(f, "virtual", "br-ex");
        default_route(f, "br-ex");
        assert_null(critical(f, "0000:01:00.0"));
        stack(f, "ovs-system", "sys/devices/" PF "/net/eth0");
        assert_string_equal(critical(f, "0000:01:00.0"),
                            "0000:01:00.0 <- eth0 <- ovs-system <- br-ex <- default route");
        assert_null(critical(f, "0000:00:1f.6"));
}

/* An interface with a card below needs no switch. */
static void test_switch_of_others(void **state) {
        Fixture *f = *state;

        stack(f, "ovs-system", "sys/devices/" PF "/net/eth0");
        default_route(f, "mgmt");
        assert_null(critical(f, "0000:01:00.0"));
        assert_non_null(critical(f, "0000:00:1f.6"));
        stack(f, "br0", "sys/devices/" OTHER "/net/mgmt");
        default_route(f, "br0");
        assert_null(critical(f, "0000:01:00.0"));
}

static void test_unreachable_is_no_way(void **state) {
        Fixture *f = *state;

        tree_file(f->root, "proc/net/ipv6_route",
                  "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
                  "00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 mgmt\n");
        assert_null(critical(f, "0000:00:1f.6"));
        tree_file(f->root, "proc/net/ipv6_route",
                  "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
                  "fe800000000000000000000000000001 00000400 00000001 00000000 00450003 mgmt\n");
        assert_string_equal(critical(f, "0000:00:1f.6"), "0000:00:1f.6 <- mgmt <- default route");
}

static void test_interfaces_that_the_admin_keeps(void **state) {
        Fixture *f = *state;
        _cleanup_(cleanup_config_free) Config *one = config("[Daemon]\nKeepInterfaces=lo mg*\n"),
                                              *two = config("[Daemon]\nKeepInterfaces=bond?\nKeepInterfaces=nothing\n"),
                                              *none = config("[Daemon]\nKeepInterfaces=*\nKeepInterfaces=\n");

        stack(f, "bond1", "sys/devices/" PF "/net/eth0");
        assert_string_equal(marked(f, one, "0000:00:1f.6")->critical, "0000:00:1f.6 <- mgmt <- KeepInterfaces=");
        assert_null(marked(f, one, "0000:01:00.0")->critical);
        assert_string_equal(marked(f, two, "0000:01:00.0")->critical,
                            "0000:01:00.0 <- eth0 <- bond1 <- KeepInterfaces=");
        assert_null(marked(f, two, "0000:00:1f.6")->critical);
        assert_null(marked(f, none, "0000:00:1f.6")->critical);
}

/* What it was to keep would be given away. */
static void test_broken_list_holds_everything_back(void **state) {
        _cleanup_(cleanup_config_free) Config *c = config("[Daemon]\nKeepInterfaces=eth0 bad/name\n"),
                                              *good = config("[Daemon]\nKeepInterfaces=eth[0-9] en*\n");

        assert_non_null(strstr(c->block_reason, "(test.conf:2)"));
        assert_int_equal(c->n_problems, 1);
        assert_non_null(strstr(c->problems[0].message, "KeepInterfaces="));
        assert_null(good->block_reason);
        assert_int_equal(good->n_keep_interfaces, 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
                TEST(test_vlan_on_team_on_macvlan),
                TEST(test_bond_of_a_vf_keeps_its_pf),
                TEST(test_bridge_of_open_vswitch),
                TEST(test_switch_of_others),
                TEST(test_unreachable_is_no_way),
                TEST(test_interfaces_that_the_admin_keeps),
                TEST(test_broken_list_holds_everything_back),
#undef TEST
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
