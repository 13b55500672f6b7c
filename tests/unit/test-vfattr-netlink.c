/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Attributes of VFs by rtnetlink. Every sent byte is compared. The number in a VF's identity is its index. The byte
 * order is the machine's: the requests below are for little-endian machines.
 */

#include "unit.h"

#include "host/vfattr-internal.h"
#include "host/vfattr.h"
#include "rtnlfixture.h"

static const PciAddress pf = { .bus = 1 };
static const char pf_text[] = "0000:01:00.0";

static int setup(void **state) {
        Fixture *f = fixture_new(state);

        memset(&kernel, 0, sizeof(kernel));
        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:00.0", "0x8086", "0x10c9", "0x020000");
        for (unsigned i = 0; i < VFS; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "virtfn%u", i);
                tree_attribute_link(f->root, pf_text, name, "../0000:01:10.0");
        }
        return 0;
}

static void add_attribute(const Fixture *f, const char *name, const char *attribute, const char *value) {
        char path[128];

        (void) snprintf(path, sizeof(path), "net/%s/%s", name, attribute);
        tree_attribute(f->root, pf_text, path, value);
}

/* igb's report of VFs without settings. */
static void add_netdev(const Fixture *f, const char *name, unsigned index, uint16_t type, const char *port) {
        char text[16];

        (void) snprintf(text, sizeof(text), "%u", index);
        add_attribute(f, name, "ifindex", text);
        add_attribute(f, name, "dev_port", port);
        add_attribute(f, name, "dev_id", "0x0");
        kernel.netdevs[index].type = type;
        kernel.netdevs[index].parent = pf_text;
        kernel.netdevs[index].n_vfs = VFS;
        kernel.netdevs[index].has_vlan_list = true;
        kernel.netdevs[index].has_guids = type == ARPHRD_INFINIBAND;
        for (unsigned i = 0; i < VFS; i++)
                kernel.netdevs[index].vfs[i] = (Vf) { .spoof = 1, .protocol = ETH_P_8021Q };
}

static int setup_ethernet(void **state) {
        int r = setup(state);

        add_netdev(*state, "enp1s0f0", 3, ARPHRD_ETHER, "0");
        return r;
}

static int setup_infiniband(void **state) {
        int r = setup(state);

        add_netdev(*state, "ibp1s0", 2, ARPHRD_INFINIBAND, "0");
        return r;
}

static void assert_reads(const Fixture *f, unsigned vf, const char *text) {
        _cleanup_free_ char *have = NULL;
        VfAttributes v;

        assert_int_equal(vf_attributes_read(f->fs, pf, vf, &v), 0);
        have = vf_attributes_format(&v);
        assert_string_equal(have, text);
}

static int write_text(const Fixture *f, unsigned vf, const char *text) {
        _cleanup_free_ char *problem = NULL;
        VfChange c = { .vf = vf };

        assert_int_equal(vf_attributes_parse(text, &c.wanted, &problem), 0);
        vf_attributes_write(f->fs, pf, &c, 1, NULL, NULL);
        return c.result;
}

/* hex: may have spaces; without sequence number and port, which change each time. */
static void assert_datagram(const Datagram *d, const char *hex) {
        char have[2 * sizeof(d->data) + 1] = "", want[sizeof(have)] = "";
        size_t n = 0;

        for (size_t i = 0; i < d->size; i++)
                if (i < offsetof(struct nlmsghdr, nlmsg_seq) || i >= sizeof(struct nlmsghdr))
                        n += (size_t) snprintf(have + n, sizeof(have) - n, "%02x", d->data[i]);
        n = 0;
        for (const char *c = hex; *c; c++)
                if (*c != ' ')
                        want[n++] = *c;
        assert_string_equal(have, want);
}

static void assert_request(const char *hex) {
        assert_datagram(&kernel.set, hex);
}

