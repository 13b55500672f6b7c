/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Free ports of a domain for new devices, and the <hostdev> of one device. The domain is the allocation's document. */

#include <errno.h>

#include "unit.h"

#include "domxml-fixture.h"
#include "guest/domain-facts.h"
#include "guest/guestpci.h"
#include "guest/xmlnode.h"
#include "util/fileio.h"

/* Adds a VF with this path on the host. */
static PciAddress add_new(Case *c, const char *path, int node, const char *slot) {
        AllocationDevice *dev = allocation_add_device(c->a, address_of(strrchr(path, '/') + 1), DEVICE_ROLE_ASSIGNED);

        dev->numa_node = node;
        dev->is_vf = true;
        dev->slot = strdup(slot);
        dev->path = strdup(path);
        return dev->address;
}

static bool is_taken(const char *xml, unsigned port) {
        char text[64];

        (void) snprintf(text, sizeof(text), "<address type=\"pci\" domain=\"0x0000\" bus=\"0x%02x\"", port);
        return strstr(xml, text) != NULL;
}

static Verdict choose_for(const Case *c, PciAddress device, uint64_t bars, const char *xml, unsigned *ret_bus) {
        _cleanup_free_ GuestFunction *places = NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };
        size_t n = 0;
        Verdict v = guest_ports_choose(c->a, &device, &bars, 1, xml, &places, &n, &refusal);

        if (v == VERDICT_NONE) {
                *ret_bus = n > 0 ? places[0].guest.bus : 0;
                assert_false(n > 0 && is_taken(xml, *ret_bus));
                assert_true(n == 0 || pci_address_equal(c->a->devices[places[0].device].address, device));
        } else
                record("ports", refusal.message);
        return v;
}

static Verdict choose(const Case *c, PciAddress device, const char *xml, unsigned *ret_bus) {
        return choose_for(c, device, 16 * 1024, xml, ret_bus);
}

/* Finds the element of <devices> with this attribute. */
static const xmlNode *find_element(const xmlDoc *doc, const char *name, const char *attribute, const char *value) {
        const xmlNode *devices = node_find(xmlDocGetRootElement((xmlDoc *) doc), "devices");

        for (const xmlNode *n = devices->children; n; n = n->next)
                if (node_is(n, name) && node_has(n, attribute, value))
                        return n;
        fail_msg("no <%s %s='%s'>", name, attribute, value);
        return NULL;
}

/* Returns the index of the expander above the root port; 0: pcie.0. */
static unsigned root_of(const char *xml, unsigned port) {
        xmlDoc *doc = xmlReadMemory(xml, (int) strlen(xml), NULL, NULL, 0);
        _cleanup_free_ char *index = string_format("%u", port);
        const xmlNode *controller = find_element(doc, "controller", "index", index);
        const xmlNode *address = node_find(controller, "address");
        unsigned bus = 0;

        assert_true(node_has(controller, "model", "pcie-root-port"));
        if (address)
                assert_int_equal(node_get_number(address, "bus", 255, &bus), 0);
        xmlFreeDoc(doc);
        return bus;
}

/* Returns the bus of the device in the document. */
static unsigned bus_of(const Case *c, size_t device) {
        _cleanup_free_ GuestAddress *addresses = NULL;
        size_t n;

        assert_int_equal(domxml_guest_addresses(c->inv, c->config, c->a, &addresses, &n), 0);
        return addresses[device].guest.bus;
}

TEST(test_cell) {
        _cleanup_case_ Case c = one_node("vm7");
        _cleanup_free_ char *xml = NULL;
        _cleanup_free_ GuestFunction *places = NULL;
        PciAddress near[2], far, gpu = c.a->devices[0].address;
        unsigned bus = 0;
        size_t n = 0;

        c.a->spare_ports = 1;
        xml = make(&c, NULL);
        near[0] = add_new(&c, "pci0000:80/0000:83:00.2", 1, "ib-vf1");
        near[1] = add_new(&c, "pci0000:80/0000:83:00.3", 1, "ib-vf2");
        far = add_new(&c, "pci0000:00/0000:03:00.2", 0, "ib-vf3");
        assert_int_equal(choose(&c, near[0], xml, &bus), VERDICT_NONE);
        assert_int_equal(root_of(xml, bus), root_of(xml, bus_of(&c, 0)));
        assert_int_equal(choose(&c, far, xml, &bus), VERDICT_NONE);
        assert_int_equal(root_of(xml, bus), 0);
        assert_int_equal(choose(&c, gpu, xml, &bus), VERDICT_NONE);
        assert_int_equal(bus, 0); /* the domain has the device already */
        assert_int_equal(guest_ports_choose(c.a, near, (uint64_t[2]) { 0 }, 2, xml, &places, &n, NULL),
                         VERDICT_NO_FREE_PORT);
        assert_null(places);
}

