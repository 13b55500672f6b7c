/* SPDX-License-Identifier: GPL-2.0-or-later */

/* From what the host uses (mounts, swap, default route) down to the PCI functions that carry it. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "host/critical.h"
#include "util/fileio.h"
#include "util/strings.h"

#define PROC_FILE_MAX (16U * 1024U * 1024U)
#define LOWER_MAX     65536U /* entries of one directory of lower devices */
#define DEPTH_MAX     16U    /* levels of stacking */
#define VISITS_MAX    4096U  /* of one file system or interface: a stack that forks at every level stays bounded */
#define LOWER_PREFIX  "lower_"

typedef struct Walk {
        const Sysfs *fs;
        Inventory *inv;
        unsigned visits;
} Walk;

static int mark_device(Inventory *inv, PciAddress address, const char *chain) {
        const PciDevice *found = inventory_find(inv, address);
        PciDevice *dev;
        int r;

        if (!found)
                return 0;
        dev = inv->devices + inventory_device_index(inv, found);
        if (!dev->critical) {
                r = string_replace(&dev->critical, "%s <- %s", PCI_ADDRESS_STR(address), chain);
                if (r < 0)
                        return r;
        }
        if (dev->type != PCI_TYPE_VF || pci_address_equal(dev->physfn, address))
                return 0;
        found = inventory_find(inv, dev->physfn);
        if (!found || found->critical)
                return 0;
        return string_replace(&inv->devices[inventory_device_index(inv, found)].critical, "%s <- %s",
                              PCI_ADDRESS_STR(found->address), dev->critical);
}

/* The last component that is a PCI address: the function itself, not the bridges above it. */
static bool last_function(const char *path, PciAddress *ret) {
        bool found = false;

        for (const char *at = path; *at; at += strcspn(at, "/"), at += *at == '/') {
                char name[PCI_ADDRESS_STRING_MAX];
                size_t n = strcspn(at, "/");

                if (n >= sizeof(name))
                        continue;
                memcpy(name, at, n);
                name[n] = '\0';
                if (pci_address_parse(name, ret) >= 0)
                        found = true;
        }
        return found;
}

