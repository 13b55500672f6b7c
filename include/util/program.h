/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <limits.h>

/* The path of a file, relative to the directory of this program; the file need not exist. 0 or a negative errno. */
int program_path(const char *relative, char ret[static PATH_MAX]);

/*
 * The path of another program of this package: in the directory of this program (in a build tree) or in ../libexec
 * (when installed). 0 or a negative errno.
 */
int program_find(const char *name, char ret[static PATH_MAX]);

/*
 * Reads the arguments of a program that systemd starts: --help, --version and at most one option, which has a value.
 * option: its name without dashes; NULL: there is none. *value: borrowed from argv, unchanged without the option.
 * Returns -1 when the program goes on, otherwise its exit status.
 */
int program_read_arguments(int argc, char *argv[], const char *name, const char *help, const char *option,
                           const char **value);
