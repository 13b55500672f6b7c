/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Where a recorded machine is while it is read: the directory that was named, or what a .tree file is unpacked into. */

#include <signal.h>

#include "util/cleanup.h"

typedef struct Root {
        char *dir;
        bool unpacked; /* ours to remove */
        int scratch;   /* what it was unpacked into, which goes as a whole; -1: a directory of the system's */
        bool masked;   /* no signal gets through, so that nothing is left in that */
        sigset_t mask; /* as it was */
} Root;

#define ROOT_INIT                                                                                                      \
        { .scratch = -1 }
#define _cleanup_root_ _cleanup_(root_done)

/*
 * node: a .tree file or a directory, either with what any machine has. For a process of its own: it may change the user
 * namespace, and until root_done() signals may have to wait. On failure *ret_problem (caller frees) is a sentence, or
 * NULL for want of memory.
 */
int root_open(Root *root, const char *node, char **ret_problem);
void root_done(Root *root);
