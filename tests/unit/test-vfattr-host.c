/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The kernel interfaces that are files: MLNX_OFED's sriov/N and mlx4's iov, with texts as the drivers print them. */

#include <errno.h>

#include "unit.h"

#include "host/vfattr.h"
#include "treefixture.h"

static const PciAddress pf = { .bus = 0x83 };
static const char pf_text[] = "0000:83:00.0";

static int setup(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, "pci0000:80/0000:80:01.0/0000:83:00.0", "0x15b3", "0x1003", "0x020700");
        tree_attribute_link(f->root, pf_text, "virtfn0", "../0000:83:00.1");
        tree_attribute_link(f->root, pf_text, "virtfn1", "../0000:83:00.2");
        tree_attribute_link(f->root, pf_text, "virtfn79", "../0000:83:0a.0");
        return 0;
}

static void put(const Fixture *f, const char *name, const char *value) {
        tree_attribute(f->root, pf_text, name, value);
}

static void assert_file(const Fixture *f, const char *name, const char *value) {
        char path[256], text[256];

        (void) snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/%s", pf_text, name);
        assert_true(sysfs_read(f->fs, path, text, sizeof(text)) >= 0);
        assert_string_equal(text, value);
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

TEST_WITH(test_no_vf, setup, teardown) {
        Fixture *f = *state;
        VfAttributes v = { .set = 42 };

        put(f, "sriov/2/node", "00:00:00:00:00:00:00:00");
        assert_int_equal(vf_attributes_read(f->fs, pf, 2, &v), -ENODEV);
        assert_int_equal(write_text(f, 2, "node-guid=02:00:00:00:00:00:00:01"), -ENODEV);
        assert_int_equal(vf_attributes_read(f->fs, (PciAddress) { .bus = 9 }, 0, &v), -ENODEV);
        assert_int_equal(v.set, 42);
}

TEST_WITH(test_no_way, setup, teardown) {
        Fixture *f = *state;
        VfAttributes v = { .set = 42 };

        assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), -EOPNOTSUPP);
        assert_int_equal(write_text(f, 0, "mac=02:00:00:00:00:01"), -EOPNOTSUPP);
        assert_int_equal(v.set, 42);

        /* An InfiniBand device other than mlx4, and interfaces without numbers. */
        put(f, "infiniband/mlx5_0/node_type", "1: CA");
        put(f, "net/ib0/type", "32");
        assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), -EOPNOTSUPP);
}

static int setup_ofed(void **state) {
        int r = setup(state);

        put(*state, "sriov/1/node", "00:11:22:33:44:55:66:77");
        put(*state, "sriov/1/port", "00:00:00:00:00:00:00:00");
        put(*state, "sriov/1/policy", "Down");
        return r;
}

TEST_WITH(test_ofed, setup_ofed, teardown) {
        Fixture *f = *state;
        _cleanup_free_ char *full = NULL;
        struct stat st;

        assert_reads(f, 1, "link=down node-guid=00:11:22:33:44:55:66:77 port-guid=00:00:00:00:00:00:00:00");
        assert_int_equal(write_text(f, 1, "node-guid=00:11:22:33:44:55:66:77 link=down"), 0);
        assert_int_equal(write_text(f, 1, "node-guid=02:00:00:00:00:00:00:0a port-guid=02:00:00:00:00:00:00:0b"), 1);
        assert_file(f, "sriov/1/node", "02:00:00:00:00:00:00:0a");
        assert_file(f, "sriov/1/port", "02:00:00:00:00:00:00:0b");
        assert_int_equal(write_text(f, 1, "link=up"), -EIO); /* "Up\nn": unlike sysfs, the file keeps a rest */
        put(f, "sriov/1/policy", "Up");
        assert_reads(f, 1, "link=up node-guid=02:00:00:00:00:00:00:0a port-guid=02:00:00:00:00:00:00:0b");
        tree_bytes(f->root, "sys/bus/pci/devices/0000:83:00.0/sriov/1/policy", "Up", 2);
        assert_int_equal(write_text(f, 1, "link=auto"), 1);
        assert_file(f, "sriov/1/policy", "Follow");
        full = tree_path(f->root, "sys/bus/pci/devices/0000:83:00.0/sriov/1/policy");
        assert_int_equal(stat(full, &st), 0);
        assert_int_equal(st.st_size, strlen("Follow\n")); /* the driver requires the newline */
}

