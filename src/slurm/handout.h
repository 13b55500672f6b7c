/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The files of a job, in Settings.directory: NAME.xml, the domain document, which only the job's user can read; and
 * NAME.env, the variables for the environment of its steps, which only root can read.
 */

#include <sys/types.h>

#include "util/cleanup.h"

/* The names of the variables in NAME.env. */
#define VARIABLE_ALLOCATION "PASSTHROUGH_ALLOCATION" /* name of the allocation */
#define VARIABLE_DOCUMENT   "PASSTHROUGH_DOCUMENT"   /* path of NAME.xml */
#define VARIABLE_DEVICES    "PASSTHROUGH_DEVICES"    /* "gpu0=0000:13:00.0,ib-vf0=0000:14:00.1" */

/* Writes both files and replaces older ones. document: NULL when the allocation has no CPUs and no memory; then only
 * NAME.env is written. 0 or a negative errno. */
int handout_write(const char *directory, const char *name, uid_t uid, const char *document, const char *devices);

/* Removes both files; missing files are no error. 0 or a negative errno. */
int handout_remove(const char *directory, const char *name);

/* Returns 1 if the job has files, 0 if not, or a negative errno. */
int handout_exists(const char *directory, const char *name);

/* Calls set() for each variable of NAME.env. Returns 0, -ENOENT when the file or its directory does not exist, or
 * another negative errno, such as that of set(). */
int handout_read(const char *directory, const char *name,
                 int (*set)(const char *variable, const char *value, void *userdata), void *userdata);
