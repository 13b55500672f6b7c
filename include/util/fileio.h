/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Whole files relative to a directory descriptor. Bounded, O_CLOEXEC, never follows a link in the last component when
 * writing. */

#include <stddef.h>
#include <sys/types.h>

/*
 * Reads at most max bytes into a fresh NUL-terminated buffer. -E2BIG when the file is longer, -EINVAL when it is no
 * regular file (a FIFO, a device), never waiting for one. ret_size may be NULL.
 */
int read_file_at(int dir_fd, const char *name, size_t max, char **ret, size_t *ret_size);
/* The same for a file that is open, with O_NONBLOCK so that a FIFO does not wait. */
int read_file_fd(int fd, size_t max, char **ret, size_t *ret_size);

/*
 * Calls take() for each line of a regular file that is open with O_NONBLOCK, without its newline, and closes fd. Takes
 * one line into memory at a time: files below /proc have no size that the program could know, and other users may make
 * them long. Ends with the first value of take() that is not 0, and returns it. -EINVAL when it is no regular file.
 */
int read_lines_fd(int fd, int (*take)(char *line, void *userdata), void *userdata);

/*
 * Makes name hold data, durably and all at once: temporary ".NAME.tmp" in the same directory, fsync, rename, fsync of
 * the directory. On failure name is what it was before and the temporary is gone, except when the very last step fails,
 * the fsync of the directory (a dying disk): then name is new, but may not survive a crash. name has no slash
 * (-EINVAL).
 */
int write_file_atomic_at(int dir_fd, const char *name, const char *data, size_t size);
/* The same; name never has another mode than that, whatever the umask. */
int write_file_atomic_mode_at(int dir_fd, const char *name, mode_t mode, const char *data, size_t size);

/* Removes the temporaries of such writes that a crash interrupted. Every other name stays. */
int remove_temporaries_at(int dir_fd);

/* Removes name and syncs the directory. A missing file is not an error. */
int remove_file_at(int dir_fd, const char *name);

/* Names in a directory, sorted, without "." and "..", at most max of them (-E2BIG). Free with free_names(). */
int list_dir_at(int dir_fd, const char *path, size_t max, char ***ret, size_t *ret_n);
char **free_names(char **names, size_t n);
