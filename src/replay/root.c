/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens a recorded machine: unpacks a .tree file into a directory, and removes the unpacked files later. The file may
 * be hostile. Every path is resolved with the new directory as the root, and a link that the daemon may follow is
 * rewritten so that it cannot lead out of the new directory (take_link()).
 */

#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "replay/replay.h"
#include "util/strings.h"
#include "util/sysfs.h"
#include "util/tree.h"

#define CONFIG_SIZE 256

typedef struct Unpack {
        Sysfs *fs;  /* the new directory */
        char *dir;  /* path of the open directory, as in the .tree file; NULL: none */
        char *real; /* dir with its links resolved; NULL until a link needs it */
        int dir_fd; /* descriptor of dir */
} Unpack;

static void unpack_done(Unpack *u) {
        free(u->dir);
        free(u->real);
        cleanup_close(&u->dir_fd);
        (void) sysfs_free(u->fs);
}

static unsigned path_depth(const char *path) {
        unsigned depth = *path != '\0';

        for (; *path; path++)
                depth += *path == '/';
        return depth;
}

/* Returns -E2BIG if the real path of the directory is too long or too deep. Links can make it deeper than its path in
 * the .tree file. */
static int check_depth(const Sysfs *fs, const char *path) {
        _cleanup_free_ char *real = NULL;
        int r = sysfs_realpath(fs, path, &real);

        if (r < 0)
                return r;
        return strlen(real) > TREE_PATH_MAX || path_depth(real) > TREE_DEPTH_MAX ? -E2BIG : 0;
}

/* Makes a directory. Replaces a file, or the socket that stands for an unreadable one, but not a dangling link. */
static int make_dir_at(int parent_fd, const char *name) {
        struct stat st;

        if (mkdirat(parent_fd, name, 0700) >= 0)
                return 0;
        if (errno != EEXIST || fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) && !S_ISSOCK(st.st_mode))
                return -ENOTDIR;
        if (unlinkat(parent_fd, name, 0) < 0 || mkdirat(parent_fd, name, 0700) < 0)
                return -errno;
        return 0;
}

/* Opens a directory with O_PATH. Makes it and its parents if they are missing. */
static int open_dir(const Sysfs *fs, const char *path) {
        _cleanup_free_ char *above = NULL;
        _cleanup_close_ int parent_fd = -1;
        const char *slash = strrchr(path, '/');
        int fd = sysfs_open(fs, path, O_PATH | O_DIRECTORY), r;

        if (fd >= 0 || (fd != -ENOENT && fd != -ENOTDIR))
                return fd;
        above = strndup(path, slash ? (size_t) (slash - path) : 0);
        if (!above)
                return -ENOMEM;
        parent_fd = open_dir(fs, above);
        if (parent_fd < 0)
                return parent_fd;
        r = make_dir_at(parent_fd, slash ? slash + 1 : path);
        if (r < 0)
                return r;
        r = check_depth(fs, path);
        return r < 0 ? r : sysfs_open(fs, path, O_PATH | O_DIRECTORY);
}

static int enter_dir(Unpack *u, const char *path, size_t n) {
        _cleanup_free_ char *dir = NULL;
        int fd;

        if (u->dir && strlen(u->dir) == n && strncmp(u->dir, path, n) == 0)
                return 0;
        dir = strndup(path, n);
        if (!dir)
                return -ENOMEM;
        fd = open_dir(u->fs, dir);
        if (fd < 0)
                return fd;
        cleanup_close(&u->dir_fd);
        u->dir_fd = fd;
        free(u->dir);
        u->dir = TAKE_PTR(dir);
        free(TAKE_PTR(u->real));
        return 0;
}

/* Removes a file, a link or an empty directory from the open directory. Forgets u->dir: its path may go through the
 * removed link. */
