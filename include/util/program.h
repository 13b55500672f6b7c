/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Builds an absolute path from a path relative to the directory of this program. The file need not exist. Returns 0 or
 * a negative errno. */
int program_path(const char *relative, char ret[static PATH_MAX]);

/* Finds another program of this package: in the directory of this program (in a build tree), or in ../libexec (when
 * installed). Sets ret to its path. Returns 0 or a negative errno. */
int program_find(const char *name, char ret[static PATH_MAX]);

/* A command-line option, with or without a value. */
typedef struct ProgramOption {
        const char *name;   /* without dashes */
        const char **value; /* set to the option's value in argv; unchanged without the option. NULL: the option has no
                               value */
        bool *flag;         /* for an option without a value: set to true if the option is given */
} ProgramOption;
#define PROGRAM_OPTIONS_MAX 5U

/* Reads the arguments of a program that systemd starts: --help, --version and the n options. Returns -1 when the
 * program has to continue. Otherwise the program has to exit with the returned status. */
int program_read_arguments(int argc, char *argv[], const char *name, const char *help, const ProgramOption *options,
                           size_t n);
