/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open files of other processes, by the links in proc/PID/fd. */

#include "host/holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "util/fileio.h"
#include "util/strings.h"

#define DELETED       " (deleted)"
#define NODE_MAX      64U
#define VFIO_DEVS_MAX 8U
#define LISTING_SIZE  8192U

/* A device node that stands for a device, as "/dev/vfio/12". */
typedef struct Node {
        char path[NODE_MAX];
        size_t device; /* the how many-th of those that are asked about */
} Node;

typedef struct Nodes {
        Node *nodes;
        size_t n;
        size_t held; /* the device that was found to be held */
} Nodes;

static void nodes_done(Nodes *nodes) {
        free(nodes->nodes);
}

static int add_node(Nodes *nodes, size_t device, const char *format, ...) _printf_(3, 4);
static int add_node(Nodes *nodes, size_t device, const char *format, ...) {
        va_list ap;

        if (ARRAY_RESERVE(nodes->nodes, nodes->n) < 0)
                return -ENOMEM;
        nodes->nodes[nodes->n].device = device;
        va_start(ap, format);
        (void) vsnprintf(nodes->nodes[nodes->n++].path, NODE_MAX, format, ap);
        va_end(ap);
        return 0;
}

static int find_nodes(const Sysfs *fs, size_t device, PciAddress address, int group, Nodes *nodes) {
        _cleanup_close_ int fd = -1;
        char path[128], **names = NULL;
        size_t n = 0;
        int r = group >= 0 ? add_node(nodes, device, "/dev/vfio/%d", group) : 0;

        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/vfio-dev", PCI_ADDRESS_STR(address));
        fd = sysfs_open(fs, path, O_RDONLY | O_DIRECTORY);
        if (fd == -ENOENT)
                return 0; /* on no VFIO driver, or a kernel without such nodes */
        r = fd < 0 ? fd : list_dir_at(fd, ".", VFIO_DEVS_MAX, &names, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; r >= 0 && i < n; i++)
                if (strncmp(names[i], "vfio", 4) == 0 && strlen(names[i]) < NODE_MAX / 2)
                        r = add_node(nodes, device, "/dev/vfio/devices/%.32s", names[i]);
        (void) free_names(names, n);
        return MIN(r, 0);
}

/* A path ends in the node: what stands before it is the root that the process or this program sees. */
static bool is_node(Nodes *nodes, char *target, size_t length) {
        if (!strstr(target, "/dev/vfio/"))
                return false;
        if (length > strlen(DELETED) && streq(target + length - strlen(DELETED), DELETED))
                target[length -= strlen(DELETED)] = '\0';
        for (size_t i = 0; i < nodes->n; i++) {
                size_t n = strlen(nodes->nodes[i].path);

                if (length < n || !streq(target + length - n, nodes->nodes[i].path))
                        continue;
                nodes->held = nodes->nodes[i].device;
                return true;
        }
        return false;
}

/* The process or its descriptor ended meanwhile. */
static bool is_gone(int error) {
        return error == ENOENT || error == ESRCH;
}

/* 1 when a descriptor of the process is one of the nodes, 0 when none is, negative errno when that cannot be told. */
static int search_descriptors(DIR *d, Nodes *nodes) {
        int unknown = 0;

        for (;;) {
                char target[PATH_MAX];
                const struct dirent *e;
                ssize_t n;

                errno = 0;
                e = readdir(d);
                if (!e)
                        return errno == 0 || is_gone(errno) ? unknown : -errno;
                if (e->d_name[0] == '.')
                        continue;
                n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
                if (n < 0 && !is_gone(errno))
                        unknown = -errno;
                if (n < 0)
                        continue;
                target[n] = '\0';
                if (is_node(nodes, target, (size_t) n))
                        return 1;
        }
}

static int search_process(int proc_fd, const char *pid, Nodes *nodes) {
        char path[300];
        DIR *d;
        int fd, r;

        (void) snprintf(path, sizeof(path), "%s/fd", pid);
        fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return is_gone(errno) ? 0 : -errno;
        d = fdopendir(fd);
        if (!d) {
                r = -errno;
                (void) close(fd);
                return r;
        }
        r = search_descriptors(d, nodes);
        (void) closedir(d);
        return r;
}

static int search_entry(int proc_fd, const char *name, Nodes *nodes, Holder *ret) {
        char path[300];
        uint64_t pid;
        int r;

        if (parse_unsigned(name, INT32_MAX, &pid) < 0)
                return 0;
        r = search_process(proc_fd, name, nodes);
        if (r <= 0)
                return r;
        *ret = (Holder){ .pid = (int) pid };
        (void) snprintf(path, sizeof(path), "%s/comm", name);
        (void) sysfs_read_at(proc_fd, path, ret->command, sizeof(ret->command));
        return 1;
}

/* One that is known to hold it says more than one that may not be looked at. */
static int search_processes(int proc_fd, Nodes *nodes, Holder *ret) {
        char buf[LISTING_SIZE] __attribute__((aligned(8)));
        int unknown = 0;
        ssize_t n;

        while ((n = getdents64(proc_fd, buf, sizeof(buf))) > 0)
                for (ssize_t at = 0; at < n;) {
                        const struct dirent64 *e = (const void *) (buf + at);
                        int r = search_entry(proc_fd, e->d_name, nodes, ret);

                        if (r > 0)
                                return r;
                        if (r < 0)
                                unknown = r;
                        at += e->d_reclen;
                }
        return n < 0 ? -errno : unknown;
}

int holders_of_devices(const Sysfs *fs, const PciAddress *devices, const int *groups, size_t n, Holder *ret,
                       size_t *ret_held) {
        _cleanup_close_ int fd = -1;
        _cleanup_(nodes_done) Nodes nodes = { 0 };
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++)
                r = find_nodes(fs, i, devices[i], groups[i], &nodes);
        if (r < 0 || nodes.n == 0)
                return r;
        fd = sysfs_open(fs, "proc", O_RDONLY | O_DIRECTORY);
        r = fd < 0 ? fd : search_processes(fd, &nodes, ret);
        if (r > 0)
                *ret_held = nodes.held;
        return r;
}

int holders_of_device(const Sysfs *fs, PciAddress address, int group, Holder *ret) {
        size_t held;

        return holders_of_devices(fs, &address, &group, 1, ret, &held);
}
