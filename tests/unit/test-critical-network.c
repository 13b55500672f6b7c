/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "unit.h"

#include "criticalfixture.h"
#include "sentences.h"
#include "util/strings.h"

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

/* Adds a virtual interface stacked on another one, whose directory is given. */
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

TEST_WITH(test_vlan_on_team_on_macvlan, setup, teardown) {
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

TEST_WITH(test_bond_of_a_vf_keeps_its_pf, setup, teardown) {
        Fixture *f = *state;

        stack(f, "bond0", "sys/devices/" VF "/net/eth0v0");
        default_route(f, "bond0");
        assert_string_equal(critical(f, "0000:01:00.0"),
                            "0000:01:00.0 <- 0000:01:10.0 <- eth0v0 <- bond0 <- default route");
}

/* The bridge has no link to its ports. Only the kernel's datapath has. */
TEST_WITH(test_bridge_of_open_vswitch, setup, teardown) {
        Fixture *f = *state;

        add_interface(f, "virtual", "br-ex");
        default_route(f, "br-ex");
        assert_null(critical(f, "0000:01:00.0"));
        stack(f, "ovs-system", "sys/devices/" PF "/net/eth0");
        assert_string_equal(critical(f, "0000:01:00.0"),
                            "0000:01:00.0 <- eth0 <- ovs-system <- br-ex <- default route");
        assert_null(critical(f, "0000:00:1f.6"));
}

/* An interface with a lower interface needs no datapath. */
TEST_WITH(test_switch_of_others, setup, teardown) {
        Fixture *f = *state;

        stack(f, "ovs-system", "sys/devices/" PF "/net/eth0");
        default_route(f, "mgmt");
        assert_null(critical(f, "0000:01:00.0"));
        assert_non_null(critical(f, "0000:00:1f.6"));
        stack(f, "br0", "sys/devices/" OTHER "/net/mgmt");
        default_route(f, "br0");
        assert_null(critical(f, "0000:01:00.0"));
}

TEST_WITH(test_unreachable_is_no_way, setup, teardown) {
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

TEST_WITH(test_interfaces_that_the_admin_keeps, setup, teardown) {
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

/* The interfaces that the broken line should keep are unknown. */
TEST_WITH(test_broken_list_holds_everything_back, setup, teardown) {
        _cleanup_(cleanup_config_free) Config *c = config("[Daemon]\nKeepInterfaces=eth0 bad/name\n"),
                                              *good = config("[Daemon]\nKeepInterfaces=eth[0-9] en*\n");

        assert_non_null(strstr(c->block_reason, "(test.conf:2)"));
        assert_int_equal(c->n_problems, 1);
        assert_non_null(strstr(c->problems[0].message, "KeepInterfaces="));
        assert_null(good->block_reason);
        assert_int_equal(good->n_keep_interfaces, 2);
}

/* ---- addresses that the kernel uses */

#define ROUTE4(name, destination, mask, metric)                                                                        \
        name "\t" destination "\t00000000\t0001\t0\t0\t" metric "\t" mask "\t0\t0\t0\n"
/* mgmt has the default route, eth0 the network 10.1.0.0/16, eth0v0 10.2.0.0/16. */
#define STORAGE_ROUTES                                                                                                 \
        ROUTES ROUTE4("mgmt", "00000000", "00000000", "0") ROUTE4("eth0", "0000010A", "0000FFFF", "0")                 \
                ROUTE4("eth0v0", "0000020A", "0000FFFF", "0")
#define ZEROS "00000000000000000000000000000000"
#define ROUTE6(destination, length, metric, flags, name)                                                               \
        destination " " length " " ZEROS " 00 " ZEROS " " metric " 00000001 00000000 " flags "     " name "\n"
/* eth0 has the network fd00:1::/64, eth0v0 fd00:2::/64. */
#define STORAGE_ROUTES6                                                                                                \
        ROUTE6(ZEROS, "00", "00000400", "00000003", "mgmt")                                                            \
        ROUTE6("fd000001000000000000000000000000", "40", "00000100", "00000001", "eth0")                               \
        ROUTE6("fd000002000000000000000000000000", "40", "00000100", "00000001", "eth0v0")                             \
        ROUTE6("fd000001000000000000000000000009", "80", "00000000", "80200001", "lo")                                 \
        ROUTE6("fe800000000000000000000000000000", "40", "00000100", "00000001", "mgmt")                               \
        ROUTE6("fe800000000000000000000000000000", "40", "00000100", "00000001", "eth0")
#define ADDRESSES6                                                                                                     \
        "fd000001000000000000000000000009 02 40 00 80     eth0\n"                                                      \
        "fe800000000000000000000000000009 02 40 20 80     eth0\n"                                                      \
        "fe800000000000000000000000000007 1f 40 20 80     mgmt\n"

static void storage_routes(const Fixture *f) {
        tree_file(f->root, "proc/net/route", STORAGE_ROUTES);
        tree_file(f->root, "proc/net/ipv6_route", STORAGE_ROUTES6);
        tree_file(f->root, "proc/net/if_inet6", ADDRESSES6);
}

/* Mounts a line such as "nfs4 filer:/data rw,addr=10.1.0.5" on /data. */
static void mount_network(const Fixture *f, const char *line) {
        char text[400];

        (void) snprintf(text, sizeof(text), "36 35 0:52 / /data rw,relatime shared:9 - %s\n", line);
        mounts(f, text);
}

TEST_WITH(test_servers_of_mounts, setup, teardown) {
        static const struct {
                const char *mount, *way;
        } cases[] = {
                { "nfs4 filer:/data rw,vers=4.2,clientaddr=10.2.0.9,addr=10.1.0.5", "10.1.0.5 <- /data (nfs4)" },
                { "nfs filer:/data rw,mountaddr=10.2.0.5,addr=10.1.0.5", "10.1.0.5 <- /data (nfs)" },
                { "nfs4 filer:/data rw,proto=rdma6,addr=fd00:1::5", "fd00:1::5 <- /data (nfs4)" },
                { "nfs4 filer:/data rw,addr=fe80::5%2", "fe80::5 <- /data (nfs4)" },
                { "nfs4 filer:/data rw,addr=::ffff:10.1.0.5", "10.1.0.5 <- /data (nfs4)" },
                { "cifs //filer/data rw,addr=fd00:0001:0000:0000:0000:0000:0000:0005", "fd00:1::5 <- /data (cifs)" },
                { "smb3 //filer/data rw,addr=10.1.0.5", "10.1.0.5 <- /data (smb3)" },
                { "ceph 10.9.9.9:6789,10.1.0.6:6789:/ rw,name=admin", "10.1.0.6 <- /data (ceph)" },
                { "ceph [fd00:1::6]:6789:/x:/y rw,name=admin", "fd00:1::6 <- /data (ceph)" },
                { "ceph admin@b7f1.fs=/ rw,mon_addr=10.9.9.9:3300/10.1.0.6:3300", "10.1.0.6 <- /data (ceph)" },
                { "lustre 10.1.0.7@o2ib1:10.9.9.9@tcp:/scratch rw,flock", "10.1.0.7 <- /data (lustre)" },
                { "lustre 10.9.9.9@tcp,10.1.0.8@o2ib:/scratch rw", "10.1.0.8 <- /data (lustre)" },
        };
        Fixture *f = *state;

        storage_routes(f);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *way = string_format("0000:01:00.0 <- eth0 <- %s", cases[i].way);

                mount_network(f, cases[i].mount);
                assert_string_equal(critical(f, "0000:01:00.0"), way);
                assert_null(critical(f, "0000:01:10.0"));
                assert_null(f->inv->critical_error);
        }
}

/* Any user can claim this in a FUSE mount. The other lines name no server. */
TEST_WITH(test_mounts_without_a_server, setup, teardown) {
        static const char *const cases[] = {
                "fuse.nfs4 10.1.0.5:/data rw,addr=10.1.0.5",
                "fuse 10.1.0.5:/data rw,addr=10.1.0.5",
                "fuse.ceph 10.1.0.5:6789:/ rw,mon_addr=10.1.0.5",
                "fuse.lustre 10.1.0.5@tcp:/x rw",
                "tmpfs 10.1.0.5:/data rw,addr=10.1.0.5",
                "nfs4 10.1.0.5:/data rw,clientaddr=10.1.0.9",
                "nfs4 10.1.0.5:/data rw,addr=filer",
                "nfs4 10.1.0.5:/data rw,addr=",
                "nfs4 10.1.0.5:/data rw,addr=10.1.0.5.6",
                "nfs4 10.1.0.5:/data rw,addr=fe80::5",
                "nfs4 10.1.0.5:/data rw,addr=fe80::5%77",
                "nfs4 10.1.0.5:/data rw,addr=fe80::5%",
                "nfs4 10.1.0.5:/data rw,addr=fe80::5%../../block",
                "nfs4 10.1.0.5:/data rw,addr=127.0.0.1",
                "nfs4 10.1.0.5:/data rw,addr=::1",
                "ceph admin@10.1.0.5.fs=/ rw",
                "ceph mon:6789:/ rw,name=10.1.0.5",
                "lustre 12@gni:/scratch rw,10.1.0.5",
                "nfs4 10.1.0.5:/data",
        };
        Fixture *f = *state;

        storage_routes(f);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                mount_network(f, cases[i]);
                assert_null(critical(f, "0000:01:00.0"));
                assert_null(critical(f, "0000:01:10.0"));
                assert_string_equal(critical(f, "0000:00:1f.6"), "0000:00:1f.6 <- mgmt <- default route");
                assert_null(f->inv->critical_error);
        }
}

TEST_WITH(test_server_over_a_vf, setup, teardown) {
        Fixture *f = *state;

        storage_routes(f);
        mount_network(f, "nfs4 filer:/data rw,addr=10.2.0.5");
        assert_string_equal(critical(f, "0000:01:10.0"), "0000:01:10.0 <- eth0v0 <- 10.2.0.5 <- /data (nfs4)");
        assert_string_equal(critical(f, "0000:01:00.0"),
                            "0000:01:00.0 <- 0000:01:10.0 <- eth0v0 <- 10.2.0.5 <- /data (nfs4)");
        mount_network(f, "nfs4 filer:/data rw,addr=fd00:2::5");
        assert_string_equal(critical(f, "0000:01:10.0"), "0000:01:10.0 <- eth0v0 <- fd00:2::5 <- /data (nfs4)");
}

TEST_WITH(test_server_over_vlan_and_bond, setup, teardown) {
        Fixture *f = *state;

        stack(f, "bond0", "sys/devices/" PF "/net/eth0");
        tree_link(f->root, VIRTUAL "bond0/lower_mgmt", "../../../../../sys/devices/" OTHER "/net/mgmt");
        stack(f, "bond0.7", VIRTUAL "bond0");
        tree_file(f->root, "proc/net/route", ROUTES ROUTE4("bond0.7", "0000010A", "0000FFFF", "0"));
        tree_file(f->root, "proc/net/ipv6_route",
                  ROUTE6("fd000001000000000000000000000000", "40", "00000100", "00000001", "bond0.7"));
        mount_network(f, "nfs4 filer:/data rw,addr=10.1.0.5");
        assert_string_equal(critical(f, "0000:01:00.0"),
                            "0000:01:00.0 <- eth0 <- bond0 <- bond0.7 <- 10.1.0.5 <- /data (nfs4)");
        assert_string_equal(critical(f, "0000:00:1f.6"),
                            "0000:00:1f.6 <- mgmt <- bond0 <- bond0.7 <- 10.1.0.5 <- /data (nfs4)");
        mount_network(f, "nfs4 filer:/data rw,addr=fd00:1::5");
        assert_string_equal(critical(f, "0000:01:00.0"),
                            "0000:01:00.0 <- eth0 <- bond0 <- bond0.7 <- fd00:1::5 <- /data (nfs4)");
}

/* Checks which of mgmt, eth0 and eth0v0 the routes lead to. */
static void assert_route(Fixture *f, const char *routes, const char *routes6, const char *interface) {
        static const struct {
                const char *name, *address;
        } ports[] = { { "mgmt", "0000:00:1f.6" }, { "eth0", "0000:01:00.0" }, { "eth0v0", "0000:01:10.0" } };

        tree_file(f->root, "proc/net/route", routes);
        tree_file(f->root, "proc/net/ipv6_route", routes6);
        for (size_t i = 0; i < ELEMENTSOF(ports); i++) {
                const char *way = critical(f, ports[i].address);
                bool used = way && strstr(way, "(nfs4)") && !strstr(way, " <- 0000:");

                assert_int_equal(used, strstr(interface, ports[i].name) &&
                                               (!streq(ports[i].name, "eth0") || !strstr(interface, "eth0v0")));
        }
}

TEST_WITH(test_best_route, setup, teardown) {
        Fixture *f = *state;

        mount_network(f, "nfs4 filer:/data rw,addr=10.1.0.5");
        /* behind a gateway */
        assert_route(f, ROUTES "eth0\t0000010A\t010010AC\t0003\t0\t0\t0\t0000FFFF\t0\t0\t0\n", "", "eth0");
        /* the longest prefix, in any order and with any metric */
        assert_route(f,
                     ROUTES ROUTE4("mgmt", "0000000A", "000000FF", "0") ROUTE4("eth0", "0000010A", "00FFFFFF", "900"),
                     "", "eth0");
        assert_route(f,
                     ROUTES ROUTE4("eth0", "0500010A", "FFFFFFFF", "900") ROUTE4("mgmt", "0000010A", "0000FFFF", "0"),
                     "", "eth0");
        /* lowest metric */
        assert_route(f,
                     ROUTES ROUTE4("mgmt", "0000010A", "0000FFFF", "200") ROUTE4("eth0", "0000010A", "0000FFFF", "9"),
                     "", "eth0");
        assert_route(f,
                     ROUTES ROUTE4("eth0", "0000010A", "0000FFFF", "9") ROUTE4("mgmt", "0000010A", "0000FFFF", "200"),
                     "", "eth0");
        /* no route, or one that rejects */
        assert_route(f, ROUTES ROUTE4("eth0", "0000020A", "0000FFFF", "0"), "", "");
        assert_route(f, ROUTES ROUTE4("eth0", "0000000A", "000000FF", "0") ROUTE4("*", "0000010A", "0000FFFF", "0"), "",
                     "");
        assert_route(f,
                     ROUTES "*\t0000010A\t00000000\t0201\t0\t0\t0\t0000FFFF\t0\t0\t0\n" ROUTE4("eth0", "0000000A",
                                                                                               "000000FF", "0"),
                     "", "");
        /* the default route of the other family */
        assert_route(f, "", ROUTE6(ZEROS, "00", "00000001", "00000003", "eth0"), "");
        /* lines that are no routes */
        assert_route(
                f, ROUTES "eth0\t0000010A\n" ROUTE4("eth0", "zz", "0000FFFF", "0") ROUTE4("eth0", "0000010A", "", "0"),
                "fd 40\n", "");
}

TEST_WITH(test_best_route_of_ipv6, setup, teardown) {
        Fixture *f = *state;
#define NET(length, metric, flags, name)  ROUTE6("fd000001000000000000000000000000", length, metric, flags, name)
#define HOST(length, metric, flags, name) ROUTE6("fd000001000000000000000000000005", length, metric, flags, name)

        mount_network(f, "nfs4 filer:/data rw,addr=fd00:1::5");
        assert_route(f, "", NET("20", "00000001", "00000003", "mgmt") NET("40", "00000400", "00000003", "eth0"),
                     "eth0");
        assert_route(f, "", HOST("80", "00000400", "00000005", "eth0") NET("40", "00000001", "00000001", "mgmt"),
                     "eth0");
        assert_route(f, "", NET("40", "00000100", "00000001", "eth0") NET("40", "00000400", "00000001", "mgmt"),
                     "eth0");
        /* all next hops of one route */
        assert_route(f, "", NET("40", "00000100", "00000003", "eth0v0") NET("40", "00000100", "00000003", "mgmt"),
                     "eth0v0 mgmt");
        assert_route(f, "", NET("20", "00000001", "00000003", "eth0") NET("40", "00000001", "00200200", "lo"), "");
        assert_route(f, ROUTES ROUTE4("eth0", "00000000", "00000000", "0"), "", "");
        assert_route(f, "", ROUTE6("fd00", "40", "00000100", "00000001", "eth0"), "");
        assert_route(f, "", NET("ff", "00000100", "00000001", "eth0"), "");
        /* the address of the host itself: the mount is lost with its interface */
        assert_route(f, "", NET("40", "00000100", "00000001", "eth0") HOST("80", "00000000", "80200001", "lo"), "eth0");
}

/* Servers of mounts in other mount namespaces. */
TEST_WITH(test_servers_of_nfs, setup, teardown) {
        Fixture *f = *state;

        storage_routes(f);
        tree_file(f->root, "proc/net/nfsfs/servers",
                  "NV SERVER   PORT USE HOSTNAME\nv4 0a010005  801   3 filer\nv3\nv4 zz 801 1 x\nv4 0a01000 801 1 x\n");
        assert_string_equal(critical(f, "0000:01:00.0"), "0000:01:00.0 <- eth0 <- 10.1.0.5 <- NFS");
        tree_file(f->root, "proc/net/nfsfs/servers",
                  "NV SERVER   PORT USE HOSTNAME\nv4 fd000001000000000000000000000005  801   3 filer\n");
        assert_string_equal(critical(f, "0000:01:00.0"), "0000:01:00.0 <- eth0 <- fd00:1::5 <- NFS");
        /* The use is the mount, not the server. */
        mount_network(f, "nfs4 filer:/data rw,addr=fd00:1::5");
        assert_string_equal(critical(f, "0000:01:00.0"), "0000:01:00.0 <- eth0 <- fd00:1::5 <- /data (nfs4)");
        assert_null(f->inv->critical_error);
}

/* The file of a kernel user, its content, and the chain from eth0 to the use; NULL: none. */
typedef struct Told {
        const char *path, *text, *way;
} Told;

static void assert_told(Fixture *f, const Told *told, size_t n) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *way = string_format("0000:01:00.0 <- %s", told[i].way ?: "");

                tree_file(f->root, told[i].path, told[i].text);
                assert_string_equal(critical(f, "0000:01:00.0") ?: "none", told[i].way ? way : "none");
                assert_null(critical(f, "0000:01:10.0"));
                assert_null(f->inv->critical_error);
                tree_unlink(f->root, told[i].path);
        }
}