TEST_WITH(test_ofed_ethernet, setup, teardown) {
        Fixture *f = *state;

        put(f, "sriov/0/node", "00:11:22:33:44:55:66:77");
        put(f, "sriov/0/mac", "usage: write <LLADDR|Random> to set VF Mac Address");
        assert_reads(f, 0, "node-guid=00:11:22:33:44:55:66:77");
        assert_int_equal(write_text(f, 0, "node-guid=02:00:00:00:00:00:00:01 port-guid=02:00:00:00:00:00:00:02"),
                         -EOPNOTSUPP);
        assert_file(f, "sriov/0/node", "00:11:22:33:44:55:66:77");
}

TEST_WITH(test_ofed_unusable, setup_ofed, teardown) {
        Fixture *f = *state;
        VfAttributes v;

        put(f, "sriov/1/policy", "Invalid policy");
        put(f, "sriov/1/port", "00:00");
        assert_reads(f, 1, "node-guid=00:11:22:33:44:55:66:77");
        tree_dir(f->root, "sys/bus/pci/devices/0000:83:00.0/sriov/0/node");
        assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), -EISDIR);
}

#define IOV "infiniband/mlx4_0/iov/"

static void add_mlx4_port(const Fixture *f, const char *vf, unsigned slave, unsigned port, const char *guid) {
        char name[128], text[16];

        (void) snprintf(name, sizeof(name), IOV "%s/ports/%u/gid_idx/0", vf, port);
        (void) snprintf(text, sizeof(text), "%u", slave);
        put(f, name, text);
        (void) snprintf(name, sizeof(name), IOV "%s/ports/%u/pkey_idx/0", vf, port);
        put(f, name, "none");
        (void) snprintf(name, sizeof(name), IOV "ports/%u/admin_guids/%u", port, slave);
        put(f, name, guid);
        (void) snprintf(name, sizeof(name), IOV "ports/%u/pkeys/0", port);
        put(f, name, "0xffff");
        (void) snprintf(name, sizeof(name), IOV "ports/%u/pkeys/1", port);
        put(f, name, "0x8001");
}

static int setup_mlx4(void **state) {
        int r = setup(state);

        put(*state, "infiniband/another/ports/1/link_layer", "InfiniBand");
        put(*state, "infiniband/mlx4_0/ports/1/link_layer", "InfiniBand");
        put(*state, "infiniband/mlx4_0/ports/2/link_layer", "InfiniBand");
        add_mlx4_port(*state, "0000:83:00.2", 2, 1, "14050000000001");
        add_mlx4_port(*state, "0000:83:00.2", 2, 2, "14050000000002");
        return r;
}

/* Makes the texts equally long: these files, unlike sysfs, keep the rest of a longer text. */
static void map_pkeys(const Fixture *f, const char *first, const char *second) {
        put(f, IOV "0000:83:00.2/ports/1/pkey_idx/0", first);
        put(f, IOV "0000:83:00.2/ports/2/pkey_idx/0", second);
}

#define FIRST  "port-guid=00:14:05:00:00:00:00:01"
#define SECOND "second-port-guid=00:14:05:00:00:00:00:02"

TEST_WITH(test_mlx4, setup_mlx4, teardown) {
        Fixture *f = *state;

        assert_reads(f, 1, FIRST " " SECOND " pkey=0x0000 second-port-pkey=0x0000");
        map_pkeys(f, "0", "0");
        assert_int_equal(write_text(f, 1, "port-guid=02:00:00:00:00:00:00:ff pkey=0x8001"), 1);
        assert_file(f, IOV "ports/1/admin_guids/2", "2000000000000ff");
        assert_file(f, IOV "ports/2/admin_guids/2", "14050000000002");
        assert_reads(f, 1, "port-guid=02:00:00:00:00:00:00:ff " SECOND " pkey=0x8001 second-port-pkey=0xffff");
        assert_int_equal(write_text(f, 1, "port-guid=02:00:00:00:00:00:00:ff"), 0);
        assert_int_equal(write_text(f, 1, "node-guid=02:00:00:00:00:00:00:ff"), -EOPNOTSUPP);

        /* One port has a GUID from the subnet manager, the other none. */
        put(f, IOV "ports/1/admin_guids/2", "1");
        put(f, IOV "ports/2/admin_guids/2", "1");
        assert_int_equal(write_text(f, 1, "port-guid=ff:ff:ff:ff:ff:ff:ff:ff second-port-guid=00:00:00:00:00:00:00:00"),
                         1);
        assert_file(f, IOV "ports/1/admin_guids/2", "ffffffffffffffff");
        assert_file(f, IOV "ports/2/admin_guids/2", "0");
}

