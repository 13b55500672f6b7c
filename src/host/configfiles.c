/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the configuration files, applies the precedence of drop-ins, and reads the files. */

#include "host/configfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "util/fileio.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/owner.h"
#include "util/strings.h"
#include "util/sysfs.h"

#define NULL_FILE   "/dev/null"
#define ENTRIES_MAX 65536U /* the most entries of a directory, drop-ins or not */

const char *const config_directories[CONFIG_DIRECTORIES] = { "/etc", "/run", "/usr/local/lib", "/usr/lib" };

typedef struct Dropin {
        const char *name; /* file name: the last component of path */
        char *path;
} Dropin;

typedef struct Loader {
        const Sysfs *fs; /* paths are below this root; NULL: they are paths of this process */
        bool owned;      /* refuse files that other users can change: argument of config_files_load() */
        Config *config;
        Dropin *dropins;
        size_t n_dropins;
} Loader;

static void loader_done(Loader *l) {
        for (size_t i = 0; i < l->n_dropins; i++)
                free(l->dropins[i].path);
        free(l->dropins);
}

static int open_path(const Sysfs *fs, const char *path, int flags) {
        int fd;

        if (fs)
                return sysfs_open(fs, path, flags);
        fd = open(path, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Returns true when the path is a link to /dev/null. Only the text of the link counts: a recording has no /dev/null. */
static bool is_masked(const Sysfs *fs, const char *path) {
        _cleanup_close_ int fd = open_path(fs, path, O_PATH | O_NOFOLLOW);
        char target[sizeof(NULL_FILE) + 1];
        ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", target, sizeof(target));

        return n == (ssize_t) strlen(NULL_FILE) && memcmp(target, NULL_FILE, (size_t) n) == 0;
}

/* Returns true when nothing is at the path. Returns false for a dangling link, because the admin meant a file. */
static bool is_absent(const Sysfs *fs, const char *path) {
        _cleanup_close_ int fd = open_path(fs, path, O_PATH | O_NOFOLLOW);

        return fd == -ENOENT;
}

static bool is_null_device(int fd) {
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static int read_failed(Config *c, const char *path, int error) {
        switch (error) {
        case -EINVAL:
                return config_read_failed(c, path, "it is not a regular file",
                                          "Replace it by a file, then reload the configuration.");
        case -E2BIG:
                return config_read_failed(c, path, "it is too large, the limit is 1 MiB",
                                          "Shorten it, then reload the configuration.");
        case -ENOENT:
                return config_read_failed(c, path, "it is a dangling link",
                                          "Correct or remove the link, then reload the configuration.");
        default:
                return config_read_failed(c, path, strerror(-error),
                                          "Make it readable for the daemon, then reload the configuration.");
        }
}

int config_file_read(const Sysfs *fs, const char *path, char **ret, size_t *ret_size) {
        _cleanup_close_ int fd = -1;
        bool masked = is_masked(fs, path);
        int r;

        if (!masked) {
                fd = open_path(fs, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
                if (fd == -ENOENT && is_absent(fs, path))
                        return 0;
                if (fd < 0)
                        return fd;
                masked = is_null_device(fd);
        }
        if (!masked) {
                r = read_file_fd(fd, CONFIG_TEXT_MAX, ret, ret_size);
                return r < 0 ? r : 1;
        }
        *ret = strdup("");
        *ret_size = 0;
        return *ret ? 1 : -ENOMEM;
}

/*
 * Returns 1 when another user can change the file or directory, and adds that to the problems of the configuration.
 * Returns 0 when no other user can change it, when l->owned is not set, or when this cannot be determined. Also returns
 * 0 when the path does not exist, even if a directory above it, such as /run/passthroughd, belongs to another user.
 * Otherwise returns -ENOMEM.
 */
static int refuse_foreign(Loader *l, const char *path) {
        _cleanup_free_ char *owner = NULL, *why = NULL;
        int r = l->owned && !is_absent(l->fs, path) ? path_check_owner(path, &owner) : 0;

        if (r != -EPERM)
                return r == -ENOMEM ? r : 0;
        why = string_format("other users than root can change it, as %s; use chown root and chmod go-w", owner);
        r = why ? config_read_failed(l->config, path, why, "Correct its owner and mode, then reload the configuration.")
                : -ENOMEM;
        return r < 0 ? r : 1;
}

/* Returns 1 when the file exists, readable or not; 0 when it does not exist; or -ENOMEM. */
static int read_config_file(Loader *l, const char *path) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = refuse_foreign(l, path);

        if (r == 0)
                r = config_file_read(l->fs, path, &text, &size);
        else if (r > 0)
                return r;
        if (r == 0 || r == -ENOMEM)
                return r;
        r = r < 0 ? read_failed(l->config, path, r) : config_read_text(l->config, path, text, size);
        return r < 0 ? r : 1;
}

/* As in systemd, hidden files and files with other suffixes are no drop-ins. */
static bool is_dropin(const char *name) {
        size_t len = strlen(name);

        return name[0] != '.' && len > strlen(".conf") && streq(name + len - strlen(".conf"), ".conf");
}

/* CONFIG_DROPINS_MAX limits the drop-ins, ENTRIES_MAX all files of the directory. */
int config_dropins_list(const Sysfs *fs, const char *directory, char ***ret, size_t *ret_n) {
        _cleanup_close_ int fd = open_path(fs, directory, O_RDONLY | O_DIRECTORY);
        _cleanup_names_ char **names = NULL;
        size_t n = 0, kept = 0;
        int r = fd < 0 ? fd : list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);

        *ret = NULL;
        *ret_n = 0;
        if (r < 0)
                return r == -ENOENT && is_absent(fs, directory) ? 0 : r;
        for (size_t i = 0; i < n; i++)
                if (is_dropin(names[i]))
                        names[kept++] = names[i];
                else
                        free(names[i]);
        if (n > 0)
                names[kept] = NULL;
        if (kept > CONFIG_DROPINS_MAX)
                return -E2BIG;
        *ret = TAKE_PTR(names);
        *ret_n = kept;
        return 0;
}

static bool has_dropin(const Loader *l, const char *name) {
        for (size_t i = 0; i < l->n_dropins; i++)
                if (streq(l->dropins[i].name, name))
                        return true;
        return false;
}

static int add_dropin(Loader *l, const char *directory, const char *name) {
        Dropin d = { 0 };

        /* The name appears in messages, which are sent over D-Bus. */
        if (!text_is_clean(name))
                return config_read_failed(l->config, directory,
                                          "it has a file name that is not UTF-8 or has control characters",
                                          "Rename that file, then reload the configuration.");
        if (ARRAY_RESERVE(l->dropins, l->n_dropins) < 0 || string_replace(&d.path, "%s/%s", directory, name) < 0)
                return -ENOMEM;
        d.name = d.path + strlen(directory) + 1;
        l->dropins[l->n_dropins++] = d;
        return 0;
}

/* Finds the drop-ins of a directory. Call it for the directories from the highest priority to the lowest: the first
 * drop-in of a name hides later ones. */
static int find_dropins(Loader *l, const char *directory) {
        _cleanup_names_ char **names = NULL;
        size_t n;
        int r = refuse_foreign(l, directory);

        if (r != 0)
                return MIN(r, 0);
        r = config_dropins_list(l->fs, directory, &names, &n);
        if (r == -ENOMEM)
                return r;
        if (r == -E2BIG)
                return config_read_failed(l->config, directory, "it has too many files, the limit is 256 named *.conf",
                                          "Remove files from it, then reload the configuration.");
        if (r < 0)
                return read_failed(l->config, directory, r);
        for (size_t i = 0; r == 0 && i < n; i++)
                if (!has_dropin(l, names[i]))
                        r = add_dropin(l, directory, names[i]);
        return r;
}

static int compare_dropins(const void *a, const void *b) {
        return strcmp(((const Dropin *) a)->name, ((const Dropin *) b)->name);
}

static int read_dropins(Loader *l) {
        int r = 0;

        if (l->n_dropins > 0)
                qsort(l->dropins, l->n_dropins, sizeof(*l->dropins), compare_dropins);
        for (size_t i = 0; r >= 0 && i < l->n_dropins; i++)
                r = read_config_file(l, l->dropins[i].path);
        return r < 0 ? r : 0;
}

static int load_searched(Loader *l) {
        bool found = false;
        int r = 0;

        for (size_t i = 0; i < CONFIG_DIRECTORIES; i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "%s/" CONFIG_MAIN_FILE, config_directories[i]);
                if (!found) {
                        r = read_config_file(l, path);
                        found = r > 0;
                }
                (void) snprintf(path, sizeof(path), "%s/" CONFIG_MAIN_FILE ".d", config_directories[i]);
                if (r < 0)
                        return r;
                r = find_dropins(l, path);
                if (r < 0)
                        return r;
        }
        return read_dropins(l);
}

static int load_named(Loader *l, const char *file) {
        _cleanup_free_ char *directory = NULL;
        int r = string_replace(&directory, "%s.d", file);

        if (r < 0)
                return r;
        r = read_config_file(l, file);
        if (r < 0)
                return r;
        r = find_dropins(l, directory);
        return r < 0 ? r : read_dropins(l);
}

void config_log_problems(const Config *c) {
        static const LogFields fields = { .id = MESSAGE_CONFIG_LINE };

        for (size_t i = 0; i < c->n_problems; i++) {
                _cleanup_free_ char *text = NULL;

                if (config_problem_format(&c->problems[i], &text) >= 0)
                        log_full(LOG_WARNING, 0, &fields, "%s", text);
        }
        if (c->block_reason)
                log_full(LOG_ERR, 0, (&(LogFields) { .id = MESSAGE_NONE_OFFERED }), "%s", c->block_reason);
}

int config_files_load(const char *root, const char *file, bool owned, Config **ret) {
        _cleanup_(cleanup_config_free) Config *config = config_new();
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        _cleanup_(loader_done) Loader loader = { .owned = owned, .config = config };
        int r = 0;

        if (!config)
                return -ENOMEM;
        if (!file) {
                r = sysfs_new(*root ? root : "/", &fs);
                loader.fs = fs;
        }
        if (r < 0)
                return r;
        r = file ? load_named(&loader, file) : load_searched(&loader);
        if (r < 0)
                return r;
        r = config_finish(config);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(config);
        return 0;
}
