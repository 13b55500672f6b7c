/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the device nodes of a device by a walk through its sysfs directory. Also finds how the host uses the device
 * without a process: interfaces that are up, disks below device mapper. Reads no attribute that takes the lock of a
 * device or driver. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "holders-internal.h"
#include "host/nvidia.h"
#include "host/pcipath.h"
#include "util/fileio.h"
#include "util/strings.h"

/* Limits of a walk. A storage adapter with its disks has thousands of directories. */
#define DIRECTORIES_MAX 65536U
#define ENTRIES_MAX     65536U
#define DEPTH_MAX       24U
#define SUBSYSTEMS_MAX  1024U
#define VFIO_DEVS_MAX   8U
#define NVIDIA_MAJOR    195U
#define NVME_SUBSYSTEMS "sys/devices/virtual/nvme-subsystem"

#define IFF_UP_BIT      0x1U
#define IPV6_SCOPE_LINK "20"
#define UPPER_PREFIX    "upper_"

int holder_found(Holder *ret, const char *remedy, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(ret->text, sizeof(ret->text), format, ap);
        va_end(ap);
        (void) snprintf(ret->remedy, sizeof(ret->remedy), "%s", remedy);
        return 1;
}

/* A file of proc/net with a route or an address in each line. at: index of the word with the interface. scope: index of
 * the word with the scope, by which link-local addresses are skipped; 0: none. */
typedef struct AddressFile {
        const char *path;
        size_t at, scope;
        const char *interface;
} AddressFile;

static int take_address(char *line, void *userdata) {
        const AddressFile *file = userdata;
        char *words[8] = { NULL }, *rest = line;

        return string_next_words(&rest, words, MAX(file->at, file->scope) + 1) &&
               streq(words[file->at], file->interface) &&
               (file->scope == 0 || !streq(words[file->scope], IPV6_SCOPE_LINK));
}

static bool has_address(const Sysfs *fs, const char *interface) {
        AddressFile files[] = { { "proc/net/route", 0, 0, interface }, { "proc/net/if_inet6", 5, 3, interface } };

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                int fd = sysfs_open(fs, files[i].path, O_RDONLY | O_NOCTTY | O_NONBLOCK);

                if (fd >= 0 && read_lines_fd(fd, take_address, &files[i]) > 0)
                        return true;
        }
        return false;
}

static bool is_up(const Sysfs *fs, int net_fd, const char *interface) {
        char path[NAME_MAX + 16], text[64];
        uint64_t flags;

        (void) snprintf(path, sizeof(path), "%s/flags", interface);
        return sysfs_read_at(fs, net_fd, path, text, sizeof(text)) >= 0 && parse_hex(text, UINT32_MAX, &flags) == 0 &&
               (flags & IFF_UP_BIT);
}

/* Returns 1 with the first interface stacked on this one (such as a VLAN or macvlan), 0 when there is none, or a
 * negative errno. */
static int find_upper(int net_fd, const char *interface, char *buf, size_t size) {
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = list_dir_at(net_fd, interface, ENTRIES_MAX, &names, &n);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        for (size_t i = 0; r == 0 && i < n; i++)
                if (strncmp(names[i], UPPER_PREFIX, strlen(UPPER_PREFIX)) == 0) {
                        (void) snprintf(buf, size, "%s", names[i] + strlen(UPPER_PREFIX));
                        r = 1;
                }
        return r;
}

static int visit_interface(const Sysfs *fs, bool is_vf, int net_fd, const char *name, Holder *ret) {
        char path[NAME_MAX + 16], other[NAME_MAX + 1], remedy[HOLDER_TEXT_MAX];
        int r;

        (void) snprintf(path, sizeof(path), "%s/master", name);
        if (sysfs_link_name_at(net_fd, path, other, sizeof(other)) >= 0) {
                (void) snprintf(remedy, sizeof(remedy), "Detach the interface first: ip link set %s nomaster.",
                                QUOTABLE(name));
                return holder_found(ret, remedy, "the host: its interface %s is a port of %s", QUOTABLE(name),
                                    QUOTABLE(other));
        }
        r = find_upper(net_fd, name, other, sizeof(other));
        if (r < 0)
                return r;
        if (r > 0) {
                (void) snprintf(remedy, sizeof(remedy), "Remove the upper interface first: ip link delete %s.",
                                QUOTABLE(other));
                return holder_found(ret, remedy, "the host: interface %s is stacked on its interface %s",
                                    QUOTABLE(other), QUOTABLE(name));
        }
        if (!is_up(fs, net_fd, name) || (is_vf && !has_address(fs, name)))
                return 0;
        (void) snprintf(remedy, sizeof(remedy), "Take the interface down first: ip link set %s down.", QUOTABLE(name));
        return holder_found(ret, remedy, "the host: its interface %s is up", QUOTABLE(name));
}

