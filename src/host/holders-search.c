/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Searches the open files of all processes by their links in proc/PID/fd. Names a process by its control group:
 * service, session or container. */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "holders-internal.h"
#include "host/nvidia.h"
#include "util/clock.h"
#include "util/fileio.h"
#include "util/strings.h"

/* The size limit of proc/PID/cgroup. A longer file names no unit. */
#define CGROUPS_MAX 8192U

/* The clocks are read once for this many descriptors, because reading the CPU time takes a system call. */
#define LOOK_AT_CLOCKS 16U

/* Length of a container ID, in full and as users see it. */
#define CONTAINER_ID_LENGTH 64U
#define CONTAINER_ID_SHOWN  12

/* How container engines name control groups: PREFIX and ID, or just the ID somewhere below the top group PREFIX.
 * ".scope" may follow the ID. */
static const struct {
        const char *prefix, *name;
} containers[] = {
        { "docker-", "docker" },      { "libpod-", "podman" },
        { "crio-", "kubernetes" },    { "cri-containerd-", "kubernetes" },
        { "docker", "docker" },       { "libpod_parent", "podman" },
        { "kubepods", "kubernetes" }, { "kubepods.slice", "kubernetes" },
};

static bool is_container_id(const char *s) {
        for (size_t i = 0; i < CONTAINER_ID_LENGTH; i++)
                if (!isxdigit((unsigned char) s[i]))
                        return false;
        return s[CONTAINER_ID_LENGTH] == '\0' || streq(s + CONTAINER_ID_LENGTH, ".scope");
}

/* Returns true if `component`, a component of the path of a control group, names a container, and writes the name of
 * the container to buf. first: the first component of the path. */
static bool find_container(const char *first, const char *component, char *buf, size_t size) {
        for (size_t i = 0; i < ELEMENTSOF(containers); i++) {
                const char *prefix = containers[i].prefix;
                size_t n = strlen(prefix);
                bool by_prefix = strncmp(component, prefix, n) == 0 && is_container_id(component + n);

                if (!by_prefix && !(streq(first, prefix) && is_container_id(component)))
                        continue;
                (void) snprintf(buf, size, "%s container %.*s", containers[i].name, CONTAINER_ID_SHOWN,
                                by_prefix ? component + n : component);
                return true;
        }
        return false;
}

/* Returns true when the group's name is a valid name of a service or scope. Groups below a unit with delegation may
 * have any name. */
static bool is_unit(const char *component) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@";
        const char *dot = strrchr(component, '.');

        return dot && dot != component && (streq(dot, ".service") || streq(dot, ".scope")) &&
               strspn(component, allowed) == strlen(component);
}

/* Writes the name of the container of a control group to buf; without a container, the name of the innermost unit, with
 * " of user@UID.service" for a unit of a user. Leaves buf unchanged if there is no unit either. */
static void name_group(char *path, char *buf, size_t size) {
        const char *first = NULL, *unit = NULL, *user = NULL;
        char *component;

        while ((component = strsep(&path, "/"))) {
                if (!*component)
                        continue;
                first = first ?: component;
                if (find_container(first, component, buf, size))
                        return;
                if (!is_unit(component))
                        continue;
                user = unit && strncmp(unit, "user@", strlen("user@")) == 0 ? unit : user;
                unit = component;
        }
        if (unit)
                (void) snprintf(buf, size, "%s%s%s", unit, user ? " of " : "", user ? user : "");
}

/* Takes the line of cgroup v2, "0::/system.slice/x.service", or of v1, "1:name=systemd:/system.slice/x.service". */
void holder_unit(const char *cgroups, char *buf, size_t size) {
        _cleanup_free_ char *copy = strdup(cgroups);
        char *line, *rest = copy;

        buf[0] = '\0';
        while ((line = strsep(&rest, "\n")) && !buf[0]) {
                char *path = strchr(line, ':');

                path = path ? strchr(path + 1, ':') : NULL;
                if (path && (strncmp(line, "0::", 3) == 0 || strstr(line, ":name=systemd:")))
                        name_group(path + 1, buf, size);
        }
}

