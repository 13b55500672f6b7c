/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The root directory of a recorded machine: a directory of the user, or a temporary one with the unpacked .tree file.
 */

#include <signal.h>

#include "util/cleanup.h"

typedef struct Root {
        char *dir;
        bool unpacked; /* dir is temporary */
        int scratch;   /* the private tmpfs that contains dir; the kernel frees it with the descriptor; -1: none */
        bool masked;   /* all signals are blocked */
        sigset_t mask; /* the signal mask before */
} Root;

#define ROOT_INIT                                                                                                      \
        { .scratch = -1 }
#define _cleanup_root_ _cleanup_(root_done)

/*
 * Opens a directory, or unpacks a .tree file. Refuses a node without sys/. Call it in a dedicated process, because it
 * may move the process into a new user namespace and block all signals until root_done(). On failure *ret_problem
 * (caller frees) is a sentence, or NULL when out of memory. root_done() is needed after a failure too.
 */
int root_open(Root *root, const char *node, char **ret_problem);
void root_done(Root *root);