/* Checks the network interfaces of a device. net_fd: the device's directory net. names: its entries. Returns as
 * holder_nodes_find(). */
static int check_interfaces(const Sysfs *fs, bool is_vf, int net_fd, char **names, size_t n, Holder *ret) {
        int r = 0;

        /* The directory net is empty when the interface is in another network namespace. */
        if (n == 0)
                return holder_found(ret, "Stop the container that has the interface.",
                                    "the host: its interface is in another network namespace");
        for (size_t i = 0; r == 0 && i < n; i++)
                r = visit_interface(fs, is_vf, net_fd, names[i], ret);
        return r;
}

typedef struct Walk {
        const Sysfs *fs;
        const HolderQuery *query;
        size_t device;
        size_t part; /* the part in which the walk is; HOLDER_NO_PART: none */
        HolderNodes *nodes;
        Holder *holder;
        unsigned left; /* how many directories may still be read */
} Walk;

void holder_nodes_done(HolderNodes *nodes) {
        free(nodes->nodes);
        free(nodes->parts);
        free(nodes->ignored);
}

/* Returns true when the nodes at the present place of the walk count. Nodes of a part always count; nodes of the device
 * itself do not count if the query has only_parts or is_locked. */
static bool is_counted(const Walk *w) {
        return w->part != HOLDER_NO_PART || (!w->query->only_parts && !w->query->is_locked);
}

static HolderNode *add_node(Walk *w, const char *format, ...) _printf_(2, 3);
static HolderNode *add_node(Walk *w, const char *format, ...) {
        HolderNodes *nodes = w->nodes;
        HolderNode *node;
        va_list ap;

        if (ARRAY_RESERVE(nodes->nodes, nodes->n) < 0)
                return NULL;
        node = &nodes->nodes[nodes->n++];
        *node = (HolderNode) { .device = w->device, .part = w->part };
        va_start(ap, format);
        (void) vsnprintf(node->name, sizeof(node->name), format, ap);
        va_end(ap);
        return node;
}

/* Sets the device number of a node from an attribute dev, "195:0". */
static void set_number(HolderNode *node, const char *text) {
        node->has_number = sscanf(text, "%u:%u", &node->major, &node->minor) == 2;
}

/* Adds a node. path: the sysfs attribute with its device number. 0 or -ENOMEM. */
static int add_numbered(Walk *w, const char *name, const char *path) {
        HolderNode *node = add_node(w, "%s", name);
        char text[64];

        if (node && sysfs_read(w->fs, path, text, sizeof(text)) >= 0)
                set_number(node, text);
        return node ? 0 : -ENOMEM;
}

/* Adds the node /dev/vfio/GROUP. 0 or -ENOMEM. */
static int add_group(Walk *w, const char *group) {
        char name[HOLDER_NODE_NAME_MAX], path[64];

        (void) snprintf(name, sizeof(name), "vfio/%.16s", group);
        (void) snprintf(path, sizeof(path), "sys/class/vfio/%.16s/dev", group);
        return add_numbered(w, name, path);
}

/* Adds a part and makes it the one in which the walk is. 0 or a negative errno. */
static int enter_part(Walk *w, const HolderPart *part) {
        HolderNodes *nodes = w->nodes;

        if (ARRAY_RESERVE(nodes->parts, nodes->n_parts) < 0)
                return -ENOMEM;
        w->part = nodes->n_parts;
        nodes->parts[nodes->n_parts++] = *part;
        return 0;
}

static bool is_block(int fd) {
        char name[NAME_MAX + 1];

        return sysfs_link_name_at(fd, "subsystem", name, sizeof(name)) >= 0 && streq(name, "block");
}

static int visit_node(Walk *w, int fd, const char *name) {
        HolderNode *node;
        char text[64];

        if (!is_counted(w) || strlen(name) >= HOLDER_NODE_NAME_MAX ||
            sysfs_read_at(w->fs, fd, "dev", text, sizeof(text)) < 0)
                return 0;
        node = add_node(w, "%s", name);
        if (!node)
                return -ENOMEM;
        set_number(node, text);
        node->is_block = is_block(fd);
        return 0;
}

/* Returns true when the walk need not enter the directory: it has no nodes, or belongs to another PCI function. */
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

/* Checks a directory called "net" or "holders" for use by the host. Such use of a part does not count, because it ends
 * when the part is removed. If the query has only_parts, no such use counts. Returns as holder_nodes_find(). */
