/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The path between two functions, by the ACS of ports and the ATS of the requester. */

#include "unit.h"

#include "model/peerpath.h"
#include "util/strings.h"

#define RR PCI_ACS_BIT(PCI_ACS_BIT_RR)
#define CR PCI_ACS_BIT(PCI_ACS_BIT_CR)
#define EC PCI_ACS_BIT(PCI_ACS_BIT_EC)
#define DT PCI_ACS_BIT(PCI_ACS_BIT_DT)
#define SV PCI_ACS_BIT(PCI_ACS_BIT_SV)

#define SWITCH "pci0000:10/0000:10:01.0/0000:11:00.0"

static PciDevice *add(Inventory *inv, const char *path, uint32_t class, PciAcs acs) {
        PciAddress address;
        PciDevice *dev;

        assert_int_equal(pci_address_parse(strrchr(path, '/') + 1, &address), 0);
        dev = inventory_add_device(inv, address);
        assert_non_null(dev);
        assert_int_equal(string_copy(&dev->path, path), 0);
        dev->class = class;
        dev->acs = acs;
        return dev;
}

static PciDevice *find(const Inventory *inv, const char *address) {
        PciAddress a;

        assert_int_equal(pci_address_parse(address, &a), 0);
        assert_non_null(inventory_find(inv, a));
        return inv->devices + inventory_device_index(inv, inventory_find(inv, a));
}

/* A switch with a GPU and a NIC that has a VF, and a GPU below another root port. */
static Inventory *make_node(void) {
        Inventory *inv = inventory_new();
        PciDevice *vf;

        (void) add(inv, "pci0000:10/0000:10:01.0", 0x060400, PCI_ACS_ISOLATED);
        (void) add(inv, SWITCH, 0x060400, PCI_ACS_CLEAN);
        (void) add(inv, SWITCH "/0000:12:00.0", 0x060400, PCI_ACS_ISOLATED);
        (void) add(inv, SWITCH "/0000:12:01.0", 0x060400, PCI_ACS_ISOLATED);
        (void) add(inv, SWITCH "/0000:12:00.0/0000:13:00.0", 0x030200, PCI_ACS_CLEAN);
        (void) add(inv, SWITCH "/0000:12:01.0/0000:14:00.0", 0x020000, PCI_ACS_CLEAN);
        vf = add(inv, SWITCH "/0000:12:01.0/0000:14:00.1", 0x020000, PCI_ACS_CLEAN);
        vf->type = PCI_TYPE_VF;
        vf->physfn = (PciAddress) { .bus = 0x14 };
        (void) add(inv, "pci0000:10/0000:10:02.0", 0x060400, PCI_ACS_ISOLATED);
        (void) add(inv, "pci0000:10/0000:10:02.0/0000:15:00.0", 0x030200, PCI_ACS_CLEAN);
        assert_int_equal(inventory_finish(inv), 0);
        return inv;
}

typedef struct Port {
        PciAcs acs;
        uint16_t can, does;
} Port;

static void set_port(Inventory *inv, const char *address, Port p) {
        PciDevice *port = find(inv, address);

        port->acs = p.acs;
        port->acs_capabilities = p.can;
        port->acs_enabled = p.does;
}

