/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * floor LIST: opens and reads each file of the list, lists each directory, and prints the microseconds. Opens an entry
 * that follows its directory in the list relative to that directory, which is the fastest way.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

typedef struct Directory {
        const char *path;
        size_t length;
        int fd;
} Directory;

static int open_path(const Directory *last, const char *path) {
        if (last->path && strncmp(path, last->path, last->length) == 0 && path[last->length] == '/' &&
            !strchr(path + last->length + 1, '/'))
                return openat(last->fd, path + last->length + 1, O_RDONLY | O_CLOEXEC);
        return open(path, O_RDONLY | O_CLOEXEC);
}

static int list(Directory *last, const char *path, int fd, char *buf, size_t size) {
        ssize_t n;

        while ((n = getdents64(fd, buf, size)) > 0)
                ;
        if (n < 0)
                return -errno;
        if (last->path)
                (void) close(last->fd);
        *last = (Directory) { path, strlen(path), fd };
        return 0;
}

static int visit(Directory *last, const char *path) {
        static char buf[4096];
        int fd = open_path(last, path);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = read(fd, buf, sizeof(buf));
        if (n < 0 && errno == EISDIR)
                return list(last, path, fd, buf, sizeof(buf));
        (void) close(fd);
        return n < 0 ? -errno : 0;
}

int main(int argc, char *argv[]) {
        Directory last = { 0 };
        FILE *input = argc == 2 ? fopen(argv[1], "re") : NULL;
        char **paths = NULL, *line = NULL;
        size_t n = 0, room = 0, size = 0;
        double start;
        ssize_t length;

        if (!input) {
                (void) fprintf(stderr, "usage: floor LIST\n");
                return EXIT_FAILURE;
        }
        while ((length = getline(&line, &size, input)) > 0) {
                if (n == room)
                        paths = reallocarray(paths, room = room * 2 + 1024, sizeof(*paths));
                line[length - 1] = '\0';
                if (!paths || !(paths[n++] = strdup(line)))
                        return EXIT_FAILURE;
        }
        start = now_us();
        for (size_t i = 0; i < n; i++) {
                int r = visit(&last, paths[i]);

                if (r < 0) {
                        (void) fprintf(stderr, "floor: %s: %s\n", paths[i], strerror(-r));
                        return EXIT_FAILURE;
                }
        }
        printf("%.1f\n", now_us() - start);
        for (size_t i = 0; i < n; i++)
                free(paths[i]);
        free(paths);
        free(line);
        (void) fclose(input);
        return EXIT_SUCCESS;
}
