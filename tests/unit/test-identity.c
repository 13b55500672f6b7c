/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Which parts of a text are replaced when a machine is recorded. */

#include "unit.h"

#include "replay/identity.h"
#include "util/strings.h"

#define HOST "node042"

static char *cmdline_scrub(const Identities *i, const char *text) {
        _cleanup_free_ char *copy = strdup(text);
        char *written = NULL;
        size_t size;
        FILE *f = open_memstream(&written, &size);

        assert_non_null(f);
        cmdline_write(i, copy, f);
        assert_int_equal(fclose(f), 0);
        return written;
}

static int setup(void **state) {
        Identities *i = calloc(1, sizeof(*i));

        assert_non_null(i);
        assert_int_equal(identities_init(i, false, HOST ".example.com"), 0);
        *state = i;
        return 0;
}

static int teardown(void **state) {
        identities_done(*state);
        free(*state);
        return 0;
}

static void assert_kept(const Identities *i, const char *text, bool with_host) {
        _cleanup_free_ char *copy = identities_scrub(i, text, with_host);

        assert_non_null(copy);
        assert_string_equal(copy, text);
}

/* Checks that the identity between before and after is replaced completely. */
static void assert_replaced(const Identities *i, const char *before, const char *identity, const char *after) {
        _cleanup_free_ char *text = NULL, *copy = NULL;

        assert_int_equal(string_replace(&text, "%s%s%s", before, identity, after), 0);
        copy = identities_scrub(i, text, true);
        assert_non_null(copy);
        if (strstr(copy, identity))
                fail_msg("'%s' is still in '%s'", identity, copy);
        assert_memory_equal(copy, before, strlen(before));
        assert_true(strlen(copy) > strlen(after));
        assert_string_equal(copy + strlen(copy) - strlen(after), after);
}

TEST_WITH(test_replaces, setup, teardown) {
        static const char *const identities[] = {
                "00:1b:21:3a:4f:2c",
                "00-1b-21-3a-4f-2c",
                "001b213a4f2c",
                "001122334455",
                "01234567-89ab-cdef-0123-456789abcdef",
                "0123456789abcdef0123456789abcdef",
                HOST,
                "NODE042",
                HOST ".example.com",
        };

        for (size_t i = 0; i < ELEMENTSOF(identities); i++) {
                assert_replaced(*state, "", identities[i], "");
                assert_replaced(*state, "luks-", identities[i], ".conf");
                assert_replaced(*state, "/srv/", identities[i], "_x/y");
                assert_replaced(*state, "vg--", identities[i], "--root");
        }
        assert_replaced(*state, "enx", "001b213a4f2c", ".100");
        assert_replaced(*state, "wwx", "001b213a4f2c", "");
        assert_replaced(*state, "wwn-0x", "5000c500a1b2c3d4", "-part1");
        assert_replaced(*state, "01-", "00-1b-21-3a-4f-2c", "");
        assert_replaced(*state, "PARTLABEL=", "secret", " x");
}

TEST_WITH(test_keeps, setup, teardown) {
        static const char *const texts[] = {
                "0000:82:00.0", "vendor=10de class=0302", "node0421", "anode042",      "1f",
                "1f:",          "00:1b:21:3a:4f:2",       "0x10de",   "1234567890123", "50-x.conf",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_free_ char *copy = strdup(texts[i]); /* ends where it is allocated */

                assert_kept(*state, copy, true);
        }
        /* Numbers with a meaning are kept, and so are names that may belong to something else than the machine. */
        assert_kept(*state, "ReserveMemory=137438953472 [Pool " HOST "]", false);
}

/* A value is replaced by the same text in any spelling, within one recording. */
TEST_WITH(test_consistent, setup, teardown) {
        _cleanup_free_ char *one = identities_scrub(*state, "00:1b:21:3a:4f:2c", false);
        _cleanup_free_ char *other = identities_scrub(*state, "enx001b213a4f2c", false);
        _cleanup_free_ char *next = NULL;
        Identities again;

        for (size_t i = 0; i < 6; i++)
                assert_memory_equal(one + 3 * i, other + 3 + 2 * i, 2);
        assert_int_equal(identities_init(&again, false, NULL), 0);
        next = identities_scrub(&again, "00:1b:21:3a:4f:2c", false);
        assert_string_not_equal(next, one);
        identities_done(&again);
}

