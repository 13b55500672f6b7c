/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Reads sys/devices/system/{node,cpu} into NumaNode and Cpu: online CPUs and nodes, cores and distances. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "host/numa.h"
#include "numa-memory.h"
#include "util/fileio.h"
#include "util/strings.h"

#define CPUS        "sys/devices/system/cpu"
#define ENTRIES_MAX (2 * CPUSET_MAX)

/* Reads a list of numbers, such as "0-15,64". 0 or a negative errno. */
static int read_cpuset(const Sysfs *fs, int fd, const char *path, CpuSet *ret) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r = sysfs_read_at(fs, fd, path, buf, sizeof(buf));

        return r < 0 ? r : cpuset_parse(buf, ret);
}

/* Adds N of each directory PREFIXN to *ret. */
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
        int r = fd < 0 ? fd : read_cpuset(fs, fd, "online", &nodes);

        if (fd >= 0 && r == -ENOENT)
                r = list_numbered(fd, "node", &nodes) ?: 1;
        if (r >= 0)
                *ret = nodes;
        return r;
}

/* Removes the CPUs in the list of offline CPUs, and those whose own file "online" says 0, because a recording may lack
 * the list. CPU 0 often has no such file, because it cannot go offline. */
static void remove_offline(const Sysfs *fs, int fd, CpuSet *cpus) {
        CpuSet offline = { 0 };

        if (fd < 0)
                return;
        if (read_cpuset(fs, fd, "offline", &offline) >= 0)
                cpuset_subtract(cpus, &offline);
        for (int id = cpuset_next(cpus, 0); id >= 0; id = cpuset_next(cpus, (unsigned) id + 1)) {
                char path[32], buf[SYSFS_ATTRIBUTE_MAX];

                (void) snprintf(path, sizeof(path), "cpu%d/online", id);
                if (sysfs_read_at(fs, fd, path, buf, sizeof(buf)) > 0 && streq(buf, "0"))
                        cpuset_remove(cpus, (unsigned) id);
        }
}

/* Adds the CPUs of all online nodes to *ret. A node lists only its online CPUs. Returns as numa_online_nodes(). */
static int cpus_of_nodes(const Sysfs *fs, CpuSet *ret) {
        _cleanup_close_ int fd = sysfs_open(fs, NUMA_NODES_DIR, O_RDONLY | O_DIRECTORY);
        CpuSet nodes;
        int r = numa_online_nodes(fs, &nodes);

        for (int id = r < 0 ? -1 : cpuset_next(&nodes, 0); id >= 0; id = cpuset_next(&nodes, (unsigned) id + 1)) {
                char path[64];
                CpuSet cpus;

                (void) snprintf(path, sizeof(path), "node%d/cpulist", id);
                if (read_cpuset(fs, fd, path, &cpus) >= 0)
                        cpuset_merge(ret, &cpus);
        }
        return r;
}

int numa_online_cpus(const Sysfs *fs, CpuSet *ret) {
        _cleanup_close_ int fd = sysfs_open(fs, CPUS, O_RDONLY | O_DIRECTORY);
        CpuSet cpus = { 0 };
        int r = fd < 0 ? fd : read_cpuset(fs, fd, "online", &cpus);

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

/* Reads a list of CPUs. When it cannot be read, *ret is empty and inv gets a note. Returns 0 or -ENOMEM. */
static int read_list(const Sysfs *fs, Inventory *inv, const char *path, CpuSet *ret) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r;

        *ret = (CpuSet) { 0 };
        r = sysfs_read(fs, path, buf, sizeof(buf));
        if (r >= 0)
                r = cpuset_parse(buf, ret);
        if (r < 0)
                return inventory_add_note(inv, "%s cannot be used (%s).", path, strerror(-r));
        return 0;
}

/* Reads the online CPUs or nodes. On a failure *ret is empty and inv gets a note. inv also gets a note when the
 * kernel's list is missing. `what` is "CPU" or "NUMA node", for the note. Returns 0 or -ENOMEM. */
