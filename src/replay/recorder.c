/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records single files, links and directories in a .tree file. */

#include <errno.h>
#include <fcntl.h>

#include "snapshot.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "util/tree.h"

#define ENTRIES_MAX 65536U

/* Replaces MAC addresses in the interface names of a path or link target. NULL when out of memory. */
static char *scrub_path(const Recorder *r, const char *path) {
        return identities_scrub_path(&r->identities, path);
}

int record_unreadable(Recorder *r, const char *path, int error) {
        _cleanup_free_ char *name = scrub_path(r, path);

        if (!name)
                return -ENOMEM;
        tree_write_error(r->out, name, error);
        if (r->n_unreadable++ < UNREADABLE_SHOWN)
                (void) fprintf(r->unreadable, "#   %s: %s\n", QUOTABLE(name), strerror(-error));
        return 0;
}

int record_bytes(Recorder *r, const char *path, const char *data, size_t size) {
        _cleanup_free_ char *name = scrub_path(r, path);

        if (!name)
                return -ENOMEM;
        tree_write_file(r->out, name, data, size);
        return 0;
}

int record_directory(Recorder *r, const char *path) {
        _cleanup_free_ char *name = scrub_path(r, path);

        if (!name)
                return -ENOMEM;
        tree_write_directory(r->out, name);
        return 0;
}

int record_descriptor(Recorder *r, int fd, const char *path, RecordFilter filter) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int e = fd < 0 ? fd : read_file_fd(fd, RECORD_FILE_MAX, &text, &size);

        if (e == -ENOMEM)
                return e;
        if (e == -ENOENT || e == -ENOTDIR || e == -ENODEV)
                return 0;
        if (e < 0)
                return record_unreadable(r, path, e);
        if (filter) {
                text = filter(r, TAKE_PTR(text));
                if (!text)
                        return -ENOMEM;
                size = strlen(text);
        }
        return record_bytes(r, path, text, size);
}

int record_file(Recorder *r, const char *path, RecordFilter filter) {
        _cleanup_close_ int fd = sysfs_open(r->fs, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

        return record_descriptor(r, fd, path, filter);
}

static char *join(const char *path, const char *name) {
        char *joined;

        return asprintf(&joined, "%s/%s", path, name) < 0 ? NULL : joined;
}

int record_file_at(Recorder *r, int dir_fd, const char *path, const char *name, RecordFilter filter) {
        _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        int e = fd < 0 ? -errno : fd;
        _cleanup_free_ char *full = join(path, name);

        return full ? record_descriptor(r, e, full, filter) : -ENOMEM;
}

int record_link_at(Recorder *r, int dir_fd, const char *path, const char *name) {
        _cleanup_free_ char *full = NULL, *to = NULL, *from = NULL;
        char target[TREE_TARGET_MAX + 1];
        ssize_t n = readlinkat(dir_fd, name, target, sizeof(target));

        if (n <= 0 || (size_t) n == sizeof(target))
                return 0; /* not a link, or the target is too long for a .tree file */
        target[n] = '\0';
        full = join(path, name);
        from = full ? scrub_path(r, full) : NULL;
        to = scrub_path(r, target);
        if (!from || !to)
                return -ENOMEM;
        tree_write_link(r->out, from, to);
        return 0;
}

int record_list(Recorder *r, const char *path, int *ret_fd, char ***ret, size_t *ret_n) {
        int fd = sysfs_open(r->fs, path, O_RDONLY | O_DIRECTORY);
        int e = fd < 0 ? fd : list_dir_at(fd, ".", ENTRIES_MAX, ret, ret_n);

        *ret_fd = fd;
        if (e >= 0)
                return 0;
        *ret = NULL;
        *ret_n = 0;
        if (e == -ENOMEM || e == -ENOENT || e == -ENOTDIR || e == -ENODEV)
                return e == -ENOMEM ? e : 0;
        return record_unreadable(r, path, e);
}

int record_entries(Recorder *r, const char *dir, const char *prefix, int (*record)(Recorder *r, const Entry *entry)) {
        _cleanup_close_ int fd = -1;
        char **names;
        size_t n;
        int e = record_list(r, dir, &fd, &names, &n);

        for (size_t i = 0; i < n && e >= 0; i++) {
                _cleanup_free_ char *path = NULL;

                if (strncmp(names[i], prefix, strlen(prefix)) != 0)
                        continue;
                path = join(dir, names[i]);
                e = path ? record(r, &(Entry){ fd, dir, names[i], path }) : -ENOMEM;
        }
        (void) free_names(names, n);
        return e;
}

char *filter_digits(const Recorder *r, char *text) {
        identities_replace_digits(&r->identities, text);
        return text;
}
