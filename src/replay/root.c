/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unpacks a recorded machine, and removes the unpacked files when the process ends. */

#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "replay/replay.h"
#include "scratch.h"
#include "util/strings.h"
#include "util/sysfs.h"

/* Blocks all signals until root_done(), so that no signal ends the process before the unpacked files are removed. */
static int hold_signals(Root *root) {
        sigset_t all;

        (void) sigfillset(&all);
        if (sigprocmask(SIG_SETMASK, &all, &root->mask) < 0)
                return -errno;
        root->masked = true;
        return 0;
}

/* Unpacks into a private tmpfs, or into a temporary directory if $TMPDIR is set or the system allows no tmpfs. */
static int unpack(Root *root, const char *file, char **ret_problem) {
        char path[64];
        const char *top = NULL;
        int r;

        root->scratch = secure_getenv("TMPDIR") ? -1 : scratch_open();
        if (root->scratch >= 0) {
                (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", root->scratch);
                top = path;
        } else {
                r = hold_signals(root);
                if (r < 0)
                        return r;
        }
        r = tree_unpack(file, top, &root->dir, ret_problem);
        root->unpacked = r >= 0;
        return r;
}

static int not_a_node(const char *node, const char *why, int error, char **ret_problem) {
        (void) string_replace(ret_problem, "%s is not a recorded node: %s.", node, why);
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
        int r = sysfs_new(dir, &fs);

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
        (void) string_replace(ret_problem, "The recorded node %s has no readable sys/bus/pci/devices: %s.", node,
                              strerror(-r));
        return r;
}

int root_open(Root *root, const char *node, char **ret_problem) {
        _cleanup_free_ char *problem = NULL;
        struct stat st;
        int r;

        if (stat(node, &st) < 0) {
                r = -errno;
                (void) string_replace(&problem, "There is no recorded node %s: %s.", node, strerror(-r));
        } else if (S_ISDIR(st.st_mode))
                r = string_copy(&root->dir, node);
        else if (S_ISREG(st.st_mode))
                r = unpack(root, node, &problem);
        else {
                r = -EINVAL;
                (void) string_replace(
                        &problem,
                        "%s is not a recorded node. A recorded node is a .tree file (a regular file, not a pipe) or a "
                        "directory that contains sys/.",
                        node);
        }
        if (r >= 0)
                r = check_node(root->dir, node, &problem);
        if (r < 0)
                *ret_problem = TAKE_PTR(problem);
        return r;
}

void root_done(Root *root) {
        if (root->unpacked && root->scratch < 0)
                tree_remove(root->dir);
        cleanup_close(&root->scratch);
        free(root->dir);
        if (root->masked)
                (void) sigprocmask(SIG_SETMASK, &root->mask, NULL);
}
