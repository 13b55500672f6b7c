/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <stdio.h>

#include "unit.h"

#include "config/config.h"
#include "sentences.h"
#include "util/strings.h"

static Config *parse(const char *text) {
        Config *c = NULL;

        assert_int_equal(config_parse("test.conf", text, strlen(text), &c), 0);
        return c;
}

#define _cleanup_config_ _cleanup_(cleanup_config_free)

TEST(test_names) {
        for (int a = 0; a < _AFTER_RELEASE_MAX; a++)
                assert_int_equal(after_release_from_string(after_release_to_string((AfterRelease) a)), a);
        for (int h = 0; h < _HYPERVISOR_MAX; h++)
                assert_int_equal(hypervisor_from_string(hypervisor_to_string((Hypervisor) h)), h);
        assert_null(hypervisor_to_string(_HYPERVISOR_MAX));
        assert_int_equal(hypervisor_from_string("x"), _HYPERVISOR_INVALID);
        for (int b = 0; b < _POOL_BIND_MAX; b++)
                assert_int_equal(pool_bind_from_string(pool_bind_to_string((PoolBind) b)), b);
        for (int i = 0; i < _VF_PLACEMENT_MAX; i++)
                assert_int_equal(vf_placement_from_string(vf_placement_to_string((VfPlacement) i)), i);
        assert_null(vf_placement_to_string(_VF_PLACEMENT_MAX));
        assert_int_equal(vf_placement_from_string("x"), _VF_PLACEMENT_INVALID);
        for (int i = 0; i < _VF_IDENTITY_MAX; i++)
                assert_int_equal(vf_identity_from_string(vf_identity_to_string((VfIdentity) i)), i);
        assert_null(vf_identity_to_string(_VF_IDENTITY_MAX));
        for (int i = 0; i < _IOMMUFD_MODE_MAX; i++)
                assert_int_equal(iommufd_mode_from_string(iommufd_mode_to_string((IommufdMode) i)), i);
        assert_null(iommufd_mode_to_string(_IOMMUFD_MODE_MAX));
        assert_int_equal(vf_identity_from_string("x"), _VF_IDENTITY_INVALID);
        assert_null(after_release_to_string(_AFTER_RELEASE_MAX));
        assert_null(pool_bind_to_string(_POOL_BIND_MAX));
        assert_int_equal(after_release_from_string("x"), _AFTER_RELEASE_INVALID);
        assert_int_equal(pool_bind_from_string("x"), _POOL_BIND_INVALID);
}

TEST(test_defaults) {
        _cleanup_config_ Config *c = parse("");

        assert_int_equal(c->n_files, 1);
        assert_string_equal(c->files[0], "test.conf");
        assert_int_equal(c->hypervisor, HYPERVISOR_KVM);
        assert_string_equal(c->vfio_driver, "vfio-pci");
        assert_true(c->variants);
        assert_int_equal(c->job_timeout, 60);
        assert_true(cpuset_is_empty(&c->housekeeping));
        assert_true(c->reserve_memory == UINT64_C(1) << 30);
        assert_int_equal(c->spare_ports, 1);
        assert_int_equal(c->iommufd, IOMMUFD_MODE_AUTO);
        assert_int_equal(c->guest_nodes, 16);
        assert_int_equal(c->after_release, AFTER_RELEASE_RESTORE);
        assert_string_equal(c->shared_memory_group, "kvm");
        assert_null(c->shared_memory_server);
        assert_string_equal(c->libvirt, "qemu:///system");
        assert_int_equal(c->n_pools + c->n_excludes + c->n_problems, 0);
}

