/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Marks the devices of mounts, swap, file systems in other mount namespaces, assembled volumes, and exports. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "critical-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

#define BTRFS "sys/fs/btrfs" /* has a directory UUID/devices/ for each mounted btrfs */

/* Directories with an entry for each block device whose file system is mounted, in any mount namespace. The entry has
 * the name of the device; other entries are no devices. In jbd2 only the entry of an external journal has the name of a
 * device. */
static const char *const mounted_dirs[] = { "sys/fs/ext4",   "sys/fs/f2fs",  "sys/fs/xfs",   "sys/fs/erofs",
                                            "sys/fs/nilfs2", "proc/fs/jbd2", "proc/fs/ntfs3" };

int critical_mark_block(const Critical *c, const char *name, const char *use) {
        _cleanup_free_ char *link = string_format("sys/class/block/%s", name);

        return link ? critical_mark_user(c, link, use) : -ENOMEM;
}

/* Marks all devices of the btrfs in dir, "sys/fs/btrfs/UUID/devices". Unless name is NULL, only if the btrfs has the
 * device of that name. */
static int mark_btrfs_devices(const Critical *c, const char *dir, const char *name, const char *use) {
        _cleanup_names_ char **names = NULL;
        size_t n;
        bool wanted = !name;
        int r = critical_list(c, dir, &names, &n);

        for (size_t i = 0; i < n && r >= 0 && !wanted; i++)
                wanted = streq(names[i], name);
        for (size_t i = 0; i < n && r >= 0 && wanted; i++)
                r = critical_mark_block(c, names[i], use);
        return r;
}

/* Marks the devices of each mounted btrfs. Unless name is NULL, only of the btrfs that has the device of that name. A
 * btrfs has a directory in sysfs while any mount namespace has it mounted, and may have more devices than mountinfo
 * names. */
static int mark_btrfs(const Critical *c, const char *name, const char *use) {
        _cleanup_names_ char **uuids = NULL;
        size_t n;
        int r = critical_list(c, BTRFS, &uuids, &n);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *dir = string_format(BTRFS "/%s/devices", uuids[i]);

                r = dir ? mark_btrfs_devices(c, dir, name, use) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return r;
}

int critical_resolve_node(const Critical *c, const char *node, char **ret) {
        int r = critical_realpath(c, node, ret);

        /* A recording has no device nodes. The last component of node may still be the name of the device. */
        if (r >= 0 && !*ret && !(*ret = strdup(node)))
                return -ENOMEM;
        return r;
}

int critical_mark_node(const Critical *c, char *node, const char *use) {
        _cleanup_free_ char *real = NULL;
        int r;

        critical_unescape(node);
        if (strncmp(node, "/dev/", strlen("/dev/")) != 0)
                return 0;
        r = critical_resolve_node(c, node, &real);
        if (r < 0)
                return r;
        r = critical_mark_block(c, critical_last_component(real), use);
        return r < 0 ? r : mark_btrfs(c, critical_last_component(real), use);
}

char *critical_next_option_node(char **rest) {
        char *option;

        while ((option = strsep(rest, ","))) {
                char *value = strchr(option, '=');

                if (value && strncmp(value + 1, "/dev/", strlen("/dev/")) == 0)
                        return value + 1;
        }
        return NULL;
}

bool critical_has_true_source(const char *type) {
        return streq(type, "btrfs") || streq(type, "bcachefs");
}

/* Marks further devices of a mount: those in the options (logdev=/dev/sdb1) and, for btrfs and bcachefs, whose device
 * number is anonymous, those in the source. For any other mount with an anonymous device number, notes the servers of a
 * network file system. rest: the words of the line of mountinfo after the mount point. mount: the mount point. */
static int mark_source(const Critical *c, char *rest, bool anonymous, const char *mount, const char *use) {
        const char *type;
        char *word, *source, *options, *node;
        int r = 0;

        while ((word = string_next_word(&rest)) && !streq(word, "-"))
                ;
        type = string_next_word(&rest);
        source = string_next_word(&rest);
        options = string_next_word(&rest);
        if (!source)
                return 0;
        if (anonymous && !critical_has_true_source(type))
                return critical_note_mount(c, type, source, options, mount);
        while (anonymous && r >= 0 && (node = strsep(&source, ":")))
                r = critical_mark_node(c, node, use);
        while (options && r >= 0 && (node = critical_next_option_node(&options)))
                r = critical_mark_node(c, node, use);
        return r;
}

