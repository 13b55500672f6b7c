/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void note_file(int disk, int fd, const struct stat *s) {
        char from[32], to[64];

        (void) snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
        (void) snprintf(to, sizeof(to), "files/%ju", (uintmax_t) s->st_ino);
        (void) linkat(AT_FDCWD, from, disk, to, AT_SYMLINK_FOLLOW);
}

/* Writes by rename, because a test may kill the daemon at any moment. */
static void note_directory(int disk, int fd, const struct stat *s) {
        static const char temporary[] = "directory";
        char path[64];
        int to, from = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = from >= 0 ? fdopendir(from) : NULL;

        (void) snprintf(path, sizeof(path), "directories/%ju", (uintmax_t) s->st_ino);
        to = openat(disk, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (!d || to < 0)
                abort();
        for (struct dirent *e; (e = readdir(d));)
                (void) dprintf(to, "%ju %s\n", (uintmax_t) e->d_ino, e->d_name);
        (void) closedir(d);
        (void) close(to);
        if (renameat(disk, temporary, disk, path) < 0)
                abort();
}

void disk_note(int fd) {
        const char *directory = getenv("NODE_TMP");
        char path[PATH_MAX];
        struct stat s;
        int disk;

        if (!directory || fstat(fd, &s) < 0)
                return;
        (void) snprintf(path, sizeof(path), "%s/disk", directory);
        disk = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (disk < 0)
                return;
        if (S_ISDIR(s.st_mode))
                note_directory(disk, fd, &s);
        else
                note_file(disk, fd, &s);
        (void) close(disk);
}