TEST(test_full) {
        _cleanup_config_ Config *c = parse("\xef\xbb\xbf[Daemon] # the mark of some editors\r\n"
                                           "VfioDriver = mlx5_vfio_pci ; a variant driver\n"
                                           "\tJobTimeoutSec=3600\n"
                                           "  HousekeepingCpus=0-1,64\n"
                                           "ReserveMemory=2G\n"
                                           "SparePorts=8\n"
                                           "AfterRelease=keep\n"
                                           "SharedMemoryGroup=qemu\n"
                                           "SharedMemoryServer=/run/ivshmem/%n.sock\n"
                                           "Libvirt=\n"
                                           "\n# comment\n; comment \xff\n"
                                           "[Pool gpu]\n"
                                           "Match=vendor=10de\tclass=03\n"
                                           "Match=id=1002:740f\n"
                                           "[Pool  ib-vf]\n"
                                           "Match=vendor=0x15b3 type=vf pf=0000:3b:00.* numa=1 subsystem=15B3:0058\n"
                                           "VirtualFunctions=4\n"
                                           "Bind=start\n"
                                           "[Exclude]\n"
                                           "Match=address=0000:01:00.0");

        for (size_t i = 0; i < c->n_problems; i++)
                fail_msg("line %u: %s", c->problems[i].line, c->problems[i].message);
        assert_string_equal(c->vfio_driver, "mlx5_vfio_pci");
        assert_false(c->variants);
        assert_int_equal(c->job_timeout, 3600);
        assert_int_equal(cpuset_count(&c->housekeeping), 3);
        assert_true(c->reserve_memory == UINT64_C(2) << 30);
        assert_int_equal(c->spare_ports, 8);
        assert_int_equal(c->after_release, AFTER_RELEASE_KEEP);
        assert_string_equal(c->shared_memory_group, "qemu");
        assert_string_equal(c->shared_memory_server, "/run/ivshmem/%n.sock");
        assert_null(c->libvirt);

        assert_int_equal(c->n_pools, 2);
        const Pool *gpu = config_find_pool(c, "gpu"), *vf = config_find_pool(c, "ib-vf");
        assert_ptr_equal(gpu, &c->pools[0]);
        assert_int_equal(gpu->place.line, 14);
        assert_int_equal(gpu->n_matches, 2);
        assert_int_equal(gpu->matches[1].place.line, 16);
        assert_int_equal(gpu->matches[1].device, 0x740f);
        assert_int_equal(gpu->bind, POOL_BIND_ALLOCATE);
        assert_int_equal(gpu->virtual_functions, 0);
        assert_int_equal(vf->virtual_functions, 4);
        assert_int_equal(vf->bind, POOL_BIND_START);
        assert_int_equal(vf->matches[0].vendor, 0x15b3);
        assert_int_equal(vf->matches[0].subsystem_device, 0x58);
        assert_int_equal(vf->matches[0].type, PCI_TYPE_VF);
        assert_int_equal(vf->matches[0].numa, 1);
        assert_int_equal(c->n_excludes, 1);
        assert_null(config_find_pool(c, "none"));
}

/* The default URI of libvirt is that of the hypervisor. Libvirt= names another one, or none. */
TEST(test_hypervisor) {
        static const struct {
                const char *text, *libvirt;
                Hypervisor hypervisor;
        } cases[] = {
                { "[Daemon]\nHypervisor=xen\n", "xen:///system", HYPERVISOR_XEN },
                { "[Daemon]\nHypervisor=kvm\n", "qemu:///system", HYPERVISOR_KVM },
                { "[Daemon]\nHypervisor=xen\nHypervisor=\n", "qemu:///system", HYPERVISOR_KVM },
                { "[Daemon]\nLibvirt=qemu:///system\nHypervisor=xen\n", "qemu:///system", HYPERVISOR_XEN },
                { "[Daemon]\nHypervisor=xen\nLibvirt=\n", NULL, HYPERVISOR_XEN },
        };
        _cleanup_config_ Config *with = parse("[Daemon]\nIommufd=yes\nGuestNodes=64\n"),
                                *without = parse("[Daemon]\nGuestNodes=0\nGuestNodes=1025\n");

        assert_int_equal(with->iommufd, IOMMUFD_MODE_YES);
        assert_int_equal(with->guest_nodes, 64);
        assert_int_equal(without->n_problems, 2);
        assert_int_equal(without->guest_nodes, 16);

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_config_ Config *c = parse(cases[i].text);

                assert_int_equal(c->n_problems, 0);
                assert_int_equal(c->hypervisor, cases[i].hypervisor);
                assert_true(streq_ptr(c->libvirt, cases[i].libvirt));
        }
}

#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* Each broken line is a problem. The correct line after it still counts. */
TEST(test_problems) {
        static const char *const cases[] = {
                /* from line 2 on, in [Daemon] */
                "nonsense",
                "Foo=1",
                "vfiodriver=x",
                "JobTimeoutSec=0",
                "JobTimeoutSec=3601",
                "Hypervisor=bhyve",
                "VfioDriver=../x",
                "HousekeepingCpus=3-1",
                "ReserveMemory=1.5G",
                "SparePorts=9",
                "AfterRelease=forget",
                "Libvirt=system",
                "Libvirt=qemu:///a b",
                "SharedMemoryGroup=a b",
                "SharedMemoryServer=run/%n",
                "SharedMemoryServer=/run/one.sock",
                "SharedMemoryServer=/run/%n/%n",
                "SharedMemoryServer=/run/%s%n",
                "SharedMemoryServer=/run/../%n",
                "SharedMemoryServer=/run/%n.a-path-that-is-longer-than-that-of-a-socket",
                "VfioDriver=\x01",
                "VfioDriver=\xff",
                "VfioDriver=" X50 X50 X50 X50,
                "[Daemon\n[Daemon]",
                "[Daemon] x\n[Daemon]",
                "[Demon]\nIgnored=1\nignored\n[Daemon]",
                "[Pool]\nMatch=type=vf\n[Daemon]",
                "[Pool GPU]\nMatch=type=vf\n[Daemon]",
                "[Pool -a]\n[Daemon]",
                "[Pool " X50 "xxxxxxxxxxxxxx]\n[Daemon]",
                "[Pool a]\n[Daemon]",
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = NULL;
                _cleanup_config_ Config *c = NULL;

                assert_int_equal(string_replace(&text, "[Daemon]\n%s\nJobTimeoutSec=77\n", cases[i]), 0);
                c = parse(text);
                if (c->n_problems != 1)
                        fail_msg("'%s' gives %zu problems", cases[i], c->n_problems);
                record(cases[i], c->problems[0].message);
                assert_string_equal(c->problems[0].file, "test.conf");
                assert_int_equal(c->problems[0].line, 2);
                assert_int_equal(c->job_timeout, 77);
        }
}

