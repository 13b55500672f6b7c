/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon's configuration file in modprobe.d, called the fragment (plan/mlx4.h describes its contents). A file of
 * that name that the daemon did not write belongs to the administrator and is left unchanged.
 */

#include "util/sysfs.h"

#define MODPROBE_FRAGMENT "passthroughd.conf"

/* Opens directory; NULL stands for etc/modprobe.d below the root. Returns a descriptor or a negative errno. */
int modprobe_open(const Sysfs *fs, const char *directory);
/* The path of the fragment, for messages. The caller frees *ret. Returns 0 or -ENOMEM. */
int modprobe_path(const Sysfs *fs, const char *directory, char **ret);

/* Whether modprobe_set() would change the fragment, with its results. */
int modprobe_differs(int dir_fd, const char *text);

/*
 * Replaces the fragment with text atomically; NULL removes the fragment. Returns 1 when the fragment was changed, and 0
 * when it needed no change. -EEXIST: the file was not written by the daemon. With text NULL such a file is no error
 * (0). -EINVAL: text has other lines than comments and options of mlx4_core. Otherwise a negative errno.
 */
int modprobe_set(int dir_fd, const char *text);
