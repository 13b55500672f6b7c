/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Filters for files with more data than the daemon needs: they keep the facts that a scan reads, except servers and
 * routes of storage over the network, and replace data that identifies the machine. */

#include <errno.h>

#include "host/cpuinfo.h"
#include "host/critical.h"
#include "host/numa.h"
#include "host/nvidia.h"
#include "snapshot.h"
#include "util/strings.h"

/* Writes the path of a device node that stands for no recorded device: its directory ("/dev/mapper/") and a hash of the
 * rest, or the whole path if identities are kept. */
static void write_other_node(const Recorder *r, const char *node, FILE *f) {
        static const char *const known[] = { "/dev/mapper/", "/dev/disk/by-id/", "/dev/disk/by-uuid/", "/dev/" };
        size_t i = 0, n;

        while (strncmp(node, known[i], strlen(known[i])) != 0)
                i++;
        n = r->identities.keep ? 0 : strlen(known[i]);
        (void) fwrite(node, 1, n, f);
        if (r->identities.keep)
                (void) fputs(node, f);
        else
                identities_write_hash(&r->identities, node + n, strlen(node + n), f);
}

/* Writes the kernel's name of the block device or NVMe controller behind a node: "/dev/dm-0" for "/dev/mapper/vg-root",
 * because links in /dev are not recorded. If sysfs has no such device, calls write_other_node(). node: a path below
 * /dev/, in which the kernel has escaped characters ("\040"). 0 or -ENOMEM. */
static int write_node(const Recorder *r, const char *node, FILE *f) {
        _cleanup_free_ char *real = NULL, *path = strdup(node);
        const char *found;
        int e;

        if (!path)
                return -ENOMEM;
        critical_unescape(path);
        e = sysfs_realpath(r->fs, path, &real);
        if (e == -ENOMEM)
                return e;
        found = strrchr(real ?: path, '/');
        found = found ? found + 1 : real;
        if (!strpbrk(found, " \t\n\\") &&
            (record_exists(r, "sys/class/block", found) || record_exists(r, "sys/class/nvme", found)))
                (void) fprintf(f, "/dev/%s", found);
        else
                write_other_node(r, node, f);
        return 0;
}

static bool is_node(const char *source) {
        return strncmp(source, "/dev/", strlen("/dev/")) == 0;
}

/* Writes the source of a mount: the node of one device or, for bcachefs, of several: "/dev/sda:/dev/sdb". */
static int write_nodes(const Recorder *r, char *source, FILE *f) {
        const char *separator = "", *node;
        int e = 0;

        while (e >= 0 && (node = strsep(&source, ":"))) {
                (void) fputs(separator, f);
                separator = ":";
                e = is_node(node) ? write_node(r, node, f) : 0;
        }
        return e;
}

/* Writes " rw" and, for each mount option that names a device, ",dev=NODE". options: "rw,logdev=/dev/sdb1". */
static int write_options(const Recorder *r, char *options, FILE *f) {
        const char *node;
        int e = 0;

        (void) fputs(" rw", f);
        while (options && e >= 0 && (node = critical_next_option_node(&options))) {
                (void) fputs(",dev=", f);
                e = write_node(r, node, f);
        }
        (void) fputc('\n', f);
        return e;
}

/* Keeps the devices and the mount point of a line of mountinfo: "36 35 98:0 /root /mnt rw,noatime shared:1 - ext4
 * /dev/sda1 rw". Drops file systems without a device, also those of the network. */
static int filter_mount(const Recorder *r, char *line, FILE *f) {
        char *words[5], *rest = line, *word, *type, *source;
        int e = 0;

        if (!string_next_words(&rest, words, ELEMENTSOF(words)))
                return 0;
        while ((word = string_next_word(&rest)) && !streq(word, "-"))
                ;
        type = string_next_word(&rest);
        source = string_next_word(&rest);
        if (!source || (strncmp(words[2], "0:", 2) == 0 && !(critical_has_true_source(type) && is_node(source))))
                return 0;
        (void) fprintf(f, "%s %s %s / ", words[0], words[1], words[2]);
        identities_write(&r->identities, words[4], true, f);
        (void) fprintf(f, " rw - %s ", type);
        if (is_node(source))
                e = write_nodes(r, source, f);
        else
                (void) fputs("none", f);
        return e < 0 ? e : write_options(r, string_next_word(&rest), f);
}

static int filter_swap(const Recorder *r, char *line, FILE *f) {
        char *rest = line, *node = string_next_word(&rest);
        int e = 0;

        if (!node)
                return 0;
        if (is_node(node))
                e = write_node(r, node, f);
        else
                identities_write(&r->identities, node, true, f);
        (void) fprintf(f, "\t%s\n", rest ? rest + strspn(rest, " \t") : "");
        return e;
}

static int write_interface(const Recorder *r, const char *name, FILE *f) {
        _cleanup_free_ char *clean = identities_scrub_path(&r->identities, name);

        if (!clean)
                return -ENOMEM;
        (void) fputs(clean, f);
        return 0;
}