TEST_WITH(test_iscsi, setup, teardown) {
#define CONNECTION "sys/class/iscsi_connection/connection1:0/"
#define ISCSI_HOST "sys/class/iscsi_host/host7/"
        static const Told told[] = {
                { CONNECTION "persistent_address", "10.1.0.5", "eth0 <- 10.1.0.5 <- iSCSI" },
                { CONNECTION "persistent_address", "fd00:1::5", "eth0 <- fd00:1::5 <- iSCSI" },
                { CONNECTION "persistent_address", "fe80::5%eth0", "eth0 <- fe80::5 <- iSCSI" },
                { CONNECTION "persistent_address", "(null)", NULL },
                { CONNECTION "persistent_address", "filer", NULL },
                { ISCSI_HOST "netdev", "eth0", "eth0 <- iSCSI" },
                { ISCSI_HOST "netdev", "default", NULL },
                { ISCSI_HOST "netdev", "(null)", NULL },
                { ISCSI_HOST "netdev", "", NULL },
        };
        Fixture *f = *state;

        storage_routes(f);
        /* An interface without a name or a device is no Open vSwitch bridge. */
        stack(f, "ovs-system", "sys/devices/" PF "/net/eth0");
        assert_told(f, told, ELEMENTSOF(told));
}

TEST_WITH(test_nvme_over_fabrics, setup, teardown) {
#define NVME "sys/class/nvme/nvme1/"
        static const Told tcp[] = {
                { NVME "address", "traddr=10.1.0.5,trsvcid=4420", "eth0 <- 10.1.0.5 <- nvme1 (remote NVMe)" },
                { NVME "address", "traddr=fd00:1::5,trsvcid=4420,src_addr=fd00:1::9",
                  "eth0 <- fd00:1::9 <- nvme1 (remote NVMe)" },
                { NVME "address", "traddr=fe80::5%eth0,trsvcid=4420", "eth0 <- fe80::5 <- nvme1 (remote NVMe)" },
                /* by another routing table than main */
                { NVME "address", "traddr=10.9.0.5,trsvcid=4420,src_addr=10.1.0.9",
                  "eth0 <- 10.1.0.9 <- nvme1 (remote NVMe)" },
                { NVME "address", "traddr=10.9.0.5,trsvcid=4420,host_traddr=10.1.0.9",
                  "eth0 <- 10.1.0.9 <- nvme1 (remote NVMe)" },
                { NVME "address", "traddr=10.2.0.5,trsvcid=4420,host_iface=eth0", "eth0 <- nvme1 (remote NVMe)" },
                { NVME "address", "trsvcid=4420", NULL },
                { NVME "address", "", NULL },
        };
        static const Told others[] = { { NVME "address", "traddr=10.1.0.5,trsvcid=4420", NULL } };
        Fixture *f = *state;

        storage_routes(f);
        tree_file(f->root, NVME "transport", "tcp");
        assert_told(f, tcp, ELEMENTSOF(tcp));
        tree_file(f->root, NVME "transport", "rdma");
        assert_told(f, tcp, 1);
        tree_file(f->root, NVME "transport", "loop");
        assert_told(f, others, 1);
        tree_unlink(f->root, NVME "transport");
        assert_told(f, others, 1);
}

