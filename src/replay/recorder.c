/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records a file, a link or a directory as an item of a .tree file. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "snapshot.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "util/tree.h"

bool record_exists(const Recorder *r, const char *directory, const char *name) {
        _cleanup_free_ char *path = string_format("%s/%s", directory, name);
        _cleanup_close_ int fd = path ? sysfs_open(r->fs, path, O_PATH) : -ENOMEM;

        return fd >= 0;
}

static char *clean_path(const Recorder *r, const char *path) {
        return r->clean_paths ? strdup(path) : identities_scrub_path(&r->identities, path);
}

int record_unreadable(Recorder *r, const char *path, int error) {
        _cleanup_free_ char *name = clean_path(r, path);

        if (!name)
                return -ENOMEM;
        tree_write_error(r->out, name, error);
        if (r->n_unreadable++ < UNREADABLE_SHOWN)
                (void) fprintf(r->unreadable, "#   %s: %s\n", QUOTABLE(name), strerror(-error));
        return 0;
}

int record_bytes(Recorder *r, const char *path, const char *data, size_t size) {
        _cleanup_free_ char *name = clean_path(r, path);

        if (!name)
                return -ENOMEM;
        tree_write_file(r->out, name, data, size);
        return 0;
}

typedef struct LineSink {
        const Recorder *r;
        RecordFilter filter;
        FILE *out;
} LineSink;

static int take_line(char *line, void *userdata) {
        const LineSink *sink = userdata;

        return sink->filter(sink->r, line, sink->out);
}

/* Reads a file through a filter, line by line: other users can make /proc/1/mountinfo too long to read whole. */
static int read_filtered(const Recorder *r, int fd, RecordFilter filter, char **ret, size_t *ret_size) {
        LineSink sink = { r, filter, open_memstream(ret, ret_size) };
        int e;

        if (!sink.out) {
                (void) close(fd);
                return -ENOMEM;
        }
        e = read_lines_fd(fd, take_line, &sink);
        return fclose(sink.out) == 0 ? MIN(e, 0) : -ENOMEM;
}

static int read_whole(int fd, char **ret, size_t *ret_size) {
        int e = read_file_fd(fd, RECORD_FILE_MAX, ret, ret_size);

        (void) close(fd);
        return e;
}

int record_descriptor(Recorder *r, int fd, const char *path) {
        RecordFilter filter = filter_of(path);
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int e = fd;

        if (fd >= 0)
                e = filter ? read_filtered(r, fd, filter, &text, &size) : read_whole(fd, &text, &size);
        if (e == -ENOMEM)
                return e;
        if (e == -ENOENT || e == -ENOTDIR || e == -ENODEV)
                return 0;
        return e < 0 ? record_unreadable(r, path, e) : record_bytes(r, path, text, size);
}

static int record_link(Recorder *r, const Entry *entry) {
        _cleanup_free_ char *from = NULL, *to = NULL;
        char target[TREE_TARGET_MAX + 1];
        ssize_t n = readlinkat(entry->dir_fd, entry->name, target, sizeof(target));

        if (n <= 0 || (size_t) n == sizeof(target))
                return 0; /* the link was removed meanwhile, or its target is too long for a .tree file */
        target[n] = '\0';
        from = clean_path(r, entry->path);
        to = identities_scrub_path(&r->identities, target);
        if (!from || !to)
                return -ENOMEM;
        tree_write_link(r->out, from, to);
        return 0;
}

static int record_directory(Recorder *r, const char *path) {
        _cleanup_free_ char *name = clean_path(r, path);

        if (!name)
                return -ENOMEM;
        tree_write_directory(r->out, name);
        return 0;
}

int record_entry(Recorder *r, const Entry *entry) {
        struct stat st;
        int fd;

        if (fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return record_descriptor(r, -errno, entry->path);
        if (S_ISLNK(st.st_mode))
                return record_link(r, entry);
        if (S_ISDIR(st.st_mode))
                return record_directory(r, entry->path);
        fd = openat(entry->dir_fd, entry->name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        return record_descriptor(r, fd < 0 ? -errno : fd, entry->path);
}