TEST(test_fabric) {
        static const char *const bad[] = { "Partitions=hgx",        "Partition=1",
                                           "Partition=1=",          "Partition=1=0,1",
                                           "Partition=1=64",        "Partition=65536=1",
                                           "Partition=x=1",         "Module=0000:1b:00.0",
                                           "Module=0000:1b:00.0=0", "Module=0000:1b:00.0=64",
                                           "Module=1b:00.0=1",      "Module=0000:2b:00.0.5=3",
                                           "Module=0000:2b:00.0=5", "Frob=1",
                                           "Manager=127.0.0.1:0",   "Manager=:6666" };
        _cleanup_config_ Config *c = parse("[Fabric]\nPartitions=hgx-a100\nPartitions=hgx-h100\nPartition=20=1-3\n"
                                           "Partition=3=2,4\nModule=0000:1b:00.0=4\nModule=0000:1b:00.0=5\n"
                                           "Module=0000:2b:00.0=4\n"
                                           "[Pool a]\nMatch=class=03\nFabric=yes\n[Pool b]\nMatch=class=02\n"),
                                *lost = parse(
                                        "[Fabric]\nPartitions=hgx-a100\nModule=0000:1b:00.0=4\nPartitions=\nModule=\n"
                                        "[Pool a]\nMatch=class=03\nFabric=yes\n");

        assert_int_equal(c->n_problems, 0);
        assert_int_equal(c->fabric.n, 16);
        assert_true(fabric_table_find(&c->fabric, 20)->modules == 0xe);
        assert_true(fabric_table_find(&c->fabric, 3)->modules == 0x14);
        assert_int_equal(c->n_modules, 2);
        assert_int_equal(config_module(c, &(PciDevice) { .address.bus = 0x1b }), 5);
        assert_int_equal(config_module(c, &(PciDevice) { .address.bus = 0x2b }), 4);
        assert_int_equal(config_module(c, &(PciDevice) { .address.bus = 0x3b }), 0);
        assert_int_equal(config_module(c, &(PciDevice) { .address.bus = 0x3b, .module = 7 }), 7);
        assert_int_equal(config_module(c, &(PciDevice) { .address.bus = 0x1b, .module = 7 }), 5);
        assert_true(c->pools[0].fabric);
        assert_false(c->pools[1].fabric);
        assert_int_equal(lost->fabric.n + lost->n_modules, 0);
        assert_int_equal(lost->n_problems, 1);
        record("Fabric=yes without partitions", lost->problems[0].message);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_free_ char *text = NULL;
                _cleanup_config_ Config *broken = NULL;

                assert_int_equal(string_replace(&text, "[Fabric]\nModule=0000:1b:00.0=5\n%s\n", bad[i]), 0);
                broken = parse(text);
                if (broken->n_problems != 1)
                        fail_msg("'%s' gives %zu problems", bad[i], broken->n_problems);
                record(bad[i], broken->problems[0].message);
                assert_int_equal(broken->n_modules, 1);
                assert_int_equal(broken->fabric.n, 0);
        }
}