TEST_WITH(test_rdma, setup, teardown) {
        static const Told told[] = {
                { "sys/class/scsi_host/host8/local_ib_device", "mlx5_0", "mlx5_0 <- SRP" },
                { "sys/class/scsi_host/host8/local_ib_device", "mlx5_7", NULL },
                { "sys/class/rtrs-client/blk/paths/ip:10.9.0.9@ip:10.9.0.5/hca_name", "mlx5_0", "mlx5_0 <- RNBD" },
                { "sys/class/rtrs-server/blk/paths/ip:10.9.0.5@ip:10.9.0.9/hca_name", "mlx5_0",
                  "mlx5_0 <- RNBD target" },
        };
        Fixture *f = *state;

        tree_dir(f->root, "sys/devices/" PF "/infiniband/mlx5_0");
        tree_link(f->root, "sys/class/infiniband/mlx5_0", "../../devices/" PF "/infiniband/mlx5_0");
        tree_file(f->root, "sys/class/scsi_host/host9/proc_name", "ahci");
        assert_told(f, told, ELEMENTSOF(told));
}

TEST_WITH(test_servers_on_the_host, setup, teardown) {
#define PORTAL "sys/kernel/config/target/iscsi/iqn.2003-01.org.x:sn.1/tpgt_1/np/"
        static const Told told[] = {
                { "sys/bus/rbd/devices/0/client_addr", "10.1.0.9:0/3861424291", "eth0 <- 10.1.0.9 <- Ceph RBD" },
                { "sys/bus/rbd/devices/0/client_addr", "[fd00:1::9]:0/3861424291", "eth0 <- fd00:1::9 <- Ceph RBD" },
                { "sys/bus/rbd/devices/0/client_addr", "0.0.0.0:0/3861424291", NULL },
                { "sys/kernel/config/nvmet/ports/1/addr_traddr", "10.1.0.9", "eth0 <- 10.1.0.9 <- NVMe target" },
                { "sys/kernel/config/nvmet/ports/1/addr_traddr", "fd00:1::9", "eth0 <- fd00:1::9 <- NVMe target" },
                { "sys/kernel/config/nvmet/ports/1/addr_traddr", "fd00:1::8", NULL },
                { "sys/kernel/config/nvmet/ports/1/addr_traddr", "::", NULL },
                { "sys/kernel/config/nvmet/ports/2/addr_traddr", "10.1.0.9", NULL },
                { "sys/class/block/etherd!e0.0/netif", "eth0", "eth0 <- ATA over Ethernet" },
                { "sys/class/block/etherd!e0.0/netif", "eth9,eth0", "eth0 <- ATA over Ethernet" },
                { "sys/class/block/etherd!e0.0/netif", "none", NULL },
                { "sys/kernel/config/netconsole/on/dev_name", "eth0", "eth0 <- netconsole" },
                { "sys/kernel/config/netconsole/off/dev_name", "eth0", NULL },
                { PORTAL "10.1.0.9:3260/iser", "0", "eth0 <- 10.1.0.9 <- LIO target" },
        };
        Fixture *f = *state;

        storage_routes(f);
        tree_dir(f->root, "sys/kernel/config/nvmet/ports/1/subsystems/nqn.x");
        tree_dir(f->root, "sys/kernel/config/nvmet/ports/2/subsystems");
        tree_file(f->root, "sys/kernel/config/netconsole/on/enabled", "1");
        tree_file(f->root, "sys/kernel/config/netconsole/off/enabled", "0");
        tree_file(f->root, "sys/kernel/config/target/iscsi/lio_version", "x");
        assert_told(f, told, ELEMENTSOF(told));
        tree_unlink(f->root, PORTAL "10.1.0.9:3260");
        tree_dir(f->root, PORTAL "0.0.0.0:3260");
        tree_dir(f->root, PORTAL "[::0]:3260");
        assert_null(critical(f, "0000:01:00.0"));
        tree_dir(f->root, PORTAL "[fd00:1::9]:3260");
        assert_string_equal(critical(f, "0000:01:00.0"), "0000:01:00.0 <- eth0 <- fd00:1::9 <- LIO target");
}

