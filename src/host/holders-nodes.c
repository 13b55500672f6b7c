/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The nodes of a device, by a walk through its directory in sysfs, and what the host has made of it without a process:
 * interfaces that are up, disks below device mapper. Nothing is read here that takes a lock of device or driver.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "host/holders-internal.h"
#include "host/nvidia.h"
#include "util/fileio.h"
#include "util/strings.h"

/* A host adapter with its disks has thousands of directories. */
#define DIRECTORIES_MAX 65536U
#define ENTRIES_MAX     65536U
#define DEPTH_MAX       24U
#define SUBSYSTEMS_MAX  1024U
#define VFIO_DEVS_MAX   8U
#define NVIDIA_MAJOR    195U
#define NVME_SUBSYSTEMS "sys/devices/virtual/nvme-subsystem"

typedef struct Walk {
        const Sysfs *fs;
        const HolderQuery *query;
        size_t device;
        HolderNodes *nodes;
        Holder *holder;
        unsigned left; /* directories that may still be read */
} Walk;

void holder_nodes_done(HolderNodes *nodes) {
        free(nodes->nodes);
}

static HolderNode *add_node(HolderNodes *nodes, size_t device, const char *format, ...) _printf_(3, 4);
static HolderNode *add_node(HolderNodes *nodes, size_t device, const char *format, ...) {
        HolderNode *node;
        va_list ap;

        if (ARRAY_RESERVE(nodes->nodes, nodes->n) < 0)
                return NULL;
        node = &nodes->nodes[nodes->n++];
        *node = (HolderNode){ .device = device };
        va_start(ap, format);
        (void) vsnprintf(node->name, sizeof(node->name), format, ap);
        va_end(ap);
        return node;
}

/* "195:0" */
static void set_number(HolderNode *node, const char *text) {
        node->has_number = sscanf(text, "%u:%u", &node->major, &node->minor) == 2;
}

static bool is_block(int fd) {
        char name[NAME_MAX + 1];

        return sysfs_link_name_at(fd, "subsystem", name, sizeof(name)) >= 0 && streq(name, "block");
}

static int visit_node(Walk *w, int fd, const char *name) {
        HolderNode *node;
        char text[64];

        if (strlen(name) >= HOLDER_NODE_NAME_MAX || sysfs_read_at(fd, "dev", text, sizeof(text)) < 0)
                return 0;
        node = add_node(w->nodes, w->device, "%s", name);
        if (!node)
                return -ENOMEM;
        set_number(node, text);
        node->is_block = is_block(fd);
        return 0;
}

/* Where nothing is to be found, or what is looked at by itself. */
static bool is_skipped(const char *name) {
        static const char *const skipped[] = { "power", "statistics", "queues", "msi_irqs", "slaves" };
        PciAddress address;

        for (size_t i = 0; i < ELEMENTSOF(skipped); i++)
                if (streq(name, skipped[i]))
                        return true;
        return pci_address_parse(name, &address) >= 0;
}

static int walk(Walk *w, int parent_fd, const char *name, const char *above, unsigned depth);

static int walk_entries(Walk *w, int fd, const char *name, char **names, size_t n, unsigned depth) {
        int r = visit_node(w, fd, name);

        for (size_t i = 0; r == 0 && i < n; i++)
                if (!is_skipped(names[i]))
                        r = walk(w, fd, names[i], name, depth + 1);
        return r;
}

/* above: the name of the directory that it is in. Links are not followed: they lead to what is somebody else's. */
static int walk(Walk *w, int parent_fd, const char *name, const char *above, unsigned depth) {
        _cleanup_close_ int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char **names = NULL;
        size_t n = 0;
        int r;

        if (fd < 0)
                return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
        if (depth > DEPTH_MAX || w->left-- == 0)
                return -E2BIG;
        r = list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (streq(name, "net"))
                r = holder_interfaces_find(w->fs, w->query->is_vf, fd, names, n, w->holder);
        else if (streq(name, "holders") && n > 0)
                r = holder_found(w->holder, "Take that off the disk first.", "%s, which is on %s", QUOTABLE(names[0]),
                                 QUOTABLE(above));
        if (r == 0)
                r = walk_entries(w, fd, name, names, n, depth);
        (void) free_names(names, n);
        return r;
}