static const char *last_component(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* Names in a directory below the root; none when it cannot be read. */
static int list_dir(const Sysfs *fs, const char *path, char ***ret, size_t *ret_n) {
        _cleanup_close_ int fd = sysfs_open(fs, path, O_RDONLY | O_DIRECTORY);
        int r = fd < 0 ? fd : list_dir_at(fd, ".", LOWER_MAX, ret, ret_n);

        if (r >= 0 || r == -ENOMEM)
                return r;
        *ret = NULL;
        *ret_n = 0;
        return 0;
}

static int walk_down(Walk *w, const char *path, const char *chain, unsigned depth);

/* Goes down every link in dir, a real path, whose name begins with prefix. */
static int walk_entries(Walk *w, const char *dir, const char *prefix, const char *chain, unsigned depth) {
        char **names = NULL;
        size_t n = 0, length = strlen(dir);
        int r;

        r = list_dir(w->fs, dir, &names, &n);
        for (size_t i = 0; i < n && r >= 0; i++) {
                _cleanup_free_ char *link = NULL, *real = NULL, *longer = NULL;

                if (strncmp(names[i], prefix, strlen(prefix)) != 0)
                        continue;
                if (asprintf(&link, "%s/%s", dir, names[i]) < 0) {
                        link = NULL;
                        r = -ENOMEM;
                        break;
                }
                if (sysfs_realpath(w->fs, link, &real) < 0)
                        continue;
                if (strncmp(real, dir, length) == 0 && real[length] == '/')
                        continue; /* not a link to something lower, but a part of this */
                r = string_replace(&longer, "%s <- %s", last_component(real), chain);
                if (r >= 0)
                        r = walk_down(w, real, longer, depth + 1);
        }
        (void) free_names(names, n);
        return MIN(r, 0);
}

int critical_nvme_subsystem(const char *path, char **ret) {
        static const char marker[] = "/nvme-subsystem/";
        const char *at = strstr(path, marker);
        size_t n;

        *ret = NULL;
        if (!at)
                return 0;
        n = (size_t) (at - path) + strlen(marker);
        n += strcspn(path + n, "/");
        if (!path[n])
                return 0; /* the subsystem itself */
        *ret = strndup(path, n);
        return *ret ? 0 : -ENOMEM;
}

static int walk_nvme_subsystem(Walk *w, const char *path, const char *chain, unsigned depth) {
        _cleanup_free_ char *subsystem = NULL;
        int r = critical_nvme_subsystem(path, &subsystem);

        return subsystem ? walk_entries(w, subsystem, "nvme", chain, depth) : r;
}

/* slaves/ of device mapper and md; a partition of such a device has them one directory up. */
static int walk_slaves(Walk *w, const char *path, const char *chain, unsigned depth) {
        _cleanup_free_ char *slaves = NULL, *above = NULL;
        int r;

        if (asprintf(&slaves, "%s/slaves", path) < 0) {
                slaves = NULL;
                return -ENOMEM;
        }
        r = walk_entries(w, slaves, "", chain, depth);
        if (r < 0)
                return r;
        if (asprintf(&above, "%.*s/slaves", (int) (last_component(path) - path), path) < 0) {
                above = NULL;
                return -ENOMEM;
        }
        return walk_entries(w, above, "", chain, depth);
}

/* path: a device's real directory below sys/devices; chain: from it up to what the host uses. */
static int walk_down(Walk *w, const char *path, const char *chain, unsigned depth) {
        PciAddress address;
        int r;

        if (depth > DEPTH_MAX || w->visits++ > VISITS_MAX)
                return 0;
        if (last_function(path, &address))
                return mark_device(w->inv, address, chain);
        r = walk_slaves(w, path, chain, depth);
        if (r >= 0)
                r = walk_nvme_subsystem(w, path, chain, depth);
        if (r >= 0)
                r = walk_entries(w, path, LOWER_PREFIX, chain, depth);
        return r;
}

/* link: sys/dev/block/M:m, sys/class/block/NAME or sys/class/net/NAME. use: "/ (mounted)", "swap", "default route". */
static int mark_user(const Sysfs *fs, Inventory *inv, const char *link, const char *use) {
        _cleanup_free_ char *real = NULL, *chain = NULL;
        Walk w = { .fs = fs, .inv = inv };
        int r;

        r = sysfs_realpath(fs, link, &real);
        if (r < 0)
                return r == -ENOMEM ? r : 0; /* no such device: tmpfs, network file systems */
        r = string_replace(&chain, "%s <- %s", last_component(real), use);
        return r < 0 ? r : walk_down(&w, real, chain, 0);
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

/* A block device by its node, "/dev/sda1", "/dev/mapper/vg-root" (a link to ../dm-0). */
static int mark_node(const Sysfs *fs, Inventory *inv, char *node, const char *use) {
        _cleanup_free_ char *real = NULL, *link = NULL;

        critical_unescape(node);
        if (strncmp(node, "/dev/", strlen("/dev/")) != 0)
                return 0;
        /* A recorded machine has no device nodes: then the name has to do. */
        if (sysfs_realpath(fs, node, &real) < 0 && !(real = strdup(node)))
                return -ENOMEM;
        if (asprintf(&link, "sys/class/block/%s", last_component(real)) < 0) {
                link = NULL;
                return -ENOMEM;
        }
        return mark_user(fs, inv, link, use);
}

/* "36 35 98:0 /root /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw" */
static int mark_mount(const Sysfs *fs, Inventory *inv, char *line) {
        _cleanup_free_ char *use = NULL, *link = NULL;
        char *number = NULL, *mount = NULL, *source, *word, *rest = line;
        bool clean;

        for (unsigned i = 0; i < 5; i++) {
                word = string_next_word(&rest);
                if (!word)
                        return 0;
                if (i == 2)
                        number = word;
                else if (i == 4)
                        mount = word;
        }
        critical_unescape(mount);
        clean = text_is_clean(mount);
        if (asprintf(&use, "%s (mounted)", clean ? mount : "a file system") < 0) {
                use = NULL;
                return -ENOMEM;
        }
        if (strncmp(number, "0:", 2) != 0) {
                if (strchr(number, '/') || asprintf(&link, "sys/dev/block/%s", number) < 0) {
                        link = NULL;
                        return strchr(number, '/') ? 0 : -ENOMEM;
                }
                return mark_user(fs, inv, link, use);
        }
        /* btrfs mounts have a made-up number: only the source tells. */
        while ((word = string_next_word(&rest)) && !streq(word, "-"))
                ;
        (void) string_next_word(&rest);
        source = string_next_word(&rest);
        return source ? mark_node(fs, inv, source, use) : 0;
}

static int mark_swap(const Sysfs *fs, Inventory *inv, char *line) {
        char *rest = line, *node = string_next_word(&rest);

        return node ? mark_node(fs, inv, node, "swap") : 0;
}

static int mark_interface(const Sysfs *fs, Inventory *inv, const char *name) {
        _cleanup_free_ char *link = NULL;

        if (strchr(name, '/'))
                return 0;
        if (asprintf(&link, "sys/class/net/%s", name) < 0) {
                link = NULL;
                return -ENOMEM;
        }
        return mark_user(fs, inv, link, "default route");
}

/* "eth0 DESTINATION GATEWAY FLAGS REFCNT USE METRIC MASK ..." */
static int mark_route(const Sysfs *fs, Inventory *inv, char *line) {
        char *words[8] = { NULL }, *rest = line;

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (!(words[i] = string_next_word(&rest)))
                        return 0;
        if (!streq(words[1], "00000000") || !streq(words[7], "00000000"))
                return 0;
        return mark_interface(fs, inv, words[0]);
}

/* "DESTINATION LENGTH SOURCE LENGTH NEXT-HOP METRIC REFCNT USE FLAGS eth0" */
static int mark_route6(const Sysfs *fs, Inventory *inv, char *line) {
        char *words[10] = { NULL }, *rest = line;

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (!(words[i] = string_next_word(&rest)))
                        return 0;
        if (strspn(words[0], "0") != 32 || !streq(words[1], "00"))
                return 0;
        return mark_interface(fs, inv, words[9]);
}

/* Calls mark() for each line of dir/name. optional: not there is no news. */
static int mark_lines(const Sysfs *fs, Inventory *inv, const char *dir, const char *name, bool optional,
                      int (*mark)(const Sysfs *, Inventory *, char *)) {
        _cleanup_close_ int fd = sysfs_open(fs, dir, O_RDONLY | O_DIRECTORY);
        _cleanup_free_ char *text = NULL;
        char *line, *rest;
        int r;

        r = fd < 0 ? fd : read_file_at(fd, name, PROC_FILE_MAX, &text, NULL);
        if (r == -ENOENT && optional)
                return 0;
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return string_replace(&inv->critical_unknown, "%s/%s cannot be read (%s).", dir, name, strerror(-r));
        rest = text;
        while ((line = strsep(&rest, "\n"))) {
                r = mark(fs, inv, line);
                if (r < 0)
                        return r;
        }
        return 0;
}

int critical_mark(const Sysfs *fs, Inventory *inv) {
        int r;

        (void) string_copy(&inv->critical_unknown, NULL);
        for (size_t i = 0; i < inv->n_devices; i++)
                (void) string_copy(&inv->devices[i].critical, NULL);
        r = mark_lines(fs, inv, "proc/1", "mountinfo", false, mark_mount);
        if (r >= 0)
                r = mark_lines(fs, inv, "proc", "swaps", true, mark_swap);
        if (r >= 0)
                r = mark_lines(fs, inv, "proc/net", "route", true, mark_route);
        if (r >= 0)
                r = mark_lines(fs, inv, "proc/net", "ipv6_route", true, mark_route6);
        return MIN(r, 0);
}