static int check_use(Walk *w, int fd, const char *name, const char *above, char **names, size_t n) {
        if (w->part != HOLDER_NO_PART || w->query->only_parts)
                return 0;
        if (streq(name, "net"))
                return check_interfaces(w->fs, w->query->is_vf, fd, names, n, w->holder);
        if (streq(name, "holders") && n > 0)
                return holder_found(w->holder, "Deactivate the volume first.",
                                    "the host: volume %s is stacked on its disk %s", QUOTABLE(names[0]),
                                    QUOTABLE(above));
        return 0;
}

/* If the directory is a mediated device, enters it as a part and adds its VFIO group. If the query names a mediated
 * device, skips all others. Below a PCI function only mediated devices have a link iommu_group. */
static int visit_mediated(Walk *w, int fd, const char *name) {
        HolderPart part = { .device = w->device };
        char group[NAME_MAX + 1];
        int r;

        if (w->query->mdev && !streq(name, w->query->mdev))
                return 0;
        if (sysfs_link_name_at(fd, "iommu_group", group, sizeof(group)) < 0)
                return 0;
        (void) snprintf(part.uuid, sizeof(part.uuid), "%.*s", (int) sizeof(part.uuid) - 1, QUOTABLE(name));
        r = enter_part(w, &part);
        return r < 0 ? r : add_group(w, group);
}

/* Walks a directory and those below it. above: name of its parent. Follows no links, which lead to other devices. */
static int walk(Walk *w, int parent_fd, const char *name, const char *above, unsigned depth) {
        _cleanup_close_ int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        size_t outer = w->part, n = 0;
        _cleanup_names_ char **names = NULL;
        int r;

        if (fd < 0)
                return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
        if (depth > DEPTH_MAX || w->left-- == 0)
                return -E2BIG;
        r = list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = depth > 0 ? visit_mediated(w, fd, name) : 0;
        if (r == 0)
                r = check_use(w, fd, name, above, names, n);
        if (r == 0)
                r = walk_entries(w, fd, name, names, n, depth);
        w->part = outer;
        return r;
}

