/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The one seam between the program and the machine: every fact is read, and every effect written, below one root
 * directory that holds sys/, proc/ and dev/. On a real node the root is "/". Links are resolved inside the root, never
 * out of it.
 */

#include "util/cleanup.h"

/* A sysfs attribute is at most one page (kernel Documentation/filesystems/sysfs.rst). */
#define SYSFS_ATTRIBUTE_MAX 4096

typedef struct Sysfs Sysfs;

/* root: a directory path. *ret is owned by the caller. */
int sysfs_new(const char *root, Sysfs **ret);
Sysfs *sysfs_free(Sysfs *fs);
DEFINE_CLEANUP(Sysfs *, sysfs_free)

/* The path given to sysfs_new(), without a trailing slash; "" for "/". For libraries that want a path (libpci). */
const char *sysfs_root(const Sysfs *fs);

/* Whether links are resolved inside the root whatever they say: not on kernels before 5.6. */
bool sysfs_is_confined(const Sysfs *fs);

/* Opens a file or directory below the root, O_CLOEXEC added. Returns the descriptor or negative errno. */
int sysfs_open(const Sysfs *fs, const char *path, int flags);

/*
 * Reads an attribute below dir_fd into buf, without its trailing newline, NUL-terminated. Returns the length or
 * negative errno
 * (-ENOENT absent, -E2BIG when it does not fit with its NUL). One read(2), as an attribute needs; with a buffer larger
 * than SYSFS_ATTRIBUTE_MAX until the end, as longer files below proc/ need. name itself may not be a link (-ELOOP).
 */
int sysfs_read_at(int dir_fd, const char *name, char *buf, size_t size);

/* As sysfs_read_at(), for a path below the root. */
int sysfs_read(const Sysfs *fs, const char *path, char *buf, size_t size);

/* Writes value in one write(2), as the kernel wants it; logs it at debug level. 0 or the kernel's errno, negative. */
int sysfs_write(const Sysfs *fs, const char *path, const char *value);

/*
 * The last component of a link's target ("vfio-pci" of driver -> ../../bus/pci/drivers/vfio-pci), in buf.
 * -ENOENT absent, -EINVAL not a link.
 */
int sysfs_link_name_at(int dir_fd, const char *name, char *buf, size_t size);
int sysfs_link_name(const Sysfs *fs, const char *path, char *buf, size_t size);

/* The canonical path below the root ("sys/devices/pci0000:00/...") of anything, all links followed. */
int sysfs_realpath(const Sysfs *fs, const char *path, char **ret);
