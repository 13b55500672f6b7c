/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open files of other processes, by the links in proc/PID/fd. */

#include "host/holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "util/strings.h"

/* Does a descriptor of this process point to a path that ends in suffix? */
static bool has_open(int fd_dir, const char *suffix) {
        DIR *d = fdopendir(fd_dir);
        bool found = false;

        if (!d) {
                (void) close(fd_dir);
                return false;
        }
        for (struct dirent *e; !found && (e = readdir(d));) {
                char target[256];
                ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
                size_t length = strlen(suffix);

                if (n < (ssize_t) length)
                        continue;
                target[n] = '\0';
                found = streq(target + (size_t) n - length, suffix);
        }
        (void) closedir(d);
        return found;
}

int holders_of_group(const Sysfs *fs, int group, Holder *ret) {
        char suffix[32];
        int found = 0, fd = sysfs_open(fs, "proc", O_RDONLY | O_DIRECTORY);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);

        if (!d)
                return fd < 0 ? fd : -errno;
        (void) snprintf(suffix, sizeof(suffix), "/dev/vfio/%d", group);
        for (struct dirent *e; !found && (e = readdir(d));) {
                char path[300];
                uint64_t pid;
                int fds;

                if (parse_unsigned(e->d_name, INT32_MAX, &pid) < 0)
                        continue;
                (void) snprintf(path, sizeof(path), "%s/fd", e->d_name);
                fds = openat(dirfd(d), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                /* A process that ended meanwhile holds nothing; one that may not be looked at may hold anything. */
                if (fds < 0 && errno != ENOENT && errno != ESRCH) {
                        found = -errno;
                        break;
                }
                if (fds < 0 || !has_open(fds, suffix))
                        continue;
                *ret = (Holder){ .pid = (int) pid };
                (void) snprintf(path, sizeof(path), "%s/comm", e->d_name);
                (void) sysfs_read_at(dirfd(d), path, ret->command, sizeof(ret->command));
                found = 1;
        }
        (void) closedir(d);
        return found;
}
