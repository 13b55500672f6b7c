/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Searches the open files of all processes, by the links in proc/PID/fd. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "holders-internal.h"
#include "host/nvidia.h"
#include "util/clock.h"
#include "util/strings.h"

#define DELETED      " (deleted)"
#define LISTING_SIZE 8192U

typedef struct Search {
        const Sysfs *fs;
        const HolderNodes *nodes;
        const char *unit; /* set while a process is searched again, to skip the nodes for which its unit is ignored */
        bool by_number;
        uint64_t end; /* CLOCK_MONOTONIC, microseconds */
        Holder *holder;
        const HolderNode *found; /* the node that the holder has open */
} Search;

static bool is_gpu_name(const char *name) {
        uint64_t n;

        return strncmp(name, "nvidia", strlen("nvidia")) == 0 &&
               parse_unsigned(name + strlen("nvidia"), NVIDIA_MINOR_LAST, &n) == 0;
}

/* Compares the end of the path only: the part before dev/ depends on the root directory of the process. */
static bool has_name(const HolderNode *node, const char *target, size_t length) {
        size_t n = strlen(node->name);

        if (node->any_gpu)
                return is_gpu_name(strrchr(target, '/') + 1);
        return length > n && target[length - n - 1] == '/' && streq(target + length - n, node->name);
}

static bool has_number(const HolderNode *node, const struct statx *st) {
        if (!node->has_number || !(node->is_block ? S_ISBLK(st->stx_mode) : S_ISCHR(st->stx_mode)) ||
            node->major != st->stx_rdev_major)
                return false;
        return node->any_gpu ? st->stx_rdev_minor <= NVIDIA_MINOR_LAST : node->minor == st->stx_rdev_minor;
}

/* Whether the query of the node ignores the unit. */
static bool is_ignored(const Search *s, const HolderNode *node, const char *unit) {
        for (size_t i = 0; i < s->nodes->n_ignored; i++)
                if (s->nodes->ignored[i].device == node->device && streq(s->nodes->ignored[i].unit, unit))
                        return true;
        return false;
}

/* Whether a node is searched for: after the first holder was found, only the nodes of the same device are, to count the
 * other holders. */
static bool is_wanted(const Search *s, const HolderNode *node) {
        return (s->holder->pid == 0 || node->device == s->holder->device) && !(s->unit && is_ignored(s, node, s->unit));
}

static const HolderNode *find_by_name(const Search *s, const char *target, size_t length) {
        for (size_t i = 0; i < s->nodes->n; i++)
                if (is_wanted(s, &s->nodes->nodes[i]) && has_name(&s->nodes->nodes[i], target, length))
                        return &s->nodes->nodes[i];
        return NULL;
}

static const HolderNode *find_by_number(const Search *s, const struct statx *st) {
        for (size_t i = 0; i < s->nodes->n; i++)
                if (is_wanted(s, &s->nodes->nodes[i]) && has_number(&s->nodes->nodes[i], st))
                        return &s->nodes->nodes[i];
        return NULL;
}

/* The process exited or closed the descriptor. */
static bool is_gone(int error) {
        return error == ENOENT || error == ESRCH;
}

/*
 * Returns the node that a descriptor refers to, or NULL. Device numbers are compared only for files in the /dev of the
 * process, and without synchronisation: statx() of a file on a network file system would wait for a server that does
 * not answer. For other paths, as in the tree of a container, only names are compared.
 */