TEST(test_services) {
        static const char *const bad[] = { "Kind=juice",
                                           "Endpoint=gpu1",
                                           "Endpoint=gpu1:9999",
                                           "Endpoint=gpu1 slots=1",
                                           "Endpoint=gpu1:0 slots=1",
                                           "Endpoint=gpu1:65536 slots=1",
                                           "Endpoint=gpu1:09999 slots=1",
                                           "Endpoint=gpu1.:9999 slots=1",
                                           "Endpoint=:9999 slots=1",
                                           "Endpoint=-a:9999 slots=1",
                                           "Endpoint=a_b:9999 slots=1",
                                           "Endpoint=[::1]:9999 slots=1",
                                           "Endpoint=gpu1:9999 slots=1025",
                                           "Endpoint=gpu1:9999 slots=-1",
                                           "Endpoint=gpu1:9999 slots=1 slots=2",
                                           "Endpoint=gpu1:9999 2",
                                           "Health=http",
                                           "Health=yes",
                                           "Via=IB",
                                           "Variables=A",
                                           "Variables==b",
                                           "Variables=1A=b",
                                           "Variables=A=b C",
                                           "Variables=A=$b",
                                           "Variables=A='b'",
                                           "Variables=A=%s",
                                           "Variables=A=b%",
                                           "Match=class=03",
                                           "Endpoint=taken:1 slots=1" };
        _cleanup_config_ Config *c = parse("[Pool ib-vf]\nMatch=type=vf\n[Service remote]\nKind=rcuda\nVia=ib-vf\n"
                                           "Endpoint=GPU1.example.org:9999 slots=2\nEndpoint=10.0.0.2:8308 slots=1024\n"
                                           "Endpoint=gpu1.example.org:9999 slots=0\nVariables=A=b  C=%h:%p,%n\n"
                                           "[Service own]\nEndpoint=a:1 slots=1\nEndpoint=\nEndpoint=b:1 slots=3\n"
                                           "Variables=A=b\nHealth=tcp\n[Service back]\nKind=rcuda\nEndpoint=c:1 "
                                           "slots=1\nHealth=tcp\nHealth=\n"),
                                *lost = parse(
                                        "[Service a]\nKind=lupine\n[Service b]\nEndpoint=b:1 slots=1\n[Service c]\n"
                                        "Kind=rcuda\nEndpoint=c:1 slots=1\nVia=none\n[Service e]\nKind=rcuda\n"
                                        "Endpoint=e:1 slots=1\nVia=n\n[Pool n]\nMatch=class=02\nScheduler=nova\n"
                                        "[Service d]\nKind=rcuda\n"
                                        "Endpoint=d:1 slots=1\n[Pool d]\nMatch=class=03\n[Service]\n[Service A]\n"
                                        "[Service a]\n");

        assert_int_equal(c->n_problems, 0);
        assert_int_equal(c->n_services, 3);
        assert_int_equal(c->services[0].health, REMOTE_HEALTH_NONE);
        assert_int_equal(c->services[1].health, REMOTE_HEALTH_TCP);
        assert_int_equal(c->services[2].health, REMOTE_HEALTH_NONE);
        assert_int_equal(c->services[0].kind, REMOTE_KIND_RCUDA);
        assert_string_equal(c->services[0].via, "ib-vf");
        assert_string_equal(c->services[0].variables, "A=b  C=%h:%p,%n");
        assert_int_equal(c->services[0].n_endpoints, 2);
        assert_int_equal(config_endpoint_slots(c, "gpu1.example.org:9999"), 0);
        assert_int_equal(config_endpoint_slots(c, "10.0.0.2:8308"), 1024);
        assert_int_equal(config_endpoint_slots(c, "a:1"), 0);
        assert_int_equal(c->services[1].kind, REMOTE_KIND_CUSTOM);
        assert_int_equal(c->services[1].n_endpoints, 1);
        assert_true(config_find_service(c, "own") == &c->services[1] && !config_find_service(c, "ib-vf"));
        assert_int_equal(lost->n_services, 4);
        assert_null(config_find_service(lost, "d"));
        assert_null(lost->block_reason);
        assert_int_equal(lost->n_problems, 8);
        for (size_t i = 0; i < lost->n_problems; i++)
                record("a service", lost->problems[i].message);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_free_ char *text = NULL;
                _cleanup_config_ Config *broken = NULL;

                assert_int_equal(string_replace(&text,
                                                "[Service first]\nKind=rcuda\nEndpoint=taken:1 slots=1\n[Service "
                                                "second]\nKind=lupine\nEndpoint=good:1 slots=1\n%s\n",
                                                bad[i]),
                                 0);
                broken = parse(text);
                if (broken->n_problems != 1)
                        fail_msg("'%s' gives %zu problems", bad[i], broken->n_problems);
                record(bad[i], broken->problems[0].message);
                assert_int_equal(broken->services[1].n_endpoints, 1);
                assert_int_equal(broken->services[1].kind, REMOTE_KIND_LUPINE);
        }
}