/* A link to itself stands for any error of reading a file. */
TEST_WITH(test_users_that_cannot_be_read, setup, teardown) {
        static const char *const paths[] = {
                "sys/class/iscsi_connection",
                CONNECTION "persistent_address",
                ISCSI_HOST "netdev",
                NVME "transport",
                NVME "address",
                "sys/class/scsi_host/host8/local_ib_device",
                "sys/bus/rbd/devices/0/client_addr",
                "proc/net/nfsfs/servers",
                "proc/net/if_inet6",
        };
        Fixture *f = *state;

        storage_routes(f);
        mount_network(f, "nfs4 filer:/data rw,addr=10.1.0.5");
        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                if (streq(paths[i], NVME "address"))
                        tree_file(f->root, NVME "transport", "tcp");
                if (streq(paths[i], "proc/net/if_inet6"))
                        tree_unlink(f->root, paths[i]);
                tree_link(f->root, paths[i], strrchr(paths[i], '/') + 1);
                (void) critical(f, "0000:01:00.0");
                assert_non_null(f->inv->critical_error);
                assert_non_null(strstr(f->inv->critical_error, paths[i]));
                tree_unlink(f->root, paths[i]);
                assert_non_null(critical(f, "0000:01:00.0"));
                assert_null(f->inv->critical_error);
        }
}