static const HolderNode *find_node(const Search *s, int dir_fd, const char *descriptor, char *target, size_t length) {
        const HolderNode *named;
        struct statx st;

        /* About half of all descriptors are /dev/null; skip them early. */
        if (!strstr(target, "/dev/") || streq(target, "/dev/null"))
                return NULL;
        if (length > strlen(DELETED) && streq(target + length - strlen(DELETED), DELETED))
                target[length -= strlen(DELETED)] = '\0';
        named = find_by_name(s, target, length);
        if (!s->by_number || strncmp(target, "/dev/", strlen("/dev/")) != 0)
                return named;
        if (statx(dir_fd, descriptor, AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0)
                return is_gone(errno) ? NULL : named;
        return find_by_number(s, &st) ?: (named && !named->has_number ? named : NULL);
}

/* Returns 1 and *ret when a descriptor of the process refers to a node, 0 when none does, or a negative errno when a
 * descriptor cannot be read. */
static int search_descriptors(Search *s, DIR *d, const HolderNode **ret) {
        int error = 0;

        for (;;) {
                char target[PATH_MAX];
                const struct dirent *e;
                ssize_t n;

                errno = 0;
                e = readdir(d);
                if (!e)
                        return errno == 0 || is_gone(errno) ? error : -errno;
                if (e->d_name[0] == '.')
                        continue;
                if (clock_usec(CLOCK_MONOTONIC) >= s->end)
                        return -ETIMEDOUT;
                n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
                if (n < 0 && !is_gone(errno))
                        error = -errno;
                if (n < 0)
                        continue;
                target[n] = '\0';
                *ret = find_node(s, dirfd(d), e->d_name, target, (size_t) n);
                if (*ret)
                        return 1;
        }
}

static int search_process(Search *s, int proc_fd, const char *pid, const HolderNode **ret) {
        char path[300];
        DIR *d;
        int fd, r;

        (void) snprintf(path, sizeof(path), "%s/fd", pid);
        fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return is_gone(errno) ? 0 : -errno;
        d = fdopendir(fd);
        if (!d) {
                r = -errno;
                (void) close(fd);
                return r;
        }
        r = search_descriptors(s, d, ret);
        (void) closedir(d);
        return r;
}

static void read_unit(const Sysfs *fs, int proc_fd, const char *pid, char buf[static HOLDER_UNIT_MAX]) {
        char path[300], text[CGROUPS_MAX];

        buf[0] = '\0';
        (void) snprintf(path, sizeof(path), "%s/cgroup", pid);
        if (sysfs_read_at(fs, proc_fd, path, text, sizeof(text)) >= 0)
                holder_unit(text, buf, HOLDER_UNIT_MAX);
}

static void fill_holder(const Sysfs *fs, int proc_fd, const char *pid, Holder *h) {
        char path[300], text[CGROUPS_MAX] = "";

        (void) snprintf(path, sizeof(path), "%s/comm", pid);
        (void) sysfs_read_at(fs, proc_fd, path, text, sizeof(text));
        (void) snprintf(h->command, sizeof(h->command), "%.63s", QUOTABLE(text));
        read_unit(fs, proc_fd, pid, h->unit);
}

/* A process in an ignored unit may also have the node of another device, whose query does not ignore the unit. */
static int search_not_ignored(Search *s, int proc_fd, const char *pid, const HolderNode **ret) {
        char unit[HOLDER_UNIT_MAX];
        int r = 1;

        if (s->nodes->n_ignored == 0)
                return 1;
        read_unit(s->fs, proc_fd, pid, unit);
        if (is_ignored(s, *ret, unit)) {
                s->unit = unit;
                r = search_process(s, proc_fd, pid, ret);
                s->unit = NULL;
        }
        return r;
}

static int search_entry(Search *s, int proc_fd, const char *name) {
        const HolderNode *node = NULL;
        uint64_t pid;
        int r;

        if (parse_unsigned(name, INT32_MAX, &pid) < 0 || pid == 0)
                return 0;
        r = search_process(s, proc_fd, name, &node);
        if (r > 0)
                r = search_not_ignored(s, proc_fd, name, &node);
        if (r <= 0)
                return r;
        if (s->holder->pid > 0) {
                s->holder->others++;
                return 0;
        }
        s->holder->pid = (int) pid;
        s->holder->device = node->device;
        s->found = node;
        fill_holder(s->fs, proc_fd, name, s->holder);
        return 0;
}

/* A holder that was found takes precedence over an error with another process. */
int holder_search(const Sysfs *fs, int proc_fd, const HolderNodes *nodes, bool by_number, uint64_t usec, Holder *ret,
                  size_t *ret_node) {
        Search s = { .fs = fs,
                     .nodes = nodes,
                     .by_number = by_number,
                     .end = clock_usec(CLOCK_MONOTONIC) + usec,
                     .holder = ret };
        char buf[LISTING_SIZE] __attribute__((aligned(8)));
        int error = 0;
        ssize_t n;

        *ret = (Holder) { 0 };
        while (error != -ETIMEDOUT && (n = getdents64(proc_fd, buf, sizeof(buf))) != 0) {
                if (n < 0) {
                        error = -errno;
                        break;
                }
                for (ssize_t at = 0; error != -ETIMEDOUT && at < n;) {
                        const struct dirent64 *e = (const void *) (buf + at);
                        int r = search_entry(&s, proc_fd, e->d_name);

                        if (r < 0)
                                error = r;
                        at += e->d_reclen;
                }
        }
        if (ret->pid == 0)
                return error;
        *ret_node = (size_t) (s.found - nodes->nodes);
        return 1;
}

int holder_search_root(const Sysfs *fs, const HolderNodes *nodes, Holder *ret, size_t *ret_node) {
        _cleanup_close_ int fd = sysfs_open(fs, "proc", O_RDONLY | O_DIRECTORY);

        return fd < 0 ? fd : holder_search(fs, fd, nodes, sysfs_root(fs)[0] == '\0', HOLDER_LOOK_USEC, ret, ret_node);
}
