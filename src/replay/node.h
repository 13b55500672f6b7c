/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A recorded machine in memory, with the callbacks for a D-Bus server. replay_node_load() reads the whole machine.
 * Allocations exist only in memory.
 */

#include "bus/server.h"
#include "host/hoststate.h"

typedef struct ReplayNode ReplayNode;

/*
 * Loads a recorded machine. node: a .tree file or a directory. config: a configuration file; NULL: the recorded
 * configuration. Removes all unpacked files before it returns. 0 or a negative errno; -EINVAL if the policy has a
 * conflict (Policy.conflict). On failure *ret_problem (caller frees) is a sentence, or NULL, for example when out of
 * memory.
 */
int replay_node_load(const char *node, const char *config, ReplayNode **ret, char **ret_problem);
ReplayNode *replay_node_free(ReplayNode *n);
DEFINE_CLEANUP(ReplayNode *, replay_node_free)

/*
 * Reads the configuration and the inventory of the machine below root into `n`, adds the VFs that the configuration
 * would create (policy_expect_vfs()), and makes the policy. `n` must be zeroed except for its ledger. A conflict of the
 * policy is no failure.
 * config: a configuration file; NULL: search as config_files_load() does. of_daemon: reads the configuration of this
 * machine's daemon: the search is on this machine, and config may be missing. Otherwise the search is below root, and a
 * file that the user named must exist and be readable. node: the path, for messages. On failure as replay_node_load();
 * the caller calls host_state_done() in every case.
 */
int replay_read(HostState *n, const char *node, const char *root, bool of_daemon, const char *config,
                char **ret_problem);
/* As replay_read(), with n->config as the configuration. */
int replay_read_facts(HostState *n, const char *node, const char *root, char **ret_problem);

/* Logs problems of the configuration and of the policy, a missing configuration, and VFs that the configuration wants
 * but the recorded machine lacks. node: the path, for messages. */
void replay_node_warn(const ReplayNode *n, const char *node);

/* Callbacks for server_new_peer(). Their userdata is the ReplayNode. */
extern const ServerCallbacks replay_node_callbacks;
