/* SPDX-License-Identifier: GPL-2.0-or-later */

/* For tests: unpacks a .tree file, removes the result, or records a directory. */

#include <stdio.h>

#include "replay/replay.h"

static int print_directory(const char *file, char **ret_problem) {
        _cleanup_free_ char *dir = NULL;
        int r = tree_unpack(file, &dir, ret_problem);

        if (r >= 0)
                puts(dir);
        return r;
}

int main(int argc, char *argv[]) {
        _cleanup_free_ char *problem = NULL;
        int r = 0;

        if (argc == 3 && streq(argv[1], "unpack"))
                r = print_directory(argv[2], &problem);
        else if (argc == 3 && streq(argv[1], "remove"))
                tree_remove(argv[2]);
        else if (argc == 3 && streq(argv[1], "record"))
                r = snapshot_write(argv[2], 0, stdout, &problem);
        else if (argc == 3 && streq(argv[1], "record-identities"))
                r = snapshot_write(argv[2], SNAPSHOT_IDENTITIES, stdout, &problem);
        else {
                fputs("usage: tree-tool unpack FILE | remove DIR | record ROOT | record-identities ROOT\n", stderr);
                return 2;
        }
        if (r < 0)
                fprintf(stderr, "tree-tool: %s\n", problem ? problem : strerror(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
