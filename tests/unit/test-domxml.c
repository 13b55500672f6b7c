/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Domain documents without a template. */

#include "core/ledger.h"
#include "domxml-fixture.h"

static void test_one_node(void **state) {
        _cleanup_case_ Case c = one_node("vm7");

        assert_golden(&c, NULL, "domxml-one-node.xml");
}

static void test_two_nodes(void **state) {
        _cleanup_case_ Case c = case_new("vm8", 2, (int[]){ 0, 1 }, false);

        add_gpu(&c, "0000:02:00.0", 0, 8 * GIB, "gpu0");
        add_gpu(&c, "0000:82:00.0", 1, 8 * GIB, "gpu1");
        add_vf(&c, "0000:03:00.1", "0000:03:00.0", 0, "ib-vf0");
        add_vf(&c, "0000:83:00.1", "0000:83:00.0", 1, "ib-vf1");
        pin(&c, "2-7,18-23", 64 * GIB, 0);
        assert_golden(&c, NULL, "domxml-two-nodes.xml");
}

/* Two root complexes of node 0, one with a switch, and one of node 1: as many expanders, and the switch again. */
static Case mirrored(const char *name) {
        Case c = case_new(name, 2, (int[]){ 0, 1 }, false);

        add_gpu(&c, "0000:13:00.0", 0, 128 * GIB, "gpu0");
        take_path(&c, "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0");
        add_gpu(&c, "0000:82:00.0", 1, 128 * GIB, "gpu1");
        take_path(&c, "pci0000:80/0000:80:01.0/0000:82:00.0");
        add_vf(&c, "0000:14:00.1", "0000:14:00.0", 0, "ib-vf0");
        take_path(&c, "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.1");
        add_vf(&c, "0000:23:00.1", "0000:23:00.0", 0, "ib-vf1");
        take_path(&c, "pci0000:20/0000:20:01.0/0000:23:00.1");
        c.a->topology = GUEST_TOPOLOGY_MIRROR;
        c.a->spare_ports = 1;
        pin(&c, "2-7,18-23", 64 * GIB, 0);
        return c;
}

static void test_mirror(void **state) {
        _cleanup_case_ Case c = mirrored("vm30");

        assert_golden(&c, NULL, "domxml-mirror.xml");
}

