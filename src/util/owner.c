/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "util/owner.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/strings.h"

#define LINKS_MAX 40U

/* Returns true when the uid is that of this process or of root. In a user namespace root's files have another uid than
 * 0: that of "/". */
static bool is_trusted(uid_t uid) {
        struct stat root;

        return uid == 0 || uid == geteuid() || (stat("/", &root) >= 0 && uid == root.st_uid);
}

static int refuse_path(const char *path, const struct stat *st, char **ret_why) {
        int r = string_replace(ret_why, "%s belongs to uid %u and has mode %04o", path, st->st_uid,
                               st->st_mode & 07777U);

        return r < 0 ? r : -EPERM;
}

static void remove_last(char *path) {
        char *slash = strrchr(path, '/');

        if (slash)
                *slash = '\0';
}

/* Follows the symbolic link at the path `done`: puts its target in front of `rest`, and removes the link from `done`.
 * If the target is absolute, `done` becomes empty. Returns 0 or a negative errno. */
static int follow_link(char done[static PATH_MAX], char rest[static PATH_MAX]) {
        char target[PATH_MAX];
        ssize_t n = readlink(done, target, sizeof(target));
        size_t size = strlen(rest);

        if (n < 0)
                return -errno;
        if ((size_t) n + 1 + size >= PATH_MAX)
                return -ENAMETOOLONG;
        memmove(rest + n + 1, rest, size + 1);
        memcpy(rest, target, (size_t) n);
        rest[n] = '/';
        if (*target == '/')
                *done = '\0';
        else
                remove_last(done);
        return 0;
}

/* Moves the first component of `rest` to the end of `done`; ".." removes the last component of `done` instead. Returns
 * 1; 0 when `rest` is empty; or -ENAMETOOLONG. */
static int take_component(char done[static PATH_MAX], char rest[static PATH_MAX]) {
        const char *name = rest + strspn(rest, "/");
        size_t n = strcspn(name, "/"), used = strlen(done);

        if (n == 0)
                return 0;
        if (n == 2 && memcmp(name, "..", 2) == 0)
                remove_last(done);
        else if (n != 1 || *name != '.') {
                if (used + 1 + n >= PATH_MAX)
                        return -ENAMETOOLONG;
                done[used] = '/';
                memcpy(done + used + 1, name, n);
                done[used + 1 + n] = '\0';
        }
        memmove(rest, name + n, strlen(name + n) + 1);
        return 1;
}

int path_check_owner(const char *path, char **ret_why) {
        _cleanup_free_ char *directory = *path == '/' ? NULL : get_current_dir_name();
        char done[PATH_MAX] = "", rest[PATH_MAX];
        struct stat st, above = { 0 };

        if ((size_t) snprintf(rest, sizeof(rest), "%s/%s", directory ?: "", path) >= sizeof(rest))
                return -ENAMETOOLONG;
        for (unsigned links = 0;;) {
                bool writable;
                int r;

                if (lstat(*done ? done : "/", &st) < 0) {
                        r = -errno;
                        /* The file is missing. In a directory that others can write to, even a sticky one, any user can
                         * create it. */
                        if (r != -ENOENT || !(above.st_mode & (S_IWGRP | S_IWOTH)))
                                return r;
                        remove_last(done);
                        return refuse_path(done, &above, ret_why);
                }
                writable = (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) && (st.st_mode & (S_IWGRP | S_IWOTH));
                if (!is_trusted(st.st_uid) || (writable && !(S_ISDIR(st.st_mode) && st.st_mode & S_ISVTX)))
                        return refuse_path(*done ? done : "/", &st, ret_why);
                if (S_ISLNK(st.st_mode)) {
                        r = ++links > LINKS_MAX ? -ELOOP : follow_link(done, rest);
                        if (r < 0)
                                return r;
                        continue;
                }
                r = take_component(done, rest);
                if (r < 0)
                        return r;
                if (r == 0)
                        return writable ? refuse_path(done, &st, ret_why) : 0;
                above = st;
        }
}
