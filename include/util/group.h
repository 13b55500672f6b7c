/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

/* Finds the gid of the group. group: a name in the group database, or a number. Returns 0, -ENOMEM, or -ESRCH: no such
 * group was found. */
int group_find(const char *group, gid_t *ret);