/* Walks the NVMe subsystem of a controller: with native multipath, the disks are below the subsystem. */
static int walk_subsystems(Walk *w, const char *controller) {
        _cleanup_close_ int fd = sysfs_open(w->fs, NVME_SUBSYSTEMS, O_RDONLY | O_DIRECTORY);
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = fd < 0 ? fd : list_dir_at(fd, ".", SUBSYSTEMS_MAX, &names, &n);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (r != 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                char link[2 * NAME_MAX + 2];
                struct stat st;

                (void) snprintf(link, sizeof(link), "%s/%s", names[i], controller);
                if (fstatat(fd, link, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
                        r = walk(w, fd, names[i], "", 0);
                if (r != 0)
                        return r;
        }
        return r;
}

static int walk_controllers(Walk *w, int dir_fd) {
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = list_dir_at(dir_fd, "nvme", ENTRIES_MAX, &names, &n);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        for (size_t i = 0; r == 0 && i < n; i++)
                r = walk_subsystems(w, names[i]);
        return r;
}

/* Adds /dev/nvidiaN. Only the driver knows N; sysfs does not show it. */
static int add_nvidia(Walk *w) {
        uint32_t minor = w->query->nvidia_minor;
        bool known = minor != NVIDIA_MINOR_UNKNOWN;
        HolderNode *node = add_node(w, "nvidia%u", known ? minor : 0);

        if (!node)
                return -ENOMEM;
        node->any_gpu = !known;
        node->has_number = true;
        node->major = NVIDIA_MAJOR;
        node->minor = minor;
        return 0;
}

/* Walks the directory of a PCI function. */
static int walk_device(Walk *w, PciAddress address) {
        _cleanup_close_ int fd = sysfs_open(w->fs, PCI_PATH(address, ""), O_RDONLY | O_DIRECTORY);
        int r;

        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        r = walk(w, fd, ".", "", 0);
        return r == 0 && is_counted(w) ? walk_controllers(w, fd) : r;
}

/* Returns true for a DRM node. Each open file of a DRM node has a reference to nvidia_drm; an open file of another
 * node, such as that of an I2C bus, may have no reference to a module of NVIDIA. */
static bool is_drm_node(const HolderNode *node) {
        static const char *const prefixes[] = { "card", "render" };

        for (size_t i = 0; i < ELEMENTSOF(prefixes); i++)
                if (strncmp(node->name, prefixes[i], strlen(prefixes[i])) == 0)
                        return true;
        return false;
}

/* Removes the DRM nodes of the device itself, not those of its parts, from index `first` on: the modules' reference
 * counts show that none is open. */
static void drop_drm_nodes(Walk *w, size_t first) {
        HolderNodes *nodes = w->nodes;
        size_t n = first;

        for (size_t i = first; i < nodes->n; i++)
                if (nodes->nodes[i].part != HOLDER_NO_PART || !is_drm_node(&nodes->nodes[i]))
                        nodes->nodes[n++] = nodes->nodes[i];
        nodes->n = n;
}

/* Adds the node of NVIDIA's driver to those of a GPU. If no process has any GPU of the driver open, removes the GPU's
 * DRM nodes instead. first: index of the GPU's first node. */
static int find_nvidia_nodes(Walk *w, size_t first) {
        HolderNodes *nodes = w->nodes;

        if (!nodes->nvidia_was_read)
                nodes->nvidia_is_closed = nvidia_is_closed(w->fs);
        nodes->nvidia_was_read = true;
        if (!nodes->nvidia_is_closed)
                return add_nvidia(w);
        drop_drm_nodes(w, first);
        return 0;
}

static int find_host_nodes(Walk *w) {
        const HolderQuery *q = w->query;
        size_t first = w->nodes->n;
        int r = walk_device(w, q->address);

        if (r == 0 && streq(q->driver, NVIDIA_DRIVER) && !q->is_locked)
                r = find_nvidia_nodes(w, first);
        if (r == 0 && streq(q->driver, "amdgpu"))
                r = add_numbered(w, "kfd", "sys/class/kfd/kfd/dev");
        return r;
}

/* Adds /dev/vfio/devices/vfioN of a function, which guests with iommufd open. */
static int find_vfio_cdevs(Walk *w, PciAddress address) {
        _cleanup_close_ int fd = sysfs_open(w->fs, PCI_PATH(address, "vfio-dev"), O_RDONLY | O_DIRECTORY);
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r;

        if (fd == -ENOENT)
                return 0; /* the device has no VFIO driver, or the kernel has no such nodes */
        r = fd < 0 ? fd : list_dir_at(fd, ".", VFIO_DEVS_MAX, &names, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; r >= 0 && i < n; i++)
                if (strncmp(names[i], "vfio", 4) == 0 && strlen(names[i]) < HOLDER_NODE_NAME_MAX / 2) {
                        char name[HOLDER_NODE_NAME_MAX], attribute[64];

                        (void) snprintf(name, sizeof(name), "vfio/devices/%.32s", names[i]);
                        (void) snprintf(attribute, sizeof(attribute), "vfio-dev/%.32s/dev", names[i]);
                        r = add_numbered(w, name, PCI_PATH(address, attribute));
                }
        return MIN(r, 0);
}

static int find_vfio_nodes(Walk *w) {
        char group[16];
        int r = 0;

        (void) snprintf(group, sizeof(group), "%d", w->query->group);
        if (w->query->group >= 0)
                r = add_group(w, group);
        return r < 0 ? r : find_vfio_cdevs(w, w->query->address);
}

/* Adds a VF as a part, with its nodes, whichever driver it has. */
static int find_vf_nodes(Walk *w, PciAddress vf) {
        char group[NAME_MAX + 1];
        int r = enter_part(w, &(HolderPart) { .device = w->device, .is_vf = true, .vf = vf });

        if (r == 0 && sysfs_link_name(w->fs, PCI_PATH(vf, "iommu_group"), group, sizeof(group)) >= 0)
                r = add_group(w, group);
        if (r == 0)
                r = find_vfio_cdevs(w, vf);
        return r < 0 ? r : walk_device(w, vf);
}

/* Adds all VFs of a PF as parts, with their nodes. */
static int find_vfs(Walk *w) {
        int r = 0;

        for (unsigned i = 0; r == 0; i++) {
                char link[32], target[PCI_ADDRESS_STRING_MAX];
                PciAddress vf;

                (void) snprintf(link, sizeof(link), "virtfn%u", i);
                r = sysfs_link_name(w->fs, PCI_PATH(w->query->address, link), target, sizeof(target));
                if (r == -ENOENT)
                        return 0;
                if (r < 0)
                        return r;
                r = pci_address_parse(target, &vf);
                if (r < 0)
                        return r;
                r = find_vf_nodes(w, vf);
        }
        return r;
}

int holder_nodes_find(const Sysfs *fs, const HolderQuery *q, size_t device, HolderNodes *nodes, Holder *ret) {
        Walk w = { .fs = fs,
                   .query = q,
                   .device = device,
                   .part = HOLDER_NO_PART,
                   .nodes = nodes,
                   .holder = ret,
                   .left = DIRECTORIES_MAX };
        int r;

        ret->device = device;
        if (q->only_parts)
                r = walk_device(&w, q->address);
        else
                r = q->driver ? find_host_nodes(&w) : find_vfio_nodes(&w);
        return r == 0 && !q->is_vf && !q->mdev ? find_vfs(&w) : r;
}