#define ZEROS_26             "0000000000000000000000000000000000000000000000000000"
/* RTM_SETLINK with NLM_F_REQUEST and NLM_F_ACK, and struct ifinfomsg. */
#define SETLINK(size, index) size "000000 13000500 00000000 " index "000000 00000000 00000000 "

TEST_WITH(test_ethernet, setup_ethernet, teardown) {
        Fixture *f = *state;

        assert_reads(f, 2,
                     "mac=00:00:00:00:00:00 vlan=0 qos=0 protocol=802.1q trust=off spoof-check=on min-rate=0 "
                     "max-rate=0 link=auto");
        kernel.netdevs[3].vfs[1] = (Vf) { .mac = { 2, 0, 0, 0, 0xab, 1 },
                                          .vlan = 4094,
                                          .qos = 7,
                                          .protocol = ETH_P_8021AD,
                                          .trust = 1,
                                          .min = 100,
                                          .max = 25000,
                                          .link = IFLA_VF_LINK_STATE_DISABLE };
        assert_reads(f, 1,
                     "mac=02:00:00:00:ab:01 vlan=4094 qos=7 protocol=802.1ad trust=on spoof-check=off min-rate=100 "
                     "max-rate=25000 link=down");
        kernel.netdevs[3].vfs[1].link = IFLA_VF_LINK_STATE_ENABLE;
        assert_int_equal(write_text(f, 1, "link=up vlan=4094 qos=7 protocol=802.1ad"), 0);
        assert_int_equal(kernel.sets, 0);
        assert_datagram(&kernel.get, "28000000 12000500 00000000 03000000 00000000 00000000 08001d00 09000000");
}

/* mlx4_en lacks trust and may lack spoof check. Kernels before 4.9 lack the list of VLANs. */
TEST_WITH(test_not_offered, setup_ethernet, teardown) {
        Fixture *f = *state;

        kernel.netdevs[3].vfs[0].trust = kernel.netdevs[3].vfs[0].spoof = ABSENT;
        kernel.netdevs[3].has_vlan_list = false;
        assert_reads(f, 0, "mac=00:00:00:00:00:00 vlan=0 qos=0 min-rate=0 max-rate=0 link=auto");
        assert_int_equal(write_text(f, 0, "mac=02:00:00:00:00:01 trust=on"), -EOPNOTSUPP);
        assert_int_equal(write_text(f, 0, "mac=02:00:00:00:00:01 node-guid=02:00:00:00:00:00:00:01"), -EOPNOTSUPP);
        assert_int_equal(kernel.sets, 0);
        /* Another protocol is as unsupported as another state of the link. */
        kernel.netdevs[3].has_vlan_list = true;
        kernel.netdevs[3].vfs[0].protocol = 0x9100;
        kernel.netdevs[3].vfs[0].link = 9;
        assert_reads(f, 0, "mac=00:00:00:00:00:00 vlan=0 qos=0 min-rate=0 max-rate=0");
}

TEST_WITH(test_set_mac, setup_ethernet, teardown) {
        Fixture *f = *state;

        assert_int_equal(write_text(f, 1, "mac=02:11:22:33:44:55"), 1);
        assert_request(SETLINK("50", "03") "30001680 2c000180 28000100 01000000 021122334455" ZEROS_26);
        assert_int_equal(write_text(f, 1, "mac=02:11:22:33:44:55 link=auto"), 0);
        assert_int_equal(kernel.sets, 1);
}

