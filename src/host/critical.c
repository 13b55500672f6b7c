/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Marks the PCI functions that the host uses for storage, memory, network and display. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "critical-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

int critical_mark(const Sysfs *fs, const Config *config, Inventory *inv) {
        static int (*const marks[])(const Critical *c) = { critical_mark_storage, critical_mark_exports,
                                                           critical_mark_memory,  critical_mark_peers,
                                                           critical_mark_network, critical_mark_display };
        _cleanup_(cleanup_critical_peers_free) Peers *peers = critical_peers_new();
        const Critical c = { .fs = fs, .config = config, .inv = inv, .peers = peers };

        if (!peers)
                return -ENOMEM;
        (void) string_copy(&inv->critical_error, NULL);
        for (size_t i = 0; i < inv->n_devices; i++) {
                (void) string_copy(&inv->devices[i].critical, NULL);
                inv->devices[i].critical_remedy = NULL;
                (void) string_copy(&inv->devices[i].console, NULL);
        }
        for (size_t i = 0; i < ELEMENTSOF(marks); i++) {
                int r = marks[i](&c);

                if (r < 0)
                        return r;
        }
        return 0;
}

typedef struct Taker {
        const Critical *c;
        int (*take)(const Critical *c, char *line);
} Taker;

static int take_line(char *line, void *userdata) {
        const Taker *taker = userdata;

        return MIN(taker->take(taker->c, line), 0);
}

/* Sets Inventory.critical_error, which keeps the first reason. */
static int note_unreadable(const Critical *c, const char *path, int error) {
        if (c->inv->critical_error)
                return 0;
        return string_replace(&c->inv->critical_error, "%s cannot be read (%s).",
                              text_is_clean(path) ? path : QUOTABLE(path), strerror(-error));
}

