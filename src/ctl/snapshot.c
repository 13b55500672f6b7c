/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl snapshot: writes this machine, or with --node a recorded one, to stdout as a .tree file. It needs no
 * daemon. */
#include <stdio.h>

#include "replay/replay.h"
#include "report.h"
#include "verbs.h"

int verb_snapshot(const Args *args) {
        SnapshotFlags flags = args_has(args, OPTION_IDENTITIES) ? SNAPSHOT_IDENTITIES : 0;
        _cleanup_free_ char *problem = NULL;
        int r = snapshot_write(args->text[OPTION_NODE] ?: "/", flags, stdout, &problem);

        if (r < 0 && problem)
                return report_failure(args, NULL, "%s", problem);
        return r < 0 ? report_errno(args, r, "Cannot record") : EXIT_SUCCESS;
}
