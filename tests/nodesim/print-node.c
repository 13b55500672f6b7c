/* SPDX-License-Identifier: GPL-2.0-or-later */
/* print-node TREE: prints the node that nodesim would serve as a recording, for passthroughctl --node. */
#include <stdio.h>

#include "device.h"
#include "dump.h"
#include "load.h"

int main(int argc, char *argv[]) {
        Sim sim = { .lock = PTHREAD_MUTEX_INITIALIZER };
        int r;

        if (argc != 2) {
                fputs("print-node TREE\n", stderr);
                return 2;
        }
        sim.root = node_new_root();
        r = tree_load(&sim, argv[1]);
        if (r >= 0) {
                devices_complete(&sim);
                sim_print(&sim, stdout);
        }
        sim_done(&sim);
        return r < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