TEST_WITH(test_paths, setup, teardown) {
        static const char bridge[] = "sys/devices/virtual/net/br-0123456789ab/lower_eth0", xen[] = "xenx001b213a4f2c";
        _cleanup_free_ char *path =
                identities_scrub_path(*state, "br-0123456789ab/lower_enx001b213a4f2c/enx001b213a4f2c");
        _cleanup_free_ char *name = identities_scrub_path(*state, "enx001b213a4f2c");
        _cleanup_free_ char *other = identities_scrub_path(*state, bridge), *inner = identities_scrub_path(*state, xen);

        assert_memory_equal(path, "br-0123456789ab/lower_enx", strlen("br-0123456789ab/lower_enx"));
        assert_string_equal(strrchr(path, '/') + 1, name);
        assert_string_not_equal(name, "enx001b213a4f2c");
        assert_string_equal(other, bridge);
        assert_string_equal(inner, xen);
}

TEST_WITH(test_cmdline_values, setup, teardown) {
        static const char *const secrets[] = {
                "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-secret",
                "root=/dev/disk/by-id/nvme-secret",
                "resume=/dev/disk/by-id/wwn-0xsecret",
                "systemd.machine_id=secret",
                "rd.iscsi.initiator=iqn.secret",
                "mac=secret",
                "root=nfs:secret:/x",
                "rd.route=secret",
                "netconsole=@secret/eth0",
                "syslog=secret",
                "ks=http://secret/x",
                "rd.luks.name=secret=root",
                "ip=secret::eth0:none",
                "whatever.is.new=secret",
                "x=\"a secret b\"",
                "http://secret/x",
                "a/secret=1",
                "root=\"UUID=secret\"",
        };

        for (size_t i = 0; i < ELEMENTSOF(secrets); i++) {
                _cleanup_free_ char *text = NULL, *copy = NULL;

                assert_int_equal(string_replace(&text, "quiet %s ro", secrets[i]), 0);
                copy = cmdline_scrub(*state, text);
                assert_non_null(copy);
                if (strstr(copy, "secret"))
                        fail_msg("'%s' became '%s'", text, copy);
                assert_memory_equal(copy, "quiet ", 6);
                assert_string_equal(copy + strlen(copy) - 3, " ro");
        }
}

TEST_WITH(test_cmdline_keeps, setup, teardown) {
        static const char text[] =
                "ro quiet nosmt iommu=pt intel_iommu=on,sm_on amd_iommu=on vfio-pci.ids=10de:1db6,15b3:101e "
                "vfio_iommu_type1.allow_unsafe_interrupts=1 pci=realloc,noaer pcie_aspm=off "
                "pcie_acs_override=downstream,multifunction hugepagesz=1G hugepages=0:64,1:64 default_hugepagesz=1G "
                "isolcpus=managed_irq,domain,2-63 nohz_full=2-63 rcu_nocbs=2-63 mitigations=off numa_balancing=disable "
                "mlx5_core.prof_sel=3 nvidia-drm.modeset=1 modprobe.blacklist=nouveau rd.driver.pre=vfio-pci "
                "console=ttyS0,115200n8 mem=137438953472 default_hugepagesz= =x\n";
        _cleanup_free_ char *copy = cmdline_scrub(*state, text);
        Identities keep;

        assert_non_null(copy);
        assert_memory_equal(copy, text, strstr(text, " =x") - text);
        free(copy);
        assert_int_equal(identities_init(&keep, true, HOST), 0);
        copy = cmdline_scrub(&keep, "root=UUID=1 x");
        assert_string_equal(copy, "root=UUID=1 x");
        identities_done(&keep);
}

TEST_WITH(test_cmdline_init, setup, teardown) {
        _cleanup_free_ char *copy =
                cmdline_scrub(*state, "192.0.2.1 single 3 -- --address 192.0.2.1 secret -v iommu=pt");

        assert_non_null(copy);
        assert_null(strstr(copy, "192.0.2.1"));
        assert_null(strstr(copy, "secret"));
        assert_non_null(strstr(copy, " single 3 -- --address "));
        assert_non_null(strstr(copy, " -v iommu=pt"));
}

/* The machine's name is replaced, but not as a part of flags or of values that are kept. */
TEST_WITH(test_cmdline_host, setup, teardown) {
        _cleanup_free_ char *copy = cmdline_scrub(*state, HOST " console=" HOST " " HOST ".x=1 dhcp-" HOST);

        assert_non_null(copy);
        assert_null(strstr(copy, HOST));
        assert_non_null(strstr(copy, " console="));
}