/* A port with hotplug='off' is not free. Ports on pcie.0 belong to no cell. */
TEST(test_no_port) {
        _cleanup_case_ Case c = one_node("vm7");
        PciAddress vf = add_new(&c, "pci0000:80/0000:83:00.2", 1, "ib-vf1");
        static const char controllers[] =
                "<domain><devices><controller type='pci' index='1' model='pcie-expander-bus'>"
                "<target busNr='250'><node>0</node></target></controller>"
                "<controller type='pci' index='2' model='pcie-root-port'><address type='pci' bus='0x01' slot='0'/>"
                "</controller><controller type='pci' index='3' model='pcie-root-port'><target hotplug='off'/>"
                "<address type='pci' bus='0x01' slot='1'/></controller>"
                "<controller type='pci' index='4' model='pcie-root-port'/>";
        _cleanup_free_ char *free_port = string_format("%s</devices></domain>", controllers);
        _cleanup_free_ char *no_port = string_format(
                "%s<disk><address type='pci' bus='0x02' slot='0'/></disk></devices></domain>", controllers);
        unsigned bus;

        assert_int_equal(choose(&c, vf, free_port, &bus), VERDICT_NONE);
        assert_int_equal(bus, 2);
        assert_int_equal(choose(&c, vf, no_port, &bus), VERDICT_NO_FREE_PORT);
        assert_int_equal(choose(&c, vf, "<domain>", &bus), VERDICT_NOT_SUPPORTED);
        assert_int_equal(choose(&c, vf, "<domain><devices/></domain>", &bus), VERDICT_NO_FREE_PORT);
        c.a->devices[c.a->n_devices - 1].numa_node = -1;
        assert_int_equal(choose(&c, vf, no_port, &bus), VERDICT_NONE);
        assert_int_equal(bus, 4);
}

/* A broken document, whose controllers are plugged into each other. */
TEST(test_circle) {
        _cleanup_case_ Case c = one_node("vm7");
        PciAddress vf = add_new(&c, "pci0000:80/0000:83:00.2", 1, "ib-vf1");
        unsigned bus;

        assert_int_equal(choose(&c, vf,
                                "<domain><devices><controller type='pci' index='1' model='pcie-root-port'>"
                                "<address type='pci' bus='2'/></controller>"
                                "<controller type='pci' index='2' model='pcie-root-port'>"
                                "<address type='pci' bus='1'/></controller>"
                                "<controller type='pci' index='3' model='pcie-root-port'>"
                                "<address type='pci' bus='2'/></controller></devices></domain>",
                                &bus),
                         VERDICT_NONE);
        assert_int_equal(bus, 3);
}

/* Each root complex of the host has an expander. */
TEST(test_mirror) {
        _cleanup_case_ Case c = case_new("vm30", 1, (int[]) { 0 }, false);
        _cleanup_free_ char *xml = NULL;
        _cleanup_free_ GuestFunction *places = NULL;
        PciAddress second[2], other;
        unsigned bus;
        size_t n;

        add_gpu(&c, "0000:13:00.0", 0, 0, "gpu0");
        take_path(&c, "pci0000:10/0000:10:01.0/0000:13:00.0");
        add_vf(&c, "0000:23:00.1", "0000:23:00.0", 0, "ib-vf0");
        take_path(&c, "pci0000:20/0000:20:01.0/0000:23:00.1");
        c.a->topology = GUEST_TOPOLOGY_MIRROR;
        c.a->spare_ports = 1;
        pin(&c, "2-7", 8 * GIB, 0);
        xml = make(&c, NULL);
        second[0] = add_new(&c, "pci0000:20/0000:20:01.0/0000:23:00.2", 0, "ib-vf1");
        second[1] = add_new(&c, "pci0000:20/0000:20:01.0/0000:23:00.3", 0, "ib-vf2");
        other = add_new(&c, "pci0000:30/0000:30:01.0/0000:33:00.1", 0, "ib-vf3");
        assert_int_equal(choose(&c, second[0], xml, &bus), VERDICT_NONE);
        assert_int_equal(root_of(xml, bus), root_of(xml, bus_of(&c, 1)));
        assert_int_equal(guest_ports_choose(c.a, second, (uint64_t[2]) { 0 }, 2, xml, &places, &n, NULL),
                         VERDICT_NO_FREE_PORT);
        assert_int_equal(choose(&c, other, xml, &bus), VERDICT_NONE);
        assert_int_not_equal(root_of(xml, bus), 0);
}

