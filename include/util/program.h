/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The path of a file, relative to the directory of this program; the file need not exist. 0 or a negative errno. */
int program_path(const char *relative, char ret[static PATH_MAX]);

/*
 * The path of another program of this package: in the directory of this program (in a build tree) or in ../libexec
 * (when installed). 0 or a negative errno.
 */
int program_find(const char *name, char ret[static PATH_MAX]);

/* An option with a value, or one without. */
typedef struct ProgramOption {
        const char *name;   /* without dashes */
        const char **value; /* set to a part of argv; unchanged without the option. NULL: the option has no value */
        bool *flag;         /* set when the option has no value */
} ProgramOption;
#define PROGRAM_OPTIONS_MAX 5U

/*
 * Reads the arguments of a program that systemd starts: --help, --version and n options. Returns -1 when the program
 * goes on, otherwise its exit status.
 */
int program_read_arguments(int argc, char *argv[], const char *name, const char *help, const ProgramOption *options,
                           size_t n);
