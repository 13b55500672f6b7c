/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Domain documents from a template: elements that are kept, replaced or refused. */

#include <time.h>

#include "unit.h"

#include "domxml-fixture.h"
#include "sentences.h"

static const char template[] =
        "<?xml version='1.0'?>\n"
        "<!-- the site's template -->\n"
        "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n"
        "  <name>template</name>\n"
        "  <uuid>11111111-2222-3333-4444-555555555555</uuid>\n"
        "  <title>Compute node</title>\n"
        "  <metadata>\n"
        "    <site:owner xmlns:site='https://example.org/site'>physics &amp; co</site:owner>\n"
        "    <p:allocation xmlns:p='https://passthroughd.org/xmlns/domain/1' name='old'/>\n"
        "  </metadata>\n"
        "  <maxMemory slots='16' unit='GiB'>64</maxMemory>\n"
        "  <memory unit='GiB'>4</memory>\n"
        "  <currentMemory unit='GiB'>4</currentMemory>\n"
        "  <memtune><hard_limit unit='GiB'>4</hard_limit></memtune>\n"
        "  <memoryBacking><hugepages/><source type='memfd'/><access mode='shared'/><locked/></memoryBacking>\n"
        "  <vcpu placement='auto'>2</vcpu>\n"
        "  <iothreads>3</iothreads>\n"
        "  <iothreadids><iothread id='5'/></iothreadids>\n"
        "  <cputune><shares>2048</shares><vcpupin vcpu='0' cpuset='0'/><iothreadpin iothread='5' cpuset='0'/>"
        "<vcpusched vcpus='0-1' scheduler='fifo' priority='1'/>"
        "<iothreadsched iothreads='5' scheduler='batch'/>"
        "<cachetune vcpus='0-1'><cache id='0' level='3' type='both' size='3' unit='MiB'/></cachetune></cputune>\n"
        "  <numatune><memory mode='preferred' nodeset='0'/></numatune>\n"
        "  <sysinfo type='smbios'><system><entry "
        "name='uuid'>11111111-2222-3333-4444-555555555555</entry></system></sysinfo>\n"
        "  <os><type arch='x86_64' machine='pc-i440fx-7.2'>hvm</type>\n"
        "    <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>\n"
        "    <nvram template='/usr/share/OVMF/OVMF_VARS_4M.fd'/></os>\n"
        "  <features><acpi/><kvm><hidden state='on'/></kvm></features>\n"
        "  <cpu mode='custom' match='exact'><model>Skylake-Server</model><topology sockets='1' cores='2' threads='1'/>"
        "<cache mode='disable'/><feature policy='disable' name='vmx'/></cpu>\n"
        "  <clock offset='localtime'/>\n"
        "  <devices>\n"
        "    <emulator>/opt/qemu/bin/qemu-system-x86_64</emulator>\n"
        "    <!-- its root disk -->\n"
        "    <disk type='block' device='disk'><driver name='qemu' type='raw' iothread='5'/><source dev='/dev/vg/root'/>"
        "<target dev='vda' bus='virtio'/><address type='pci' domain='0' bus='0x04' slot='0' function='0'/></disk>\n"
        "    <controller type='pci' index='0' model='pcie-root'><pcihole64 "
        "unit='KiB'>1048576</pcihole64></controller>\n"
        "    <controller type='pci' index='1' model='pcie-root-port'/>\n"
        "    <controller type='pci' index='2' model='pcie-expander-bus'><target busNr='0xc8'/></controller>\n"
        "    <filesystem type='mount' accessmode='passthrough'><driver type='virtiofs'/><source dir='/srv'/>"
        "<target dir='srv'/></filesystem>\n"
        "    <interface type='bridge'><source bridge='br0'/><model type='virtio'/></interface>\n"
        "    <memballoon model='virtio'/>\n"
        "  </devices>\n"
        "  <qemu:commandline><qemu:arg value='-set'/><qemu:arg value='device.ua-gpu0.x-vga=off'/></qemu:commandline>\n"
        "</domain>\n";