TEST(test_access_by_acs_and_ats) {
        static const struct {
                Port gpu_side, nic_side;
                PciAts ats;
                PeerAccess access;
        } cases[] = {
                { { PCI_ACS_OPEN, 0, 0 }, { PCI_ACS_OPEN, 0, 0 }, PCI_ATS_NONE, PEER_ACCESS_DIRECT },
                { { PCI_ACS_OPEN, SV | RR, SV }, { PCI_ACS_OPEN, 0, 0 }, PCI_ATS_NONE, PEER_ACCESS_DIRECT },
                { { PCI_ACS_ISOLATED, RR, RR }, { PCI_ACS_OPEN, 0, 0 }, PCI_ATS_NONE, PEER_ACCESS_REDIRECTED },
                { { PCI_ACS_OPEN, 0, 0 }, { PCI_ACS_OPEN, CR, CR }, PCI_ATS_NONE, PEER_ACCESS_REDIRECTED },
                { { PCI_ACS_OPEN, 0, 0 }, { PCI_ACS_OPEN, EC, EC }, PCI_ATS_NONE, PEER_ACCESS_REDIRECTED },
                { { PCI_ACS_ISOLATED, RR, RR }, { PCI_ACS_UNKNOWN, 0, 0 }, PCI_ATS_ON, PEER_ACCESS_REDIRECTED },
                { { PCI_ACS_OPEN, 0, 0 }, { PCI_ACS_UNKNOWN, 0, 0 }, PCI_ATS_ON, PEER_ACCESS_UNKNOWN },
                { { PCI_ACS_ISOLATED, RR | DT, RR | DT }, { PCI_ACS_UNKNOWN, 0, 0 }, PCI_ATS_ON, PEER_ACCESS_UNKNOWN },
                { { PCI_ACS_ISOLATED, RR | DT, RR | DT },
                  { PCI_ACS_ISOLATED, CR | DT, CR | DT },
                  PCI_ATS_ON,
                  PEER_ACCESS_TRANSLATED },
                { { PCI_ACS_ISOLATED, RR | DT, RR | DT },
                  { PCI_ACS_ISOLATED, CR | DT, CR },
                  PCI_ATS_ON,
                  PEER_ACCESS_REDIRECTED },
                { { PCI_ACS_ISOLATED, RR | DT, RR | DT }, { PCI_ACS_OPEN, 0, 0 }, PCI_ATS_OFF, PEER_ACCESS_REDIRECTED },
                { { PCI_ACS_ISOLATED, RR | DT, RR | DT },
                  { PCI_ACS_OPEN, 0, 0 },
                  PCI_ATS_UNKNOWN,
                  PEER_ACCESS_UNKNOWN },
        };
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_node();
        PeerPath path;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                set_port(inv, "0000:12:00.0", cases[i].gpu_side);
                set_port(inv, "0000:12:01.0", cases[i].nic_side);
                find(inv, "0000:14:00.0")->ats = cases[i].ats;
                /* For a VF, the ATS of its PF counts. */
                peer_path_find(inv, find(inv, "0000:14:00.1"), find(inv, "0000:13:00.0"), &path);
                assert_int_equal(path.access, cases[i].access);
                assert_int_equal(path.n_ports, 2);
        }
}

TEST(test_where_ways_meet) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_node();
        PeerPath path;

        peer_path_find(inv, find(inv, "0000:14:00.0"), find(inv, "0000:13:00.0"), &path);
        assert_ptr_equal(&inv->devices[path.ports[0]], find(inv, "0000:12:01.0"));
        assert_ptr_equal(&inv->devices[path.ports[1]], find(inv, "0000:12:00.0"));
        peer_path_find(inv, find(inv, "0000:14:00.0"), find(inv, "0000:15:00.0"), &path);
        assert_int_equal(path.access, PEER_ACCESS_ROOT_COMPLEX);
        assert_int_equal(path.n_ports, 3); /* without the upstream port, which has no control */
        assert_ptr_equal(&inv->devices[path.ports[2]], find(inv, "0000:10:02.0"));
        peer_path_find(inv, find(inv, "0000:14:00.0"), find(inv, "0000:14:00.1"), &path);
        assert_int_equal(path.access, PEER_ACCESS_CARD);
        /* A device without a known place. */
        assert_int_equal(string_copy(&find(inv, "0000:15:00.0")->path, ""), 0);
        peer_path_find(inv, find(inv, "0000:14:00.0"), find(inv, "0000:15:00.0"), &path);
        assert_int_equal(path.access, PEER_ACCESS_UNKNOWN);
}

