/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Builds the path of a file from its path relative to the directory of this program. The file need not exist. 0 or a
 * negative errno. */
int program_path(const char *relative, char ret[static PATH_MAX]);

/*
 * Finds the path of another program of this package: in the directory of this program (in a build tree) or in
 * ../libexec (when installed). 0 or a negative errno.
 */
int program_find(const char *name, char ret[static PATH_MAX]);

/* A command-line option, with or without a value. */
typedef struct ProgramOption {
        const char *name;   /* without dashes */
        const char **value; /* set to the option's value in argv; unchanged without the option. NULL: the option has no
                               value */
        bool *flag;         /* for an option without a value: set to true if the option is given */
} ProgramOption;
#define PROGRAM_OPTIONS_MAX 5U

/*
 * Reads the arguments of a program that systemd starts: --help, --version and n options. Returns -1 when the program is
 * to continue, otherwise its exit status.
 */
int program_read_arguments(int argc, char *argv[], const char *name, const char *help, const ProgramOption *options,
                           size_t n);