TEST_WITH(test_too_many_addresses, setup, teardown) {
        char lines[1100 * 40] = "";
        size_t n = 0;
        Fixture *f = *state;

        storage_routes(f);
        for (unsigned i = 0; i < 1024; i++)
                n += (size_t) snprintf(lines + n, sizeof(lines) - n, "v4 0a01%04x  801   1 filer\n", i + 1);
        tree_file(f->root, "proc/net/nfsfs/servers", lines);
        assert_non_null(critical(f, "0000:01:00.0"));
        assert_null(f->inv->critical_error);
        (void) snprintf(lines + n, sizeof(lines) - n, "v4 0a020001  801   1 filer\n");
        tree_file(f->root, "proc/net/nfsfs/servers", lines);
        (void) critical(f, "0000:01:00.0");
        assert_non_null(f->inv->critical_error);
        record("too many addresses", f->inv->critical_error);
}

TEST_WITH(test_too_many_routes_to_an_address, setup, teardown) {
        char lines[70 * 128] = ROUTES;
        size_t n = strlen(lines);
        Fixture *f = *state;

        mount_network(f, "nfs4 filer:/data rw,addr=10.1.0.5");
        for (unsigned i = 0; i < 65; i++)
                n += (size_t) snprintf(lines + n, sizeof(lines) - n, ROUTE4("p%u", "0000010A", "0000FFFF", "0"), i);
        tree_file(f->root, "proc/net/route", lines);
        (void) critical(f, "0000:01:00.0");
        assert_non_null(f->inv->critical_error);
        record("too many routes", f->inv->critical_error);
}

TEST(test_sentences) {
        assert_sentences("critical-network.txt");
}
