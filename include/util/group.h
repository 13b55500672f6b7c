/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

/* The id of a group: its name in the database of groups, or a number. -ESRCH: there is no such group. */
int group_find(const char *group, gid_t *ret);
