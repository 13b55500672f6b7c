/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes and reads the files of a job. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "handout.h"
#include "util/fileio.h"
#include "util/strings.h"

#define VARIABLES_MAX ((size_t) 1 << 20)

/* Opens the directory of the files of jobs. Returns -EPERM if other users than root could create files there: root
 * writes these files and sets variables from them. */
static int open_directory(const char *path, bool create) {
        _cleanup_close_ int fd = -1;
        struct stat st;

        if (create && mkdir(path, 0755) < 0 && errno != EEXIST)
                return -errno;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        return st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)) ? TAKE_FD(fd) : -EPERM;
}

static int write_document(int dir_fd, const char *file, uid_t uid, const char *document) {
        int r = write_file_atomic_mode_at(dir_fd, file, 0600, document, strlen(document));

        if (r < 0)
                return r;
        return fchownat(dir_fd, file, uid, (gid_t) -1, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int handout_write(const char *directory, const char *name, uid_t uid, const char *document, const char *devices) {
        _cleanup_close_ int dir_fd = open_directory(directory, true);
        _cleanup_free_ char *xml = string_format("%s.xml", name), *env = string_format("%s.env", name);
        _cleanup_free_ char *variables =
                string_format(VARIABLE_ALLOCATION "=%s\n" VARIABLE_DEVICES "=%s\n", name, devices);
        int r;

        if (dir_fd < 0)
                return dir_fd;
        if (!xml || !env || !variables ||
            (document && string_append(&variables, "", VARIABLE_DOCUMENT "=%s/%s.xml\n", directory, name) < 0))
                return -ENOMEM;
        r = document ? write_document(dir_fd, xml, uid, document) : 0;
        return r < 0 ? r : write_file_atomic_mode_at(dir_fd, env, 0600, variables, strlen(variables));
}

static int remove_one(int dir_fd, const char *name, const char *suffix) {
        _cleanup_free_ char *file = string_format("%s.%s", name, suffix);

        return file ? remove_file_at(dir_fd, file) : -ENOMEM;
}

int handout_remove(const char *directory, const char *name) {
        _cleanup_close_ int dir_fd = open_directory(directory, false);
        int r;

        if (dir_fd < 0)
                return dir_fd == -ENOENT ? 0 : dir_fd;
        r = remove_one(dir_fd, name, "env");
        return r < 0 ? r : remove_one(dir_fd, name, "xml");
}

int handout_exists(const char *directory, const char *name) {
        _cleanup_close_ int dir_fd = open_directory(directory, false);
        _cleanup_free_ char *file = string_format("%s.env", name);

        if (!file)
                return -ENOMEM;
        if (dir_fd < 0)
                return dir_fd == -ENOENT ? 0 : dir_fd;
        if (faccessat(dir_fd, file, F_OK, 0) < 0)
                return errno == ENOENT ? 0 : -errno;
        return 1;
}

int handout_read(const char *directory, const char *name,
                 int (*set)(const char *variable, const char *value, void *userdata), void *userdata) {
        _cleanup_close_ int dir_fd = -1;
        _cleanup_free_ char *path = string_format("%s/%s.env", directory, name), *text = NULL;
        const char *file = path ? path + strlen(directory) + 1 : NULL;
        char *rest, *line;
        int r;

        /* Most jobs have no files: return before open_directory(), whose check could fail. */
        if (path && access(path, F_OK) < 0)
                return -errno;
        dir_fd = open_directory(directory, false);
        if (dir_fd < 0)
                return dir_fd;
        r = file ? read_file_at(dir_fd, file, VARIABLES_MAX, &text, NULL) : -ENOMEM;
        rest = text;
        if (r < 0)
                return r;
        while ((line = strsep(&rest, "\n"))) {
                char *equals = strchr(line, '=');

                if (!equals)
                        continue;
                *equals = '\0';
                r = set(line, equals + 1, userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}
