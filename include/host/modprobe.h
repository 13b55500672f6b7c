/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon's configuration file in modprobe.d, called the fragment, with the options that plan/mlx4.h makes. A file
 * of this name that the daemon did not write belongs to the administrator and is left unchanged.
 */

#include "util/sysfs.h"

#define MODPROBE_FRAGMENT "passthroughd.conf"

/* Opens the directory; NULL: etc/modprobe.d below the root. Returns a descriptor or a negative errno. */
int modprobe_open(const Sysfs *fs, const char *directory);
/* Formats the path of the fragment, for messages. The caller frees *ret. Returns 0 or -ENOMEM. */
int modprobe_path(const Sysfs *fs, const char *directory, char **ret);

/* Returns 1 when modprobe_set() would change the fragment, 0 when it needs no change, or a negative errno. */
int modprobe_differs(int dir_fd, const char *text);

/*
 * Replaces the fragment with text atomically; NULL removes the fragment. Returns 1 when the fragment was changed, and 0
 * when it needed no change. -EEXIST: the daemon did not write the file; with text NULL this is no error, and 0 is
 * returned. -EINVAL: text has lines other than comments and options of mlx4_core. Otherwise a negative errno.
 */
int modprobe_set(int dir_fd, const char *text);