/* The values of each port are read, and restored to that port. */
TEST_WITH(test_mlx4_ports, setup_mlx4, teardown) {
        Fixture *f = *state;
        VfChange back = { .vf = 1 };

        put(f, IOV "ports/1/admin_guids/2", "000000000000001");
        put(f, IOV "ports/2/admin_guids/2", "00000000000ff02");
        map_pkeys(f, "0", "1");
        assert_int_equal(vf_attributes_read(f->fs, pf, 1, &back.wanted), 0);
        assert_int_equal(write_text(f, 1,
                                    "port-guid=02:00:00:00:00:00:00:09 second-port-guid=02:00:00:00:00:00:00:0a "
                                    "pkey=0x8001 second-port-pkey=0xffff"),
                         1);
        assert_file(f, IOV "ports/1/admin_guids/2", "200000000000009");
        assert_file(f, IOV "ports/2/admin_guids/2", "20000000000000a");
        assert_file(f, IOV "0000:83:00.2/ports/1/pkey_idx/0", "1");
        assert_file(f, IOV "0000:83:00.2/ports/2/pkey_idx/0", "0");
        put(f, IOV "ports/1/admin_guids/2", "2"); /* as long as the text that will be written */
        put(f, IOV "ports/2/admin_guids/2", "2002");
        vf_attributes_write(f->fs, pf, &back, 1, NULL, NULL);
        assert_int_equal(back.result, 1);
        assert_file(f, IOV "ports/1/admin_guids/2", "1");
        assert_file(f, IOV "ports/2/admin_guids/2", "ff02");
        assert_file(f, IOV "0000:83:00.2/ports/1/pkey_idx/0", "0");
        assert_file(f, IOV "0000:83:00.2/ports/2/pkey_idx/0", "1");
}

/* An earlier writer died between the ports. */
TEST_WITH(test_mlx4_half_written, setup_mlx4, teardown) {
        Fixture *f = *state;

        put(f, IOV "ports/1/admin_guids/2", "200000000000009");
        map_pkeys(f, "1", "0");
        assert_int_equal(write_text(f, 1,
                                    "port-guid=02:00:00:00:00:00:00:09 second-port-guid=02:00:00:00:00:00:00:0a "
                                    "pkey=0x8001 second-port-pkey=0x8001"),
                         1);
        assert_file(f, IOV "ports/2/admin_guids/2", "20000000000000a");
        assert_file(f, IOV "0000:83:00.2/ports/2/pkey_idx/0", "1");
}

TEST_WITH(test_mlx4_pkey, setup_mlx4, teardown) {
        Fixture *f = *state;

        map_pkeys(f, "1", "1");
        assert_reads(f, 1, FIRST " " SECOND " pkey=0x8001 second-port-pkey=0x8001");
        /* The subnet manager gave the key to one port only: no pkey and no GUID is changed. */
        put(f, IOV "ports/1/pkeys/2", "0x8002");
        assert_int_equal(write_text(f, 1, "port-guid=02:00:00:00:00:00:00:01 pkey=0x8002 second-port-pkey=0x8002"),
                         -EADDRNOTAVAIL);
        assert_file(f, IOV "0000:83:00.2/ports/1/pkey_idx/0", "1");
        assert_file(f, IOV "ports/1/admin_guids/2", "14050000000001");
        assert_int_equal(write_text(f, 1, "pkey=0x8002"), 1);
        assert_file(f, IOV "0000:83:00.2/ports/1/pkey_idx/0", "2");
        assert_file(f, IOV "0000:83:00.2/ports/2/pkey_idx/0", "1");
        /* The first values are restored. */
        assert_int_equal(write_text(f, 1, "pkey=0x0000 second-port-pkey=0x0000"), 1);
        assert_file(f, IOV "0000:83:00.2/ports/1/pkey_idx/0", "none");
        assert_file(f, IOV "0000:83:00.2/ports/2/pkey_idx/0", "none");
}

