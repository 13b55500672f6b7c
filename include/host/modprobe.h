/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Our fragment of modprobe.d on disk (plan/mlx4.h says what is in it). A file of that name that we did not write is
 * somebody's, and stays as it is.
 */

#include "util/sysfs.h"

#define MODPROBE_FRAGMENT "passthroughd.conf"

/* The directory of fragments: directory, or where that is NULL etc/modprobe.d below the root. A descriptor or errno. */
int modprobe_open(const Sysfs *fs, const char *directory);
/* Path of the fragment, for messages. */
int modprobe_path(const Sysfs *fs, const char *directory, char **ret);

/*
 * Makes the fragment hold text, all at once, or takes it away where text is NULL. 1: it was changed; 0: it was so
 * before, and is not touched. -EEXIST: there is one that is not ours, which is no matter when it should be gone (0).
 */
int modprobe_set(int dir_fd, const char *text);
