/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The root directory of a recorded machine: a directory of the user, or a temporary one with an unpacked .tree file. */

#include <signal.h>

#include "util/cleanup.h"

typedef struct Root {
        char *dir;
        bool unpacked; /* dir is temporary: root_done() removes it and unblocks signals */
        sigset_t mask; /* the former signal mask */
} Root;

#define _cleanup_root_ _cleanup_(root_done)

/*
 * Opens a directory, or unpacks a .tree file. Refuses a node without sys/, a node with neither sys/devices nor sys/bus,
 * and a node whose sys/bus/pci/devices exists but cannot be opened. After unpacking, all signals are blocked until
 * root_done() removes the files. On failure *ret_problem (caller frees) is a sentence, or NULL when out of memory. Call
 * root_done() after a failure too.
 */
int root_open(Root *root, const char *node, char **ret_problem);
void root_done(Root *root);

/* Reads the kernel command line of the machine; "" when the file is unreadable. 0 or a negative errno. */
#define ROOT_CMDLINE_MAX 8192
int root_read_cmdline(const char *root, char ret[static ROOT_CMDLINE_MAX]);