/* Names of units for systemd. An invalid name drops the whole list. */
TEST(test_stop_services) {
        static const char *const bad[] = { "a.service;rm", "nvidia-dcgm",
                                           "a@.service",   "../a.service",
                                           ".service",     "passthroughd.service",
                                           "-.path",       "a.service dbus.socket",
                                           "multi.target", "@x.service" };
        _cleanup_config_ Config *c =
                parse("[Pool a]\nMatch=type=vf\nStopServices=x.service\nStopServices= b@1.service  a-\\x2d.socket\n");

        assert_int_equal(c->n_problems, 0);
        assert_int_equal(c->pools[0].n_stop_services, 2);
        assert_string_equal(c->pools[0].stop_services[0], "b@1.service");
        assert_string_equal(c->pools[0].stop_services[1], "a-\\x2d.socket");
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_free_ char *text = NULL;
                _cleanup_config_ Config *broken = NULL;

                assert_int_equal(string_replace(&text, "[Pool a]\nMatch=type=vf\nStopServices=x.service %s\n", bad[i]),
                                 0);
                broken = parse(text);
                assert_int_equal(broken->n_problems, 1);
                record(bad[i], broken->problems[0].message);
                assert_int_equal(broken->problems[0].line, 3);
                assert_int_equal(broken->pools[0].n_stop_services, 0);
        }
}

TEST(test_cleaner) {
        static const char *const bad[] = { "wipe",
                                           "./wipe",
                                           "/bin/sh -c 'rm x'",
                                           "/bin/echo $HOME",
                                           "/bin/echo a\\x20b",
                                           "/x 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16" };
        _cleanup_config_ Config *c = parse("[Pool a]\nMatch=type=vf\nCleanerCommand=/usr/bin/wipe --all\n"
                                           "[Pool b]\nMatch=type=pf\nCleanerCommand=/x\nCleanerCommand=\n");

        assert_int_equal(c->n_problems, 0);
        assert_string_equal(c->pools[0].cleaner, "/usr/bin/wipe --all");
        assert_null(c->pools[1].cleaner);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_free_ char *text = NULL;
                _cleanup_config_ Config *broken = NULL;

                assert_int_equal(string_replace(&text, "[Pool a]\nMatch=type=vf\nCleanerCommand=%s\n", bad[i]), 0);
                broken = parse(text);
                assert_int_equal(broken->n_problems, 1);
                record(bad[i], broken->problems[0].message);
                assert_null(broken->pools[0].cleaner);
        }
}

TEST(test_problem_lines) {
        static const unsigned lines[] = { 1, 2, 6, 7, 9, 11, 15, 13 };
        _cleanup_config_ Config *c = parse("Match=type=vf\n"       /* 1: no section yet */
                                           "junk\n"                /* 2 */
                                           "\n"                    /* 3 */
                                           "[Pool a]\n"            /* 4 */
                                           "Match=type=vf\n"       /* 5 */
                                           "Bind=later\n"          /* 6 */
                                           "VirtualFunctions=-1\n" /* 7 */
                                           "[Exclude]\n"           /* 8 */
                                           "Bind=start\n"          /* 9 */
                                           "Match=numa=0\n"        /* 10 */
                                           "[Pool a]\n"            /* 11: again */
                                           "Match=type=pf\n"       /* 12 */
                                           "[Pool b]\n"            /* 13: only broken Match= */
                                           "Bind=start\n"          /* 14 */
                                           "Match=typ=pf");        /* 15 */

        assert_int_equal(c->n_problems, ELEMENTSOF(lines));
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                assert_int_equal(c->problems[i].line, lines[i]);
        assert_non_null(strstr(c->problems[5].message, "line 4"));
        record("[Pool a] twice", c->problems[5].message);
        assert_int_equal(c->n_pools, 2);
        assert_int_equal(c->pools[0].n_matches, 1);
        assert_int_equal(c->pools[1].bind, POOL_BIND_START);
        assert_int_equal(c->n_excludes, 1);
}

/* Versions of libinih differ in two cases: they cut a long line, or take an indented line as a continuation. */
TEST(test_lines_of_libinih) {
        static const struct {
                const char *text;
                unsigned lines[4]; /* lines of the problems */
        } cases[] = {
                { "# comment\n\n; comment\n[Daemon]\n\n#\nFoo=1\n\nFoo=2\n", { 7, 9 } },
                { "[Daemon]\n# " X50 X50 X50 X50 X50 "\nFoo=1\n", { 3 } },
                { "[Daemon]\nFoo=" X50 X50 X50 X50 X50 "\nFoo=2\n", { 2, 3 } },
                { "[Daemon]\nJobTimeoutSec=77\n  SparePorts=8\n\tFoo=1\n  junk\n", { 4, 5 } },
                { "[Daemon]\nFoo=1\njunk", { 2, 3 } },
                { "[Daemon]\r\n\r\n# comment\r\nFoo=1\r\njunk\r\nJobTimeoutSec=77\r\nFoo=2\r\n", { 4, 5, 7 } },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_config_ Config *c = parse(cases[i].text);

                for (size_t k = 0; k < ELEMENTSOF(cases[i].lines); k++)
                        if (cases[i].lines[k] != (k < c->n_problems ? c->problems[k].line : 0))
                                fail_msg("'%s': problem %zu is in line %u", cases[i].text, k,
                                         k < c->n_problems ? c->problems[k].line : 0);
                assert_int_equal(c->job_timeout, strstr(cases[i].text, "=77") ? 77 : 60);
        }
        for (size_t n = CONFIG_LINE_MAX - 1; n <= CONFIG_LINE_MAX + 2; n++) {
                _cleanup_free_ char *text = string_format("[Daemon]\nLibvirt=test:///%0*d\nFoo=1\n", (int) n - 16, 0);
                _cleanup_config_ Config *c = parse(text);
                bool fits = n <= CONFIG_LINE_MAX;

                assert_int_equal(c->n_problems, fits ? 1 : 2);
                assert_int_equal(c->problems[fits ? 0 : 1].line, 3);
                assert_int_equal(strlen(c->libvirt), fits ? n - strlen("Libvirt=") : strlen("qemu:///system"));
        }
}