void holder_unit_of_process(int pid, char *buf, size_t size) {
        _cleanup_free_ char *text = NULL;
        char path[64];

        buf[0] = '\0';
        (void) snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
        if (read_file_at(AT_FDCWD, path, CGROUPS_MAX, &text, NULL) >= 0)
                holder_unit(text, buf, size);
}

#define DELETED      " (deleted)"
#define LISTING_SIZE 8192U

typedef struct Search {
        const Sysfs *fs;
        const HolderNodes *nodes;
        const char *unit; /* nodes whose query ignores this unit are skipped. Set while a process of the unit is
                             searched again */
        bool by_number;
        bool counts;        /* the size of PID/fd is the number of descriptors */
        unsigned long seen; /* descriptors that were looked at */
        uint64_t end;       /* latest end: CLOCK_MONOTONIC, microseconds */
        uint64_t end_cpu;   /* latest end: CPU time of the thread, microseconds */
        Holder *holder;
        const HolderNode *found; /* the node that the first holder has open */
} Search;

static bool is_gpu_name(const char *name) {
        uint64_t n;

        return strncmp(name, "nvidia", strlen("nvidia")) == 0 &&
               parse_unsigned(name + strlen("nvidia"), NVIDIA_MINOR_LAST, &n) == 0;
}

/* Returns true when `target`, a path with "/dev/" in it, ends with a slash and the name of the node or, if
 * node->any_gpu is set, of any GPU. What precedes the name may be the directory of another root, and a directory of
 * /dev such as dri. */
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

/* Returns true when the query of the node ignores the unit. */
static bool is_ignored(const Search *s, const HolderNode *node, const char *unit) {
        for (size_t i = 0; i < s->nodes->n_ignored; i++)
                if (s->nodes->ignored[i].device == node->device && streq(s->nodes->ignored[i].unit, unit))
                        return true;
        return false;
}

/* Returns true when the search looks for the node. After the first holder was found, the search looks only for nodes of
 * that holder's device. While it searches a process again, it looks only for nodes whose query does not ignore the unit
 * of the process. */
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

/* Returns true when the error means that the process exited or closed the descriptor. */
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

/*
 * Entries of a directory of proc, by getdents64(): opendir() would cost two more system calls, and memory, per process.
 */
typedef struct Listing {
        int fd;
        ssize_t size, at;
        char buf[LISTING_SIZE] __attribute__((aligned(8)));
} Listing;

/* Sets *ret to the next name, valid until the next call. Returns 1, 0 at the end, or a negative errno. */
static int listing_next(Listing *l, const char **ret) {
        const struct dirent64 *e;

        if (l->at == l->size) {
                l->at = 0;
                l->size = getdents64(l->fd, l->buf, sizeof(l->buf));
        }
        if (l->size <= 0)
                return l->size < 0 ? -errno : 0;
        e = (const void *) (l->buf + l->at);
        l->at += e->d_reclen;
        *ret = e->d_name;
        return 1;
}

/* Returns 1 with *ret when a descriptor in the directory fd refers to a node, 0 when none does, or a negative errno
 * when the directory or a descriptor is unreadable; -ETIMEDOUT when the time for the search is over. */
static int search_descriptors(Search *s, int fd, const HolderNode **ret) {
        Listing listing = { .fd = fd };
        const char *name = "";
        int error = 0, r;

        while ((r = listing_next(&listing, &name)) > 0) {
                char target[PATH_MAX];
                ssize_t n;

                if (name[0] == '.')
                        continue;
                if (s->seen++ % LOOK_AT_CLOCKS == 0 &&
                    (clock_usec(CLOCK_THREAD_CPUTIME_ID) >= s->end_cpu || clock_usec(CLOCK_MONOTONIC) >= s->end))
                        return -ETIMEDOUT;
                n = readlinkat(fd, name, target, sizeof(target) - 1);
                if (n < 0 && !is_gone(errno))
                        error = -errno;
                if (n < 0)
                        continue;
                target[n] = '\0';
                *ret = find_node(s, fd, name, target, (size_t) n);
                if (*ret)
                        return 1;
        }
        return r == 0 || is_gone(-r) ? error : r;
}