TEST(test_template) {
        _cleanup_case_ Case c = one_node("vm18");

        add_gpu(&c, "0000:c1:00.0", -1, 64 * GIB, "gpu1");
        assert_int_equal(inventory_finish(c.inv), 0);
        c.a->page_size = 2ULL << 20;
        assert_golden(&c, template, "domxml-template.xml");

        /* The output is a valid template itself. Its document differs only by the added controllers. */
        _cleanup_free_ char *text = make(&c, template);
        _cleanup_refusal_ Refusal refusal = { 0 };
        char *again = NULL;
        assert_int_equal(
                domxml_make(c.inv, c.config, c.a, &(DomainTemplate) { text, true }, GUEST_INFO_GUEST, &again, &refusal),
                VERDICT_INVALID_TEMPLATE);
        assert_non_null(strstr(refusal.message, "0000:82:00.0"));
}

/* Added controllers begin above the highest index in use, and below the lowest bus of the template's expanders. */
TEST(test_template_leaves_room) {
        _cleanup_case_ Case c = one_node("vm19");
        _cleanup_free_ char *text = make(&c, template);

        assert_has(text,
                   "<controller type=\"pci\" index=\"5\" model=\"pcie-expander-bus\">\n      <target busNr=\"195\">");
        assert_has(text, "<pcihole64 unit=\"KiB\">1048576</pcihole64>");
}

/* Only the features of <cpu> are kept, and <cputune> without its pins. */
TEST(test_cpus_of_template) {
        _cleanup_case_ Case c = one_node("vm18");
        _cleanup_free_ char *none = make(&c, "<domain type='kvm'/>"), *text = NULL;

        text = make(&c, "<domain type='kvm'><cpu/><cputune><!-- ours --><vcpupin vcpu='0' cpuset='0'/></cputune>"
                        "<cpu mode='custom'><model>Skylake-Server</model></cpu></domain>");
        assert_string_equal(text, none);
}

/* Without KVM the host's CPU cannot be passed through, and libvirt refuses single pins. */
TEST(test_emulated) {
        _cleanup_case_ Case c = one_node("vm20");

        assert_golden(&c, "<domain type='qemu'><os><type>hvm</type></os></domain>", "domxml-emulated.xml");
}

