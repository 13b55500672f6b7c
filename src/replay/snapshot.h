/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Recording, part by part. What is absent is not recorded, what cannot be read is recorded as that and counted. */

#include <stdio.h>

#include "identity.h"
#include "util/sysfs.h"

typedef struct Recorder {
        const Sysfs *fs;
        Identities identities;
        FILE *out;
        FILE *unreadable; /* paths and why, for the header: the first UNREADABLE_SHOWN */
        size_t n_unreadable;
        bool own_mounts; /* those of process 1 may not be looked at */
} Recorder;

#define UNREADABLE_SHOWN 16U
#define RECORD_FILE_MAX  (16U * 1024U * 1024U)

/* A file by an open descriptor or negative errno, under path. 0, or -ENOMEM. */
typedef char *(*RecordFilter)(const Recorder *r, char *text); /* takes text, returns what to write; NULL: no memory */
int record_descriptor(Recorder *r, int fd, const char *path, RecordFilter filter);
int record_file(Recorder *r, const char *path, RecordFilter filter);
/* name in dir_fd, which is path: not through a link. */
int record_file_at(Recorder *r, int dir_fd, const char *path, const char *name, RecordFilter filter);
int record_link_at(Recorder *r, int dir_fd, const char *path, const char *name);
int record_directory(Recorder *r, const char *path);
int record_unreadable(Recorder *r, const char *path, int error);
int record_bytes(Recorder *r, const char *path, const char *data, size_t size);

/* Names in a directory below the root, sorted; none when it is not there, or cannot be read, which is recorded. */
int record_list(Recorder *r, const char *path, int *ret_fd, char ***ret, size_t *ret_n);

/* An entry of a directory, while record() below has it. */
typedef struct Entry {
        int dir_fd;
        const char *dir, *name;
        const char *path; /* dir/name */
} Entry;
/* Calls record() for each whose name begins with prefix, in the order of the names, until it fails. 0, or -ENOMEM. */
int record_entries(Recorder *r, const char *dir, const char *prefix, int (*record)(Recorder *r, const Entry *entry));

/* A filter. */
char *filter_digits(const Recorder *r, char *text);

int record_pci(Recorder *r);     /* functions and bridges, drivers, groups */
int record_classes(Recorder *r); /* block devices and interfaces, and what they are stacked on */
int record_host(Recorder *r);    /* CPUs, memory, mounts, swap, routes, command line */
int record_configuration(Recorder *r);
