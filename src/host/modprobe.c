/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "host/modprobe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "plan/mlx4.h"
#include "util/fileio.h"
#include "util/strings.h"

#define FRAGMENT_MAX      65536U
/* The default directory, relative to the root. */
#define DIRECTORY         "etc/modprobe.d"
#define OPTIONS           "options mlx4_core "
#define OPTION_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789_=, "

int modprobe_open(const Sysfs *fs, const char *directory) {
        int fd;

        if (!directory)
                return sysfs_open(fs, DIRECTORY, O_RDONLY | O_DIRECTORY);
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int modprobe_path(const Sysfs *fs, const char *directory, char **ret) {
        return directory ? string_replace(ret, "%s/" MODPROBE_FRAGMENT, directory)
                         : string_replace(ret, "%s/" DIRECTORY "/" MODPROBE_FRAGMENT, sysfs_root(fs));
}

/* Reads the fragment; *ret is NULL when there is none. -EEXIST: the daemon did not write the file, or the file is too
 * long, or it is no regular file but, for example, a link to /dev/null that masks the name. */
static int read_fragment(int dir_fd, char **ret) {
        _cleanup_close_ int fd =
                openat(dir_fd, MODPROBE_FRAGMENT, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        _cleanup_free_ char *text = NULL;
        int r = fd < 0 ? -errno : read_file_fd(fd, FRAGMENT_MAX, &text, NULL);

        if (r == -ENOENT) {
                *ret = NULL;
                return 0;
        }
        if (r == -ELOOP || r == -EINVAL || r == -EISDIR || r == -E2BIG || r == -ENXIO)
                return -EEXIST;
        if (r < 0)
                return r;
        if (strncmp(text, MLX4_MARK, strlen(MLX4_MARK)) != 0)
                return -EEXIST;
        *ret = TAKE_PTR(text);
        return 0;
}

/* Returns true when the text has only comments and options of mlx4_core. Some other commands of modprobe.d(5), such as
 * "install" and "remove", would run a program as root. */
static bool has_only_options(const char *text) {
        while (*text) {
                size_t n = strcspn(text, "\n"), prefix = strlen(OPTIONS);
                bool is_option =
                        strncmp(text, OPTIONS, prefix) == 0 && strspn(text + prefix, OPTION_CHARACTERS) == n - prefix;

                if ((*text != '#' && !is_option) || text[n] != '\n')
                        return false;
                text += n + 1;
        }
        return true;
}

int modprobe_differs(int dir_fd, const char *text) {
        _cleanup_free_ char *before = NULL;
        int r = read_fragment(dir_fd, &before);

        if (r == -EEXIST && !text)
                return 0;
        return r < 0 ? r : !streq_ptr(before, text);
}

int modprobe_set(int dir_fd, const char *text) {
        int r = modprobe_differs(dir_fd, text);

        if (r <= 0)
                return r;
        if (text && !has_only_options(text))
                return -EINVAL;
        /* All users may read the fragment, like other files in modprobe.d: any user may run "modprobe --showconfig". */
        r = text ? write_file_atomic_mode_at(dir_fd, MODPROBE_FRAGMENT, 0644, text, strlen(text))
                 : remove_file_at(dir_fd, MODPROBE_FRAGMENT);
        return r < 0 ? r : 1;
}