static int clear_entry(Unpack *u, const char *name) {
        free(TAKE_PTR(u->dir));
        if (unlinkat(u->dir_fd, name, 0) >= 0 || errno == ENOENT)
                return 0;
        return unlinkat(u->dir_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int open_file(Unpack *u, const char *name, bool fresh) {
        const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
        int fd = openat(u->dir_fd, name, flags | (fresh ? O_EXCL : 0), 0600), r;

        if (fd >= 0)
                return fd;
        if (errno != EEXIST && errno != ELOOP && errno != EISDIR && errno != ENXIO)
                return -errno;
        r = clear_entry(u, name);
        if (r < 0)
                return r;
        fd = openat(u->dir_fd, name, flags | O_EXCL, 0600);
        return fd < 0 ? -errno : fd;
}

static int write_bytes(int fd, const char *bytes, size_t size, off_t at) {
        while (size > 0) {
                ssize_t n = pwrite(fd, bytes, size, at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                bytes += n;
                at += n;
                size -= (size_t) n;
        }
        return 0;
}

static int take_file(Unpack *u, const char *name, const TreeLine *line) {
        _cleanup_close_ int fd = open_file(u, name, line->item == TREE_FILE);
        struct stat st;

        if (fd < 0)
                return fd;
        if (line->item == TREE_CONFIG) {
                off_t size = line->offset + line->size > CONFIG_SIZE ? TREE_CONFIG_MAX : CONFIG_SIZE;

                if (fstat(fd, &st) < 0 || (st.st_size < size && ftruncate(fd, size) < 0))
                        return -errno;
        }
        return write_bytes(fd, line->value, line->size, line->offset);
}

static int take_directory(const Unpack *u, const char *path) {
        _cleanup_close_ int fd = open_dir(u->fs, path);

        return MIN(fd, 0);
}

/* Makes a socket in place of an unreadable file or directory: even root cannot open a socket, so the daemon finds it
 * unreadable, too. */
static int take_error(Unpack *u, const char *name) {
        int r = clear_entry(u, name);

        if (r < 0)
                return r;
        return mknodat(u->dir_fd, name, S_IFSOCK | 0600, 0) < 0 ? -errno : 0;
}

/* Resolves "." and ".." of a link's target. dir: the directory of the link. ".." of the root is the root. NULL when out
 * of memory. */
static char *resolve_target(const char *dir, const char *target) {
        char *path = malloc(strlen(dir) + strlen(target) + 2), *end;

        if (!path)
                return NULL;
        end = stpcpy(path, *target == '/' ? "" : dir);
        for (target += strspn(target, "/"); *target; target += strspn(target, "/")) {
                size_t n = strcspn(target, "/");

                if (n == 2 && strncmp(target, "..", 2) == 0) {
                        char *slash = memrchr(path, '/', (size_t) (end - path));

                        end = slash ? slash : path;
                } else if (n != 1 || *target != '.') {
                        if (end > path)
                                *end++ = '/';
                        end = mempcpy(end, target, n);
                }
                target += n;
        }
        *end = '\0';
        return path;
}

/* Returns the target of a relative link that lies in the directory "from" and points to the path "to". Both paths start
 * at the root. NULL when out of memory; the caller frees. */
static char *relative_path(const char *from, const char *to) {
        size_t up = 0;
        char *path, *at;

        for (;;) { /* skip the common leading components */
                size_t n = strcspn(from, "/"), m = strcspn(to, "/");

                if (n == 0 || n != m || strncmp(from, to, n) != 0)
                        break;
                from += n + (from[n] == '/');
                to += m + (to[m] == '/');
        }
        while (*from) {
                up++;
                from += strcspn(from, "/");
                from += *from == '/';
        }
        path = at = malloc(up * strlen("../") + strlen(to) + 2);
        if (!path)
                return NULL;
        for (size_t i = 0; i < up; i++)
                at = stpcpy(at, "../");
        at = stpcpy(at, to);
        if (at == path)
                at = stpcpy(at, ".");
        if (at[-1] == '/')
                at[-1] = '\0';
        return path;
}

static bool is_below_proc(const char *path) {
        return strncmp(path, "proc/", strlen("proc/")) == 0;
}

/*
 * Keeps two kinds of links unchanged: links in proc/, which are absolute and which the daemon reads but does not
 * follow, and links to /dev/null, which mask a configuration file. Makes every other link relative, so that it stays in
 * the new directory. Drops a link to the root, to proc/ or below proc/, because a path through it could follow a link
 * in proc/.
 */
static int take_link(Unpack *u, const char *path, const char *name, const char *target) {
        _cleanup_free_ char *to = NULL, *text = NULL;
        int r = u->real ? 0 : sysfs_realpath(u->fs, u->dir, &u->real);

        if (r < 0)
                return r;
        if ((is_below_proc(path) && (streq(u->real, "proc") || is_below_proc(u->real))) || streq(target, "/dev/null"))
                text = strdup(target);
        else {
                to = resolve_target(u->real, target);
                if (!to)
                        return -ENOMEM;
                if (!*to || streq(to, "proc") || is_below_proc(to))
                        return 0;
                text = relative_path(u->real, to);
        }
        if (!text)
                return -ENOMEM;
        if (symlinkat(text, u->dir_fd, name) >= 0)
                return 0;
        r = errno == EEXIST ? clear_entry(u, name) : -errno;
        if (r < 0)
                return r;
        return symlinkat(text, u->dir_fd, name) < 0 ? -errno : 0;
}

static int take_line(const TreeLine *line, void *userdata) {
        const char *slash = strrchr(line->path, '/'), *name = slash ? slash + 1 : line->path;
        Unpack *u = userdata;
        int r;

        if (line->item == TREE_DIRECTORY)
                return take_directory(u, line->path);
        r = enter_dir(u, line->path, slash ? (size_t) (slash - line->path) : 0);
        if (r < 0)
                return r;
        if (line->item == TREE_LINK)
                return take_link(u, line->path, name, line->value);
        return line->item == TREE_ERROR ? take_error(u, name) : take_file(u, name, line);
}

/* Unpacks a .tree file into the new directory dir. On failure *ret_problem (caller frees) is a sentence, or NULL. */
static int unpack_tree(const char *file, const char *dir, char **ret_problem) {
        _cleanup_(unpack_done) Unpack u = { .dir_fd = -1 };
        int r = sysfs_new(dir, &u.fs);

        if (r < 0)
                return r;
        return sysfs_is_confined(u.fs) ? tree_read(file, take_line, &u, ret_problem) : -EOPNOTSUPP;
}

#define OPEN_DIRECTORIES 16

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *walk) {
        (void) remove(path);
        return 0;
}

void tree_remove(const char *dir) {
        (void) nftw(dir, remove_entry, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
}

/* Returns the directory for unpacked files: $TMPDIR if it is an absolute path. Otherwise prefers a tmpfs: a large
 * machine has a hundred thousand files, which a tmpfs creates twenty times faster than a disk. */
static const char *top_directory(void) {
        const char *top = secure_getenv("TMPDIR");
        struct statfs st;

        if (top && *top == '/')
                return top;
        if (statfs("/dev/shm", &st) >= 0 && st.f_type == TMPFS_MAGIC && access("/dev/shm", W_OK | X_OK) >= 0)
                return "/dev/shm";
        return "/tmp";
}

int tree_unpack(const char *file, char **ret_dir, char **ret_problem) {
        _cleanup_free_ char *dir = string_format("%s/passthrough-XXXXXX", top_directory()), *problem = NULL;
        int r;

        if (!dir)
                return -ENOMEM;
        if (!mkdtemp(dir)) {
                r = -errno;
                *ret_problem = string_format("The temporary directory %s cannot be created: %s.", dir, strerror(-r));
                return r;
        }
        r = unpack_tree(file, dir, &problem);
        if (r < 0) {
                tree_remove(dir);
                *ret_problem = TAKE_PTR(problem) ?: string_format("%s cannot be unpacked: %s.", file, strerror(-r));
                return r;
        }
        *ret_dir = TAKE_PTR(dir);
        return 0;
}

/* Unpacks a .tree file. Blocks all signals first, because one that ends the process would leave the files behind. */
static int unpack_root(Root *root, const char *file, char **ret_problem) {
        sigset_t all;
        int r;

        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, &root->mask);
        r = tree_unpack(file, &root->dir, ret_problem);
        root->unpacked = r >= 0;
        if (r < 0)
                (void) sigprocmask(SIG_SETMASK, &root->mask, NULL);
        return r;
}

static int not_a_node(const char *node, const char *why, int error, char **ret_problem) {
        *ret_problem = string_format("%s is not a recorded node: %s.", node, why);
        return error;
}

static int try_dir(const Sysfs *fs, const char *path) {
        _cleanup_close_ int fd = sysfs_open(fs, path, O_PATH | O_DIRECTORY);

        return MIN(fd, 0);
}

/* Refuses a directory without sys/, and one with neither sys/devices nor sys/bus. Otherwise any directory would pass
 * for a machine without devices. Also refuses one whose sys/bus/pci/devices exists but cannot be opened. proc/ is not
 * required, because many recordings contain only sys/. */
static int check_node(const char *dir, const char *node, char **ret_problem) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        int r = sysfs_new_recorded(dir, &fs);

        if (r < 0)
                return not_a_node(node, strerror(-r), r, ret_problem);
        r = try_dir(fs, "sys");
        if (r < 0)
                return not_a_node(node, "there is no sys/ in it", r, ret_problem);
        r = try_dir(fs, "sys/devices");
        if (r < 0 && try_dir(fs, "sys/bus") < 0)
                return not_a_node(node, "there is neither sys/devices nor sys/bus in it", r, ret_problem);
        r = try_dir(fs, "sys/bus/pci/devices");
        if (r == 0 || r == -ENOENT)
                return 0;
        *ret_problem =
                string_format("The recorded node %s has no readable sys/bus/pci/devices: %s.", node, strerror(-r));
        return r;
}

int root_open(Root *root, const char *node, char **ret_problem) {
        struct stat st;
        int r;

        if (stat(node, &st) < 0) {
                r = -errno;
                *ret_problem = string_format("There is no recorded node %s: %s.", node, strerror(-r));
        } else if (S_ISDIR(st.st_mode))
                r = string_copy(&root->dir, node);
        else if (S_ISREG(st.st_mode))
                r = unpack_root(root, node, ret_problem);
        else
                r = not_a_node(node, "it is neither a .tree file (a regular file, not a pipe) nor a directory", -EINVAL,
                               ret_problem);
        return r < 0 ? r : check_node(root->dir, node, ret_problem);
}

void root_done(Root *root) {
        if (root->unpacked) {
                tree_remove(root->dir);
                (void) sigprocmask(SIG_SETMASK, &root->mask, NULL);
        }
        free(root->dir);
}

int root_read_cmdline(const char *root, char ret[static ROOT_CMDLINE_MAX]) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        int r = sysfs_new_recorded(root, &fs);

        if (r >= 0 && sysfs_read(fs, "proc/cmdline", ret, ROOT_CMDLINE_MAX) < 0)
                ret[0] = '\0';
        return r;
}