/* The BARs of a GPU need room in the port's MMIO window, unless the guest is not running. */
TEST(test_large_bars) {
#define COMMANDLINE(words)                                                                                             \
        "<qemu:commandline xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>" words "</qemu:commandline>"
#define RESERVE(size) "<qemu:arg value='-global'/><qemu:arg value='pcie-root-port.pref64-reserve=" size "'/>"
        static const struct {
                const char *hole, *commandline, *arch;
                int node; /* 1: behind an expander */
                uint64_t bars;
                bool running, fits;
        } cases[] = {
                { "", "", "x86_64", 1, 128 * GIB, true, true },
                { "", "", "x86_64", 1, 128 * GIB + 1, true, false },
                { "", "", "x86_64", 1, 128 * GIB + 1, false, true },
                { "", COMMANDLINE(RESERVE("256G")), "x86_64", 1, 256 * GIB, true, true },
                { "", COMMANDLINE(RESERVE("256G")), "x86_64", 1, 256 * GIB + 1, true, false },
                { "", COMMANDLINE(RESERVE("1M")), "x86_64", 1, 64 * GIB, true, false },
                { "", COMMANDLINE(RESERVE("x")), "x86_64", 1, 256 * GIB, true, false },
                { "", COMMANDLINE(RESERVE("512G") RESERVE("64G")), "x86_64", 1, 256 * GIB, true, false },
                { "", "", "x86_64", -1, 32 * GIB, true, true },
                { "", "", "x86_64", -1, 32 * GIB + 1, true, false },
                { "", COMMANDLINE(RESERVE("256G")), "x86_64", -1, 256 * GIB, true, true },
                { "", COMMANDLINE(RESERVE("1M")), "x86_64", -1, 32 * GIB, true, true },
                { "<pcihole64 unit='GiB'>512</pcihole64>", "", "x86_64", -1, 512 * GIB, true, true },
                { "<pcihole64>1048576</pcihole64>", "", "x86_64", -1, 2 * GIB, true, false },
                { "", "", "aarch64", -1, 512 * GIB, true, true },
                { "", "", "aarch64", -1, 512 * GIB + 1, true, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_case_ Case c = one_node("vm7");
                _cleanup_free_ char *xml = string_format(
                        "<domain%s><os><type arch='%s'>hvm</type></os><devices>"
                        "<controller type='pci' index='0' model='pcie-root'>%s</controller>"
                        "<controller type='pci' index='1' model='pcie-expander-bus'>"
                        "<target busNr='250'><node>0</node></target></controller>"
                        "<controller type='pci' index='2' model='pcie-root-port'><address type='pci' bus='0x01'/>"
                        "</controller><controller type='pci' index='3' model='pcie-root-port'/></devices>%s</domain>",
                        cases[i].running ? " id='1'" : "", cases[i].arch, cases[i].hole, cases[i].commandline);
                PciAddress gpu = add_new(&c, "pci0000:80/0000:84:00.0", cases[i].node, "gpu1");
                unsigned bus;
                Verdict v;

                v = choose_for(&c, gpu, cases[i].bars, xml, &bus);
                if (v != (cases[i].fits ? VERDICT_NONE : VERDICT_NOT_SUPPORTED))
                        fail_msg("case %zu: %s", i, verdict_to_string(v));
                if (cases[i].fits)
                        assert_int_equal(bus, cases[i].node == 1 ? 2 : 3);
        }
}

/* Without an expander, pcie.0 is near enough for a guest with a single cell. */
TEST(test_no_expander) {
        for (int two = 0; two <= 1; two++) {
                _cleanup_case_ Case c = case_new("vm9", 2, (int[]) { 0, 1 }, false);
                _cleanup_free_ char *xml = NULL;
                PciAddress vf;
                unsigned bus;

                c.a->spare_ports = 1;
                pin(&c, two ? "2-7,18-23" : "2-7", 8 * GIB, 0);
                xml = make(&c, NULL);
                vf = add_new(&c, "pci0000:00/0000:03:00.2", 0, "ib-vf0");
                assert_int_equal(choose(&c, vf, xml, &bus), two ? VERDICT_NO_FREE_PORT : VERDICT_NONE);
        }
}

/* Checks that places read from libvirt's document of a new guest are those of the layout. */
static void assert_places(const Case *c) {
        _cleanup_free_ char *xml = make(c, NULL);
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;
        _cleanup_free_ GuestPlace *places = NULL;
        _cleanup_names_ char **told = NULL;
        size_t n = 0, at = 0;

        assert_int_equal(guest_pci_new(c->inv, c->a, &GUEST_PCI_ROOM_DEFAULT, &pci), 0);
        places = guest_pci_places(pci, c->a);
        assert_non_null(places);
        assert_int_equal(domain_facts_places(xml, &told, &n), 0);
        for (size_t i = 0; i < c->a->n_devices; i++) {
                char text[GUEST_PLACE_TEXT_MAX];
                _cleanup_free_ char *expected = NULL;

                if (!places[i].known)
                        continue;
                expected = string_format("%s %s", ALLOCATION_DEVICE_SOURCE(&c->a->devices[i]),
                                         guest_place_format(&places[i], text));
                assert_true(at < n);
                assert_string_equal(told[at++], expected);
        }
        assert_int_equal(at, n);
        assert_int_equal(n, pci->n_functions);
}

TEST(test_places) {
        static const char *const paths[] = {
                "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0",
                "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0/0000:15:00.0/0000:16:00.0",
                "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0/0000:15:01.0/0000:17:00.0",
                "pci0000:20/0000:20:01.0/0000:23:00.1",
                "pci0000:30/0000:30:01.0/0000:33:00.1",
        };

        for (GuestTopology topology = 0; topology < _GUEST_TOPOLOGY_MAX; topology++)
                for (unsigned spare = 0; spare <= 2; spare++) {
                        _cleanup_case_ Case c = case_new("vm30", 2, (int[]) { 0, 1 }, false);

                        c.a->topology = topology;
                        c.a->spare_ports = spare;
                        pin(&c, "2-7,18-23", 8 * GIB, 0);
                        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                                (void) add_new(&c, paths[i], i < 3 ? 0 : i < 4 ? 1 : -1, "x");
                        assert_places(&c);
                }
}

#define PORT(index, above)                                                                                             \
        "<controller type='pci' index='" index "' model='pcie-root-port'><address type='pci' " above "/></controller>"
#define HOSTDEV(bus, at)                                                                                               \
        "<hostdev><source><address bus='" bus "' slot='0' function='0'/></source>"                                     \
        "<address type='pci' " at " function='1'/></hostdev>"

/* A domain of another program: ports in any order, a bus number beyond the last, a port without an address, a bus
 * without a controller, an expander below its own port. */
TEST(test_other_places) {
        static const char xml[] =
                "<domain><devices><controller type='pci' index='1' model='pcie-expander-bus'><target busNr='254'/>"
                "<address type='pci' bus='3' slot='0' function='0'/></controller>" PORT("3",
                                                                                        "bus='1' slot='1' function='0'")
                        PORT("2", "bus='1' slot='0' function='0'") PORT("4", "") HOSTDEV("0x81", "bus='2' slot='0'")
                                HOSTDEV("0x82", "bus='3' slot='0'") HOSTDEV("0x83", "bus='4' slot='0'")
                                        HOSTDEV("0x84", "bus='0' slot='7'") HOSTDEV("0x85", "bus='200' slot='0'")
                                                HOSTDEV("0x86", "slot='0'") "</devices></domain>";
        _cleanup_names_ char **told = NULL;
        size_t n = 0;

        assert_int_equal(domain_facts_places(xml, &told, &n), 0);
        assert_int_equal(n, 6);
        assert_string_equal(told[0], "0000:81:00.0 0000:02:00.1 pci0000:fe/0000:fe:00.0/0000:ff:00.1");
        assert_string_equal(told[1], "0000:82:00.0 0000:03:00.1");
        assert_string_equal(told[2], "0000:83:00.0 0000:04:00.1");
        assert_string_equal(told[3], "0000:84:00.0 0000:00:07.1");
        assert_string_equal(told[4], "0000:85:00.0 0000:c8:00.1");
        assert_string_equal(told[5], "0000:86:00.0");
}

static char *hostdev(const Case *c, const char *slot) {
        char *text = NULL;

        assert_int_equal(domxml_hostdev(c->inv, c->config, c->a, NULL, slot, &text, NULL), VERDICT_NONE);
        return text;
}

/* Returns the text without spaces at the beginnings of lines. */
static char *flat(const char *text) {
        char *copy = strdup(text), *to = copy;

        for (const char *p = text; *p; p++)
                if (*p != '\n' && !(*p == ' ' && (p == text || p[-1] == '\n' || p[-1] == ' ')))
                        *to++ = *p;
        *to = '\0';
        return copy;
}

/* The <hostdev> is that of the document. A running guest gets it at another address. */
TEST(test_hostdev) {
        _cleanup_case_ Case c = one_node("vm7");
        _cleanup_free_ char *text = hostdev(&c, "ib-vf0"), *anywhere = NULL, *at = NULL, *whole = make(&c, NULL),
                            *none = NULL;
        _cleanup_free_ char *flat_whole = flat(whole), *flat_text = flat(text);
        _cleanup_refusal_ Refusal refusal = { 0 };
        const GuestFunction place = { .device = 1, .guest.bus = 9 };
        char source[UUID_STRING_MAX];

        assert_has(flat_whole, flat_text);
        assert_int_equal(strncmp(text, "<hostdev mode=\"subsystem\"", 25), 0);
        assert_has(text, "<address domain=\"0x0000\" bus=\"0x83\" slot=\"0x00\" function=\"0x1\"/>");
        c.inv->libvirt.acpi_nodeset = true;
        assert_int_equal(domxml_hostdev_anywhere(c.inv, c.config, c.a, 1, &anywhere, NULL), VERDICT_NONE);
        assert_has(anywhere, "<alias name=\"ua-ib-vf0\"/>");
        assert_has_not(anywhere, "type=\"pci\" domain");
        assert_has_not(anywhere, "nodeset");
        assert_int_equal(domain_facts_hostdev(anywhere, source), 0);
        at = domxml_place_hostdev(anywhere, &place);
        assert_has(at, "<address type='pci' domain='0x0000' bus='0x09' slot='0x00' function='0x0'/></hostdev>");
        assert_int_equal(domain_facts_hostdev(at, source), 0);
        assert_string_equal(source, "0000:83:00.1");
        assert_int_equal(domxml_hostdev(c.inv, c.config, c.a, NULL, "ib-vf1", &none, &refusal), VERDICT_NO_SUCH_DEVICE);
        assert_has(refusal.message, "gpu0, ib-vf0");
        record("slot", refusal.message);
}

/* passthroughd-libvirt accepts only the device that it is asked to plug in, and no file names. */
TEST(test_plain_hostdev) {
        static const struct {
                const char *before, *after; /* text around the <source> */
                bool plain;
                bool mediated; /* the <source> is a mediated device */
        } cases[] = {
                { "<hostdev mode='subsystem' type='pci' managed='no'>", "</hostdev>", true },
                { "<hostdev mode='subsystem' type='pci' managed='no'>", "<rom bar='off'/></hostdev>", true },
                { "<hostdev mode='subsystem' type='pci'>", "</hostdev>", false },
                { "<hostdev mode='subsystem' type='pci' managed='yes'>", "</hostdev>", false },
                { "<hostdev mode='subsystem' type='usb' managed='no'>", "</hostdev>", false },
                { "<hostdev mode='capabilities' type='pci' managed='no'>", "</hostdev>", false },
                { "<hostdev mode='subsystem' type='pci' managed='no'>", "<rom file='/etc/shadow'/></hostdev>", false },
                { "<hostdev mode='subsystem' type='pci' managed='no'>", "<driver name='kvm'/></hostdev>", false },
                { "<hostdev mode='subsystem' type='pci' managed='no'>", "<teaming persistent='x'/></hostdev>", false },
                { "<hostdev mode='subsystem' type='pci' managed='no' x='1'>", "</hostdev>", false },
                { "<hostdev mode='subsystem' type='pci' managed='no'></hostdev><x>", "</x>", false },
                { "<hostdev xmlns:q='q' q:mode='a' mode='subsystem' type='pci' managed='no'>", "</hostdev>", false },
                { "<hostdev mode='subsystem' type='pci' managed='no'>", " text</hostdev>", false },
                { "<disk type='file'>", "</disk>", false },
                { "<!DOCTYPE hostdev><hostdev mode='subsystem' type='pci' managed='no'>", "</hostdev>", false },
                { "<hostdev mode='subsystem' type='mdev' model='vfio-pci'>", "</hostdev>", true, true },
                { "<hostdev mode='subsystem' type='mdev' model='vfio-pci'>", "</hostdev>", false, false },
                { "<hostdev mode='subsystem' type='mdev' model='vfio-ccw'>", "</hostdev>", false, true },
                { "<hostdev mode='subsystem' type='mdev'>", "</hostdev>", false, true },
                { "<hostdev mode='subsystem' type='pci' managed='no'>", "</hostdev>", false, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = NULL;
                char source[UUID_STRING_MAX];

                assert_true(string_replace(&text, "%s<source><address %s/></source>%s", cases[i].before,
                                           cases[i].mediated ? "uuid='4b20d080-1b54-4048-85b3-a6a62d165c01'"
                                                             : "domain='0x0000' bus='0x83' slot='0x00' function='0x1'",
                                           cases[i].after) >= 0);
                assert_int_equal(domain_facts_hostdev(text, source), cases[i].plain ? 0 : -EINVAL);
        }
}

#define SOURCE(address) "<source><address " address "/></source>"
#define FUNCTION        "domain='0x0000' bus='0x83' slot='0x00' function='0x1'"
#define OTHER           "domain='0x0000' bus='0x84' slot='0x00' function='0x0'"
#define UUID            "uuid='4b20d080-1b54-4048-85b3-a6a62d165c01'"

/* Repeated elements are refused, because libvirt may read another one than was checked. */
TEST(test_hostdev_once) {
        static const char *const whole[] = { SOURCE(FUNCTION),          "<driver name='vfio' iommufd='yes'/>",
                                             "<rom bar='off'/>",        "<acpi nodeset='1'/>",
                                             "<alias name='ua-gpu0'/>", "<address type='pci' " OTHER "/>" };
        static const char *const sources[] = {
                SOURCE(FUNCTION) SOURCE(OTHER),
                SOURCE(FUNCTION) "<source/>",
                "<source/>" SOURCE(FUNCTION),
                "<source><address " FUNCTION "/><address " OTHER "/></source>",
                "<source><address " FUNCTION "/><address " UUID "/></source>",
                SOURCE(FUNCTION " " UUID),
                "<source><address " FUNCTION "><address " OTHER "/></address></source>",
                "<source>" SOURCE(OTHER) "<address " FUNCTION "/></source>",
                SOURCE(FUNCTION) "<hostdev mode='subsystem' type='pci' managed='no'>" SOURCE(OTHER) "</hostdev>",
                SOURCE(FUNCTION) "<!-- -->",
                SOURCE(FUNCTION " type='pci'"),
                "<source type='pci'><address " FUNCTION "/></source>",
                "<driver name='vfio'/>",
        };
        const size_t n = ELEMENTSOF(whole);
        char source[UUID_STRING_MAX];

        /* Repeats the i-th element; in the last round none. */
        for (size_t i = 0; i <= n; i++) {
                _cleanup_free_ char *text = string_format(
                        "<hostdev mode='subsystem' type='pci' managed='no'>%s%s%s%s%s%s%s</hostdev>", whole[0],
                        whole[1], whole[2], whole[3], whole[4], whole[5], i < n ? whole[i] : "");

                assert_int_equal(domain_facts_hostdev(text, source), i < n ? -EINVAL : 0);
        }
        for (size_t i = 0; i < ELEMENTSOF(sources); i++) {
                static const char *const starts[] = { "type='pci' managed='no'", "type='mdev' model='vfio-pci'",
                                                      "type='pci' managed='no' model='vfio-pci'" };

                for (size_t j = 0; j < ELEMENTSOF(starts); j++) {
                        _cleanup_free_ char *text =
                                string_format("<hostdev mode='subsystem' %s>%s</hostdev>", starts[j], sources[i]);

                        assert_int_equal(domain_facts_hostdev(text, source), -EINVAL);
                }
        }
}

/* An allocation without CPUs has no document, but its devices can be attached to any domain. */
TEST(test_hostdev_alone) {
        _cleanup_case_ Case c = case_new("vm9", 1, (int[]) { 0 }, false);
        _cleanup_free_ char *text = NULL;

        add_gpu(&c, "0000:82:00.0", 0, 0, "gpu0");
        assert_int_equal(inventory_finish(c.inv), 0);
        text = hostdev(&c, "gpu0");
        assert_has(text, "bus=\"0x82\"");
        assert_has_not(text, "type=\"pci\" domain");
}

TEST(test_sentences) {
        assert_sentences("guestport.txt");
}

TEST_GROUP(NULL, teardown)
