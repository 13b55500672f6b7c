/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens a recorded machine, and removes what was unpacked of it. */

#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "replay/replay.h"
#include "unpack.h"
#include "util/strings.h"
#include "util/sysfs.h"

#define OPEN_DIRECTORIES 16

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *walk) {
        (void) remove(path);
        return 0;
}

void tree_remove(const char *dir) {
        (void) nftw(dir, remove_entry, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
}

/* Prefers a tmpfs: a large machine has a hundred thousand files, and a tmpfs creates them twenty times faster than a
 * disk. */
static const char *top_directory(void) {
        const char *top = secure_getenv("TMPDIR");
        struct statfs st;

        if (top && *top == '/')
                return top;
        if (statfs("/dev/shm", &st) >= 0 && st.f_type == TMPFS_MAGIC && access("/dev/shm", W_OK | X_OK) >= 0)
                return "/dev/shm";
        return "/tmp";
}

int tree_unpack(const char *file, char **ret_dir, char **ret_problem) {
        _cleanup_free_ char *dir = string_format("%s/passthrough-XXXXXX", top_directory()), *problem = NULL;
        int r;

        if (!dir)
                return -ENOMEM;
        if (!mkdtemp(dir)) {
                r = -errno;
                *ret_problem = string_format("The temporary directory %s cannot be created: %s.", dir, strerror(-r));
                return r;
        }
        r = unpack_tree(file, dir, &problem);
        if (r < 0) {
                tree_remove(dir);
                *ret_problem = TAKE_PTR(problem) ?: string_format("%s cannot be unpacked: %s.", file, strerror(-r));
                return r;
        }
        *ret_dir = TAKE_PTR(dir);
        return 0;
}

/* Blocks all signals first, so that none ends the process before the unpacked files are removed. */
static int unpack(Root *root, const char *file, char **ret_problem) {
        sigset_t all;
        int r;

        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, &root->mask);
        r = tree_unpack(file, &root->dir, ret_problem);
        root->unpacked = r >= 0;
        if (r < 0)
                (void) sigprocmask(SIG_SETMASK, &root->mask, NULL);
        return r;
}

static int not_a_node(const char *node, const char *why, int error, char **ret_problem) {
        *ret_problem = string_format("%s is not a recorded node: %s.", node, why);
        return error;
}

static int try_dir(const Sysfs *fs, const char *path) {
        _cleanup_close_ int fd = sysfs_open(fs, path, O_PATH | O_DIRECTORY);

        return MIN(fd, 0);
}

/* Refuses a directory without sys/ and its basic directories. Otherwise any directory would pass for a machine without
 * devices. proc/ is not required, because many recordings contain only sys/. */
static int check_node(const char *dir, const char *node, char **ret_problem) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        int r = sysfs_new_recorded(dir, &fs);

        if (r < 0)
                return not_a_node(node, strerror(-r), r, ret_problem);
        r = try_dir(fs, "sys");
        if (r < 0)
                return not_a_node(node, "there is no sys/ in it", r, ret_problem);
        r = try_dir(fs, "sys/devices");
        if (r < 0 && try_dir(fs, "sys/bus") < 0)
                return not_a_node(node, "there is neither sys/devices nor sys/bus in it", r, ret_problem);
        r = try_dir(fs, "sys/bus/pci/devices");
        if (r == 0 || r == -ENOENT)
                return 0;
        *ret_problem =
                string_format("The recorded node %s has no readable sys/bus/pci/devices: %s.", node, strerror(-r));
        return r;
}

int root_open(Root *root, const char *node, char **ret_problem) {
        struct stat st;
        int r;

        if (stat(node, &st) < 0) {
                r = -errno;
                *ret_problem = string_format("There is no recorded node %s: %s.", node, strerror(-r));
        } else if (S_ISDIR(st.st_mode))
                r = string_copy(&root->dir, node);
        else if (S_ISREG(st.st_mode))
                r = unpack(root, node, ret_problem);
        else
                r = not_a_node(node, "it is neither a .tree file (a regular file, not a pipe) nor a directory", -EINVAL,
                               ret_problem);
        return r < 0 ? r : check_node(root->dir, node, ret_problem);
}

void root_done(Root *root) {
        if (root->unpacked) {
                tree_remove(root->dir);
                (void) sigprocmask(SIG_SETMASK, &root->mask, NULL);
        }
        free(root->dir);
}

int root_read_cmdline(const char *root, char ret[static ROOT_CMDLINE_MAX]) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        int r = sysfs_new_recorded(root, &fs);

        if (r >= 0 && sysfs_read(fs, "proc/cmdline", ret, ROOT_CMDLINE_MAX) < 0)
                ret[0] = '\0';
        return r;
}
