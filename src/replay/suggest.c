/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a machine, recorded or not, and suggests a configuration for it. */
#include <errno.h>

#include "node.h"
#include "plan/suggest.h"
#include "replay/replay.h"
#include "root.h"

/* Without the configuration of the machine, whose pools the suggestion replaces. */
static int suggest_root(HostState *state, const char *node, const char *root, char **ret, char **ret_problem) {
        char cmdline[ROOT_CMDLINE_MAX];
        int r;

        state->config = config_new();
        r = state->config ? replay_read_facts(state, node, root, ret_problem) : -ENOMEM;
        if (r >= 0)
                r = root_read_cmdline(root, cmdline);
        return r < 0 ? r : suggest_configuration(state->inventory, cmdline, ret);
}

int replay_suggest(const char *node, char **ret, char **ret_problem) {
        _cleanup_root_ Root root = { 0 };
        HostState state = { 0 };
        int r = root_open(&root, node, ret_problem);

        if (r >= 0)
                r = suggest_root(&state, node, root.dir, ret, ret_problem);
        host_state_done(&state);
        return r;
}
