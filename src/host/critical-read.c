/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the files, directories and links that show what the host uses. */

#include <errno.h>
#include <fcntl.h>

#include "critical-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

typedef struct Taker {
        const Critical *c;
        int (*take)(const Critical *c, char *line);
} Taker;

static int take_line(char *line, void *userdata) {
        const Taker *taker = userdata;

        return MIN(taker->take(taker->c, line), 0);
}

int critical_lines(const Critical *c, const char *path, bool optional, int (*take)(const Critical *, char *)) {
        Taker taker = { c, take };
        /* O_NONBLOCK: opening a FIFO would otherwise wait for a writer. */
        int fd = sysfs_open(c->fs, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
        int r = fd < 0 ? fd : read_lines_fd(fd, take_line, &taker);

        if (r >= 0 || r == -ENOMEM || (r == -ENOENT && optional))
                return r == -ENOENT ? 0 : r;
        /* A missing file that is not optional is an error too. */
        return string_replace(&c->inv->critical_error, "%s cannot be read (%s).", path, strerror(-r));
}

/* The file does not exist, its device was removed, or the name is too long to exist. */
static bool is_absent(int error) {
        return error == -ENOENT || error == -ENOTDIR || error == -ENODEV || error == -ENXIO || error == -ENAMETOOLONG;
}

int critical_unreadable(const Critical *c, const char *path, int error) {
        if (error == -ENOMEM)
                return error;
        if (is_absent(error) || c->inv->critical_error)
                return 0;
        return string_replace(&c->inv->critical_error, "%s cannot be read (%s).",
                              text_is_clean(path) ? path : QUOTABLE(path), strerror(-error));
}

int critical_list(const Critical *c, const char *path, char ***ret, size_t *ret_n) {
        _cleanup_close_ int fd = sysfs_open(c->fs, path, O_RDONLY | O_DIRECTORY);
        int r = fd < 0 ? fd : list_dir_at(fd, ".", CRITICAL_ENTRIES_MAX, ret, ret_n);

        if (r >= 0)
                return r;
        *ret = NULL;
        *ret_n = 0;
        return critical_unreadable(c, path, r);
}

int critical_each(const Critical *c, const char *path, int (*mark)(const Critical *c, const char *name)) {
        _cleanup_names_ char **names = NULL;
        size_t n;
        int r = critical_list(c, path, &names, &n);

        for (size_t i = 0; i < n && r >= 0; i++)
                r = mark(c, names[i]);
        return r;
}

/* dir: an existing directory, or "" for the root; rest: the pattern below it. */
static int walk_pattern(const Critical *c, const char *dir, const char *rest, CriticalTake take, const void *userdata) {
        const char *star = strchr(rest, '*'), *prefix = star;
        _cleanup_free_ char *parent = NULL;
        _cleanup_names_ char **names = NULL;
        size_t n;
        int r;

        while (prefix && prefix[-1] != '/')
                prefix--;
        parent = string_format("%s%.*s", dir, (int) (star ? (size_t) (prefix - 1 - rest) : strlen(rest)), rest);
        if (!parent)
                return -ENOMEM;
        if (!star)
                return take(c, parent, userdata);
        r = critical_list(c, parent, &names, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *path = NULL;

                if (strncmp(names[i], prefix, (size_t) (star - prefix)) != 0)
                        continue;
                path = string_format("%s/%s", parent, names[i]);
                r = path ? walk_pattern(c, path, star + 1, take, userdata) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return r;
}

int critical_walk(const Critical *c, const char *pattern, CriticalTake take, const void *userdata) {
        return walk_pattern(c, "", pattern, take, userdata);
}

int critical_realpath(const Critical *c, const char *path, char **ret) {
        int r;

        *ret = NULL;
        r = sysfs_realpath(c->fs, path, ret);
        return r < 0 ? critical_unreadable(c, path, r) : 0;
}

void critical_unescape(char *s) {
        char *to = s;

        for (const char *from = s; *from; to++) {
                if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
                    from[3] >= '0' && from[3] <= '7') {
                        *to = (char) ((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
                        from += 4;
                } else
                        *to = *from++;
        }
        *to = '\0';
}
