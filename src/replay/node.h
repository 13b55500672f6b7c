/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A recorded machine in memory, and what the daemon would make of it: everything is read when it is loaded, and what is
 * allocated is nowhere but here.
 */

#include "bus/server.h"

typedef struct ReplayNode ReplayNode;

/*
 * node: a .tree file or a directory; config: NULL for what was recorded. For a process of its own: it may change the
 * user namespace. Nothing is on disk any more when this returns. On failure *ret_problem (caller
 * frees) is a sentence.
 */
int replay_node_load(const char *node, const char *config, ReplayNode **ret, char **ret_problem);
ReplayNode *replay_node_free(ReplayNode *n);
DEFINE_CLEANUP(ReplayNode *, replay_node_free)

/* Logs what is odd about the configuration, and that there is none. */
void replay_node_warn(const ReplayNode *n, const char *node);

/* userdata is the ReplayNode. */
extern const ServerCallbacks replay_node_callbacks;