TEST(test_limits) {
        _cleanup_free_ char *text = NULL;

        for (unsigned i = 0; i <= CONFIG_POOLS_MAX; i++)
                assert_int_equal(string_replace(&text, "%s[Pool p%u]\nMatch=type=vf\n", text ? text : "", i), 0);
        _cleanup_config_ Config *pools = parse(text);
        assert_int_equal(pools->n_pools, CONFIG_POOLS_MAX);
        assert_int_equal(pools->n_problems, 1);

        assert_int_equal(string_copy(&text, "[Exclude]\n"), 0);
        for (unsigned i = 0; i <= CONFIG_MATCHES_MAX; i++)
                assert_int_equal(string_replace(&text, "%sMatch=type=vf\n", text), 0);
        _cleanup_config_ Config *matches = parse(text);
        assert_int_equal(matches->n_excludes, CONFIG_MATCHES_MAX);
        assert_int_equal(matches->n_problems, 1);

        free(text);
        text = calloc(1, CONFIG_TEXT_MAX + 2);
        for (size_t i = 0; i < CONFIG_TEXT_MAX; i += 2)
                memcpy(text + i, "x\n", 2);
        _cleanup_config_ Config *problems = parse(text);
        assert_int_equal(problems->n_problems, CONFIG_PROBLEMS_MAX);
        record("too many problems", problems->problems[CONFIG_PROBLEMS_MAX - 1].message);

        text[CONFIG_TEXT_MAX] = '#';
        _cleanup_config_ Config *big = parse(text);
        assert_int_equal(big->n_problems, 1);
        assert_int_equal(big->problems[0].line, 0);
        /* The excluded devices are unknown. */
        record("too large", big->unreadable);
        record("too large", big->block_reason);
}

