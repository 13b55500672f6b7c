/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Marks the devices of kernel users that leave no link in holders/ of the block device: targets that export it, ZFS and
 * others. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "critical-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

#define ZFS_POOLS "proc/spl/kstat/zfs" /* has a directory for each imported pool, and statistics */
#define UDEV_DATA "run/udev/data"

/* Where a kernel user tells its device. */
typedef struct Export {
        const char *pattern; /* of directories; "*" stands for the rest of a name */
        const char *file;    /* in the directory: a link to the device, or an attribute with its name or its node */
        const char *class;   /* of the device; NULL when file is a link */
        const char *use;
} Export;

/* A cache of bcache is the parent of the directory that the link leads to. */
static const Export exports[] = {
        { "sys/kernel/config/nvmet/subsystems/*/namespaces/*", "device_path", "block", "NVMe target" },
        { "sys/kernel/config/nvmet/subsystems/*/passthru", "device_path", "nvme", "NVMe target" },
        { "sys/kernel/config/target/core/*/*", "udev_path", "block", "LIO target" },
        { "sys/kernel/config/cluster/*/heartbeat/*", "dev", "block", "OCFS2 heartbeat" },
        { "sys/kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*", "file", "block", "USB gadget" },
        { "sys/class/block/zram*", "backing_dev", "block", "zram" },
        { "sys/class/rnbd-server/ctl/devices/*", "block_dev", NULL, "RNBD target" },
        { "sys/fs/bcache/*/cache*", "..", NULL, "bcache" },
        { "sys/fs/bcachefs/*/dev-*", "block", NULL, CRITICAL_OTHER_NAMESPACE },
};

/* Whether the directory has an attribute "enable" that is 0: the kernel has not opened the device. */
static bool is_disabled(const Critical *c, const char *dir) {
        _cleanup_free_ char *path = string_format("%s/enable", dir);
        char text[SYSFS_ATTRIBUTE_MAX];

        return path && sysfs_read(c->fs, path, text, sizeof(text)) >= 0 && streq(text, "0");
}

static int mark_export(const Critical *c, const char *dir, const void *userdata) {
        const Export *e = userdata;
        _cleanup_free_ char *path = string_format("%s/%s", dir, e->file), *link = NULL, *real = NULL;
        char node[SYSFS_ATTRIBUTE_MAX];
        int r;

        if (!path)
                return -ENOMEM;
        if (!e->class)
                return critical_mark_user(c, path, e->use);
        if (is_disabled(c, dir))
                return 0;
        r = sysfs_read(c->fs, path, node, sizeof(node));
        if (r < 0)
                return critical_unreadable(c, path, r);
        if (streq(e->class, "block") && strchr(node, '/'))
                return critical_mark_node(c, node, e->use);
        if (!*node)
                return 0;
        r = critical_resolve_node(c, node, &real);
        if (r < 0)
                return r;
        link = string_format("sys/class/%s/%s", e->class, critical_last_component(real));
        return link ? critical_mark_user(c, link, e->use) : -ENOMEM;
}

/* What udev's database tells of a block device. */
typedef struct Member {
        bool zfs;
        char *label; /* the name of its pool; NULL for a cache or a spare, whose labels do not name it */
} Member;

static int take_property(char *line, void *userdata) {
        static const char label[] = "E:ID_FS_LABEL=";
        Member *m = userdata;

        m->zfs |= streq(line, "E:ID_FS_TYPE=zfs_member");
        return strncmp(line, label, strlen(label)) == 0 ? MIN(string_copy(&m->label, line + strlen(label)), 0) : 0;
}

/* udev writes "_" for a space, which the name of a pool may have. */
static bool is_pool(const char *name, const char *label) {
        while (*name && (*name == *label || (*name == ' ' && *label == '_')))
                name++, label++;
        return *name == *label;
}

static int mark_member(const Critical *c, const char *name, const Member *m, char **pools, size_t n_pools) {
        for (size_t i = 0; m->zfs && m->label && i < n_pools; i++)
                if (is_pool(pools[i], m->label)) {
                        _cleanup_free_ char *use = string_format("ZFS pool %s", QUOTABLE(m->label));

                        return use ? critical_mark_block(c, name, use) : -ENOMEM;
                }
        return 0;
}

/* Marks a block device that is a member of one of the pools. */
static int mark_zfs_member(const Critical *c, const char *name, char **pools, size_t n_pools) {
        _cleanup_free_ char *attribute = string_format("sys/class/block/%s/dev", name), *path = NULL;
        char number[SYSFS_ATTRIBUTE_MAX];
        Member m = { 0 };
        int fd, r;

        if (!attribute)
                return -ENOMEM;
        r = sysfs_read(c->fs, attribute, number, sizeof(number));
        if (r < 0)
                return critical_unreadable(c, attribute, r);
        path = string_format(UDEV_DATA "/b%s", number);
        if (!path)
                return -ENOMEM;
        fd = sysfs_open(c->fs, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
        r = fd < 0 ? fd : read_lines_fd(fd, take_property, &m);
        r = r < 0 ? critical_unreadable(c, path, r) : mark_member(c, name, &m, pools, n_pools);
        free(m.label);
        return r;
}

/* The kernel tells which pools are imported, and udev which pool a block device is a member of. */
static int mark_zfs(const Critical *c) {
        _cleanup_names_ char **pools = NULL, **names = NULL;
        size_t n_pools, n;
        int r = critical_list(c, ZFS_POOLS, &pools, &n_pools);

        if (r < 0 || n_pools == 0)
                return r;
        r = critical_list(c, "sys/class/block", &names, &n);
        for (size_t i = 0; i < n && r >= 0; i++)
                r = mark_zfs_member(c, names[i], pools, n_pools);
        return r;
}

int critical_mark_exports(const Critical *c) {
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(exports) && r >= 0; i++)
                r = critical_walk(c, exports[i].pattern, mark_export, &exports[i]);
        return r < 0 ? r : mark_zfs(c);
}