TEST(test_template_refused) {
        static const struct {
                const char *text, *word;
        } bad[] = {
                { "", "template" },
                { "hello", "template" },
                { "<domain type='kvm'>", "template" },
                { "<domain type='kvm'>&undefined;</domain>", "template" },
                { "<network/>", "<domain>" },
                { "<domain type='kvm' xmlns='urn:x'/>", "<domain>" },
                { "<!DOCTYPE domain [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><domain "
                  "type='kvm'><title>&e;</title></domain>",
                  "DOCTYPE" },
                { "<domain/>", "type" },
                { "<domain type='kvm' xmlns:a='urn:a&amp;b'/>", "namespace" },
                { "<domain type='kvm'><metadata><a xmlns='urn:&lt;b'/></metadata></domain>", "namespace" },
                { "<domain type='xen'/>", "'xen'" },
                { "<domain type='&#10;'/>", "'\\x0a'" },
                { "<domain type='kvm'><devices/><devices/></domain>", "<devices>" },
                { "<domain type='kvm'><os><type machine='microvm'/></os></domain>", "microvm" },
                { "<domain type='kvm'><os><type arch='aarch64' machine='virt'/></os></domain>", "aarch64" },
                { "<domain type='kvm'><devices><controller type='pci' index='0' model='pci-root'/></devices></domain>",
                  "pci-root" },
                { "<domain type='kvm'><devices><controller type='pci' index='0' "
                  "model='pcie-root-port'/></devices></domain>",
                  "0" },
                { "<domain type='kvm'><devices><controller type='pci' index='x' "
                  "model='pcie-root-port'/></devices></domain>",
                  "index" },
                { "<domain type='kvm'><devices><controller type='pci' index='2' model='pcie-expander-bus'><target "
                  "busNr='256'/>"
                  "</controller></devices></domain>",
                  "busNr" },
                { "<domain type='kvm'><devices><hostdev mode='subsystem' type='pci' managed='yes'><source>"
                  "<address domain='0x0000' bus='0x82' slot='0x00' "
                  "function='0x0'/></source></hostdev></devices></domain>",
                  "0000:82:00.0" },
                { "<domain type='kvm'><devices><interface type='hostdev'><source>"
                  "<address type='pci' bus='0x05' slot='0x10' function='1'/></source></interface></devices></domain>",
                  "0000:05:10.1" },
                { "<domain type='kvm'><devices><disk type='nvme'><source type='pci' managed='yes' namespace='1'>"
                  "<address domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></source></disk></devices></domain>",
                  "0000:01:00.0" },
                { "<domain type='kvm'><devices><hostdev type='pci'/></devices></domain>", "<hostdev>" },
                { "<domain type='kvm'><devices><disk><alias name='ua-gpu0'/></disk></devices></domain>", "'ua-gpu0'" },
                { "<domain type='kvm'><devices><controller type='pci' index='3' model='pcie-root-port'/><controller "
                  "type='pci' index='3' model='pcie-root-port'/></devices></domain>",
                  "the index 3" },
                { "<domain type='kvm'><devices><controller type='pci' index='0' model='pcie-root'/><controller "
                  "type='pci' model='pcie-root'/></devices></domain>",
                  "pcie-root" },
                { "<domain type='kvm'><devices><controller type='pci' index='0x2' "
                  "model='pcie-root-port'/></devices></domain>",
                  "'0x2'" },
                { "<domain type='kvm'><devices><controller type='pci' index=' 2' "
                  "model='pcie-root-port'/></devices></domain>",
                  "' 2'" },
                { "<domain type='kvm'><devices><controller type='pci' index='256' "
                  "model='pcie-root-port'/></devices></domain>",
                  "'256'" },
                { "<domain type='kvm'><devices><hostdev mode='subsystem' type='PCI'/></devices></domain>",
                  "<hostdev>" },
                { "<domain type='kvm'><devices><hostdev mode='subsystem'/></devices></domain>", "<hostdev>" },
                { "<domain type='kvm'><devices><memory model='dimm'/></devices></domain>", "memory device" },
                { "<domain type='kvm' xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><q:commandline>"
                  "<q:arg value='-device'/><q:arg value='vfio-pci,host=82:00.0'/></q:commandline></domain>",
                  "<qemu:commandline>" },
                { "<domain type='kvm'><cpu><feature name='vmx'/></cpu><cpu><feature name='vmx'/></cpu></domain>",
                  "<cpu>" },
                { "<domain type='qemu'><cputune><vcpusched vcpus='0' scheduler='fifo' "
                  "priority='1'/></cputune></domain>",
                  "<vcpusched> in <cputune>" },
                { "<domain type='qemu'><cputune><shares>1</shares><quota>1000</quota></cputune></domain>", "<quota>" },
        };
        _cleanup_case_ Case c = one_node("vm21");

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_refused(&c, bad[i].text, VERDICT_INVALID_TEMPLATE, bad[i].word);
}