/* A broken line of [Exclude], or a possibly misspelt [Exclude], holds all devices back. Other broken lines do not. */
TEST(test_held_back) {
        static const struct {
                const char *text;
                unsigned line; /* 0: not held back */
        } cases[] = {
                { "[Exclude]\nMatch=type=vf\nMatch=bdf=x\n", 3 },
                { "[Exclude]\nmatch=type=vf\nMatch=bdf=x\n", 2 },
                { "[Exclude]\nMatch\n", 2 },
                { "[Exclude]\nMatch=type=vf \x01\n", 2 },
                { "[Exclude]\nMatch=" X50 X50 X50 X50 "\n", 2 },
                { "[Exclud]\nMatch=type=vf\n", 2 },
                { "[exclude]\nMatch=type=vf\n", 2 },
                { "[Exclude\nMatch=type=vf\n", 2 },
                { "[Exclude] x\nMatch=type=vf\n", 2 },
                { "Match=type=vf\n[Pool a]\nMatch=type=pf\n", 1 },
                { "Extra=1\n[Pool a]\nMatch=type=pf\n", 0 },
                { "[Frob]\nExtra=1\n[Pool a]\nMatch=type=vf\n", 0 },
                { "[Ex\x01lude]\nMatch=type=vf\n", 1 },
                { "[Pool a]\nMatch=type=vf\nExclude]\nMatch=type=pf\n", 3 },
                { "[Pool a]\nMatch=type=vf\nExclude]:\nMatch=type=pf\n", 3 },
                { "[Pool a]\nMatch=type=vf\nExclude\nMatch=type=pf\n", 3 },
                { "[Exclude]\nMatch=type=vf\n", 0 },
                { "[Daemon]\nFoo=1\n[Pool a]\nMatch=typ=vf\n[Pool A]\n[Pool]\n[Pool x\nMatch\n", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_config_ Config *c = parse(cases[i].text);
                _cleanup_free_ char *place = NULL;

                if (cases[i].line == 0) {
                        assert_null(c->block_reason);
                        continue;
                }
                assert_int_equal(string_replace(&place, "(test.conf:%u)", cases[i].line), 0);
                if (!c->block_reason || !strstr(c->block_reason, place))
                        fail_msg("'%s' gives '%s'", cases[i].text, c->block_reason ?: "nothing");
                record(cases[i].text, c->block_reason);
                assert_true(c->n_problems > 0);
        }
        _cleanup_config_ Config *c = parse(cases[0].text);
        assert_int_equal(c->n_excludes, 1);
}

/* A line with a NUL is dropped completely. The lines after it count. */
TEST(test_nul) {
        static const struct {
                const char *text;
                size_t size;
                bool block_reason;
        } cases[] = {
#define TEXT(s) s, sizeof(s) - 1
                { TEXT("[Daemon]\nVfioDriver=x\0y\nJobTimeoutSec=7\n"), false },
                { TEXT("[Daemon]\nJobTimeoutSec=6\0\nJobTimeoutSec=7"), false },
                { TEXT("[Daemon]\n\0JobTimeoutSec=6\nJobTimeoutSec=7\n"), false },
                { TEXT("[Daemon]\n[Exc\0lude]\n[Daemon]\nJobTimeoutSec=7\n"), true },
                { TEXT("[Exclude]\nMatch=type=vf\0\n[Daemon]\nJobTimeoutSec=7\n"), true },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_config_ Config *c = NULL;

                assert_int_equal(config_parse("test.conf", cases[i].text, cases[i].size, &c), 0);
                assert_int_equal(c->n_problems, 1);
                assert_int_equal(c->problems[0].line, 2);
                record("NUL", c->problems[0].message);
                assert_string_equal(c->vfio_driver, "vfio-pci");
                assert_int_equal(c->job_timeout, 7);
                assert_int_equal(!!c->block_reason, cases[i].block_reason);
                assert_int_equal(c->n_excludes, 0);
        }
}

TEST(test_virtual_functions_by_address) {
        _cleanup_config_ Config *c =
                parse("[Pool a]\nVirtualFunctions=4\nMatch=type=vf pf=0000:05:00.0\nMatch=address=0000:05:10.*\n"
                      "[Pool b]\nVirtualFunctions=4\nMatch=type=vf pf=0000:06:00.0\n"
                      "[Pool c]\nVirtualFunctions=0\nMatch=address=0000:07:10.*\n");

        assert_int_equal(c->n_problems, 1);
        assert_int_equal(c->problems[0].line, 2);
        assert_non_null(strstr(c->problems[0].message, "test.conf:4"));
        record("VirtualFunctions= with address=", c->problems[0].message);
        assert_int_equal(c->pools[0].virtual_functions, 0);
        assert_int_equal(c->pools[0].n_matches, 2);
        assert_int_equal(c->pools[1].virtual_functions, 4);
        assert_null(c->block_reason);
}

TEST(test_virtual_functions_of_others) {
        _cleanup_config_ Config *c = parse("[Pool a]\nMatch=address=0000:05:10.*\nVirtualFunctions=external\n"
                                           "[Pool b]\nMatch=type=vf\nVirtualFunctions=external\nVirtualFunctions=2\n"
                                           "[Pool c]\nMatch=type=vf\nVirtualFunctions=External\n");

        assert_int_equal(c->n_problems, 1);
        record("VirtualFunctions=External", c->problems[0].message);
        assert_true(c->pools[0].external);
        assert_int_equal(c->pools[0].virtual_functions, 0);
        assert_false(c->pools[1].external);
        assert_int_equal(c->pools[1].virtual_functions, 2);
        assert_false(c->pools[2].external);
}

TEST(test_vgpu_type) {
        _cleanup_config_ Config *
                c = parse(
                       "[Pool a]\nMatch=type=vf\nVgpuType=NVIDIA H100L-12C\n[Pool b]\nMatch=type=vf\nVgpuType=NVIDIA\n"
                       "VgpuType=\n[Pool c]\nMatch=type=vf pf=0000:05:00.0\nVgpuType=NVIDIA A\nVirtualFunctions=4\n"
                       "Bind=start\n[Pool d]\nMatch=type=vf\nVgpuType=0123456789012345678901234567890123456789012345678"
                       "901234567890123\n"),
               *nova = parse("[Pool a]\nMatch=class=03\nScheduler=nova\nVgpuType=GRID T4-8Q\n"
                             "[Pool b]\nMatch=class=02\nScheduler=nova\n"),
               *fabric = parse("[Fabric]\nPartitions=hgx-h100\n[Pool a]\nMatch=type=vf\nFabric=yes\nVgpuType=NVIDIA A\n"
                               "[Pool b]\nMatch=class=03\nFabric=yes\n");

        assert_int_equal(fabric->n_problems, 1);
        assert_int_equal(fabric->problems[0].line, 6);
        record("Fabric=yes with VgpuType=", fabric->problems[0].message);
        assert_false(fabric->pools[0].fabric);
        assert_true(fabric->pools[1].fabric);
        assert_int_equal(nova->n_problems, 1);
        assert_int_equal(nova->problems[0].line, 4);
        record("Scheduler=nova with VgpuType=", nova->problems[0].message);
        assert_int_equal(nova->pools[0].scheduler, POOL_SCHEDULER_NONE);
        assert_int_equal(nova->pools[1].scheduler, POOL_SCHEDULER_NOVA);
        assert_int_equal(c->n_problems, 2);
        assert_int_equal(c->problems[0].line, 15);
        record("VgpuType= too long", c->problems[0].message);
        assert_int_equal(c->problems[1].line, 10);
        record("VirtualFunctions= with VgpuType=", c->problems[1].message);
        assert_string_equal(c->pools[0].vgpu_type, "NVIDIA H100L-12C");
        assert_null(c->pools[1].vgpu_type);
        assert_string_equal(c->pools[2].vgpu_type, "NVIDIA A");
        assert_int_equal(c->pools[2].virtual_functions, 0);
        assert_int_equal(c->pools[2].bind, POOL_BIND_ALLOCATE);
        assert_null(c->pools[3].vgpu_type);
}

TEST(test_vf_attributes) {
        _cleanup_config_ Config *c =
                parse("[Pool a]\nMatch=type=vf\nVfAttributes=vlan=100, trust=on\nVfIdentity=stable\n"
                      "[Pool b]\nMatch=type=vf\n"
                      "[Pool c]\nMatch=type=vf\nVfAttributes=link=up\nVfAttributes=\n"
                      "VfIdentity=stable\nVfIdentity=\n");

        assert_int_equal(c->n_problems, 0);
        assert_int_equal(c->pools[0].attributes.set, VF_ATTRIBUTE_BIT(VF_VLAN) | VF_ATTRIBUTE_BIT(VF_TRUST));
        assert_int_equal(c->pools[0].attributes.value[VF_VLAN], 100);
        assert_int_equal(c->pools[0].identity, VF_IDENTITY_STABLE);
        for (size_t i = 1; i < 3; i++) {
                assert_int_equal(c->pools[i].attributes.set, 0);
                assert_int_equal(c->pools[i].identity, VF_IDENTITY_FRESH);
        }
}

TEST(test_placement_of_a_pool) {
        _cleanup_config_ Config *c = parse("[Pool a]\nMatch=type=vf\nNumaPolicy=required\nVfPlacement=pack\n"
                                           "[Pool b]\nMatch=type=vf\n"
                                           "[Pool c]\nMatch=type=vf\nNumaPolicy=socket\nNumaPolicy=\n"
                                           "VfPlacement=pack\nVfPlacement=\n"
                                           "[Pool d]\nMatch=type=vf\nNumaPolicy=near\nVfPlacement=tight\n");

        assert_int_equal(c->pools[0].numa, NUMA_POLICY_REQUIRED);
        assert_int_equal(c->pools[0].placement, VF_PLACEMENT_PACK);
        for (size_t i = 1; i < 4; i++) {
                assert_int_equal(c->pools[i].numa, NUMA_POLICY_PREFERRED);
                assert_int_equal(c->pools[i].placement, VF_PLACEMENT_SPREAD);
        }
        assert_int_equal(c->n_problems, 2);
        record("NumaPolicy=near", c->problems[0].message);
        record("VfPlacement=tight", c->problems[1].message);
}

/* The earlier line stays in effect. */
TEST(test_vf_attribute_problems) {
        static const char *const cases[] = {
                "VfAttributes=vlan",
                "VfAttributes=vlan=4095",
                "VfAttributes=qos=1",
                "VfAttributes=mac=02:00:00:00:00:01",
                "VfAttributes=link=up node-guid=02:00:00:00:00:00:00:01",
                "VfIdentity=new",
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = NULL;
                _cleanup_config_ Config *c = NULL;

                assert_int_equal(string_replace(&text,
                                                "[Pool a]\nMatch=type=vf\nVfAttributes=vlan=7\nVfIdentity=stable\n%s\n",
                                                cases[i]),
                                 0);
                c = parse(text);
                assert_int_equal(c->n_problems, 1);
                assert_int_equal(c->problems[0].line, 5);
                record(cases[i], c->problems[0].message);
                assert_int_equal(c->pools[0].attributes.set, VF_ATTRIBUTE_BIT(VF_VLAN));
                assert_int_equal(c->pools[0].attributes.value[VF_VLAN], 7);
                assert_int_equal(c->pools[0].identity, VF_IDENTITY_STABLE);
        }
}

TEST(test_sentences) {
        assert_sentences("config-lines.txt");
}
