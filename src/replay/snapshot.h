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
        FILE *unreadable; /* for the header: paths and errors of the first UNREADABLE_SHOWN unreadable files */
        size_t n_unreadable;
        bool own_mounts; /* /proc/1/mountinfo is unreadable; /proc/self/mountinfo was recorded instead */
} Recorder;

#define UNREADABLE_SHOWN 16U
#define RECORD_FILE_MAX  (16U * 1024U * 1024U)

/* Edits the contents of a file before they are recorded. Takes ownership of text. Returns the new text, which the
 * caller frees; NULL when out of memory. */
typedef char *(*RecordFilter)(const Recorder *r, char *text);

/* The record functions return 0 or -ENOMEM. filter may be NULL. */

/* Records the file that fd refers to under path. fd: a descriptor, or the negative errno of opening the file. */
int record_descriptor(Recorder *r, int fd, const char *path, RecordFilter filter);
int record_file(Recorder *r, const char *path, RecordFilter filter);
/* Record the file or link path/name. dir_fd is the directory path. A link is not followed. */
int record_file_at(Recorder *r, int dir_fd, const char *path, const char *name, RecordFilter filter);
int record_link_at(Recorder *r, int dir_fd, const char *path, const char *name);
int record_directory(Recorder *r, const char *path);
int record_unreadable(Recorder *r, const char *path, int error);
int record_bytes(Recorder *r, const char *path, const char *data, size_t size);

/* Lists a directory below the root, sorted. The list is empty if the directory is missing or unreadable; an unreadable
 * one is recorded. The caller closes *ret_fd and frees *ret with free_names(). */
int record_list(Recorder *r, const char *path, int *ret_fd, char ***ret, size_t *ret_n);

/* A directory entry; valid only during the call of record(). */
typedef struct Entry {
        int dir_fd;
        const char *dir, *name;
        const char *path; /* dir/name */
} Entry;
/* Calls record() for each entry whose name begins with prefix, sorted by name, until a call fails. 0 or -ENOMEM. */
int record_entries(Recorder *r, const char *dir, const char *prefix, int (*record)(Recorder *r, const Entry *entry));

/* A RecordFilter: replaces the hex digits of an identifier. */
char *filter_digits(const Recorder *r, char *text);

int record_pci(Recorder *r);     /* PCI functions and bridges, drivers, IOMMU groups */
int record_classes(Recorder *r); /* block devices and network interfaces with their lower devices, displays */
int record_host(Recorder *r);    /* CPUs, memory, mounts, swap, routes, command line */
int record_configuration(Recorder *r);