static int read_online(const Sysfs *fs, Inventory *inv, const char *what, int (*read)(const Sysfs *fs, CpuSet *ret),
                       CpuSet *ret) {
        int r;

        *ret = (CpuSet) { 0 };
        r = read(fs, ret);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return inventory_add_note(inv, "The list of online %ss cannot be used (%s).", what, strerror(-r));
        if (r > 0)
                return inventory_add_note(inv, "There is no list of online %ss: each %s that is present is used.", what,
                                          what);
        return 0;
}

/* Reads the distances of a node: one number for each online node, by ascending id. */
static int read_distances(const Sysfs *fs, Inventory *inv, NumaNode *node) {
        char path[64], buf[SYSFS_ATTRIBUTE_MAX], *word, *rest = buf;
        size_t n = 0;
        int r;

        (void) snprintf(path, sizeof(path), NUMA_NODES_DIR "/node%d/distance", node->id);
        r = sysfs_read(fs, path, buf, sizeof(buf));
        if (r < 0)
                return inventory_add_note(inv, "%s cannot be read (%s).", path, strerror(-r));
        while (n < inv->n_nodes && (word = strsep(&rest, " "))) {
                uint64_t distance;

                if (!*word)
                        continue;
                if (parse_unsigned(word, UINT16_MAX, &distance) < 0)
                        return inventory_add_note(inv, "%s is not a list of distances.", path);
                node->distance[n++] = (unsigned) distance;
        }
        return 0;
}

/* Reads the CPUs, the memory and the hugepages of a node. */
static int read_node(const Sysfs *fs, Inventory *inv, NumaNode *node, const CpuSet *online) {
        char path[64];
        CpuSet offline;
        int r;

        (void) snprintf(path, sizeof(path), NUMA_NODES_DIR "/node%d/cpulist", node->id);
        r = read_list(fs, inv, path, &node->cpus);
        if (r < 0)
                return r;
        offline = node->cpus;
        cpuset_subtract(&offline, online);
        cpuset_subtract(&node->cpus, &offline);

        (void) snprintf(path, sizeof(path), NUMA_NODES_DIR "/node%d", node->id);
        r = numa_read_memory(fs, inv, path, node);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), NUMA_NODES_DIR "/node%d/hugepages", node->id);
        return numa_read_pools(fs, inv, path, node);
}

static int add_numa_node(Inventory *inv, int id) {
        int r = ARRAY_RESERVE(inv->nodes, inv->n_nodes);

        if (r < 0)
                return r;
        inv->nodes[inv->n_nodes++] = (NumaNode) { .id = id, .package = -1 };
        return 0;
}

/* For a kernel without NUMA: fills in node 0, which is the whole machine. */
static int read_single_node(const Sysfs *fs, Inventory *inv, const CpuSet *online) {
        NumaNode *node = inv->nodes;
        int r;

        node->cpus = *online;
        node->distance[0] = 10;
        r = numa_read_memory(fs, inv, "proc", node);
        if (r < 0)
                return r;
        return numa_read_pools(fs, inv, "sys/kernel/mm/hugepages", node);
}

