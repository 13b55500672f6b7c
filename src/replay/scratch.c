/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates a tmpfs that is not mounted anywhere. */

#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>

#include "util/cleanup.h"

static int write_text(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* Enters a new user and mount namespace, where an unprivileged user may create a tmpfs. The uid and gid stay the same
 * (user_namespaces(7)). */
static int enter_namespace(void) {
        char uid[64], gid[64];
        int r;

        (void) snprintf(uid, sizeof(uid), "%u %u 1", geteuid(), geteuid());
        (void) snprintf(gid, sizeof(gid), "%u %u 1", getegid(), getegid());
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return -errno;
        r = write_text("/proc/self/uid_map", uid);
        if (r >= 0)
                r = write_text("/proc/self/setgroups", "deny");
        return r < 0 ? r : write_text("/proc/self/gid_map", gid);
}

int scratch_open(void) {
        _cleanup_close_ int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
        int fd, r;

        if (fs < 0 && errno == EPERM) {
                r = enter_namespace();
                if (r < 0)
                        return r;
                fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
        }
        if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -errno;
        fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
        return fd < 0 ? -errno : fd;
}
