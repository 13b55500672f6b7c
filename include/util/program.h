/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <limits.h>

/*
 * The path of another program of this package: in the directory of this program (in a build tree) or in ../libexec
 * (when installed). 0 or a negative errno.
 */
int program_find(const char *name, char ret[static PATH_MAX]);