/* Adds the online nodes with their ids. *ret_single is true if the kernel has no NUMA; then the only node is 0. */
static int list_nodes(const Sysfs *fs, Inventory *inv, bool *ret_single) {
        _cleanup_close_ int fd = sysfs_open(fs, NUMA_NODES_DIR, O_PATH | O_DIRECTORY);
        CpuSet nodes;
        int r;

        *ret_single = fd == -ENOENT;
        if (*ret_single)
                return add_numa_node(inv, 0);
        r = read_online(fs, inv, "NUMA node", numa_online_nodes, &nodes);
        if (r < 0)
                return r;
        for (int id = cpuset_next(&nodes, 0); id >= 0; id = cpuset_next(&nodes, (unsigned) id + 1)) {
                if (inv->n_nodes >= INVENTORY_NODES_MAX)
                        return inventory_add_note(inv, "Only the first %u NUMA nodes are used.", INVENTORY_NODES_MAX);
                r = add_numa_node(inv, id);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads which CPUs share a core, die or cache with CPU number `id`. -EINVAL: that CPU is not among them. */
static int read_sharers(const Sysfs *fs, int cpu_fd, unsigned id, const char *file, CpuSet *ret) {
        char path[64];
        int r;

        (void) snprintf(path, sizeof(path), "cpu%u/%s", id, file);
        r = read_cpuset(fs, cpu_fd, path, ret);
        if (r < 0)
                return r;
        return cpuset_has(ret, id) ? 0 : -EINVAL;
}

static int read_threads(const Sysfs *fs, int cpu_fd, unsigned id, CpuSet *ret) {
        int r = read_sharers(fs, cpu_fd, id, "topology/core_cpus_list", ret);

        return r == -ENOENT ? read_sharers(fs, cpu_fd, id, "topology/thread_siblings_list", ret) : r;
}

static int add_cpus(Inventory *inv, const CpuSet *online) {
        for (int id = cpuset_next(online, 0); id >= 0; id = cpuset_next(online, (unsigned) id + 1)) {
                int r = ARRAY_RESERVE(inv->cpus, inv->n_cpus);

                if (r < 0)
                        return r;
                inv->cpus[inv->n_cpus++] = (Cpu) { .id = (unsigned) id, .node = -1, .core = (unsigned) id };
        }
        return 0;
}

static Cpu *find_cpu(const Inventory *inv, int id) {
        return &inv->cpus[inventory_find_cpu(inv, (unsigned) id) - inv->cpus];
}

/* Returns the lowest CPU that both sets have; -1: none. */
static int first_common(const CpuSet *a, const CpuSet *b) {
        int id = cpuset_next(a, 0);

        while (id >= 0 && !cpuset_has(b, (unsigned) id))
                id = cpuset_next(a, (unsigned) id + 1);
        return id;
}

/* CPUs whose thread siblings could not be read. */
typedef struct UnreadableCpus {
        int first, error; /* the lowest of them, and the negative errno of reading its siblings */
        size_t n;
} UnreadableCpus;

static int note_unreadable(Inventory *inv, const UnreadableCpus *l) {
        if (l->n == 0)
                return 0;
        if (l->n == 1)
                return inventory_add_note(inv, "The siblings of CPU %d are not known (%s): the CPU counts as a core.",
                                          l->first, strerror(-l->error));
        return inventory_add_note(inv, "The siblings of CPU %d%s are not known (%s): each counts as a core.", l->first,
                                  AND_MORE(l->n - 1), strerror(-l->error));
}

/* Sets the core of the first CPU in `left` and of its thread siblings, and removes them from `left`. One file per core
 * is enough, because all threads of a core list the same siblings. If the file is unreadable, removes only the first
 * CPU, which then counts as a core, and adds it to `unreadable`. */
static void read_core(const Sysfs *fs, Inventory *inv, int cpu_fd, const CpuSet *online, CpuSet *left,
                      UnreadableCpus *unreadable) {
        int id = cpuset_next(left, 0), core, r;
        CpuSet threads;

        r = cpu_fd < 0 ? cpu_fd : read_threads(fs, cpu_fd, (unsigned) id, &threads);
        if (r < 0) {
                cpuset_remove(left, (unsigned) id);
                if (unreadable->n++ == 0) {
                        unreadable->first = id;
                        unreadable->error = r;
                }
                return;
        }
        core = first_common(&threads, online);
        for (int t = id; t >= 0; t = cpuset_next(&threads, (unsigned) t + 1))
                if (cpuset_has(left, (unsigned) t))
                        find_cpu(inv, t)->core = (unsigned) core;
        cpuset_subtract(left, &threads);
}

/*
 * Sets the die of the first CPU in `left` and of the CPUs on that die with the same L3 cache, and removes them from
 * `left`. On AMD, each core complex of a die has an L3 cache. Linux before 5.3 lacks the file of the die.
 */
static int read_die(const Sysfs *fs, const Inventory *inv, int cpu_fd, const CpuSet *online, CpuSet *left) {
        unsigned id = (unsigned) cpuset_next(left, 0);
        CpuSet cpus, cache, others;
        int die, r = read_sharers(fs, cpu_fd, id, "topology/die_cpus_list", &cpus);

        if (r < 0)
                return r;
        if (read_sharers(fs, cpu_fd, id, "cache/index3/shared_cpu_list", &cache) >= 0) {
                others = cpus;
                cpuset_subtract(&others, &cache);
                cpuset_subtract(&cpus, &others);
        }
        die = first_common(&cpus, online);
        for (int c = die; c >= 0; c = cpuset_next(&cpus, (unsigned) c + 1))
                if (cpuset_has(left, (unsigned) c))
                        find_cpu(inv, c)->die = (unsigned) die;
        cpuset_subtract(left, &cpus);
        return 0;
}

/* Reads the kinds of cores. On hybrid CPUs, the PMU of each kind of core lists the CPUs of this kind. */
static void read_kinds(const Sysfs *fs, Inventory *inv) {
        static const char *const files[_CORE_KIND_MAX] = {
                [CORE_EFFICIENT] = "sys/devices/cpu_atom/cpus",
                [CORE_LOW_POWER] = "sys/devices/cpu_lowpower/cpus",
        };

        for (CoreKind kind = 0; kind < _CORE_KIND_MAX; kind++) {
                char buf[SYSFS_ATTRIBUTE_MAX];
                CpuSet cpus;

                if (!files[kind] || sysfs_read(fs, files[kind], buf, sizeof(buf)) < 0 || cpuset_parse(buf, &cpus) < 0)
                        continue;
                for (size_t i = 0; i < inv->n_cpus; i++)
                        if (cpuset_has(&cpus, inv->cpus[i].id))
                                inv->cpus[i].kind = kind;
        }
}

static int read_cpus(const Sysfs *fs, Inventory *inv, const CpuSet *online) {
        _cleanup_close_ int cpu_fd = sysfs_open(fs, CPUS, O_RDONLY | O_DIRECTORY);
        CpuSet left = *online;
        UnreadableCpus unreadable = { 0 };
        int r = add_cpus(inv, online);

        if (r < 0)
                return r;
        while (!cpuset_is_empty(&left))
                read_core(fs, inv, cpu_fd, online, &left, &unreadable);
        r = note_unreadable(inv, &unreadable);
        if (r < 0)
                return r;
        left = *online;
        while (r >= 0 && !cpuset_is_empty(&left))
                r = read_die(fs, inv, cpu_fd, online, &left);
        for (size_t i = 0; r < 0 && i < inv->n_cpus; i++) /* dies must be known of all CPUs, or of none */
                inv->cpus[i].die = 0;
        read_kinds(fs, inv);
        return 0;
}

/* Sets the package of the node from the first CPU with a known package: all CPUs of a node are in one socket. The
 * kernel writes -1 for an unknown package. */
static void read_package(const Sysfs *fs, NumaNode *node) {
        int id = cpuset_next(&node->cpus, 0);

        for (; id >= 0 && node->package < 0; id = cpuset_next(&node->cpus, (unsigned) id + 1)) {
                char path[80], buf[SYSFS_ATTRIBUTE_MAX];
                uint64_t package;

                (void) snprintf(path, sizeof(path), CPUS "/cpu%d/topology/physical_package_id", id);
                if (sysfs_read(fs, path, buf, sizeof(buf)) >= 0 && parse_unsigned(buf, INT32_MAX, &package) >= 0)
                        node->package = (int) package;
        }
}

static int read_nodes(const Sysfs *fs, Inventory *inv, bool single, const CpuSet *online) {
        int r = single ? read_single_node(fs, inv, online) : 0;

        if (r < 0)
                return r;
        for (size_t i = 0; i < inv->n_nodes; i++) {
                if (!single)
                        r = read_node(fs, inv, inv->nodes + i, online);
                read_package(fs, inv->nodes + i);
                if (r < 0)
                        return r;
        }
        return r;
}

static void relate_cpus(Inventory *inv) {
        for (size_t i = 0; i < inv->n_nodes; i++)
                for (size_t j = 0; j < inv->n_cpus; j++)
                        if (cpuset_has(&inv->nodes[i].cpus, inv->cpus[j].id))
                                inv->cpus[j].node = inv->nodes[i].id;
}

int numa_list_nodes(const Sysfs *fs, Inventory *inv) {
        bool single;

        return list_nodes(fs, inv, &single);
}

int numa_scan(const Sysfs *fs, Inventory *inv) {
        CpuSet online;
        bool single;
        int r;

        r = read_online(fs, inv, "CPU", numa_online_cpus, &online);
        if (r < 0)
                return r;
        r = read_cpus(fs, inv, &online);
        if (r < 0)
                return r;
        r = list_nodes(fs, inv, &single);
        if (r < 0)
                return r;
        r = read_nodes(fs, inv, single, &online);
        for (size_t i = 0; r >= 0 && !single && i < inv->n_nodes; i++)
                r = read_distances(fs, inv, inv->nodes + i);
        if (r < 0)
                return r;
        relate_cpus(inv);
        return 0;
}

static bool same_cpus(const Inventory *inv, const CpuSet *online) {
        CpuSet known = { 0 };

        for (size_t i = 0; i < inv->n_cpus; i++)
                cpuset_add(&known, inv->cpus[i].id);
        return cpuset_equal(&known, online);
}

static int copy_cpus(const Inventory *from, Inventory *to) {
        for (size_t i = 0; i < from->n_cpus; i++) {
                if (ARRAY_RESERVE(to->cpus, to->n_cpus) < 0)
                        return -ENOMEM;
                to->cpus[i] = from->cpus[i];
                to->cpus[i].node = -1;
                to->n_cpus++;
        }
        return 0;
}

static int copy_distances(const Inventory *from, Inventory *to) {
        if (from->n_nodes != to->n_nodes)
                return -ESTALE;
        for (size_t i = 0; i < to->n_nodes; i++) {
                if (from->nodes[i].id != to->nodes[i].id)
                        return -ESTALE;
                memcpy(to->nodes[i].distance, from->nodes[i].distance, sizeof(to->nodes[i].distance));
        }
        return 0;
}

/* Moves the nodes and CPUs of `now` to inv. Keeps the array inv->nodes, into which callers may have pointers. */
static void update_inventory(Inventory *inv, Inventory *now) {
        if (inv->n_nodes > 0)
                memcpy(inv->nodes, now->nodes, inv->n_nodes * sizeof(*inv->nodes));
        free(inv->cpus);
        inv->cpus = TAKE_PTR(now->cpus);
        inv->n_cpus = now->n_cpus;
        now->n_cpus = 0;
}

int numa_refresh(const Sysfs *fs, Inventory *inv) {
        /* The notes of `now` are dropped. The last scan put its own notes into inv. */
        _cleanup_(cleanup_inventory_free) Inventory *now = inventory_new();
        CpuSet online;
        bool single;
        int r;

        if (!now)
                return -ENOMEM;
        r = list_nodes(fs, now, &single);
        if (r < 0)
                return r;
        r = copy_distances(inv, now);
        if (r < 0)
                return r;
        r = read_online(fs, now, "CPU", numa_online_cpus, &online);
        if (r < 0)
                return r;
        if (!single && same_cpus(inv, &online)) {
                r = copy_cpus(inv, now);
                for (size_t i = 0; r >= 0 && i < now->n_nodes; i++) {
                        now->nodes[i].cpus = inv->nodes[i].cpus;
                        now->nodes[i].package = inv->nodes[i].package;
                        numa_refresh_memory(fs, &inv->nodes[i], &now->nodes[i]);
                }
        } else {
                r = read_cpus(fs, now, &online);
                if (r < 0)
                        return r;
                r = read_nodes(fs, now, single, &online);
        }
        if (r < 0)
                return r;
        relate_cpus(now);
        update_inventory(inv, now);
        return 0;
}
