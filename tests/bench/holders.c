/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * holders PROCESSES DESCRIPTORS N ROOT: starts processes with that many open files, and searches N times for the users
 * of an unused GPU. Prints three times in microseconds for each search: of the search in all processes, of a plain loop
 * that reads the link of each descriptor, and of a check of the machine below ROOT, where the reference counts of
 * NVIDIA's modules show that no process has a GPU open.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "host/holders-internal.h"
#include "host/nvidia.h"

/* Starts a process with descriptors of the kinds that most processes have. It closes ready when it has them. */
static pid_t start_process(unsigned n, int ready) {
        pid_t pid = fork();

        if (pid != 0)
                return pid;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (unsigned i = 0; i < n; i++) {
                static const char *const paths[] = { "/dev/null", "/etc/passwd", "/dev/zero", "/proc/self/stat" };
                const size_t path = i / 2 % ELEMENTSOF(paths);
                int pair[2] = { -1, -1 };

                if (i % 2 == 0)
                        pair[0] = open(paths[path], O_RDONLY);
                else if (pipe(pair) == 0)
                        (void) close(pair[1]);
                if (pair[0] < 0)
                        _exit(EXIT_FAILURE);
        }
        (void) close(ready);
        for (;;)
                (void) pause();
}

static int read_links(int fd) {
        char buf[4096] __attribute__((aligned(8))), target[4096];
        ssize_t n;

        while ((n = getdents64(fd, buf, sizeof(buf))) > 0)
                for (ssize_t at = 0; at < n;) {
                        const struct dirent64 *e = (const void *) (buf + at);

                        at += e->d_reclen;
                        if (e->d_name[0] != '.' && readlinkat(fd, e->d_name, target, sizeof(target)) < 0 &&
                            errno == ENOMEM)
                                return -errno;
                }
        return n < 0 ? -errno : 0;
}

/* Opens proc/PID/fd of each process and reads the links, in the shortest way. */
static int read_all_links(void) {
        char buf[32768] __attribute__((aligned(8)));
        int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ssize_t n;

        if (proc < 0)
                return -errno;
        while ((n = getdents64(proc, buf, sizeof(buf))) > 0)
                for (ssize_t at = 0; at < n;) {
                        const struct dirent64 *e = (const void *) (buf + at);
                        char path[300];
                        int fd;

                        at += e->d_reclen;
                        if (e->d_name[0] < '1' || e->d_name[0] > '9')
                                continue;
                        (void) snprintf(path, sizeof(path), "%s/fd", e->d_name);
                        fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                        if (fd < 0)
                                continue;
                        (void) read_links(fd);
                        (void) close(fd);
                }
        (void) close(proc);
        return n < 0 ? -errno : 0;
}

int main(int argc, char *argv[]) {
        const HolderQuery gpu = { .address = { .bus = 1 }, .group = -1, .driver = NVIDIA_DRIVER, .nvidia_minor = 3 };
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL, *closed = NULL;
        HolderNode node = { .name = "nvidia3", .part = HOLDER_NO_PART, .has_number = true, .major = 195, .minor = 3 };
        const HolderNodes nodes = { .nodes = &node, .n = 1 };
        unsigned processes, descriptors, n;
        int ready[2];
        char byte;

        if (argc != 5 || sysfs_new("/", &fs) < 0 || sysfs_new(argv[4], &closed) < 0) {
                (void) fprintf(stderr, "usage: holders PROCESSES DESCRIPTORS N ROOT\n");
                return EXIT_FAILURE;
        }
        processes = (unsigned) atoi(argv[1]);
        descriptors = (unsigned) atoi(argv[2]);
        n = (unsigned) atoi(argv[3]);
        if (pipe(ready) < 0)
                return EXIT_FAILURE;
        for (unsigned i = 0; i < processes; i++)
                if (start_process(descriptors, ready[1]) < 0)
                        return EXIT_FAILURE;
        (void) close(ready[1]);
        if (read(ready[0], &byte, 1) != 0) /* until all have closed it */
                return EXIT_FAILURE;
        for (unsigned i = 0; i < n; i++) {
                double times[4] = { now_us() };
                Holder holder;
                size_t found;
                int proc = sysfs_open(fs, "proc", O_RDONLY | O_DIRECTORY), links, by_counts;
                /* As holder_search_root(), without its limit: a test may have half a million files open. */
                int r = holder_search(fs, proc, &nodes, true, UINT64_C(60000000), &holder, &found);

                times[1] = now_us();
                (void) close(proc);
                links = read_all_links();
                times[2] = now_us();
                by_counts = holders_find(closed, &gpu, 1, &holder);
                times[3] = now_us();
                /* -EACCES: a container does not show the open files of all processes that it shows. */
                if ((r != 0 && r != -EACCES) || links < 0 || by_counts != 0) {
                        (void) fprintf(stderr, "holders: the search failed: %d, %d, %d\n", r, links, by_counts);
                        return EXIT_FAILURE;
                }
                printf("%.1f %.1f %.1f\n", times[1] - times[0], times[2] - times[1], times[3] - times[2]);
        }
        return EXIT_SUCCESS;
}
