/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl suggest: a configuration for the machine of the daemon, or with --node for a recorded one. It needs no
 * daemon: then it looks at this machine. */
#include <stdio.h>

#include "daemon.h"
#include "replay/replay.h"
#include "report.h"
#include "verbs.h"

int verb_suggest(const Args *args) {
        _cleanup_daemon_report_ DaemonReport daemon = { 0 };
        _cleanup_free_ char *problem = NULL, *text = NULL;
        _cleanup_json_ json_object *node = NULL;
        int r = args_has(args, OPTION_NODE) ? 0 : daemon_ask(args, &daemon, &node);

        if (r >= 0)
                r = replay_suggest(daemon_node(args, &daemon), &text, &problem);
        if (r < 0)
                return report_failure(args, NULL, "%s", problem ?: "Out of memory.");
        fputs(text, stdout);
        return EXIT_SUCCESS;
}
