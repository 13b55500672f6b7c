/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Reads which CPUs and which NUMA nodes are online. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "host/numa.h"
#include "numa-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

#define CPUS        "sys/devices/system/cpu"
#define ENTRIES_MAX (2 * CPUSET_MAX)

int numa_read_list(const Sysfs *fs, int fd, const char *path, CpuSet *ret) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r = sysfs_read_at(fs, fd, path, buf, sizeof(buf));

        return r < 0 ? r : cpuset_parse(buf, ret);
}

/* Adds the numbers of the directories PREFIX0, PREFIX1 and so on to *ret. */
static int list_numbered(int fd, const char *prefix, CpuSet *ret) {
        _cleanup_names_ char **names = NULL;
        size_t n;
        int r = list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                uint64_t id;

                if (strncmp(names[i], prefix, strlen(prefix)) == 0 &&
                    parse_unsigned(names[i] + strlen(prefix), CPUSET_MAX - 1, &id) == 0)
                        cpuset_add(ret, (unsigned) id);
        }
        return 0;
}

int numa_online_nodes(const Sysfs *fs, CpuSet *ret) {
        _cleanup_close_ int fd = sysfs_open(fs, NUMA_NODES_DIR, O_RDONLY | O_DIRECTORY);
        CpuSet nodes = { 0 };
        int r = fd < 0 ? fd : numa_read_list(fs, fd, "online", &nodes);

        if (fd >= 0 && r == -ENOENT)
                r = list_numbered(fd, "node", &nodes) ?: 1;
        if (r >= 0)
                *ret = nodes;
        return r;
}

/* Reads the list of offline CPUs and also the file "online" of each CPU, because a recording may lack the list. CPU 0
 * often has no such file because it cannot go offline. */
static void remove_offline(const Sysfs *fs, int fd, CpuSet *cpus) {
        CpuSet offline = { 0 };

        if (fd < 0)
                return;
        if (numa_read_list(fs, fd, "offline", &offline) >= 0)
                cpuset_subtract(cpus, &offline);
        for (int id = cpuset_next(cpus, 0); id >= 0; id = cpuset_next(cpus, (unsigned) id + 1)) {
                char path[32], buf[SYSFS_ATTRIBUTE_MAX];

                (void) snprintf(path, sizeof(path), "cpu%d/online", id);
                if (sysfs_read_at(fs, fd, path, buf, sizeof(buf)) > 0 && streq(buf, "0"))
                        cpuset_remove(cpus, (unsigned) id);
        }
}

/* Adds the CPUs of all nodes to *ret. The kernel lists only online CPUs in a node's cpulist. */
static int cpus_of_nodes(const Sysfs *fs, CpuSet *ret) {
        _cleanup_close_ int fd = sysfs_open(fs, NUMA_NODES_DIR, O_RDONLY | O_DIRECTORY);
        CpuSet nodes;
        int r = numa_online_nodes(fs, &nodes);

        for (int id = r < 0 ? -1 : cpuset_next(&nodes, 0); id >= 0; id = cpuset_next(&nodes, (unsigned) id + 1)) {
                char path[64];
                CpuSet cpus;

                (void) snprintf(path, sizeof(path), "node%d/cpulist", id);
                if (numa_read_list(fs, fd, path, &cpus) >= 0)
                        cpuset_merge(ret, &cpus);
        }
        return r;
}

int numa_online_cpus(const Sysfs *fs, CpuSet *ret) {
        _cleanup_close_ int fd = sysfs_open(fs, CPUS, O_RDONLY | O_DIRECTORY);
        CpuSet cpus = { 0 };
        int r = fd < 0 ? fd : numa_read_list(fs, fd, "online", &cpus);

        if (r == -ENOENT) {
                r = fd < 0 ? 0 : list_numbered(fd, "cpu", &cpus);
                remove_offline(fs, fd, &cpus);
                if (r >= 0 && cpuset_is_empty(&cpus))
                        r = cpus_of_nodes(fs, &cpus);
                if (r >= 0)
                        r = cpuset_is_empty(&cpus) ? -ENOENT : 1;
        }
        if (r >= 0)
                *ret = cpus;
        return r;
}