/* A host device, or a value that is not permitted, is found in each element where libvirt has it. */
TEST(test_permitted) {
        static const struct {
                const char *device;
                bool permitted;
        } cases[] = {
                { "<disk type='vhostuser'/>", true },
                { "<disk type='file'><backingStore type='file'/></disk>", true },
                { "<interface type='direct'><source dev='eth0' mode='bridge'/></interface>", true },
                { "<interface type='vhostuser'><source type='unix' path='/run/vhu' mode='client'/></interface>", true },
                { "<tpm model='tpm-crb'><backend type='emulator'/></tpm>", true },
                { "<rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>", true },
                { "<graphics type='spice'><gl enable='no'/></graphics>", true },
                /* Not in the list, but a part of one of its words. */
                { "<disk type='vhost'/>", false },
                { "<disk type='user'/>", false },
                { "<disk type='hostus'/>", false },
                { "<disk type=''/>", false },
                { "<disk type='nvme'/>", false },
                { "<disk type='file'><backingStore type='nvme'/></disk>", false },
                { "<disk type='file'><backingStore type='file'><backingStore type='nvme'/></backingStore></disk>",
                  false },
                { "<disk type='file'><mirror type='vhostvdpa'/></disk>", false },
                { "<interface type='direct'><source dev='eth0' mode='passthrough'/></interface>", false },
                { "<tpm model='tpm-crb'><backend type='passthrough'/></tpm>", false },
                { "<rng model='virtio'><backend model='egd' type='dev'/></rng>", false },
                { "<graphics type='egl-headless'/>", false },
                { "<graphics type='spice'><gl enable='yes'/></graphics>", false },
                { "<graphics type='spice'><gl enable='no' rendernode='/dev/dri/renderD128'/></graphics>", false },
                { "<video><model type='virtio'><acceleration rendernode='/dev/dri/renderD128'/></model></video>",
                  false },
                { "<disk type='file'><source><address type='pci' bus='1' slot='0'/></source></disk>", false },
                /* Paths. */
                { "<disk type='file'><source file='/dev/vg/vfio'/></disk>", true },
                { "<disk type='file'><source file='/dev/vfiox/1'/></disk>", true },
                { "<filesystem type='mount'><source dir='/srv'/><target dir='/dev/vfio'/></filesystem>", true },
                { "<disk type='file'><mirror type='file'><source file='/dev/vfio/1'/></mirror></disk>", false },
                { "<interface type='vhostuser'><source type='unix' path='/dev//nvidia0'/></interface>", false },
                { "<shmem name='x'><server path='/run/../dev/./shm/passthroughd-a'/></shmem>", false },
                { "<filesystem type='mount'><source dir='/dev/shm'/></filesystem>", false },
                { "<input later='/dev/vfio/1'/>", false },
                { "<watchdog><later><path>dev/dri/card0</path></later></watchdog>", false },
                { "<disk type='block'><source dev='/dev/uio0'/></disk>", false },
                { "<disk type='block'><source dev='/dev/mst/mt4129_pciconf0'/></disk>", false },
                { "<disk type='block'><source dev='/dev/dax0.0'/></disk>", false },
                { "<disk type='block'><source dev='/dev/nvme0'/></disk>", false },
                { "<disk type='block'><source dev='/dev/ng0n1'/></disk>", false },
                { "<disk type='block'><source dev='/dev/nvme0n1'/></disk>", true },
                { "<disk type='block'><source dev='/dev/nvme12n1p3'/></disk>", true },
                { "<shmem name='../vfio/1'/>", false },
                { "<unheard-of/>", false },
        };
        _cleanup_case_ Case c = one_node("vm28");

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text =
                        string_format("<domain type='kvm'><devices>%s</devices></domain>", cases[i].device);

                if (cases[i].permitted)
                        free(make(&c, text));
                else
                        assert_refused(&c, text, VERDICT_INVALID_TEMPLATE, "");
        }
}

/* Two PCI addresses are equal if all four numbers are. All zeros means no address. */
TEST(test_places) {
        static const struct {
                const char *first, *second;
                bool clash;
        } cases[] = {
                { "domain='1' bus='0' slot='0'", "domain='1' bus='0' slot='0'", true },
                { "bus='1'", "bus='1'", true },
                { "slot='1'", "slot='1'", true },
                { "function='1'", "function='1'", true },
                { "bus='1' slot='2' function='3'", "bus='1' slot='2' function='3'", true },
                { "bus='1' slot='2' function='3'", "bus='2' slot='2' function='3'", false },
                { "bus='1' slot='2' function='3'", "bus='1' slot='3' function='3'", false },
                { "bus='1' slot='2' function='3'", "bus='1' slot='2' function='4'", false },
                { "bus='0' slot='0'", "bus='0' slot='0'", false },
                { "", "", false },
        };
        _cleanup_case_ Case c = one_node("vm29");

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = string_format(
                        "<domain type='kvm'><devices><sound model='ich6'><address type='pci' %s/></sound>"
                        "<watchdog model='i6300esb'><address type='pci' %s/></watchdog></devices></domain>",
                        cases[i].first, cases[i].second);

                if (cases[i].clash)
                        assert_refused(&c, text, VERDICT_INVALID_TEMPLATE, "<sound>");
                else
                        free(make(&c, text));
        }
}