TEST_WITH(test_set_vlan, setup_ethernet, teardown) {
        Fixture *f = *state;

        kernel.netdevs[3].vfs[0].qos = 3;
        assert_int_equal(write_text(f, 0, "vlan=100"), 1);
        /* The priority of the former VLAN is reset. */
        assert_request(SETLINK("38", "03") "18001680 14000180 10000200 00000000 64000000 00000000");
        kernel.netdevs[3].vfs[0].qos = 3;
        assert_int_equal(write_text(f, 0, "protocol=802.1ad"), 1);
        assert_request(SETLINK("40", "03") "20001680 1c000180 18000c80 14000100 00000000 64000000 03000000 88a80000");
        assert_int_equal(write_text(f, 0, "protocol=802.1q qos=5"), 1);
        assert_request(SETLINK("38", "03") "18001680 14000180 10000200 00000000 64000000 05000000");
        assert_reads(f, 0,
                     "mac=00:00:00:00:00:00 vlan=100 qos=5 protocol=802.1q trust=off spoof-check=on min-rate=0 "
                     "max-rate=0 link=auto");
        /* Without a VLAN, a remaining priority would make the driver tag with VLAN 0. */
        assert_int_equal(write_text(f, 0, "vlan=0"), 1);
        assert_request(SETLINK("38", "03") "18001680 14000180 10000200 00000000 00000000 00000000");
}

TEST_WITH(test_set_many, setup_ethernet, teardown) {
        Fixture *f = *state;

        kernel.netdevs[3].vfs[2].max = 1000;
        assert_int_equal(write_text(f, 2, "trust=on spoof-check=off min-rate=100 link=up"), 1);
        assert_request(SETLINK("68", "03") "48001680 "
                                           "14000180 10000600 02000000 64000000 e8030000 "
                                           "10000180 0c000400 02000000 00000000 "
                                           "10000180 0c000900 02000000 01000000 "
                                           "10000180 0c000500 02000000 01000000");
        assert_int_equal(kernel.sets, 1);
        /* Restores the former values, as a release does. */
        assert_int_equal(write_text(f, 2,
                                    "mac=00:00:00:00:00:00 vlan=0 qos=0 protocol=802.1q trust=off spoof-check=on "
                                    "min-rate=0 max-rate=1000 link=auto"),
                         1);
        assert_int_equal(kernel.netdevs[3].vfs[2].min, 0);
        assert_int_equal(kernel.netdevs[3].vfs[2].max, 1000);
        assert_int_equal(kernel.netdevs[3].vfs[1].max, 0);
}

/* IPoIB reports the PF's own address, and zeros for attributes that cannot be set. */
TEST_WITH(test_infiniband, setup_infiniband, teardown) {
        Fixture *f = *state;

        memcpy(kernel.netdevs[2].vfs[1].mac, (uint8_t[]) { 0, 0, 4, 0x9e, 0xfe, 0x80 }, 6);
        assert_reads(f, 1, "link=auto node-guid=00:00:00:00:00:00:00:00 port-guid=00:00:00:00:00:00:00:00");
        assert_int_equal(write_text(f, 1, "mac=02:00:00:00:00:01"), -EOPNOTSUPP);
        assert_int_equal(write_text(f, 1, "node-guid=00:11:22:33:44:55:66:77 port-guid=02:00:00:00:00:00:00:01"), 1);
        assert_request(SETLINK("54", "02") "34001680 "
                                           "18000180 14000a00 01000000 00000000 7766554433221100 "
                                           "18000180 14000b00 01000000 00000000 0100000000000002");
        assert_int_equal(write_text(f, 1, "link=down"), 1);
        assert_request(SETLINK("34", "02") "14001680 10000180 0c000500 01000000 02000000");
        assert_reads(f, 1, "link=down node-guid=00:11:22:33:44:55:66:77 port-guid=02:00:00:00:00:00:00:01");
        /* The driver has no SR-IOV for this port. */
        kernel.netdevs[2].has_guids = false;
        assert_reads(f, 1, "link=down");
}

TEST_WITH(test_no_such_vf, setup_ethernet, teardown) {
        Fixture *f = *state;
        VfAttributes v = { .set = 42 };

        kernel.netdevs[3].n_vfs = 2;
        assert_int_equal(vf_attributes_read(f->fs, pf, 2, &v), -EOPNOTSUPP);
        kernel.netdevs[3].type = ARPHRD_LOOPBACK;
        assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), -EOPNOTSUPP);
        kernel.netdevs[3].type = ARPHRD_ETHER;
        kernel.netdevs[3].n_vfs = 0;
        assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), -EOPNOTSUPP);
        assert_int_equal(vf_attributes_read(f->fs, pf, VFS, &v), -ENODEV);
        assert_int_equal(v.set, 42);
}