TEST_WITH(test_mlx4_ethernet_port, setup_mlx4, teardown) {
        Fixture *f = *state;

        put(f, "infiniband/mlx4_0/ports/1/link_layer", "Ethernet");
        assert_reads(f, 1, "port-guid=00:14:05:00:00:00:00:02 pkey=0x0000");
        assert_int_equal(write_text(f, 1, "second-port-guid=02:00:00:00:00:00:00:01"), -EOPNOTSUPP);
        assert_int_equal(write_text(f, 1, "port-guid=02:00:00:00:00:00:00:01"), 1);
        assert_file(f, IOV "ports/1/admin_guids/2", "14050000000001");
        assert_file(f, IOV "ports/2/admin_guids/2", "200000000000001");
}

/* The driver's directory has decimal slots, the address hexadecimal ones: the eightieth VF is at 83:0a.0. */
TEST_WITH(test_mlx4_tenth_slot, setup_mlx4, teardown) {
        Fixture *f = *state;

        add_mlx4_port(f, "0000:83:10.0", 80, 1, "abc");
        assert_reads(f, 79, "port-guid=00:00:00:00:00:00:0a:bc pkey=0x0000");
}

TEST_WITH(test_mlx4_unusable, setup_mlx4, teardown) {
        Fixture *f = *state;
        VfAttributes v;

        put(f, IOV "ports/1/admin_guids/2", "guid");
        assert_int_equal(vf_attributes_read(f->fs, pf, 1, &v), -EINVAL);
        put(f, IOV "ports/1/admin_guids/2", "1");
        put(f, IOV "0000:83:00.2/ports/1/pkey_idx/0", "9");
        assert_int_equal(vf_attributes_read(f->fs, pf, 1, &v), -ENOENT);
        /* Some VFs have no entry. */
        assert_int_equal(vf_attributes_read(f->fs, pf, 0, &v), -EOPNOTSUPP);
}

/* The second port is verified too. These files keep the rest of a longer text. */
TEST_WITH(test_mlx4_not_taken, setup_mlx4, teardown) {
        Fixture *f = *state;

        put(f, IOV "ports/1/admin_guids/2", "f");
        put(f, IOV "ports/2/admin_guids/2", "10");
        assert_int_equal(write_text(f, 1, "port-guid=00:00:00:00:00:00:00:01 second-port-guid=00:00:00:00:00:00:00:02"),
                         -EIO);
        assert_file(f, IOV "ports/2/admin_guids/2", "20");
        map_pkeys(f, "0", "0");
        put(f, IOV "0000:83:00.2/ports/2/pkey_idx/0", "00");
        put(f, IOV "ports/2/pkeys/10", "0x8003");
        assert_int_equal(write_text(f, 1, "second-port-pkey=0x8001"), -EIO);
}

/* Each attribute is read and written by the first interface that has it. */
TEST_WITH(test_both, setup_mlx4, teardown) {
        Fixture *f = *state;

        put(f, "sriov/1/port", "00:00:00:00:00:00:00:01");
        map_pkeys(f, "0", "0");
        assert_reads(f, 1, "port-guid=00:00:00:00:00:00:00:01 " SECOND " pkey=0xffff second-port-pkey=0xffff");
        assert_int_equal(write_text(f, 1, "port-guid=02:00:00:00:00:00:00:01 pkey=0x8001"), 1);
        assert_file(f, "sriov/1/port", "02:00:00:00:00:00:00:01");
        assert_file(f, IOV "ports/1/admin_guids/2", "14050000000001");
        assert_file(f, IOV "0000:83:00.2/ports/1/pkey_idx/0", "1");
}