/* libvirt adds the controllers 1 to 199, each with a bus of pcie.0, so the expander cannot have 60 more. */
TEST(test_index_gap) {
        static const char head[] = "<domain type='kvm'><devices><controller type='pci' index='200' "
                                   "model='pcie-root-port'/><controller type='pci' index='201' "
                                   "model='pcie-expander-bus'>";
        _cleanup_case_ Case c = one_node("vm26");
        _cleanup_free_ char *fits = NULL, *full = NULL, *unplaced = NULL, *text = NULL;

        /* 1 root, 201 indices, 8 spare; added: an expander, two ports, two spare. */
        assert_int_equal(string_replace(&fits, "%s<target busNr='215'/></controller></devices></domain>", head), 0);
        assert_int_equal(string_replace(&full, "%s<target busNr='214'/></controller></devices></domain>", head), 0);
        assert_int_equal(string_replace(&unplaced, "%s</controller></devices></domain>", head), 0);
        text = make(&c, fits);
        assert_has(text, "<target busNr=\"210\">");
        assert_refused(&c, full, VERDICT_INVALID_REQUEST, "256 PCI buses");
        free(make(&c, unplaced));
}

/* Aliases of held devices and of other slots are accepted, and controllers without a number. */
TEST(test_template_accepted) {
        _cleanup_case_ Case c = one_node("vm27");

        free(make(&c, "<domain type='kvm'><devices><disk><alias name='ua-gpu00'/></disk>"
                      "<controller type='pci' model='pcie-root'/><controller type='pci' model='pcie-root-port'/>"
                      "<controller type='pci' model='pcie-root-port'/><controller type='pci' index='010' "
                      "model='pcie-root-port'/><controller type='usb' index='7'/><controller type='pci' index='7' "
                      "model='pcie-root-port'/><input type='tablet'/></devices></domain>"));
}

TEST(test_template_too_large) {
        _cleanup_case_ Case c = one_node("vm22");
        _cleanup_free_ char *text = calloc(1, DOMXML_TEMPLATE_MAX + 2U);

        assert_non_null(text);
        memset(text, ' ', DOMXML_TEMPLATE_MAX + 1U);
        memcpy(text, "<domain type='kvm'/>", 20);
        assert_refused(&c, text, VERDICT_INVALID_TEMPLATE, "256 KiB");
        text[DOMXML_TEMPLATE_MAX] = '\0';
        free(make(&c, text));
}

/* Returns the CPU time to refuse a template of that size, whose last element is repeated. */
static clock_t time_of_many(const Case *c, int size) {
        _cleanup_free_ char *text = calloc(1, (size_t) size + 64);
        clock_t start;
        int n = sprintf(text, "<domain type='kvm'>");

        for (unsigned i = 0; n < size - 64; i++)
                n += sprintf(text + n, "<a%05x/>", i);
        (void) sprintf(text + n, "<last/><last/></domain>");
        start = clock();
        assert_refused(c, text, VERDICT_INVALID_TEMPLATE, "<last>");
        return clock() - start;
}

/* The daemon answers no other call meanwhile: eight times the elements must take far less than 64 times as long. */
TEST(test_many_elements) {
        _cleanup_case_ Case c = one_node("vm23");
        clock_t few = time_of_many(&c, DOMXML_TEMPLATE_MAX / 8), many = time_of_many(&c, DOMXML_TEMPLATE_MAX);

        assert_true(many < 32 * MAX(few, 1));
}

TEST(test_deterministic) {
        _cleanup_case_ Case c = one_node("vm25");
        _cleanup_free_ char *first = make(&c, template), *second = make(&c, template);

        assert_string_equal(first, second);
}

TEST(test_sentences) {
        assert_sentences("templates.txt");
}

TEST_GROUP(NULL, teardown)