/* The ifindex of an interface may be reused, and that of a recorded machine is invalid here. */
TEST_WITH(test_not_ours, setup_ethernet, teardown) {
        Fixture *f = *state;
        struct nl_sock *sk = nl_socket_alloc();
        VfAttributes v, *vfs = NULL;
        size_t n = 0;

        kernel.netdevs[3].parent = "0000:02:00.0";
        assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), -EOPNOTSUPP);
        assert_int_equal(write_text(f, 0, "mac=02:00:00:00:00:01"), -EOPNOTSUPP);
        assert_int_equal(kernel.sets, 0);
        assert_int_equal(nl_connect(sk, NETLINK_ROUTE), 0);
        assert_int_equal(vf_rtnl_read(sk, &(PfNetdev) { .pf = pf, .ifindex = 3 }, &vfs, &n), -ENODEV);
        assert_int_equal(vf_rtnl_read(sk, &(PfNetdev) { .pf = pf, .ifindex = 1 }, &vfs, &n), -ENODEV);
        assert_null(vfs);
        kernel.netdevs[3].parent = pf_text;
        kernel.renumbered = 1;
        assert_int_equal(vf_rtnl_read(sk, &(PfNetdev) { .pf = pf, .ifindex = 3 }, &vfs, &n), -ENODEV);
        kernel.renumbered = 0;
        /* Older kernels do not report the parent. */
        kernel.netdevs[3].parent = NULL;
        assert_int_equal(vf_rtnl_read(sk, &(PfNetdev) { .pf = pf, .ifindex = 3 }, &vfs, &n), 0);
        assert_int_equal(n, VFS);
        assert_true(vf_attributes_have(&vfs[0], VF_MAC));
        free(vfs);
        nl_socket_free(sk);
}

TEST_WITH(test_errors, setup_ethernet, teardown) {
        static const int errors[] = { EOPNOTSUPP, EPERM, EBUSY, ENODEV, EINVAL, EAGAIN, EPROTONOSUPPORT };
        Fixture *f = *state;
        VfAttributes v;

        for (size_t i = 0; i < ELEMENTSOF(errors); i++) {
                kernel.error = -errors[i];
                kernel.get_error = false;
                assert_int_equal(write_text(f, 0, "mac=02:00:00:00:00:01"), -errors[i]);
                kernel.get_error = true;
                assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), errors[i] == ENODEV ? -EOPNOTSUPP : -errors[i]);
        }
        assert_int_equal(kernel.sets, ELEMENTSOF(errors));
}

TEST_WITH(test_not_taken, setup_ethernet, teardown) {
        Fixture *f = *state;

        kernel.keeps_mac = true;
        assert_int_equal(write_text(f, 0, "mac=02:00:00:00:00:01"), -EIO);
}

TEST_WITH(test_truncated, setup_ethernet, teardown) {
        Fixture *f = *state;
        VfAttributes all, v;
        size_t size;

        assert_int_equal(vf_attributes_read(f->fs, pf, 2, &all), 0);
        size = kernel.replies[0].size;
        for (kernel.cut = 1; kernel.cut < size; kernel.cut++)
                assert_int_equal(vf_attributes_read(f->fs, pf, 2, &v), -EPROTO);
        kernel.cut = 0;
        for (kernel.shrink = sizeof(struct nlmsghdr); kernel.shrink < size; kernel.shrink++) {
                int r = vf_attributes_read(f->fs, pf, 2, &v);

                if (r == 0)
                        assert_int_equal(vf_attributes_differ(&v, &all) | vf_attributes_differ(&all, &v), 0);
                else
                        assert_true(r == -EPROTO || r == -EOPNOTSUPP);
        }
}

