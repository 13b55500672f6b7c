/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "util/cleanup.h"
#include "util/fileio.h"
#include "util/strings.h"

static void cleanup_dir(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

#define TEMPORARY_SUFFIX ".tmp"

/* Reads until the end of file, and does not ask fstat() for the size, because files in /proc report a size of 0. */
int read_all_fd(int fd, size_t max, char **ret, size_t *ret_size) {
        _cleanup_free_ char *buf = NULL;
        size_t capacity = MIN(max, (size_t) 4096), used = 0;

        for (;;) {
                char *bigger = realloc(buf, capacity + 2); /* one byte to detect a file over max, one for the NUL */
                ssize_t n;

                if (!bigger)
                        return -ENOMEM;
                buf = bigger;

                n = read(fd, buf + used, capacity + 1 - used);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                used += (size_t) n;
                if (used > max)
                        return -E2BIG;
                if (used > capacity)
                        capacity = MIN(max, capacity * 2);
        }

        buf[used] = 0;
        *ret = TAKE_PTR(buf);
        if (ret_size)
                *ret_size = used;
        return 0;
}

int read_file_at(int dir_fd, const char *name, size_t max, char **ret, size_t *ret_size) {
        /* Without O_NONBLOCK, opening a FIFO would wait for a writer. */
        _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

        return fd < 0 ? -errno : read_file_fd(fd, max, ret, ret_size);
}

static int check_regular(int fd) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
        return 0;
}

int read_file_fd(int fd, size_t max, char **ret, size_t *ret_size) {
        int r = check_regular(fd);

        return r < 0 ? r : read_all_fd(fd, max, ret, ret_size);
}

static void cleanup_file(FILE **f) {
        if (*f)
                (void) fclose(*f);
}

int read_lines_fd(int fd, int (*take)(char *line, void *userdata), void *userdata) {
        _cleanup_close_ int owned = fd;
        _cleanup_(cleanup_file) FILE *f = NULL;
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        ssize_t n;
        int r = check_regular(fd);

        if (r < 0)
                return r;
        f = fdopen(fd, "r");
        if (!f)
                return -errno;
        (void) TAKE_FD(owned);
        while ((errno = 0, n = getline(&line, &size, f)) >= 0) {
                if (n > 0 && line[n - 1] == '\n')
                        line[n - 1] = '\0';
                r = take(line, userdata);
                if (r != 0)
                        return r;
        }
        return feof(f) ? 0 : -errno;
}

int write_all_fd(int fd, const char *data, size_t size) {
        while (size > 0) {
                ssize_t n = write(fd, data, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data += n;
                size -= (size_t) n;
        }
        return 0;
}

static int write_synced(int fd, const char *data, size_t size) {
        int r = write_all_fd(fd, data, size);

        return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

/* Writes data to a new file with the name in `temporary`. mode NULL: 0644 less the umask. Returns 0 or a negative
 * errno. */
static int write_temporary(int dir_fd, const char *temporary, const mode_t *mode, const char *data, size_t size) {
        _cleanup_close_ int fd = -1;

        /* O_EXCL refuses an existing file or symbolic link, which may lead to another user's file. */
        fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        /* A crash may have left a temporary file. Remove it and try again. */
        if (fd < 0 && errno == EEXIST && unlinkat(dir_fd, temporary, 0) >= 0)
                fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0 || (mode && fchmod(fd, *mode) < 0))
                return -errno;
        return write_synced(fd, data, size);
}

static int write_atomic(int dir_fd, const char *name, const mode_t *mode, const char *data, size_t size) {
        _cleanup_free_ char *temporary = NULL;
        int r;

        if (!*name || strchr(name, '/'))
                return -EINVAL;
        if (asprintf(&temporary, ".%s" TEMPORARY_SUFFIX, name) < 0) {
                temporary = NULL;
                return -ENOMEM;
        }
        r = write_temporary(dir_fd, temporary, mode, data, size);
        if (r >= 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
                r = -errno;
        if (r < 0) {
                (void) unlinkat(dir_fd, temporary, 0);
                return r;
        }
        return fsync(dir_fd) < 0 ? -errno : 0;
}

int write_file_atomic_at(int dir_fd, const char *name, const char *data, size_t size) {
        return write_atomic(dir_fd, name, NULL, data, size);
}

int write_file_atomic_mode_at(int dir_fd, const char *name, mode_t mode, const char *data, size_t size) {
        return write_atomic(dir_fd, name, &mode, data, size);
}

int spare_file_at(int dir_fd) {
        int fd = openat(dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);

        return fd < 0 ? -errno : fd;
}

int write_spare_file_at(int dir_fd, const char *name, int spare, const char *data, size_t size) {
        _cleanup_close_ int fd = spare;
        char path[sizeof("/proc/self/fd/-2147483648")];
        int r = write_synced(fd, data, size);

        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW) < 0 || fsync(dir_fd) < 0)
                return -errno;
        return 0;
}

int remove_file_at(int dir_fd, const char *name) {
        if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
                return -errno;
        /* Call fsync() even if the file is missing: an earlier call may have removed the file and failed before its
         * fsync(). */
        return fsync(dir_fd) < 0 ? -errno : 0;
}

static DIR *open_stream(int dir_fd, const char *path) {
        int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

        if (!d && fd >= 0)
                (void) close(fd);
        return d;
}

static bool is_temporary(const char *name) {
        size_t n = strlen(name), suffix = strlen(TEMPORARY_SUFFIX);

        return name[0] == '.' && n > suffix && streq(name + n - suffix, TEMPORARY_SUFFIX);
}

int remove_temporaries_at(int dir_fd) {
        _cleanup_(cleanup_dir) DIR *d = open_stream(dir_fd, ".");
        const struct dirent *entry;
        int r = 0;

        if (!d)
                return -errno;
        while (errno = 0, (entry = readdir(d)))
                if (is_temporary(entry->d_name) && unlinkat(dir_fd, entry->d_name, 0) < 0)
                        r = -errno;
        return errno != 0 ? -errno : r;
}

char **free_names(char **names, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(names[i]);
        free(names);
        return NULL;
}

void cleanup_names(char ***names) {
        for (char **name = *names; name && *name; name++)
                free(*name);
        free(*names);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static int collect_names(DIR *d, size_t max, char ***names, size_t *n) {
        struct dirent *entry;

        for (;;) {
                errno = 0;
                entry = readdir(d);
                if (!entry)
                        return -errno;
                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;

                if (*n >= max)
                        return -E2BIG;
                if (ARRAY_RESERVE(*names, *n) < 0)
                        return -ENOMEM;
                (*names)[*n] = strdup(entry->d_name);
                if (!(*names)[*n])
                        return -ENOMEM;
                if (ARRAY_RESERVE(*names, ++*n) < 0)
                        return -ENOMEM;
                (*names)[*n] = NULL;
        }
}

int list_dir_at(int dir_fd, const char *path, size_t max, char ***ret, size_t *ret_n) {
        _cleanup_(cleanup_dir) DIR *d = open_stream(dir_fd, path);
        char **names = NULL;
        size_t n = 0;
        int r;

        if (!d)
                return -errno;

        r = collect_names(d, max, &names, &n);
        if (r < 0) {
                (void) free_names(names, n);
                return r;
        }
        /* Sort the names, because readdir() returns them in no defined order. */
        if (n > 0)
                qsort(names, n, sizeof(*names), compare_names);

        *ret = names;
        *ret_n = n;
        return 0;
}

int connect_unix(int fd, const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);
        return TEMP_FAILURE_RETRY(connect(fd, (const struct sockaddr *) &address, sizeof(address))) < 0 ? -errno : 0;
}