/* Searches a directory of descriptors. path: PID/fd or PID/task/TID/fd. */
static int search_directory(Search *s, int proc_fd, const char *path, const HolderNode **ret) {
        _cleanup_close_ int fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return is_gone(errno) ? 0 : -errno;
        return search_descriptors(s, fd, ret);
}

/*
 * Searches the descriptors of all threads. Called when PID/fd shows none: after the end of a process's first thread,
 * only the other threads show the descriptors. The link count of the directory task is 2 plus the number of threads.
 */
static int search_threads(Search *s, int proc_fd, const char *pid, const HolderNode **ret) {
        _cleanup_close_ int fd = -1;
        char path[600];
        Listing listing;
        const char *name = "";
        struct stat st;
        int error = 0, r;

        (void) snprintf(path, sizeof(path), "%s/task", pid);
        if (fstatat(proc_fd, path, &st, 0) < 0 || st.st_nlink <= 3)
                return 0;
        fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return is_gone(errno) ? 0 : -errno;
        listing = (Listing) { .fd = fd };
        while ((r = listing_next(&listing, &name)) > 0) {
                if (name[0] == '.')
                        continue;
                (void) snprintf(path, sizeof(path), "%s/task/%.255s/fd", pid, name);
                r = search_directory(s, proc_fd, path, ret);
                if (r > 0 || r == -ETIMEDOUT)
                        return r;
                if (r < 0)
                        error = r;
        }
        return r == 0 || is_gone(-r) ? error : r;
}

/* Returns true when the process surely has no descriptors. Since Linux 6.2 the size of the directory at path, PID/fd,
 * is their number. Most processes of a large node are kernel threads, which have none. */
static bool has_no_descriptors(const Search *s, int proc_fd, const char *path) {
        struct stat st;

        return s->counts && fstatat(proc_fd, path, &st, 0) == 0 && st.st_size == 0;
}

static int search_process(Search *s, int proc_fd, const char *pid, const HolderNode **ret) {
        unsigned long seen = s->seen;
        char path[300];
        int r;

        (void) snprintf(path, sizeof(path), "%s/fd", pid);
        r = has_no_descriptors(s, proc_fd, path) ? 0 : search_directory(s, proc_fd, path, ret);
        return r == 0 && s->seen == seen ? search_threads(s, proc_fd, pid, ret) : r;
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

/* If the query of the node *ret ignores the process's unit, searches the process again for a node whose query does not:
 * the process may have nodes of several devices open. Returns as search_process(). */
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

/* A holder that was found counts more than an error with another process. */
int holder_search(const Sysfs *fs, int proc_fd, const HolderNodes *nodes, bool by_number, uint64_t usec, Holder *ret,
                  size_t *ret_node) {
        Search s = { .fs = fs,
                     .nodes = nodes,
                     .by_number = by_number,
                     .end = clock_usec(CLOCK_MONOTONIC) + HOLDER_ANSWER_USEC / HOLDER_LOOK_USEC * usec,
                     .end_cpu = clock_usec(CLOCK_THREAD_CPUTIME_ID) + usec,
                     .holder = ret };
        Listing listing = { .fd = proc_fd };
        const char *name = "";
        struct stat st;
        int error = 0, r = 0;

        *ret = (Holder) { 0 };
        /* The size of self/fd is a number of descriptors if it is not 0: this process has proc_fd open. */
        s.counts = by_number && fstatat(proc_fd, "self/fd", &st, 0) == 0 && st.st_size > 0;
        while (error != -ETIMEDOUT && (r = listing_next(&listing, &name)) > 0) {
                r = search_entry(&s, proc_fd, name);
                if (r < 0)
                        error = r;
        }
        if (r < 0)
                error = r;
        if (ret->pid == 0)
                return error;
        *ret_node = (size_t) (s.found - nodes->nodes);
        return 1;
}

int holder_search_root(const Sysfs *fs, const HolderNodes *nodes, Holder *ret, size_t *ret_node) {
        _cleanup_close_ int fd = sysfs_open(fs, "proc", O_RDONLY | O_DIRECTORY);

        return fd < 0 ? fd : holder_search(fs, fd, nodes, sysfs_root(fs)[0] == '\0', HOLDER_LOOK_USEC, ret, ret_node);
}
