/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Marks the devices of mounts, swap, file systems in other mount namespaces, and assembled volumes. */

#include <errno.h>
#include <stdio.h>

#include "critical-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

#define BTRFS "sys/fs/btrfs" /* has UUID/devices/ */

/* Directories with one entry for each block device that has a mounted file system of a certain type, in any mount
 * namespace. */
static const char *const mounted_dirs[] = { "sys/fs/ext4",   "sys/fs/f2fs",  "sys/fs/xfs",   "sys/fs/erofs",
                                            "sys/fs/nilfs2", "proc/fs/jbd2", "proc/fs/ntfs3" };

int critical_mark_block(const Critical *c, const char *name, const char *use) {
        _cleanup_free_ char *link = string_format("sys/class/block/%s", name);

        return link ? critical_mark_user(c, link, use) : -ENOMEM;
}

/*
 * Marks all devices of the btrfs in dir, "sys/fs/btrfs/UUID/devices"; with a name, only if the btrfs has that device.
 */
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

/* Marks the devices of each mounted btrfs; with a name, of the btrfs that has that device. A btrfs has its directory in
 * sysfs while it is mounted anywhere, and may have more devices than the one in mountinfo. */
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

        /* A recorded machine has no device nodes, so the last component of the path must do. */
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

/* Marks the devices that the device number of a mount does not name, in lines such as "- btrfs /dev/sda1 rw" or "- xfs
 * /dev/sda1 rw,logdev=/dev/sdb1". With an anonymous number the line counts only if critical_has_true_source(), or for
 * the servers of a network file system. mount: the mount point. */
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

/* line: a line of mountinfo, "36 35 98:0 /root /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw" */
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

/* A dm, md, bcache or loop device that is not mounted may be exported or be the disk of a guest. A loop device has no
 * slaves: the walk finds what is behind it. */
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
        /* File systems that are mounted in any mount namespace: mountinfo of process 1 lacks those of containers. */
        for (size_t i = 0; i < ELEMENTSOF(mounted_dirs) && r >= 0; i++)
                r = critical_each(c, mounted_dirs[i], mark_mounted);
        if (r < 0)
                return r;
        r = mark_btrfs(c, NULL, CRITICAL_OTHER_NAMESPACE);
        return r < 0 ? r : critical_each(c, "sys/class/block", mark_stacked);
}
