/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Room for what is unpacked, which is gone again however the process ends. */

#include "replay/root.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "replay/replay.h"
#include "replay/scratch.h"
#include "util/strings.h"

/* A handler could not put away what is half unpacked: signals wait, for as long as reading it takes. */
static int hold_signals(Root *root) {
        sigset_t all;

        (void) sigfillset(&all);
        if (sigprocmask(SIG_SETMASK, &all, &root->mask) < 0)
                return -errno;
        root->masked = true;
        return 0;
}

/* In memory, unless the user says where or the system says no. */
static int unpack(Root *root, const char *file, char **ret_problem) {
        char path[64];
        int r;

        root->scratch = secure_getenv("TMPDIR") ? -1 : scratch_open();
        if (root->scratch >= 0) {
                (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", root->scratch);
                if (setenv("TMPDIR", path, true) < 0)
                        return -ENOMEM;
        } else {
                r = hold_signals(root);
                if (r < 0)
                        return r;
        }
        r = tree_unpack(file, &root->dir, ret_problem);
        root->unpacked = r >= 0;
        return r;
}

int root_open(Root *root, const char *node, char **ret_problem) {
        _cleanup_free_ char *problem = NULL;
        struct stat st;
        int r;

        if (stat(node, &st) < 0) {
                r = -errno;
                (void) string_replace(&problem, "There is no recorded node %s: %s.", node, strerror(-r));
        } else if (S_ISDIR(st.st_mode))
                r = string_copy(&root->dir, node);
        else if (S_ISREG(st.st_mode))
                r = unpack(root, node, &problem);
        else {
                r = -EINVAL;
                (void) string_replace(
                        &problem,
                        "%s is not a recorded node: that is a .tree file, or a directory with sys/ and proc/ in it.",
                        node);
        }
        if (r < 0)
                *ret_problem = TAKE_PTR(problem);
        return r;
}

void root_done(Root *root) {
        if (root->unpacked && root->scratch < 0)
                tree_remove(root->dir);
        cleanup_close(&root->scratch);
        free(root->dir);
        if (root->masked)
                (void) sigprocmask(SIG_SETMASK, &root->mask, NULL);
}