TEST_WITH(test_malformed, setup_ethernet, teardown) {
        Fixture *f = *state;
        struct nl_sock *sk = nl_socket_alloc();
        VfAttributes v;

        kernel.foreign = 1;
        assert_int_equal(vf_attributes_read(f->fs, pf, 2, &v), -EPROTO);
        kernel.foreign = 0;
        for (kernel.mac_cut = sizeof(struct ifla_vf_mac); kernel.mac_cut > 0; kernel.mac_cut--)
                assert_int_equal(vf_attributes_read(f->fs, pf, 2, &v), -EPROTO);
        /* Acknowledged, without data. */
        kernel.get_error = true;
        assert_int_equal(vf_attributes_read(f->fs, pf, 2, &v), -EPROTO);
        /* A truncated acknowledgement is not followed by another. */
        assert_int_equal(nl_connect(sk, NETLINK_ROUTE), 0);
        kernel.cut = sizeof(struct nlmsghdr);
        assert_int_equal(vf_rtnl_write(sk, &(PfNetdev) { .pf = pf, .ifindex = 3 }, 0, &(VfAttributes) { 0 },
                                       &(VfAttributes) { .set = VF_ATTRIBUTE_BIT(VF_MAC) }),
                         -EPROTO);
        nl_socket_free(sk);
}

/* One port is Ethernet, the other InfiniBand with a child interface. A VF is removed. Names of interfaces do not
 * matter. */
TEST_WITH(test_ports, setup, teardown) {
        Fixture *f = *state;
        VfAttributes v;

        add_netdev(f, "a-child", 3, ARPHRD_INFINIBAND, "1");
        add_netdev(f, "port2", 2, ARPHRD_INFINIBAND, "1");
        add_netdev(f, "zport1", 1, ARPHRD_ETHER, "0");
        add_netdev(f, "b-end", 0, ARPHRD_ETHER, "0");
        add_attribute(f, "b-end", "phys_port_name", "pf0vf1");
        add_attribute(f, "zport1", "phys_port_name", "p0");
        kernel.netdevs[3].vfs[0].node_guid = kernel.netdevs[0].vfs[0].vlan = 3;
        kernel.netdevs[2].vfs[0].node_guid = 2;
        kernel.netdevs[2].vfs[0].link = 2;
        assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), 0);
        assert_int_equal(v.value[VF_NODE_GUID], 2);
        assert_int_equal(v.value[VF_LINK], VF_LINK_AUTO);
        assert_int_equal(v.value[VF_VLAN], 0);
        assert_int_equal(kernel.sockets, 1);
        assert_int_equal(write_text(f, 0, "link=up port-guid=00:00:00:00:00:00:00:09"), 1);
        assert_int_equal(kernel.sets, 2);
        assert_int_equal(kernel.netdevs[1].vfs[0].link, IFLA_VF_LINK_STATE_ENABLE);
        assert_int_equal(kernel.netdevs[2].vfs[0].link, IFLA_VF_LINK_STATE_DISABLE);
        assert_int_equal(kernel.netdevs[1].vfs[0].port_guid, 0);
        assert_int_equal(kernel.netdevs[2].vfs[0].port_guid, 9);
        /* As kernels before 4.20 number the ports of IPoIB. */
        add_attribute(f, "port2", "dev_port", "0");
        add_attribute(f, "port2", "dev_id", "0x1");
        add_attribute(f, "a-child", "dev_port", "0");
        add_attribute(f, "a-child", "dev_id", "0x1");
        assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), 0);
        assert_int_equal(v.value[VF_PORT_GUID], 9);
}

TEST_WITH(test_no_netdev, setup, teardown) {
        Fixture *f = *state;
        VfAttributes v;

        assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), -EOPNOTSUPP);
        tree_dir(f->root, "sys/bus/pci/devices/0000:01:00.0/net");
        assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), -EOPNOTSUPP);
        assert_int_equal(kernel.sockets, 0);
}
