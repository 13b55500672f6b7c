/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl suggest: a configuration for this machine, or with --node for a recorded one. It needs no daemon. */
#include <stdio.h>

#include "replay/replay.h"
#include "report.h"
#include "verbs.h"

int verb_suggest(const Args *args) {
        _cleanup_free_ char *problem = NULL, *text = NULL;
        int r = replay_suggest(args->text[OPTION_NODE] ?: "/", &text, &problem);

        if (r < 0)
                return report_failure(args, NULL, "%s", problem ?: "Out of memory.");
        fputs(text, stdout);
        return EXIT_SUCCESS;
}
