/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * opened DIR: prints "ready", then each path below DIR that any process opens, once each and in order, until its input
 * ends. Uses fanotify, which needs root and does not slow the processes down.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <unistd.h>

static void *seen;

static int compare(const void *a, const void *b) {
        return strcmp(a, b);
}

static void note(int fd, const char *dir) {
        char name[64], path[4096], *copy;
        ssize_t n;

        (void) snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        n = readlink(name, path, sizeof(path) - 1);
        if (n < 0)
                return;
        path[n] = '\0';
        if (strncmp(path, dir, strlen(dir)) != 0 || path[strlen(dir)] != '/')
                return;
        copy = strdup(path);
        if (copy && *(char **) tsearch(copy, &seen, compare) == copy)
                puts(copy);
        else
                free(copy);
}

static void take_events(int fan, const char *dir) {
        static char buf[256 * 1024] __attribute__((aligned(8)));
        ssize_t n;

        while ((n = read(fan, buf, sizeof(buf))) > 0) {
                const struct fanotify_event_metadata *e = (const void *) buf;

                for (; FAN_EVENT_OK(e, n); e = FAN_EVENT_NEXT(e, n)) {
                        if (e->fd < 0)
                                continue;
                        note(e->fd, dir);
                        (void) close(e->fd);
                }
        }
}

int main(int argc, char *argv[]) {
        struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN } };
        char *dir = argc == 2 ? realpath(argv[1], NULL) : NULL;
        int fan = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK | FAN_CLOEXEC | FAN_UNLIMITED_QUEUE,
                                O_RDONLY | O_NOATIME | O_CLOEXEC);

        if (!dir || fan < 0 ||
            fanotify_mark(fan, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN | FAN_ONDIR, AT_FDCWD, dir) < 0) {
                (void) fprintf(stderr, "opened: %s\n", dir || argc == 2 ? strerror(errno) : "usage: opened DIR");
                free(dir);
                return EXIT_FAILURE;
        }
        puts("ready");
        (void) fflush(stdout);
        fds[1] = (struct pollfd) { .fd = fan, .events = POLLIN };
        while (poll(fds, 2, -1) > 0 && fds[0].revents == 0)
                take_events(fan, dir);
        take_events(fan, dir);
        free(dir);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
