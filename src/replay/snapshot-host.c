/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Records the facts that do not belong to a device: CPUs, memory, mounts, swap, routes, kernel command line, VFIO. */

#include <errno.h>
#include <fcntl.h>

#include "cmdline.h"
#include "host/cpuinfo.h"
#include "host/critical.h"
#include "host/modalias.h"
#include "host/numa.h"
#include "model/cpuset.h"
#include "snapshot.h"
#include "util/fileio.h"
#include "util/strings.h"

#define CPUS  "sys/devices/system/cpu"
#define NODES "sys/devices/system/node"

static bool has_meminfo_key(const char *line) {
        for (const char *const *key = numa_meminfo_keys; *key; key++)
                if (strstr(line, *key))
                        return true;
        return false;
}

/* Keeps the lines that a scan of the NUMA node reads. */
static char *filter_meminfo(const Recorder *r, char *text) {
        char *line, *rest = text, *copy = calloc(1, strlen(text) + 2), *end = copy;

        while (copy && (line = strsep(&rest, "\n")))
                if (has_meminfo_key(line))
                        end = stpcpy(stpcpy(end, line), "\n");
        free(text);
        return copy;
}

static int record_pool(Recorder *r, const Entry *entry) {
        _cleanup_close_ int fd = openat(entry->dir_fd, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int e;

        if (fd < 0)
                return 0;
        e = record_file_at(r, fd, entry->path, "nr_hugepages", NULL);
        return e < 0 ? e : record_file_at(r, fd, entry->path, "free_hugepages", NULL);
}

static int record_cpu(Recorder *r, int id, bool listed) {
        static const char *const files[] = { "core_cpus_list", "die_cpus_list", "physical_package_id",
                                             "thread_siblings_list" };
        char path[64], topology[80];
        _cleanup_close_ int fd = -1, topology_fd = -1;
        int e = 0;

        (void) snprintf(path, sizeof(path), CPUS "/cpu%d", id);
        (void) snprintf(topology, sizeof(topology), "%s/topology", path);
        fd = sysfs_open(r->fs, path, O_PATH | O_DIRECTORY);
        topology_fd = sysfs_open(r->fs, topology, O_RDONLY | O_DIRECTORY);
        if (fd >= 0 && !listed)
                e = record_directory(r, path);
        for (size_t i = 0; i < ELEMENTSOF(files) && topology_fd >= 0 && e >= 0; i++)
                e = record_file_at(r, topology_fd, topology, files[i], NULL);
        return e;
}

/* Without sys/devices/system/cpu/online, each CPU directory is an online CPU. record_cpu() then records the
 * directories. */
static int record_cpus(Recorder *r) {
        CpuSet online = { 0 };
        int known = numa_online_cpus(r->fs, &online),
            e = known == -ENOMEM ? known : record_file(r, CPUS "/online", NULL);

        for (int id = cpuset_next(&online, 0); id >= 0 && e >= 0; id = cpuset_next(&online, (unsigned) id + 1))
                e = record_cpu(r, id, known == 0);
        return e;
}

static int record_node(Recorder *r, int id, bool listed) {
        char path[80], pools[96];
        _cleanup_close_ int fd = -1;
        int e;

        (void) snprintf(path, sizeof(path), NODES "/node%d", id);
        (void) snprintf(pools, sizeof(pools), "%s/hugepages", path);
        fd = sysfs_open(r->fs, path, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return 0;
        e = listed ? 0 : record_directory(r, path);
        if (e >= 0)
                e = record_file_at(r, fd, path, "cpulist", NULL);
        if (e >= 0)
                e = record_file_at(r, fd, path, "distance", NULL);
        if (e >= 0)
                e = record_file_at(r, fd, path, "meminfo", filter_meminfo);
        return e < 0 ? e : record_entries(r, pools, "", record_pool);
}

static int record_nodes(Recorder *r) {
        _cleanup_close_ int fd = sysfs_open(r->fs, NODES, O_PATH | O_DIRECTORY);
        CpuSet nodes = { 0 };
        int known, e;

        if (fd < 0) {
                e = record_file(r, "proc/meminfo", filter_meminfo);
                return e < 0 ? e : record_entries(r, "sys/kernel/mm/hugepages", "", record_pool);
        }
        known = numa_online_nodes(r->fs, &nodes);
        e = known == -ENOMEM ? known : record_directory(r, NODES);
        if (e >= 0)
                e = record_file(r, NODES "/online", NULL);
        for (int id = cpuset_next(&nodes, 0); id >= 0 && e >= 0; id = cpuset_next(&nodes, (unsigned) id + 1))
                e = record_node(r, id, known == 0);
        return e;
}

/* lines */

typedef int (*LineFilter)(const Recorder *r, char *line, FILE *f);

static char *filter_lines(const Recorder *r, char *text, LineFilter filter) {
        _cleanup_free_ char *old _unused_ = text, *copy = NULL;
        char *rest = text, *line;
        size_t size;
        FILE *f = open_memstream(&copy, &size);
        int e = 0;

        if (!f)
                return NULL;
        while ((line = strsep(&rest, "\n")) && e >= 0)
                if (*line)
                        e = filter(r, line, f);
        if (fclose(f) != 0 || e < 0)
                return NULL;
        return TAKE_PTR(copy);
}

static int write_scrubbed(const Recorder *r, const char *text, FILE *f) {
        _cleanup_free_ char *clean = identities_scrub(&r->identities, text, true);

        if (!clean)
                return -ENOMEM;
        (void) fputs(clean, f);
        return 0;
}

static bool is_block_device(const Recorder *r, const char *name) {
        _cleanup_free_ char *link = NULL;
        _cleanup_close_ int fd = -1;

        if (strpbrk(name, " \t\n\\") || asprintf(&link, "sys/class/block/%s", name) < 0) {
                link = NULL;
                return false;
        }
        fd = sysfs_open(r->fs, link, O_PATH);
        return fd >= 0;
}

/* Writes a device node that leads to no block device. Only the directory stays ("/dev/mapper/"); a hash replaces the
 * name. */
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

/* Writes the block device that a device node leads to: "/dev/dm-0" for "/dev/mapper/vg-root", because the recording
 * does not contain the link. node: a path below /dev/, with the kernel's escapes. */
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
        if (is_block_device(r, found))
                (void) fprintf(f, "/dev/%s", found);
        else
                write_other_node(r, node, f);
        return 0;
}

static bool is_node(const char *source) {
        return strncmp(source, "/dev/", strlen("/dev/")) == 0;
}

/* Writes the source of a mount: one device node, or for bcachefs several, "/dev/sda:/dev/sdb". */
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

/* Writes only the options that name a device, as "dev=". options: "rw,logdev=/dev/sdb1". */
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

/* Keeps only the device and the mount point of a line of mountinfo:
 * "36 35 98:0 /root /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw". */
static int filter_mount(const Recorder *r, char *line, FILE *f) {
        char *words[5], *rest = line, *word, *type, *source;
        int e;

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (!(words[i] = string_next_word(&rest)))
                        return 0;
        while ((word = string_next_word(&rest)) && !streq(word, "-"))
                ;
        type = string_next_word(&rest);
        source = string_next_word(&rest);
        if (!source || (strncmp(words[2], "0:", 2) == 0 && !(critical_has_true_source(type) && is_node(source))))
                return 0;
        (void) fprintf(f, "%s %s %s / ", words[0], words[1], words[2]);
        e = write_scrubbed(r, words[4], f);
        (void) fprintf(f, " rw - %s ", type);
        if (e >= 0 && is_node(source))
                e = write_nodes(r, source, f);
        else
                (void) fputs("none", f);
        return e < 0 ? e : write_options(r, string_next_word(&rest), f);
}

typedef struct MountSink {
        const Recorder *r;
        FILE *f;
} MountSink;

static int take_mount(char *line, void *userdata) {
        const MountSink *sink = userdata;

        return MIN(filter_mount(sink->r, line, sink->f), 0);
}

/* Reads line by line, because other users can make the file arbitrarily long. Takes ownership of fd, which may be a
 * negative errno. */
static int record_mountinfo(Recorder *r, int fd) {
        static const char path[] = "proc/1/mountinfo";
        _cleanup_free_ char *text = NULL;
        MountSink sink = { .r = r };
        size_t size;
        int e;

        if (fd < 0)
                return record_descriptor(r, fd, path, NULL);
        sink.f = open_memstream(&text, &size);
        e = sink.f ? read_lines_fd(fd, take_mount, &sink) : -ENOMEM;
        if (!sink.f)
                (void) close(fd);
        else if (fclose(sink.f) != 0)
                e = -ENOMEM;
        if (e == -ENOMEM)
                return e;
        return e < 0 ? record_unreadable(r, path, e) : record_bytes(r, path, text, size);
}

static int filter_swap(const Recorder *r, char *line, FILE *f) {
        char *rest = line, *node = string_next_word(&rest);
        int e = 0;

        if (node && is_node(node))
                e = write_node(r, node, f);
        else if (node)
                e = write_scrubbed(r, node, f);
        (void) fprintf(f, "\t%s\n", rest ? rest + strspn(rest, " \t") : "");
        return e;
}

static char *filter_swaps(const Recorder *r, char *text) {
        return filter_lines(r, text, filter_swap);
}

static int write_interface(const Recorder *r, const char *name, FILE *f) {
        _cleanup_free_ char *clean = identities_scrub_path(&r->identities, name);

        if (!clean)
                return -ENOMEM;
        (void) fputs(clean, f);
        return 0;
}

/* Keeps only default routes, and removes their gateways. */
static int filter_route(const Recorder *r, char *line, FILE *f) {
        char *words[8], *rest = line;
        int e;

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (!(words[i] = string_next_word(&rest)))
                        return 0;
        if (!streq(words[1], "00000000") || !streq(words[7], "00000000"))
                return 0;
        e = write_interface(r, words[0], f);
        (void) fprintf(f, "\t00000000\t00000000\t%s\t0\t0\t%s\t00000000\t0\t0\t0\n", words[3], words[6]);
        return e;
}

static char *filter_routes(const Recorder *r, char *text) {
        return filter_lines(r, text, filter_route);
}

static int filter_route6(const Recorder *r, char *line, FILE *f) {
        static const char zeros[] = "00000000000000000000000000000000";
        char *words[10], *rest = line;
        int e;

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (!(words[i] = string_next_word(&rest)))
                        return 0;
        if (!streq(words[0], zeros) || !streq(words[1], "00"))
                return 0;
        (void) fprintf(f, "%s 00 %s 00 %s %s %s %s %s ", zeros, zeros, zeros, words[5], words[6], words[7], words[8]);
        e = write_interface(r, words[9], f);
        (void) fputc('\n', f);
        return e;
}

static char *filter_routes6(const Recorder *r, char *text) {
        return filter_lines(r, text, filter_route6);
}

/* An unprivileged user may not read the mounts of process 1. Then the mounts of this process are recorded instead. */
static int record_mounts(Recorder *r) {
        int fd = sysfs_open(r->fs, "proc/1/mountinfo", O_RDONLY | O_NONBLOCK), own_fd;

        if (fd != -EACCES && fd != -EPERM)
                return record_mountinfo(r, fd);
        own_fd = sysfs_open(r->fs, "proc/self/mountinfo", O_RDONLY | O_NONBLOCK);
        r->own_mounts = own_fd >= 0;
        return record_mountinfo(r, own_fd < 0 ? fd : own_fd);
}

static char *filter_cmdline(const Recorder *r, char *text) {
        char *scrubbed = cmdline_scrub(&r->identities, text);

        free(text);
        return scrubbed;
}

/* Keeps the lines that the daemon reads, of the first processor only. */
static char *filter_cpuinfo(const Recorder *r, char *text) {
        _cleanup_free_ char *all _unused_ = text, *copy = strdup("");
        char *rest = text, *line;

        while (copy && (line = strsep(&rest, "\n")) && *line) {
                for (size_t i = 0; cpuinfo_keys[i]; i++)
                        if (strncmp(line, cpuinfo_keys[i], strlen(cpuinfo_keys[i])) == 0 &&
                            string_replace(&copy, "%s%s\n", copy, line) < 0)
                                return NULL;
        }
        return TAKE_PTR(copy);
}

static int filter_alias(const Recorder *r, char *line, FILE *f) {
        if (strncmp(line, "alias vfio_pci:", 15) == 0)
                (void) fprintf(f, "%s\n", line);
        return 0;
}

static char *filter_aliases(const Recorder *r, char *text) {
        return filter_lines(r, text, filter_alias);
}

/* Records the vfio_pci aliases of the kernel modules, which tell the VFIO variant drivers of the kernel. */
static int record_aliases(Recorder *r) {
        char path[MODALIAS_PATH_MAX];

        return modalias_path(r->fs, path) < 0 ? 0 : record_file(r, path, filter_aliases);
}

int record_host(Recorder *r) {
        static const struct {
                const char *path;
                RecordFilter filter;
        } files[] = {
                { "sys/module/vfio/parameters/enable_unsafe_noiommu_mode", NULL },
                { "sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", NULL },
                { "proc/cmdline", filter_cmdline },
                { "proc/cpuinfo", filter_cpuinfo },
                { CPUINFO_ARCHITECTURE, NULL },
                { "proc/sys/kernel/osrelease", NULL },
                { "proc/swaps", filter_swaps },
                { "proc/net/route", filter_routes },
                { "proc/net/ipv6_route", filter_routes6 },
        };
        int e = record_cpus(r);

        if (e >= 0)
                e = record_nodes(r);
        if (e >= 0)
                e = record_mounts(r);
        if (e >= 0)
                e = record_aliases(r);
        for (size_t i = 0; i < ELEMENTSOF(files) && e >= 0; i++)
                e = record_file(r, files[i].path, files[i].filter);
        return e;
}
