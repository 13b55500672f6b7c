/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Reads the architecture, the version of Linux, the first processor in proc/cpuinfo, and what the host offers to
 * confidential guests. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/cpuinfo.h"
#include "util/strings.h"

#define CPUINFO_PART    8192U /* holds the entry of one processor; the file has one for each */
#define PHYS_BITS_LEAST 32U
#define PHYS_BITS_MOST  64U

const char *const cpuinfo_keys[] = { "address sizes", "CPU implementer", "cpu\t", "vendor_id", NULL };

/*
 * Returns the value in the first line that starts with key; NULL if there is no such line. No NUL ends the value: the
 * rest of the text follows.
 */
static const char *find_value(const char *text, const char *key) {
        const char *line = text;

        while (line && strncmp(line, key, strlen(key)) != 0) {
                line = strchr(line, '\n');
                line = line ? line + 1 : NULL;
        }
        line = line ? strchr(line, ':') : NULL;
        return line ? line + 1 + strspn(line + 1, " \t") : NULL;
}

/* Finds and parses the line "address sizes\t: 46 bits physical, 48 bits virtual". Returns 0 when it is missing or
 * invalid. */
static unsigned find_phys_bits(const char *text) {
        const char *value = find_value(text, "address sizes");
        unsigned long bits = value ? strtoul(value, NULL, 10) : 0;

        return bits < PHYS_BITS_LEAST || bits > PHYS_BITS_MOST ? 0 : (unsigned) bits;
}

static bool has_amd_leaves(const char *text) {
        const char *vendor = find_value(text, "vendor_id");

        return vendor && (strncmp(vendor, "AuthenticAMD", 12) == 0 || strncmp(vendor, "HygonGenuine", 12) == 0);
}

/* Before Linux 6.1 there is no proc/sys/kernel/arch. Guesses the architecture by lines that only one architecture has.
 * Returns "" if there is no such line. */
static const char *guess_architecture(const char *text) {
        const char *cpu = find_value(text, "cpu\t");

        if (find_value(text, "address sizes"))
                return ARCHITECTURE_X86_64;
        if (find_value(text, "CPU implementer"))
                return ARCHITECTURE_AARCH64;
        return cpu && strncmp(cpu, "POWER", 5) == 0 ? "ppc64le" : "";
}

static void read_architecture(const Sysfs *fs, const char *cpuinfo, Inventory *inv) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        bool known = sysfs_read(fs, CPUINFO_ARCHITECTURE, buf, sizeof(buf)) > 0 && text_is_clean(buf);

        (void) snprintf(inv->architecture, sizeof(inv->architecture), "%.*s", (int) ARCHITECTURE_MAX - 1,
                        known ? buf : guess_architecture(cpuinfo));
}

/* Returns the version of Linux as a number: 6012 for the text "6.12.48+deb13-amd64". 0: unknown. */
static unsigned read_kernel(const Sysfs *fs) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        unsigned major, minor;

        if (sysfs_read(fs, CPUINFO_KERNEL, buf, sizeof(buf)) <= 0 || sscanf(buf, "%3u.%3u", &major, &minor) != 2)
                return 0;
        return major * 1000 + minor;
}

#define CPUINFO_MISC "sys/fs/cgroup/misc.capacity"

static ModuleParameter read_parameter(const Sysfs *fs, const char *path) {
        char buf[SYSFS_ATTRIBUTE_MAX];

        if (sysfs_read(fs, path, buf, sizeof(buf)) <= 0)
                return MODULE_PARAMETER_ABSENT;
        return streq(buf, "Y") || streq(buf, "1") ? MODULE_PARAMETER_YES : MODULE_PARAMETER_NO;
}

/* Reads how many confidential guests of each kind can run, from lines such as "sev 410". SEV-SNP guests count as SEV-ES
 * (spec sev-snp of Nova). */
static void read_slots(const Sysfs *fs, ConfidentialHost *host) {
        static const struct {
                const char *name;
                Confidential type;
        } kinds[] = { { "sev", CONFIDENTIAL_SEV }, { "sev_es", CONFIDENTIAL_SNP }, { "tdx", CONFIDENTIAL_TDX } };
        char buf[SYSFS_ATTRIBUTE_MAX], *rest = buf, *line;

        if (sysfs_read(fs, CPUINFO_MISC, buf, sizeof(buf)) <= 0)
                return;
        while ((line = strsep(&rest, "\n"))) {
                const char *name = strsep(&line, " ");
                uint64_t n;

                for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                        if (streq(name, kinds[i].name) && line && parse_unsigned(line, UINT32_MAX, &n) >= 0)
                                host->slots[kinds[i].type] = (unsigned) n;
        }
}

static void read_confidential(const Sysfs *fs, ConfidentialHost *host) {
        static const char *const parameters[_CONFIDENTIAL_MAX] = {
                [CONFIDENTIAL_SEV] = "sys/module/kvm_amd/parameters/sev",
                [CONFIDENTIAL_SNP] = "sys/module/kvm_amd/parameters/sev_snp",
                [CONFIDENTIAL_TDX] = "sys/module/kvm_intel/parameters/tdx",
        };
        char buf[SYSFS_ATTRIBUTE_MAX];

        for (Confidential c = CONFIDENTIAL_NONE + 1; c < _CONFIDENTIAL_MAX; c++)
                host->parameters[c] = read_parameter(fs, parameters[c]);
        read_slots(fs, host);
        if (sysfs_read(fs, "sys/module/vfio_iommu_type1/parameters/dma_entry_limit", buf, sizeof(buf)) <= 0 ||
            parse_unsigned(buf, UINT32_MAX, &host->dma_entries) < 0)
                host->dma_entries = 0;
}

void cpuinfo_scan(const Sysfs *fs, Inventory *inv) {
        _cleanup_close_ int fd = sysfs_open(fs, "proc/cpuinfo", O_RDONLY | O_NONBLOCK);
        char text[CPUINFO_PART];
        ssize_t n, size = 0;

        while (fd >= 0 && size < (ssize_t) sizeof(text) - 1 &&
               (n = read(fd, text + size, sizeof(text) - 1 - (size_t) size)) > 0)
                size += n;
        text[size] = '\0';
        inv->phys_bits = find_phys_bits(text);
        inv->amd = has_amd_leaves(text);
        read_architecture(fs, text, inv);
        inv->kernel = read_kernel(fs);
        read_confidential(fs, &inv->confidential);
}