/* Keeps default routes, without their gateways. Drops all other routes. */
static int filter_route(const Recorder *r, char *line, FILE *f) {
        char *words[8], *rest = line;
        int e;

        if (!string_next_words(&rest, words, ELEMENTSOF(words)))
                return 0;
        if (!streq(words[1], "00000000") || !streq(words[7], "00000000"))
                return 0;
        e = write_interface(r, words[0], f);
        (void) fprintf(f, "\t00000000\t00000000\t%s\t0\t0\t%s\t00000000\t0\t0\t0\n", words[3], words[6]);
        return e;
}

static int filter_route6(const Recorder *r, char *line, FILE *f) {
        static const char zeros[] = "00000000000000000000000000000000";
        char *words[10], *rest = line;
        int e;

        if (!string_next_words(&rest, words, ELEMENTSOF(words)))
                return 0;
        if (!streq(words[0], zeros) || !streq(words[1], "00"))
                return 0;
        (void) fprintf(f, "%s 00 %s 00 %s %s %s %s %s ", zeros, zeros, zeros, words[5], words[6], words[7], words[8]);
        e = write_interface(r, words[9], f);
        (void) fputc('\n', f);
        return e;
}

static bool has_key(const char *line, const char *const keys[]) {
        for (; *keys; keys++)
                if (strstr(line, *keys))
                        return true;
        return false;
}

static int filter_meminfo(const Recorder *r, char *line, FILE *f) {
        if (has_key(line, numa_meminfo_keys))
                (void) fprintf(f, "%s\n", line);
        return 0;
}

/* Keeps the lines with cpuinfo_keys of the first processor. Drops all other lines. */
static int filter_cpuinfo(const Recorder *r, char *line, FILE *f) {
        for (size_t i = 0; cpuinfo_keys[i]; i++)
                if (strncmp(line, cpuinfo_keys[i], strlen(cpuinfo_keys[i])) == 0)
                        (void) fprintf(f, "%s\n", line);
        return !*line;
}

static int filter_alias(const Recorder *r, char *line, FILE *f) {
        if (strncmp(line, "alias vfio_pci:", strlen("alias vfio_pci:")) == 0)
                (void) fprintf(f, "%s\n", line);
        return 0;
}

/* Keeps the minor number of a GPU. Drops its UUID and its firmware version, among others. */
static int filter_gpu(const Recorder *r, char *line, FILE *f) {
        if (strncmp(line, NVIDIA_MINOR_KEY, strlen(NVIDIA_MINOR_KEY)) == 0)
                (void) fprintf(f, "%s\n", line);
        return 0;
}

static int filter_cmdline(const Recorder *r, char *line, FILE *f) {
        cmdline_write(&r->identities, line, f);
        (void) fputc('\n', f);
        return 0;
}

/* Replaces a line that is a MAC address or a GUID. */
static int filter_digits(const Recorder *r, char *line, FILE *f) {
        identities_replace_digits(&r->identities, line);
        (void) fprintf(f, "%s\n", line);
        return 0;
}

/* Keeps two lines of udev's data about a member of a ZFS pool: its type, and its label, which is the name of the pool.
 * record_member() records an empty file for any other block device. */
static int filter_udev(const Recorder *r, char *line, FILE *f) {
        static const char label[] = "E:ID_FS_LABEL=";

        if (streq(line, UDEV_ZFS_MEMBER))
                (void) fprintf(f, "%s\n", line);
        if (strncmp(line, label, strlen(label)) != 0)
                return 0;
        (void) fputs(label, f);
        identities_write(&r->identities, line + strlen(label), true, f);
        (void) fputc('\n', f);
        return 0;
}

/* Keeps a line that is the path of a device node. Empties any other line. */
static int filter_node(const Recorder *r, char *line, FILE *f) {
        int e = is_node(line) ? write_node(r, line, f) : 0;

        (void) fputc('\n', f);
        return e;
}

/* Keeps the backing device of a loop device. Drops the name of a backing file, which the daemon does not need. */
static int filter_backing(const Recorder *r, char *line, FILE *f) {
        if (!is_node(line))
                return 0;
        if (record_exists(r, "sys/class/block", strrchr(line, '/') + 1))
                (void) fputs(line, f);
        else
                write_other_node(r, line, f);
        (void) fputc('\n', f);
        return 0;
}

RecordFilter filter_of(const char *path) {
        static const struct {
                const char *end; /* the path of the file ends with this */
                RecordFilter filter;
        } filters[] = {
                { "/address", filter_digits },
                { "/backing_dev", filter_node },
                { "/device_path", filter_node },
                { "/file", filter_node },
                { "/information", filter_gpu },
                { "/ipv6_route", filter_route6 },
                { "/loop/backing_file", filter_backing },
                { "/meminfo", filter_meminfo },
                { "/modules.alias", filter_alias },
                { "/mountinfo", filter_mount },
                { "/node_guid", filter_digits },
                { "/route", filter_route },
                { "/sys_image_guid", filter_digits },
                { "/udev_path", filter_node },
                { "proc/cmdline", filter_cmdline },
                { "proc/cpuinfo", filter_cpuinfo },
                { "proc/swaps", filter_swap },
        };
        size_t length = strlen(path);

        if (strncmp(path, "run/udev/data/", strlen("run/udev/data/")) == 0)
                return filter_udev;
        for (size_t i = 0; i < ELEMENTSOF(filters); i++) {
                size_t n = strlen(filters[i].end);

                if (length >= n && streq(path + length - n, filters[i].end))
                        return filters[i].filter;
        }
        return NULL;
}