/* A path deeper than any machine's is bounded, and has no answer. */
TEST(test_endless_way) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        _cleanup_free_ char *path = NULL;
        PeerPath found;

        assert_int_equal(string_replace(&path, "pci0000:00"), 0);
        for (unsigned bus = 0; bus < 40; bus++) {
                assert_int_equal(string_replace(&path, "%s/0000:%02x:01.0", path, bus), 0);
                (void) add(inv, path, 0x060400, PCI_ACS_OPEN);
        }
        assert_int_equal(string_replace(&path, "%s/0000:28:00.0", path), 0);
        (void) add(inv, path, 0x030200, PCI_ACS_CLEAN);
        (void) add(inv, "pci0000:00/0000:00:01.0/0000:90:00.0", 0x020000, PCI_ACS_CLEAN);
        assert_int_equal(inventory_finish(inv), 0);
        peer_path_find(inv, find(inv, "0000:90:00.0"), find(inv, "0000:28:00.0"), &found);
        assert_int_equal(found.access, PEER_ACCESS_UNKNOWN);
        peer_path_find(inv, find(inv, "0000:28:00.0"), find(inv, "0000:90:00.0"), &found);
        assert_int_equal(found.access, PEER_ACCESS_UNKNOWN);
}

static char *setting(const Inventory *inv) {
        const PciDevice *nic = find(inv, "0000:14:00.1");
        PeerPath path;
        char *text;

        peer_path_find(inv, nic, find(inv, "0000:13:00.0"), &path);
        assert_int_equal(peer_path_setting(inv, &path, nic, &text), 0);
        return text;
}

static void assert_setting(const Inventory *inv, const char *part) {
        _cleanup_free_ char *text = setting(inv);

        if (!text || !strstr(text, part))
                fail_msg("'%s' is not in: %s", part, text ? text : "(null)");
}

TEST(test_setting) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_node();
        PciDevice *pf = find(inv, "0000:14:00.0");
        char *none;

        set_port(inv, "0000:12:00.0", (Port) { PCI_ACS_ISOLATED, RR | CR | DT, RR | CR });
        set_port(inv, "0000:12:01.0", (Port) { PCI_ACS_ISOLATED, RR | CR | DT, RR | CR });
        pf->vendor = 0x15b3;
        pf->ats = PCI_ATS_NONE;
        assert_setting(inv, "mlxconfig -d 0000:14:00.0 set ATS_ENABLED=true");
        assert_setting(inv, "'pci=config_acs=1xxxxxx@0000:12:01.0;1xxxxxx@0000:12:00.0'");
        assert_setting(inv, "ECAP_ACS+6.w=40:40");
        pf->vendor = 0x8086;
        assert_setting(inv, "0000:14:00.0");
        pf->ats = PCI_ATS_OFF;
        assert_setting(inv, "ATS of 0000:14:00.0");
        /* Only missing parts are named. */
        pf->ats = PCI_ATS_ON;
        find(inv, "0000:12:00.0")->acs_enabled |= DT;
        assert_setting(inv, " on 0000:12:01.0,");
        /* The port cannot do it, so only the way that costs isolation remains. */
        find(inv, "0000:12:01.0")->acs_capabilities = RR | CR;
        assert_setting(inv, "0000:12:01.0");
        assert_setting(inv, "'pci=disable_acs_redir=0000:12:01.0;0000:12:00.0'");
        assert_setting(inv, "IOMMU groups");
        find(inv, "0000:12:01.0")->acs_enabled = find(inv, "0000:12:00.0")->acs_enabled = 0;
        none = setting(inv);
        assert_null(none);
}

TEST(test_words) {
        for (PeerAccess a = 0; a < _PEER_ACCESS_MAX; a++)
                assert_non_null(peer_access_to_string(a));
        for (PciAcsBit b = 0; b < _PCI_ACS_BIT_MAX; b++)
                assert_int_equal(strlen(pci_acs_bit_to_string(b)), 2);
        for (PciAts a = 0; a < _PCI_ATS_MAX; a++)
                assert_non_null(pci_ats_to_string(a));
}
