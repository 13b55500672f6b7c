/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Records the parts of a machine in a .tree file. A missing file is not recorded. An unreadable file is recorded with
 * its error, and counted. */

#include <stdio.h>

#include "identity.h"
#include "util/sysfs.h"

typedef struct Recorder {
        const Sysfs *fs;
        Identities identities;
        FILE *out;
        FILE *unreadable; /* text for the header: paths and errors of the first UNREADABLE_SHOWN unreadable files */
        size_t n_unreadable;
        bool clean_paths; /* names in paths are replaced already; replaced twice, they would differ from those in other
                             files */
        bool own_mounts;  /* /proc/1/mountinfo is unreadable; /proc/self/mountinfo was recorded instead */
} Recorder;

#define UNREADABLE_SHOWN 16U
#define RECORD_FILE_MAX  (16U * 1024U * 1024U)

/* The line of udev's data about a block device that is a member of a ZFS pool. */
#define UDEV_ZFS_MEMBER "E:ID_FS_TYPE=zfs_member"

/* Writes what is to be recorded of a line, with a newline, to out; nothing if the line is dropped. May modify line.
 * Returns 0; 1 to drop the rest of the file; or -ENOMEM. */
typedef int (*RecordFilter)(const Recorder *r, char *line, FILE *out);

/* A directory entry. */
typedef struct Entry {
        int dir_fd;
        const char *dir, *name;
        const char *path; /* dir and name as one path; dir if name is "."; with clean_paths, the path to record */
} Entry;

/* Returns the filter for a file with more data than the daemon needs. NULL: the file is recorded whole. */
RecordFilter filter_of(const char *path);

bool record_exists(const Recorder *r, const char *directory, const char *name);

/* The functions below return 0 or -ENOMEM. */

/* Records a file, a link (not the file to which it points), or a directory (not its contents). */
int record_entry(Recorder *r, const Entry *entry);
/* Records the content of the file fd, through filter_of(path), as the file `path`. Closes fd. fd: opened with
 * O_NONBLOCK, or the negative errno of opening the file; -ENOENT, -ENOTDIR and -ENODEV count as a missing file. */
int record_descriptor(Recorder *r, int fd, const char *path);
int record_unreadable(Recorder *r, const char *path, int error);
int record_bytes(Recorder *r, const char *path, const char *data, size_t size); /* as a file, without a filter */

int record_parts(Recorder *r); /* all files but those of the configuration */
int record_configuration(Recorder *r);