/* For NCCL: no declaration, one root, the buses that firmware gives, links as on the host where they are known. */
static void test_nccl(void **state) {
        _cleanup_case_ Case c = mirrored("vm31");
        _cleanup_free_ char *text = NULL, *bare = NULL;

        assert_int_equal(domxml_nccl_topology(c.inv, c.config, c.a, NULL, &text, NULL), VERDICT_NONE);
        assert_int_equal(strncmp(text, "<system version=\"1\">", 20), 0);
        assert_has(text, "<cpu numaid=\"0\" affinity=\"0000003f\" arch=\"x86_64\">");
        assert_has(text, "<cpu numaid=\"1\" affinity=\"00000fc0\" arch=\"x86_64\">");
        assert_has(text, "class=\"0x060400\">\n      <pci busid=");
        assert_has_not(text, "link_speed"); /* nobody said */
        for (size_t i = 0; i < c.inv->n_devices; i++) {
                c.inv->devices[i].link_speed = i == 0 ? 2500 : 32000;
                c.inv->devices[i].link_width = 16;
        }
        assert_int_equal(domxml_nccl_topology(c.inv, c.config, c.a, NULL, &bare, NULL), VERDICT_NONE);
        assert_has(bare, "class=\"0x030200\" link_speed=\"2.5 GT/s PCIe\" link_width=\"16\"/>");
        assert_has(bare, "class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"/>");

        c.a->n_pins = 0;
        assert_int_equal(domxml_nccl_topology(c.inv, c.config, c.a, NULL, &bare, NULL), VERDICT_INVALID_REQUEST);
}

/* For who looks at the domain; libvirt keeps what is in the metadata as it is. */
static void test_vf_attributes(void **state) {
        _cleanup_case_ Case c = case_new("vm20", 1, (int[]){ 0 }, false);
        VfAttributes *v;

        add_gpu(&c, "0000:02:00.0", 0, 8 * GIB, "gpu0");
        add_vf(&c, "0000:03:00.1", "0000:03:00.0", 0, "ib-vf0");
        v = &c.a->devices[1].attributes;
        vf_attributes_put(v, VF_NODE_GUID, 0x0200000000000008);
        vf_attributes_put(v, VF_PORT_GUID, 0x0200000000000009);
        vf_attributes_put(v, VF_LINK, VF_LINK_AUTO);
        add_vf(&c, "0000:03:00.2", "0000:03:00.0", 0, "eth-vf0");
        v = &c.a->devices[2].attributes;
        vf_attributes_put(v, VF_MAC, 0x020000000001);
        vf_attributes_put(v, VF_VLAN, 100);
        vf_attributes_put(v, VF_SPOOF_CHECK, false);
        pin(&c, "2-5", 8 * GIB, 0);
        assert_golden(&c, NULL, "domxml-vf-attributes.xml");
}

static void test_multifunction(void **state) {
        _cleanup_case_ Case c = case_new("vm9", 1, (int[]){ 0 }, false);

        add_fact(&c, "0000:41:00.0", 0, CLASS_VGA);
        add_fact(&c, "0000:41:00.1", 0, CLASS_AUDIO);
        add_fact(&c, "0000:42:00.0", 0, 0x010802);
        take(&c, "0000:41:00.0", DEVICE_ROLE_ASSIGNED, "gpu0", "gpu");
        take(&c, "0000:41:00.1", DEVICE_ROLE_COMPANION, "gpu0-1", NULL);
        take(&c, "0000:42:00.0", DEVICE_ROLE_HELD, NULL, NULL);
        pin(&c, "4-7", 8 * GIB, 0);
        assert_golden(&c, NULL, "domxml-multifunction.xml");
}

static void test_hugepages_1g(void **state) {
        _cleanup_case_ Case c = case_new("vm10", 2, (int[]){ 0, 1 }, false);

        add_gpu(&c, "0000:82:00.0", 1, 0, "gpu0");
        pin(&c, "18-25", 20 * GIB, GIB);
        assert_golden(&c, NULL, "domxml-hugepages-1g.xml");
}

/* Host nodes 0, 4 and 5: guest cells are 0, 1 and 2, and a device of node 4 is behind the expander of cell 1. */
static void test_F1_sparse_nodes(void **state) {
        _cleanup_case_ Case c = case_new("vm11", 3, (int[]){ 0, 4, 5 }, false);

        add_gpu(&c, "0000:82:00.0", 4, 0, "gpu0");
        add_gpu(&c, "0000:c2:00.0", -1, 0, "gpu1");
        pin(&c, "2-3,18-19,34", 66ULL << 20, 2ULL << 20);
        assert_golden(&c, NULL, "domxml-sparse-nodes.xml");
}

static void test_large_bars(void **state) {
        _cleanup_case_ Case c = case_new("vm12", 1, (int[]){ 0 }, false);

        for (unsigned i = 0; i < 8; i++) {
                char address[PCI_ADDRESS_STRING_MAX], slot[8];

                (void) snprintf(slot, sizeof(slot), "gpu%u", i);
                add_gpu(&c, pci_address_format((PciAddress){ .bus = (uint8_t) (0x10 + i) }, address), 0, 128 * GIB,
                        slot);
        }
        pin(&c, "0-15", 512 * GIB, GIB);
        assert_golden(&c, NULL, "domxml-large-bars.xml");
}

/* A window that firmware would not make by itself: it is told, unless it is no UEFI or was told already. */
static void test_firmware_hint(void **state) {
        _cleanup_case_ Case c = case_new("vm32", 1, (int[]){ 0 }, false);
        static const char hint[] = "<qemu:arg value=\"name=opt/ovmf/X-PciMmio64Mb,string=131072\"/>";
        _cleanup_free_ char *bios = NULL, *told = NULL, *other = NULL;

        add_gpu(&c, "0000:82:00.0", 0, 64 * GIB, "gpu0");
        pin(&c, "0-3", 8 * GIB, 0);
        c.inv->phys_bits = 39;
        assert_golden(&c, NULL, "domxml-firmware-hint.xml");
        bios = make(&c, "<domain type='kvm'/>");
        assert_has_not(bios, "X-PciMmio64Mb");
        told = make(&c, "<domain type='kvm' xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><os firmware='efi'/>"
                        "<q:commandline><q:arg value='-fw_cfg'/><q:arg "
                        "value='name=opt/ovmf/X-PciMmio64Mb,string=7'/></q:commandline></domain>");
        assert_has_not(told, "131072");
        other = make(&c, "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><os "
                         "firmware='efi'/><qemu:commandline><qemu:arg value='-d'/></qemu:commandline></domain>");
        assert_has(other, hint);
        c.inv->phys_bits = 46;
        _cleanup_free_ char *plain = make(&c, NULL);
        assert_has_not(plain, "X-PciMmio64Mb");
}

#define DRIVER_SCHEMA(attributes)                                                                                      \
        "<grammar xmlns='http://relaxng.org/ns/structure/1.0'><define name='hostdevDriver'><element name='driver'>"    \
        "<optional><attribute name='name'><choice><value>kvm</value><value>vfio</value></choice></attribute>"          \
        "</optional>" attributes "</element></define></grammar>"

static LibvirtFeatures features_of(const char *schema) {
        LibvirtFeatures f = { 0 };

        libvirt_features_add_schema(&f, schema);
        return f;
}

/* By its schemas: a disk's driver is none of ours, an attribute that takes something else than yes is another one. */
static void test_libvirt_features(void **state) {
        LibvirtFeatures f = features_of(DRIVER_SCHEMA(""));

        assert_true(f.known && !f.driver_model && !f.iommufd && !f.maxphysaddr);
        f = features_of(DRIVER_SCHEMA("<attribute name='model'/><attribute name='iommufd'><ref name='virYesNo'/>"
                                      "</attribute>"));
        assert_true(f.driver_model && f.iommufd);
        f = features_of(DRIVER_SCHEMA("<attribute name='iommufd'><ref name='genericName'/></attribute>"));
        assert_false(f.iommufd);
        f = features_of("<grammar><element name='driver'><attribute name='name'><value>qemu</value></attribute>"
                        "<attribute name='model'/></element><element name='maxphysaddr'/></grammar>");
        assert_true(f.known && f.maxphysaddr && !f.driver_model);
        f = features_of("<grammar>");
        assert_false(f.known);
        f = features_of("<grammar><element name='acpi'><attribute name='index'/></element><element name='memory'>"
                        "<attribute name='nodeset'/></element></grammar>");
        assert_true(f.known && !f.acpi_nodeset); /* another nodeset */
        f = features_of("<grammar><element name='acpi'/><element name='acpi'><optional><attribute "
                        "name='nodeset'/></optional></element>"
                        "</grammar>");
        assert_true(f.known && f.acpi_nodeset);
}

/* What libvirt could ask of a QEMU that this one cannot do is not there; a QEMU without KVM is of no account. */
static void test_qemu_features(void **state) {
        static const LibvirtFeatures all = {
                .known = true, .maxphysaddr = true, .iommufd = true, .acpi_nodeset = true
        };
        LibvirtFeatures f = all;

        assert_true(libvirt_features_limit(&f, "<qemuCaps><flag name='kvm'/><flag name='iommufd'/>"
                                               "<flag name='acpi-generic-initiator'/></qemuCaps>"));
        assert_memory_equal(&f, &all, sizeof(f));
        assert_false(libvirt_features_limit(&f, "<qemuCaps><flag name='tcg'/></qemuCaps>"));
        assert_memory_equal(&f, &all, sizeof(f));
        assert_true(libvirt_features_limit(&f, "<qemuCaps><flag name='kvm'/><flag name='iommufd'/></qemuCaps>"));
        assert_true(f.known && f.maxphysaddr && f.iommufd && !f.acpi_nodeset);
        assert_true(libvirt_features_limit(&f, "iommufd"));
        assert_true(f.known && f.maxphysaddr && !f.iommufd);
}

/* Written for a libvirt that has it, for no other. */
static void test_libvirt_that_has_it(void **state) {
        _cleanup_case_ Case c = one_node("vm33");
        _cleanup_free_ char *unknown = make(&c, NULL), *old = NULL, *recent = NULL, *mixed = NULL, *plain = NULL;

        assert_has(unknown, "<maxphysaddr");
        assert_int_equal(string_copy(&c.a->vfio_driver, "mlx5_vfio_pci"), 0);
        c.inv->libvirt = (LibvirtFeatures){ .known = true };
        old = make(&c, NULL);
        assert_has_not(old, "maxphysaddr");
        assert_has_not(old, "model=\"mlx5");
        assert_has_not(old, "iommufd");
        c.inv->libvirt = (LibvirtFeatures){ .known = true, .driver_model = true, .iommufd = true, .maxphysaddr = true };
        c.inv->devices[0].vfio_cdev = true;
        mixed = make(&c, NULL);
        assert_has(mixed, "<driver name=\"vfio\" model=\"mlx5_vfio_pci\"/>");
        assert_has_not(mixed, "iommufd"); /* one of them has no device of its own */
        c.inv->devices[1].vfio_cdev = true;
        recent = make(&c, NULL);
        assert_has(recent, "<driver name=\"vfio\" model=\"mlx5_vfio_pci\" iommufd=\"yes\"/>");
        assert_int_equal(string_copy(&c.a->vfio_driver, "vfio-pci"), 0);
        plain = make(&c, NULL);
        assert_has(plain, "<driver name=\"vfio\" iommufd=\"yes\"/>");
}

/* The guest cell, not the host's node; of a device on no cell there is nothing to tell. */
static void test_acpi_nodeset(void **state) {
        _cleanup_case_ Case c = case_new("vm34", 3, (int[]){ 0, 4, 5 }, false);
        _cleanup_free_ char *old = NULL, *recent = NULL;

        add_gpu(&c, "0000:82:00.0", 4, 0, "gpu0");
        add_gpu(&c, "0000:c2:00.0", -1, 0, "gpu1");
        pin(&c, "2-3,18-19,34", 66ULL << 20, 2ULL << 20);
        c.inv->libvirt.known = true;
        old = make(&c, NULL);
        assert_has_not(old, "<acpi nodeset");
        c.inv->libvirt.acpi_nodeset = true;
        recent = make(&c, NULL);
        assert_has(recent, "<alias name=\"ua-gpu0\"/>\n      <acpi nodeset=\"1\"/>");
        assert_has_not(recent, "<alias name=\"ua-gpu1\"/>\n      <acpi");
}

static void test_no_devices(void **state) {
        _cleanup_case_ Case c = case_new("vm13", 1, (int[]){ 0 }, false);

        pin(&c, "3", GIB / 2, 0);
        assert_golden(&c, NULL, "domxml-no-devices.xml");
}

/* Siblings next to each other in the pins become threads of one core; any other order does not. */
static void test_threads(void **state) {
        _cleanup_case_ Case c = case_new("vm14", 2, (int[]){ 0, 1 }, true);
        static const unsigned order[] = { 2, 10, 3, 11, 18, 26, 19, 27 };

        pin(&c, "2-3,10-11,18-19,26-27", 8 * GIB, 0);
        for (size_t i = 0; i < ELEMENTSOF(order); i++)
                c.a->pins[i].cpu = order[i];
        assert_golden(&c, NULL, "domxml-threads.xml");

        c.a->pins[0].cpu = 10; /* the other way round is as good */
        c.a->pins[1].cpu = 2;
        _cleanup_free_ char *swapped = make(&c, NULL);
        assert_has(swapped, "<topology sockets=\"2\" dies=\"1\" cores=\"2\" threads=\"2\"/>");

        c.a->pins[1].cpu = 3;
        c.a->pins[2].cpu = 2;
        _cleanup_free_ char *mixed = make(&c, NULL);
        assert_has(mixed, "<topology sockets=\"2\" dies=\"1\" cores=\"4\" threads=\"1\"/>");
}

static void set_dies(Case *c, unsigned cpus_each) {
        for (size_t i = 0; i < c->inv->n_cpus; i++)
                c->inv->cpus[i].die = c->inv->cpus[i].id / cpus_each * cpus_each;
}

/* The guest has dies when the same number of vCPUs lies on each. */
static void test_dies(void **state) {
        _cleanup_case_ Case c = case_new("vm16", 2, (int[]){ 0, 1 }, false);

        set_dies(&c, 8); /* two on a node */
        pin(&c, "4-11,20-27", 8 * GIB, 0);
        _cleanup_free_ char *even = make(&c, NULL);
        assert_has(even, "<topology sockets=\"2\" dies=\"2\" cores=\"4\" threads=\"1\"/>");

        set_dies(&c, 16);
        _cleanup_free_ char *one = make(&c, NULL);
        assert_has(one, "<topology sockets=\"2\" dies=\"1\" cores=\"8\" threads=\"1\"/>");

        set_dies(&c, 32); /* as with clusters of a socket that are nodes */
        _cleanup_free_ char *common = make(&c, NULL);
        assert_has(common, "<topology sockets=\"2\" dies=\"1\" cores=\"8\" threads=\"1\"/>");

        set_dies(&c, 8);
        c.a->pins[3].cpu = 12; /* three, five */
        _cleanup_free_ char *uneven = make(&c, NULL);
        assert_has(uneven, "<topology sockets=\"2\" dies=\"1\" cores=\"8\" threads=\"1\"/>");

        c.a->pins[3].cpu = 7;
        c.a->pins[0].cpu = 11; /* as many on each, but not one after the other */
        c.a->pins[7].cpu = 4;
        _cleanup_free_ char *mixed = make(&c, NULL);
        assert_has(mixed, "<topology sockets=\"2\" dies=\"1\" cores=\"8\" threads=\"1\"/>");
}

static void test_uneven_cells(void **state) {
        _cleanup_case_ Case c = case_new("vm15", 2, (int[]){ 0, 1 }, false);

        pin(&c, "2-4,18-19", 8 * GIB, 0);
        _cleanup_free_ char *text = make(&c, NULL);
        assert_has(text, "<topology sockets=\"1\" dies=\"1\" cores=\"5\" threads=\"1\"/>");
        assert_has(text, "<emulatorpin cpuset=\"2-4,18-19\"/>"); /* no housekeeping CPUs: with the vCPUs */
}

static void test_distances_within_bounds(void **state) {
        _cleanup_case_ Case c = case_new("vm16", 3, (int[]){ 0, 1, 2 }, false);

        c.inv->nodes[0].distance[1] = 0;   /* unknown */
        c.inv->nodes[0].distance[2] = 255; /* unreachable */
        c.inv->nodes[1].distance[2] = 10;  /* fake nodes of one real one */
        pin(&c, "2,18,34", 6 * GIB, 0);
        _cleanup_free_ char *text = make(&c, NULL);
        assert_has(text, "<sibling id=\"1\" value=\"20\"/>");
        assert_has(text, "<sibling id=\"2\" value=\"254\"/>");
        assert_has(text, "<sibling id=\"2\" value=\"11\"/>");
}

static void test_housekeeping_elsewhere(void **state) {
        _cleanup_case_ Case c = one_node("vm17");

        assert_int_equal(cpuset_parse("0-1,99", &c.config->housekeeping), 0); /* none on node 1; 99 is offline */
        _cleanup_free_ char *text = make(&c, NULL);
        /* Its own memory is filled from there. */
        assert_has(text, "<emulatorpin cpuset=\"18-25\"/>");
}

static void test_allocation_refused(void **state) {
        _cleanup_case_ Case c = one_node("vm23");

        c.a->pins[3].vcpu = 9;
        assert_refused(&c, NULL, VERDICT_INVALID_REQUEST, "vCPU 3");
        c.a->pins[3].vcpu = 3;
        cpuset_remove(&c.a->cells[0].vcpus, 5);
        assert_refused(&c, NULL, VERDICT_INVALID_REQUEST, "vCPU 5");
        c.a->devices[0].address.domain = 0x10000;
        cpuset_add(&c.a->cells[0].vcpus, 5);
        assert_refused(&c, NULL, VERDICT_NOT_SUPPORTED, "10000:82:00.0");
        c.a->devices[0].address.domain = 0;
        for (unsigned i = 0; i < 256; i++)
                assert_non_null(allocation_add_device(c.a, (PciAddress){ .domain = 1, .bus = (uint8_t) i },
                                                      DEVICE_ROLE_ASSIGNED));
        assert_refused(&c, NULL, VERDICT_INVALID_REQUEST, "256 PCI buses");
        c.a->n_pins = 0;
        assert_refused(&c, NULL, VERDICT_INVALID_REQUEST, "devices only");
}

/* One node with 272 CPUs. */
static Case many_cpus(const char *name, const char *cpus) {
        static const int nodes[17] = { 0 };
        Case c = case_new(name, ELEMENTSOF(nodes), nodes, false);

        c.inv->n_nodes = 1;
        add_gpu(&c, "0000:82:00.0", 0, 8 * GIB, "gpu0");
        pin(&c, cpus, 16 * GIB, 0);
        return c;
}

static Case sharing(const char *name) {
        Case c = one_node(name);
        Allocation *a = c.a;

        a->regions[0] = (Region){ .name = "mpi-node1", .size = 256ULL << 20, .node = 1 };
        a->regions[1] = (Region){ .name = "halo", .size = 32 * GIB, .page_size = 2ULL << 20, .node = 1 };
        a->n_regions = 2;
        return c;
}

/* Their BARs are in the guest's window like any other. */
static void test_shared_memory(void **state) {
        _cleanup_case_ Case c = sharing("vm30");
        _cleanup_(cleanup_allocation_free) Allocation *other = allocation_new("vm29");
        const Allocation *members[] = { other, c.a };
        SharedRegion shared = { .region = c.a->regions[0], .members = members, .n_members = 2 };

        c.a->shared[0] = &shared;
        assert_golden(&c, NULL, "domxml-shared-memory.xml");
}

static unsigned root_ports(const Case *c) {
        _cleanup_free_ char *text = make(c, NULL);
        unsigned n = 0;

        for (const char *at = text; (at = strstr(at, "pcie-root-port")); at++)
                n++;
        return n;
}

/* Its bridge to conventional PCI takes none of the ports that are to stay free. */
static void test_shared_memory_takes_no_spare_port(void **state) {
        _cleanup_case_ Case c = sharing("vm34");
        unsigned with, without;

        c.a->spare_ports = 1;
        with = root_ports(&c);
        c.a->n_regions = 0;
        without = root_ports(&c);
        assert_int_equal(with, without + 1);
}

static void test_shared_memory_with_a_server(void **state) {
        _cleanup_case_ Case c = sharing("vm31");

        assert_int_equal(string_copy(&c.config->shared_memory_server, "/run/ivshmem/%n.sock"), 0);
        assert_golden(&c, NULL, "domxml-shared-memory-server.xml");
}

static void test_shared_memory_is_not_the_templates(void **state) {
        _cleanup_case_ Case c = sharing("vm32");
        _cleanup_free_ char *text = NULL;

        assert_refused(&c, "<domain type='kvm'><devices><shmem name='passthroughd-other'/></devices></domain>",
                       VERDICT_INVALID_TEMPLATE, "shared memory of allocations");
        assert_refused(&c,
                       "<domain type='kvm' xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><q:commandline><q:arg "
                       "value='memory-backend-file,mem-path=/dev/shm/passthroughd-other'/></q:commandline></domain>",
                       VERDICT_INVALID_TEMPLATE, "on QEMU's command line");
        text = make(&c, "<domain type='kvm'><devices><shmem name='looking-glass'><model type='ivshmem-plain'/><size "
                        "unit='M'>32</size></shmem></devices></domain>");
        assert_has(text, "looking-glass");
        assert_has(text, "passthroughd-halo");
}

/* From 256 vCPUs on, libvirt wants their interrupts remapped. */
static void test_many_vcpus(void **state) {
        _cleanup_case_ Case few = many_cpus("vm28", "1-255"), many = many_cpus("vm29", "0-255");
        _cleanup_free_ char *plain = make(&few, NULL), *filled = NULL;

        assert_has_not(plain, "iommu");
        assert_golden(&many, NULL, "domxml-many-vcpus.xml");
        filled = make(&many, "<domain type='kvm'><devices><iommu model='intel'><driver eim='off' iotlb='on'/></iommu>"
                             "</devices></domain>");
        assert_has(filled, "<driver eim=\"on\" iotlb=\"on\" intremap=\"on\" caching_mode=\"on\" aw_bits=\"48\"/>");
        assert_has(filled, "<ioapic driver=\"qemu\"/>");
        assert_refused(&many, "<domain type='kvm'><devices><iommu model='virtio'/></devices></domain>",
                       VERDICT_INVALID_TEMPLATE, "<iommu>");
        assert_refused(&many, "<domain type='qemu'/>", VERDICT_NOT_SUPPORTED, "256 vCPUs");
}

/* Dies whose bits in the APIC ids of the vCPUs would take them beyond what needs no <iommu> are left out. */
static void test_dies_of_many_vcpus(void **state) {
        _cleanup_case_ Case c = many_cpus("vm30", "0-239");
        _cleanup_free_ char *two = NULL, *three = NULL;

        set_dies(&c, 120);
        two = make(&c, NULL);
        assert_has(two, "<topology sockets=\"1\" dies=\"2\" cores=\"120\" threads=\"1\"/>");
        set_dies(&c, 80);
        three = make(&c, NULL);
        assert_has(three, "<topology sockets=\"1\" dies=\"1\" cores=\"240\" threads=\"1\"/>");
        assert_has_not(three, "iommu");
}

/* The same of sockets: the cells stay. */
static void test_sockets_of_many_vcpus(void **state) {
        static const int nodes[15] = { 0, 1, 2 };
        static const struct {
                const char *cpus, *topology;
        } cases[] = { { "0-62,80-142,160-222", "<topology sockets=\"3\" dies=\"1\" cores=\"63\" threads=\"1\"/>" },
                      { "0-64,80-144,160-224", "<topology sockets=\"1\" dies=\"1\" cores=\"195\" threads=\"1\"/>" } };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_case_ Case c = case_new("vm35", ELEMENTSOF(nodes), nodes, false);
                _cleanup_free_ char *text = NULL;

                c.inv->n_nodes = 3;
                for (size_t cpu = 0; cpu < c.inv->n_cpus; cpu++)
                        c.inv->cpus[cpu].node = (int) (cpu / 80);
                pin(&c, cases[i].cpus, 48 * GIB, 0);
                text = make(&c, NULL);
                assert_has(text, cases[i].topology);
                assert_has(text, "<cell id=\"2\"");
                assert_has_not(text, "iommu");
        }
}

