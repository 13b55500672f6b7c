/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The config space of a PCI function, with the size of the input, read by libpci. With any contents, the walk through
 * the capabilities ends and the facts are those of the header. The first byte of the input selects the function.
 */

#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "host/pciconf.h"

#define FUNCTIONS   8
#define CONFIG_SIZE 4096
#define HEADER      64
#define HEADER_TYPE 0x0e

static char root[4096];
static PciConf *conf;
static int fds[FUNCTIONS];

static void path_of(char path[static sizeof(root)], const char *below) {
        assert_true(strlen(root) + strlen(below) < sizeof(root));
        (void) stpcpy(stpcpy(path, root), below);
}

static const char *const directories[] = { "/sys", "/sys/bus", "/sys/bus/pci", "/sys/bus/pci/devices" };

static void function_path(char path[static sizeof(root)], int function, const char *file) {
        char below[64];

        (void) snprintf(below, sizeof(below), "/sys/bus/pci/devices/0000:01:00.%d%s", function, file);
        path_of(path, below);
}

static void remove_machine(void) {
        char path[sizeof(root)];

        conf = pciconf_free(conf);
        for (int i = 0; i < FUNCTIONS; i++) {
                (void) close(fds[i]);
                function_path(path, i, "/config");
                (void) unlink(path);
                function_path(path, i, "");
                (void) rmdir(path);
        }
        for (size_t i = ELEMENTSOF(directories); i > 0; i--) {
                path_of(path, directories[i - 1]);
                (void) rmdir(path);
        }
        (void) rmdir(root);
}

/* In memory, because a file is written for each input. */
static void make_machine(void) {
        const char *tmp = getenv("TMPDIR") ?: "/dev/shm";
        static Sysfs *fs; /* used by conf, for the life of the process */
        char path[sizeof(root)];

        assert_true((size_t) snprintf(root, sizeof(root), "%s/fuzz-config-space.XXXXXX", tmp) < sizeof(root));
        assert_non_null(mkdtemp(root));
        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                path_of(path, directories[i]);
                assert_int_equal(mkdir(path, 0700), 0);
        }
        for (int i = 0; i < FUNCTIONS; i++) {
                function_path(path, i, "");
                assert_int_equal(mkdir(path, 0700), 0);
                function_path(path, i, "/config");
                fds[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
                assert_true(fds[i] >= 0);
        }
        assert_int_equal(sysfs_new(root, &fs), 0);
        assert_int_equal(pciconf_new(fs, &conf), 0);
        (void) atexit(remove_machine);
}

static void check_facts(const uint8_t *config, size_t size, int function, const PciConfFacts *facts) {
        unsigned type = config[HEADER_TYPE];
        bool multifunction = (type & 0x80) || function > 0;

        assert_int_equal(facts->is_bridge, (type & 0x7f) == 1 || (type & 0x7f) == 2);
        assert_non_null(pci_acs_to_string(facts->acs));
        if (!facts->is_bridge && !multifunction)
                assert_int_equal(facts->acs, PCI_ACS_CLEAN);
        else if (size < 256)
                assert_int_equal(facts->acs, PCI_ACS_UNKNOWN);
        if (facts->acs == PCI_ACS_ISOLATED)
                assert_true(size > 256);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        PciAddress address = { .bus = 1 };
        PciConfFacts facts, again;
        int r;

        if (size == 0)
                return 0;
        if (!conf)
                make_machine();
        address.function = *data++ % FUNCTIONS;
        size = MIN(size - 1, (size_t) CONFIG_SIZE);
        assert_int_equal(ftruncate(fds[address.function], 0), 0);
        assert_int_equal(pwrite(fds[address.function], data, size, 0), (ssize_t) size);

        r = pciconf_read(conf, address, &facts);
        assert_int_equal(r, size < HEADER ? -EIO : 0);
        if (r < 0)
                return 0;
        check_facts(data, size, address.function, &facts);
        assert_int_equal(pciconf_read(conf, address, &again), 0);
        assert_true(facts.is_bridge == again.is_bridge && facts.acs == again.acs);
        return 0;
}
