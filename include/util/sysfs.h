/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Access to the files of the machine in sys/, proc/, dev/, etc/ and run/, all below one root directory. On a real node
 * the root is "/". Symbolic links are resolved inside the root if sysfs_is_confined(). Netlink, udev and D-Bus do not
 * use the root. */

#include "util/cleanup.h"

/* A sysfs attribute is at most one page (kernel Documentation/filesystems/sysfs.rst). */
#define SYSFS_ATTRIBUTE_MAX 4096

typedef struct Sysfs Sysfs;

/* Opens the root directory at the path root. The caller owns *ret. Returns 0 or a negative errno. */
int sysfs_new(const char *root, Sysfs **ret);
/* As sysfs_new(), for a recorded machine. Opening and reading a file below the root never block, because a user owns
 * the directory and may have replaced an attribute by a FIFO or a terminal. */
int sysfs_new_recorded(const char *root, Sysfs **ret);
/* Opens the root of fs again, for a child process that has closed all descriptors that it inherited. */
int sysfs_reopen(const Sysfs *fs, Sysfs **ret);
Sysfs *sysfs_free(Sysfs *fs);
DEFINE_CLEANUP(Sysfs *, sysfs_free)

/* Returns the path given to sysfs_new(), without trailing slashes; "" for "/". For libraries that need a path, such as
 * libpci. */
const char *sysfs_root(const Sysfs *fs);

/* Returns true when symbolic links cannot lead out of the root; false without openat2(), which Linux has since 5.6 and
 * a seccomp filter may forbid. */
bool sysfs_is_confined(const Sysfs *fs);

bool sysfs_is_recorded(const Sysfs *fs);

/* Opens a file or directory below the root; O_CLOEXEC is added to flags. If the user of this process may not open a
 * sysfs attribute and the process has CAP_CHOWN, first makes this user the owner of the attribute. Returns the
 * descriptor or a negative errno. */
int sysfs_open(const Sysfs *fs, const char *path, int flags);

/*
 * Reads the attribute called name in dir_fd, a directory of fs, into buf, NUL-terminated, without its trailing newline.
 * Returns the length or a negative errno: -ENOENT the attribute is missing, -E2BIG it does not fit into buf, -ELOOP
 * name is a symbolic link. Calls read(2) once, as attributes require; with a buffer larger than SYSFS_ATTRIBUTE_MAX it
 * reads to the end of file, for longer files in proc/.
 */
int sysfs_read_at(const Sysfs *fs, int dir_fd, const char *name, char *buf, size_t size);

/* As sysfs_read_at(), for a path below the root. Follows links. */
int sysfs_read(const Sysfs *fs, const char *path, char *buf, size_t size);

/* Writes value with one write(2), as attributes require. Returns 0 or a negative errno, for example the kernel's error
 * for the write. */
int sysfs_write(const Sysfs *fs, const char *path, const char *value);

/* Writes value unless the attribute has this value already, and reads the attribute again. Returns 1: changed; 0: had
 * the value already; -EIO: the attribute has another value after the write; or another negative errno. */
int sysfs_set(const Sysfs *fs, const char *path, const char *value);

/* Copies the last component of a symbolic link's target to buf: "vfio-pci" for the link driver ->
 * ../../bus/pci/drivers/vfio-pci. Returns 0 or a negative errno: -ENOENT there is no such file, -EINVAL it is not a
 * link. */
int sysfs_link_name_at(int dir_fd, const char *name, char *buf, size_t size);
int sysfs_link_name(const Sysfs *fs, const char *path, char *buf, size_t size);

/* Resolves all links in path: *ret is the canonical path below the root, "sys/devices/pci0000:00/...". The caller frees
 * *ret. Returns 0 or a negative errno. */
int sysfs_realpath(const Sysfs *fs, const char *path, char **ret);
