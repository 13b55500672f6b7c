/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl snapshot: this machine, or a recorded one again, as a .tree file on stdout. Asks no daemon. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "ctl/report.h"
#include "ctl/verbs.h"
#include "replay/replay.h"

static int record(const Args *args, const char *root) {
        SnapshotFlags flags = args_has(args, OPTION_IDENTITIES) ? SNAPSHOT_IDENTITIES : 0;
        _cleanup_free_ char *problem = NULL;
        int r = snapshot_write(root, flags, stdout, &problem);

        if (r < 0 && problem)
                return report_failure(args, NULL, "%s", problem);
        return r < 0 ? report_errno(args, r, "Cannot record") : EXIT_SUCCESS;
}

static int record_file(const Args *args, const char *file) {
        _cleanup_free_ char *dir = NULL, *problem = NULL;
        int r = tree_unpack(file, &dir, &problem);

        if (r < 0 && problem)
                return report_failure(args, NULL, "%s", problem);
        if (r < 0)
                return report_errno(args, r, "Cannot unpack");
        /* A reader who leaves must not leave the directory behind. */
        (void) signal(SIGPIPE, SIG_IGN);
        r = record(args, dir);
        tree_remove(dir);
        return r;
}

int verb_snapshot(const Args *args) {
        const char *node = args->text[OPTION_NODE];
        struct stat st;

        if (args_has(args, OPTION_HOST))
                return report_usage(args, "snapshot records the machine it runs on: run it there, with ssh");
        if (!node)
                return record(args, "/");
        if (stat(node, &st) < 0) {
                int r = -errno;

                return report_errno(args, r, node);
        }
        return S_ISDIR(st.st_mode) ? record(args, node) : record_file(args, node);
}
