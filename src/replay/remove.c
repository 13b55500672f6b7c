/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Removes an unpacked tree. Does not follow links. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "remove.h"
#include "replay/replay.h"

DEFINE_CLEANUP(DIR *, closedir)

static int remove_below(int fd) {
        _cleanup_(cleanup_closedir) DIR *d = fdopendir(fd);
        const struct dirent *entry;
        int result = 0;

        if (!d) {
                (void) close(fd);
                return -ENOMEM;
        }
        while ((entry = readdir(d))) {
                int r = streq(entry->d_name, ".") || streq(entry->d_name, "..") ? 0 : remove_at(fd, entry->d_name);

                result = r < 0 ? r : result;
        }
        return result;
}

int remove_at(int dir_fd, const char *name) {
        int fd, r;

        if (unlinkat(dir_fd, name, 0) >= 0 || errno == ENOENT)
                return 0;
        if (errno != EISDIR && errno != EPERM)
                return -errno;
        if (unlinkat(dir_fd, name, AT_REMOVEDIR) >= 0)
                return 0;
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = fd < 0 ? -errno : remove_below(fd);
        if (r < 0)
                return r;
        return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

void tree_remove(const char *dir) {
        (void) remove_at(AT_FDCWD, dir);
}