/* What is promised in JSON is what the document says. */
static void test_guest_addresses(void **state) {
        _cleanup_case_ Case c = one_node("vm24");
        _cleanup_free_ GuestAddress *addresses = NULL;
        _cleanup_free_ char *text = make(&c, NULL);
        size_t n = 0;

        assert_int_equal(domxml_guest_addresses(c.inv, c.a, &addresses, &n), 0);
        assert_int_equal(n, 2);
        for (size_t i = 0; i < n; i++) {
                char part[128];

                assert_true(pci_address_equal(addresses[i].host, c.a->devices[i].address));
                (void) snprintf(part, sizeof(part), "address=\"%s\" guest=\"%s\"", PCI_ADDRESS_STR(addresses[i].host),
                                PCI_ADDRESS_STR(addresses[i].guest));
                assert_has(text, part);
        }
        assert_has_not(text, "multifunction");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_node),
                cmocka_unit_test(test_two_nodes),
                cmocka_unit_test(test_mirror),
                cmocka_unit_test(test_nccl),
                cmocka_unit_test(test_vf_attributes),
                cmocka_unit_test(test_multifunction),
                cmocka_unit_test(test_hugepages_1g),
                cmocka_unit_test(test_F1_sparse_nodes),
                cmocka_unit_test(test_acpi_nodeset),
                cmocka_unit_test(test_large_bars),
                cmocka_unit_test(test_firmware_hint),
                cmocka_unit_test(test_libvirt_features),
                cmocka_unit_test(test_qemu_features),
                cmocka_unit_test(test_libvirt_that_has_it),
                cmocka_unit_test(test_no_devices),
                cmocka_unit_test(test_threads),
                cmocka_unit_test(test_dies),
                cmocka_unit_test(test_uneven_cells),
                cmocka_unit_test(test_distances_within_bounds),
                cmocka_unit_test(test_housekeeping_elsewhere),
                cmocka_unit_test(test_allocation_refused),
                cmocka_unit_test(test_many_vcpus),
                cmocka_unit_test(test_dies_of_many_vcpus),
                cmocka_unit_test(test_sockets_of_many_vcpus),
                cmocka_unit_test(test_guest_addresses),
                cmocka_unit_test(test_shared_memory),
                cmocka_unit_test(test_shared_memory_takes_no_spare_port),
                cmocka_unit_test(test_shared_memory_with_a_server),
                cmocka_unit_test(test_shared_memory_is_not_the_templates),
        };

        return cmocka_run_group_tests_name("domxml", tests, NULL, teardown);
}
