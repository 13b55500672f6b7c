/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads and writes files below a directory descriptor. Functions that return a whole file take a size limit.
 * Descriptors opened here are O_CLOEXEC. Writes never follow a symbolic link in the last component. */

#include <stddef.h>
#include <sys/types.h>

/* Reads a file of at most max bytes into a new NUL-terminated buffer, which the caller frees. ret_size may be NULL.
 * Returns 0 or a negative errno: -E2BIG the file is longer; -EISDIR it is a directory; -EINVAL it is a FIFO, a device
 * or another file that is not regular. Never blocks on such a file. */
int read_file_at(int dir_fd, const char *name, size_t max, char **ret, size_t *ret_size);
/* As read_file_at(), for an open file. The caller must open the file with O_NONBLOCK, because open(2) of a FIFO would
 * block without it. */
int read_file_fd(int fd, size_t max, char **ret, size_t *ret_size);

/*
 * Calls take() for each line of a regular file, without the newline, and closes fd. The caller must open fd with
 * O_NONBLOCK. Only one line at a time is in memory, because other users can make some files in /proc very long. Stops
 * when take() returns a value other than 0, and returns this value. Returns 0 at the end of file, or a negative errno:
 * -EISDIR or -EINVAL when fd is not a regular file.
 */
int read_lines_fd(int fd, int (*take)(char *line, void *userdata), void *userdata);

/* As read_file_fd(), for any descriptor, such as a pipe. Reads up to the end of file, and may block. */
int read_all_fd(int fd, size_t max, char **ret, size_t *ret_size);

/* Writes all of data, with further calls after a signal or a partial write. Returns 0 or a negative errno. */
int write_all_fd(int fd, const char *data, size_t size);

/*
 * Replaces the content of the file called name atomically and durably: writes ".NAME.tmp" in the same directory, calls
 * fsync(), renames the temporary file, and calls fsync() on the directory. On failure the file is unchanged and the
 * temporary file is removed. One exception: if only the fsync() of the directory fails (a failing disk), the file has
 * the new content but may lose it in a crash. name must not be empty or contain a slash (-EINVAL). dir_fd must be open
 * for reading: fsync() accepts neither O_PATH nor AT_FDCWD.
 */
int write_file_atomic_at(int dir_fd, const char *name, const char *data, size_t size);
/* As write_file_atomic_at(). The new file has this mode before data is written to it; the umask does not change the
 * mode. */
int write_file_atomic_mode_at(int dir_fd, const char *name, mode_t mode, const char *data, size_t size);

/* Creates a file without a name, for a later write_spare_file_at(). Creating a file ahead saves time: a file system may
 * search long for a free inode. A crash leaves nothing of the file behind. Returns a descriptor; -EOPNOTSUPP if the
 * file system has no files without a name; or another negative errno. */
int spare_file_at(int dir_fd);
/* Writes data to spare, calls fsync(), gives the file its name, and calls fsync() on the directory. dir_fd must be open
 * for reading. Takes ownership of spare. -EEXIST when the name is taken. On failure the new file has no name, except if
 * only the fsync() of the directory fails. */
int write_spare_file_at(int dir_fd, const char *name, int spare, const char *data, size_t size);

/* Connects a UNIX socket to the path. Returns 0 or a negative errno. */
int connect_unix(int fd, const char *path);

/* Removes the temporary files that a crash during write_file_atomic_at() left in the directory. Returns 0 or a negative
 * errno. */
int remove_temporaries_at(int dir_fd);

/* Removes the file called name, and calls fsync() on the directory. dir_fd must be open for reading. A missing file is
 * not an error. */
int remove_file_at(int dir_fd, const char *name);

/* Lists the names in a directory, sorted, without "." and "..". -E2BIG if there are more than max names. In *ret, NULL
 * follows the last name; *ret is NULL when there is no name. Free the list with free_names(), or mark the variable
 * _cleanup_names_. */
int list_dir_at(int dir_fd, const char *path, size_t max, char ***ret, size_t *ret_n);
char **free_names(char **names, size_t n);
/* Frees a list that ends with NULL. */
void cleanup_names(char ***names);
#define _cleanup_names_ __attribute__((cleanup(cleanup_names)))