/* Parses a line of mountinfo, "36 35 98:0 /root /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw" */
static int mark_mount(const Critical *c, char *line) {
        _cleanup_free_ char *use = NULL, *link = NULL;
        char *number = NULL, *mount = NULL, *word, *rest = line;
        const char *shown;
        bool anonymous;
        int r = 0;

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
        if (strchr(number, '/'))
                return 0;
        shown = text_is_clean(mount) ? mount : "a file system";
        use = string_format("%s (mounted)", shown);
        link = string_format("sys/dev/block/%s", number);
        if (!use || !link)
                return -ENOMEM;
        anonymous = strncmp(number, "0:", 2) == 0;
        if (!anonymous)
                r = critical_mark_user(c, link, use);
        return r < 0 ? r : mark_source(c, rest, anonymous, shown, use);
}

static int mark_swap(const Critical *c, char *line) {
        char *rest = line, *node = string_next_word(&rest);

        return node ? critical_mark_node(c, node, "swap") : 0;
}

static int mark_mounted(const Critical *c, const char *name) {
        return critical_mark_block(c, name, CRITICAL_OTHER_NAMESPACE);
}

/* Marks a dm, md, bcache or loop device, even if unmounted: it may be exported, or be a guest's disk. The directory
 * slaves/ of a loop device is empty; walk_loop() finds its lower device. */
static int mark_stacked(const Critical *c, const char *name) {
        _cleanup_free_ char *dir = string_format("sys/class/block/%s/slaves", name);
        _cleanup_names_ char **slaves = NULL;
        size_t n;
        int r = dir ? critical_list(c, dir, &slaves, &n) : -ENOMEM;

        if (r < 0 || (n == 0 && strncmp(name, "loop", strlen("loop")) != 0))
                return r;
        return critical_mark_block(c, name, "assembled volume");
}

int critical_mark_storage(const Critical *c) {
        int r = critical_lines(c, "proc/1/mountinfo", false, mark_mount);

        if (r < 0)
                return r;
        r = critical_lines(c, "proc/swaps", true, mark_swap);
        /* File systems in any mount namespace: mountinfo of process 1 lacks those of containers. */
        for (size_t i = 0; i < ELEMENTSOF(mounted_dirs) && r >= 0; i++)
                r = critical_each(c, mounted_dirs[i], mark_mounted);
        if (r < 0)
                return r;
        r = mark_btrfs(c, NULL, CRITICAL_OTHER_NAMESPACE);
        return r < 0 ? r : critical_each(c, "sys/class/block", mark_stacked);
}

/* Marks the devices of exports: targets, ZFS and other users in the kernel that do not appear in holders/ of a block
 * device. */

#define ZFS_POOLS "proc/spl/kstat/zfs" /* has statistics, and a directory for each imported pool */
#define UDEV_DATA "run/udev/data"

/* A kind of export, and the file that names its device. */
typedef struct Export {
        const char *pattern; /* of the export's directory, for critical_walk() */
        const char *file;    /* in this directory: a link to the device, or an attribute with its name or node */
        const char *class;   /* class of the device in sysfs; NULL: file is a link */
        const char *use;
} Export;

/* For bcache, the link cache* leads to a directory whose parent ("..") is the cache device. */
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

/* Returns true when the attribute "enable" is 0: the kernel has not opened the device of the export. */
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

/* What udev's database says about a block device. */
typedef struct Member {
        bool zfs;
        char *label; /* label of its file system, in ZFS the name of the pool; NULL: none, as in a ZFS cache or spare */
} Member;

static int take_property(char *line, void *userdata) {
        static const char label[] = "E:ID_FS_LABEL=";
        Member *m = userdata;

        m->zfs |= streq(line, "E:ID_FS_TYPE=zfs_member");
        return strncmp(line, label, strlen(label)) == 0 ? MIN(string_copy(&m->label, line + strlen(label)), 0) : 0;
}

/* Returns whether the label is that of the pool. udev writes "_" for a space. */
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

/* Marks a block device if it belongs to one of the pools. */
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

/* Marks the devices of imported ZFS pools. The kernel lists the pools; udev knows the pool of a block device. */
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