int critical_lines(const Critical *c, const char *path, bool optional, int (*take)(const Critical *, char *)) {
        Taker taker = { c, take };
        /* Without O_NONBLOCK, opening a FIFO would wait for a writer. */
        int fd = sysfs_open(c->fs, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
        int r = fd < 0 ? fd : read_lines_fd(fd, take_line, &taker);

        if (r >= 0 || r == -ENOMEM)
                return r;
        return r == -ENOENT && optional ? 0 : note_unreadable(c, path, r);
}

/*
 * Returns true when the error means that there is no such file, its device is gone, or the name is too long to exist.
 */
static bool is_absent(int error) {
        return error == -ENOENT || error == -ENOTDIR || error == -ENODEV || error == -ENXIO || error == -ENAMETOOLONG;
}

int critical_unreadable(const Critical *c, const char *path, int error) {
        if (error == -ENOMEM)
                return error;
        return is_absent(error) ? 0 : note_unreadable(c, path, error);
}

int critical_list(const Critical *c, const char *path, char ***ret, size_t *ret_n) {
        _cleanup_close_ int fd = sysfs_open(c->fs, path, O_RDONLY | O_DIRECTORY);
        int r = fd < 0 ? fd : list_dir_at(fd, ".", CRITICAL_ENTRIES_MAX, ret, ret_n);

        if (r >= 0)
                return r;
        *ret = NULL;
        *ret_n = 0;
        return critical_unreadable(c, path, r);
}

int critical_each(const Critical *c, const char *path, int (*mark)(const Critical *c, const char *name)) {
        _cleanup_names_ char **names = NULL;
        size_t n;
        int r = critical_list(c, path, &names, &n);

        for (size_t i = 0; i < n && r >= 0; i++)
                r = mark(c, names[i]);
        return r;
}

/* Walks a pattern below a directory. dir: the directory; "" for the root. rest: the part of the pattern below dir. */
static int walk_pattern(const Critical *c, const char *dir, const char *rest, CriticalTake take, const void *userdata) {
        const char *star = strchr(rest, '*'), *prefix = star;
        _cleanup_free_ char *parent = NULL;
        _cleanup_names_ char **names = NULL;
        size_t n;
        int r;

        while (prefix && prefix[-1] != '/')
                prefix--;
        parent = string_format("%s%.*s", dir, (int) (star ? (size_t) (prefix - 1 - rest) : strlen(rest)), rest);
        if (!parent)
                return -ENOMEM;
        if (!star)
                return take(c, parent, userdata);
        r = critical_list(c, parent, &names, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *path = NULL;

                if (strncmp(names[i], prefix, (size_t) (star - prefix)) != 0)
                        continue;
                path = string_format("%s/%s", parent, names[i]);
                r = path ? walk_pattern(c, path, star + 1, take, userdata) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return r;
}

int critical_walk(const Critical *c, const char *pattern, CriticalTake take, const void *userdata) {
        return walk_pattern(c, "", pattern, take, userdata);
}

int critical_realpath(const Critical *c, const char *path, char **ret) {
        int r;

        *ret = NULL;
        r = sysfs_realpath(c->fs, path, ret);
        return r < 0 ? critical_unreadable(c, path, r) : 0;
}

void critical_unescape(char *s) {
        char *to = s;

        for (const char *from = s; *from; to++) {
                if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
                    from[3] >= '0' && from[3] <= '7') {
                        *to = (char) ((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
                        from += 4;
                } else
                        *to = *from++;
        }
        *to = '\0';
}

/* Follows stacked devices (partitions, device mapper, md, bcache, loop devices, NVMe multipath, bonds, bridges) down to
 * their PCI functions, and marks these functions as used by the host. */

static int mark_address(const Critical *c, PciAddress address, const char *chain) {
        const PciDevice *found = inventory_find(c->inv, address);
        PciDevice *dev;

        if (!found || found->critical)
                return 0;
        dev = c->inv->devices + inventory_device_index(c->inv, found);
        dev->critical_remedy = c->remedy;
        return string_replace(&dev->critical, "%s <- %s", PCI_ADDRESS_STR(address), chain);
}

/* Finds the next PCI address in *path, and moves *path behind it. */
static bool next_function(const char **path, PciAddress *ret) {
        while (**path) {
                char name[PCI_ADDRESS_STRING_MAX];
                const char *component = *path;
                size_t n = strcspn(component, "/");

                *path += n + (component[n] == '/');
                if (n >= sizeof(name))
                        continue;
                memcpy(name, component, n);
                name[n] = '\0';
                if (pci_address_parse(name, ret) >= 0)
                        return true;
        }
        return false;
}

/* Marks the functions in path that are above address. Disks below a VMD controller are in a PCI domain of their own,
 * which the inventory lacks: then the controller is marked. */
static int mark_upstream(const Critical *c, const char *path, PciAddress address, const char *chain) {
        _cleanup_free_ char *longer = NULL;
        PciAddress above;
        int r = string_replace(&longer, "%s <- %s", PCI_ADDRESS_STR(address), chain);

        while (r >= 0 && next_function(&path, &above))
                if (!pci_address_equal(above, address))
                        r = mark_address(c, above, longer);
        return r;
}

int critical_mark_function(const Critical *c, const char *path, PciAddress address, const char *chain) {
        const PciDevice *dev = inventory_find(c->inv, address);
        int r;

        if (dev && dev->critical)
                return 0;
        r = mark_address(c, address, chain);
        if (r < 0)
                return r;
        r = mark_upstream(c, path, address, chain);
        return r >= 0 && dev && dev->type == PCI_TYPE_VF ? mark_address(c, dev->physfn, dev->critical) : MIN(r, 0);
}

bool critical_last_function(const char *path, PciAddress *ret) {
        bool found = false;

        while (next_function(&path, ret))
                found = true;
        return found;
}

#define DEPTH_MAX  16U   /* most levels of a stack */
#define VISITS_MAX 4096U /* most devices of one use, in case a stack forks at each level */

typedef struct Walk {
        const Critical *c;
        unsigned visits;
} Walk;

const char *critical_last_component(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* Prepends the device at path (a real path) to chain. A device mapper device appears by its name, "vg0-root" instead of
 * "dm-0". */
static int extend_chain(const Walk *w, const char *path, const char *chain, char **ret) {
        _cleanup_free_ char *attribute = string_format("%s/dm/name", path);
        char name[SYSFS_ATTRIBUTE_MAX];

        if (!attribute)
                return -ENOMEM;
        if (sysfs_read(w->c->fs, attribute, name, sizeof(name)) <= 0 || !text_is_clean(name))
                return string_replace(ret, "%s <- %s", critical_last_component(path), chain);
        return string_replace(ret, "%s <- %s", name, chain);
}

static int follow_down(Walk *w, const char *path, const char *chain, unsigned depth);

/* Prepends a device to chain and follows it. real: the real path of the device. */
static int follow_device(Walk *w, const char *real, const char *chain, unsigned depth) {
        _cleanup_free_ char *longer = NULL;
        int r = extend_chain(w, real, chain, &longer);

        return r < 0 ? r : follow_down(w, real, longer, depth + 1);
}

/* Follows the links in dir (a real path) whose names begin with prefix. */
static int follow_entries(Walk *w, const char *dir, const char *prefix, const char *chain, unsigned depth) {
        _cleanup_names_ char **names = NULL;
        size_t n, length = strlen(dir);
        int r = critical_list(w->c, dir, &names, &n);

        for (size_t i = 0; i < n && r >= 0; i++) {
                _cleanup_free_ char *link = NULL, *real = NULL;

                if (strncmp(names[i], prefix, strlen(prefix)) != 0)
                        continue;
                link = string_format("%s/%s", dir, names[i]);
                r = link ? critical_realpath(w->c, link, &real) : -ENOMEM;
                if (!real)
                        continue;
                if (strncmp(real, dir, length) == 0 && real[length] == '/')
                        continue; /* below dir, so it is no lower device */
                r = follow_device(w, real, chain, depth);
        }
        return r;
}

/* Sets *ret to the sysfs directory of the NVMe subsystem that path is below, or to NULL. With native multipath, disks
 * are below the subsystem's directory, which has links such as "nvme0" to the controllers. */
static int find_nvme_subsystem(const char *path, char **ret) {
        static const char marker[] = "/nvme-subsystem/";
        const char *at = strstr(path, marker);
        size_t n;

        *ret = NULL;
        if (!at)
                return 0;
        n = (size_t) (at - path) + strlen(marker);
        n += strcspn(path + n, "/");
        if (!path[n])
                return 0; /* path is that of the subsystem */
        *ret = strndup(path, n);
        return *ret ? 0 : -ENOMEM;
}

static int walk_nvme_subsystem(Walk *w, const char *path, const char *chain, unsigned depth) {
        _cleanup_free_ char *subsystem = NULL;
        int r = find_nvme_subsystem(path, &subsystem);

        return subsystem ? follow_entries(w, subsystem, "nvme", chain, depth) : r;
}

/* Follows slaves/ of a dm, md or bcache device, and for a partition slaves/ of its disk. */
static int walk_slaves(Walk *w, const char *path, const char *chain, unsigned depth) {
        _cleanup_free_ char *slaves = string_format("%s/slaves", path);
        _cleanup_free_ char *above = string_format("%.*s/slaves", (int) (critical_last_component(path) - path), path);
        int r = slaves && above ? follow_entries(w, slaves, "", chain, depth) : -ENOMEM;

        return r < 0 ? r : follow_entries(w, above, "", chain, depth);
}

/* Follows a loop device to its lower block device. A regular file needs no walk: its file system is mounted and
 * therefore marked. The first `length` characters of dir are the loop device's directory. */
static int walk_backing(Walk *w, const char *dir, size_t length, const char *chain, unsigned depth) {
        _cleanup_free_ char *attribute = string_format("%.*s/loop/backing_file", (int) length, dir);
        _cleanup_free_ char *link = NULL, *real = NULL;
        char file[SYSFS_ATTRIBUTE_MAX];
        int r;

        if (!attribute)
                return -ENOMEM;
        r = sysfs_read(w->c->fs, attribute, file, sizeof(file));
        if (r < 0)
                return critical_unreadable(w->c, attribute, r);
        if (strncmp(file, "/dev/", strlen("/dev/")) != 0)
                return 0;
        link = string_format("sys/class/block/%s", critical_last_component(file));
        r = link ? critical_realpath(w->c, link, &real) : -ENOMEM;
        return real ? follow_device(w, real, chain, depth) : r;
}

static int walk_loop(Walk *w, const char *path, const char *chain, unsigned depth) {
        const char *name = critical_last_component(path);
        int r = 0;

        if (strncmp(name, "loop", strlen("loop")) != 0)
                return 0;
        r = walk_backing(w, path, strlen(path), chain, depth);
        return r < 0 || name == path ? r : walk_backing(w, path, (size_t) (name - path) - 1, chain, depth);
}

/* Sets Inventory.critical_error to a sentence with the use at the end of chain ("... <- dm-0 <- / (mounted)"). */
static int note_large_stack(const Walk *w, const char *chain) {
        const char *use = chain;

        for (const char *at = chain; (at = strstr(at, " <- "));)
                use = at += strlen(" <- ");
        if (w->c->inv->critical_error)
                return 0;
        return string_replace(&w->c->inv->critical_error, "The stack of devices below %s is too large to follow.", use);
}

/* Follows a device down. path: the real directory of the device. chain: the way from the device to its use. */
static int follow_down(Walk *w, const char *path, const char *chain, unsigned depth) {
        int (*const ways[])(Walk *, const char *, const char *, unsigned) = { walk_slaves, walk_nvme_subsystem,
                                                                              walk_loop };
        PciAddress address;
        int r = 0;

        if (depth > DEPTH_MAX || w->visits++ > VISITS_MAX)
                return note_large_stack(w, chain);
        if (critical_last_function(path, &address))
                return critical_mark_function(w->c, path, address, chain);
        for (size_t i = 0; i < ELEMENTSOF(ways) && r >= 0; i++)
                r = ways[i](w, path, chain, depth);
        return r < 0 ? r : follow_entries(w, path, "lower_", chain, depth);
}

int critical_mark_user(const Critical *c, const char *link, const char *use) {
        _cleanup_free_ char *real = NULL, *chain = NULL;
        Walk w = { .c = c };
        int r;

        r = critical_realpath(c, link, &real);
        if (!real)
                return r; /* the link is missing, or critical_realpath() has noted why it cannot be followed */
        r = extend_chain(&w, real, use, &chain);
        return r < 0 ? r : follow_down(&w, real, chain, 0);
}