/* The subsystem of a controller, if it has a namespace in common with others: the disks hang below that. */
static int walk_subsystems(Walk *w, const char *controller) {
        _cleanup_close_ int fd = sysfs_open(w->fs, NVME_SUBSYSTEMS, O_RDONLY | O_DIRECTORY);
        char **names = NULL;
        size_t n = 0;
        int r = fd < 0 ? fd : list_dir_at(fd, ".", SUBSYSTEMS_MAX, &names, &n);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        for (size_t i = 0; r == 0 && i < n; i++) {
                char link[2 * NAME_MAX + 2];
                struct stat st;

                (void) snprintf(link, sizeof(link), "%s/%s", names[i], controller);
                if (fstatat(fd, link, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
                        r = walk(w, fd, names[i], "", 0);
        }
        (void) free_names(names, n);
        return r;
}

static int walk_controllers(Walk *w, int dir_fd) {
        char **names = NULL;
        size_t n = 0;
        int r = list_dir_at(dir_fd, "nvme", ENTRIES_MAX, &names, &n);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        for (size_t i = 0; r == 0 && i < n; i++)
                r = walk_subsystems(w, names[i]);
        (void) free_names(names, n);
        return r;
}

/* Not known by sysfs: which of its nodes a GPU has only the driver can tell. */
static int add_nvidia(const HolderQuery *q, size_t device, HolderNodes *nodes) {
        bool known = q->nvidia_minor != NVIDIA_MINOR_UNKNOWN;
        HolderNode *node = add_node(nodes, device, "nvidia%u", known ? q->nvidia_minor : 0);

        if (!node)
                return -ENOMEM;
        node->any_gpu = !known;
        node->has_number = true;
        node->major = NVIDIA_MAJOR;
        node->minor = q->nvidia_minor;
        return 0;
}

/* A node whose number is in a file of sysfs, outside the directory of the device. */
static int add_numbered(const Sysfs *fs, size_t device, const char *name, const char *path, HolderNodes *nodes) {
        HolderNode *node = add_node(nodes, device, "%s", name);
        char text[64];

        if (node && sysfs_read(fs, path, text, sizeof(text)) >= 0)
                set_number(node, text);
        return node ? 0 : -ENOMEM;
}

static int find_host_nodes(const Sysfs *fs, const HolderQuery *q, size_t device, HolderNodes *nodes, Holder *holder) {
        Walk w = { .fs = fs, .query = q, .device = device, .nodes = nodes, .holder = holder, .left = DIRECTORIES_MAX };
        _cleanup_close_ int fd = -1;
        char path[128];
        int r;

        (void) snprintf(path, sizeof(path), "sys/bus/pci/devices/%s", PCI_ADDRESS_STR(q->address));
        fd = sysfs_open(fs, path, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        r = walk(&w, fd, ".", "", 0);
        if (r == 0)
                r = walk_controllers(&w, fd);
        if (r == 0 && streq(q->driver, NVIDIA_DRIVER))
                r = add_nvidia(q, device, nodes);
        if (r == 0 && streq(q->driver, "amdgpu"))
                r = add_numbered(fs, device, "kfd", "sys/class/kfd/kfd/dev", nodes);
        return r;
}

static int find_vfio_nodes(const Sysfs *fs, const HolderQuery *q, size_t device, HolderNodes *nodes) {
        _cleanup_close_ int fd = -1;
        char path[128], name[HOLDER_NODE_NAME_MAX], **names = NULL;
        size_t n = 0;
        int r = 0;

        if (q->group >= 0) {
                (void) snprintf(name, sizeof(name), "vfio/%d", q->group);
                (void) snprintf(path, sizeof(path), "sys/class/vfio/%d/dev", q->group);
                r = add_numbered(fs, device, name, path, nodes);
        }
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/vfio-dev", PCI_ADDRESS_STR(q->address));
        fd = sysfs_open(fs, path, O_RDONLY | O_DIRECTORY);
        if (fd == -ENOENT)
                return 0; /* on no VFIO driver, or a kernel without such nodes */
        r = fd < 0 ? fd : list_dir_at(fd, ".", VFIO_DEVS_MAX, &names, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; r >= 0 && i < n; i++)
                if (strncmp(names[i], "vfio", 4) == 0 && strlen(names[i]) < HOLDER_NODE_NAME_MAX / 2) {
                        (void) snprintf(name, sizeof(name), "vfio/devices/%.32s", names[i]);
                        (void) snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/vfio-dev/%.32s/dev",
                                        PCI_ADDRESS_STR(q->address), names[i]);
                        r = add_numbered(fs, device, name, path, nodes);
                }
        (void) free_names(names, n);
        return MIN(r, 0);
}

int holder_nodes_find(const Sysfs *fs, const HolderQuery *q, size_t device, HolderNodes *nodes, Holder *ret) {
        ret->device = device;
        return q->driver ? find_host_nodes(fs, q, device, nodes, ret) : find_vfio_nodes(fs, q, device, nodes);
}
