/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nodesim: serves a .tree file as /sys, /proc and /dev of a machine, with the behaviour of its kernel. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "control.h"
#include "device.h"
#include "load.h"
#include "mount.h"
#include "uevent.h"

static void usage(FILE *f) {
        fputs("nodesim [OPTIONS...] TREE MOUNTPOINT\n\n"
              "Serve a simulated node.\n\n"
              "  -h --help         Show this help\n"
              "     --foreground   Stay in the foreground\n"
              "     --allow-other  Let other users in\n"
              "     --log=FILE     Append every write to FILE\n"
              "     --check-events Say by the exit status whether --events would work, and why not\n"
              "     --events       Send the events of udev to all in this network namespace, which is better not the "
              "host's\n",
              f);
}

static int open_events(Sim *sim) {
        int r = uevents_open(sim);

        if (r < 0)
                fprintf(stderr, "Failed to open a socket for events: %s\n", strerror(-r));
        return r;
}

static int run(Sim *sim, char *paths[], bool foreground, bool allow_other, bool events) {
        int r = tree_load(sim, paths[0]);

        if (r < 0)
                return r;
        devices_complete(sim);
        if (events) /* only now, so that the initial tree causes no events */
                r = open_events(sim);
        if (r < 0)
                return r;
        control_make(sim);
        sim->jitter = getenv("NODE_JITTER");
        r = mount_serve(sim, paths[1], foreground, allow_other);
        if (r < 0)
                fprintf(stderr, "Failed to serve %s on %s: %s\n", paths[0], paths[1], strerror(-r));
        return r;
}

int main(int argc, char *argv[]) {
        static const struct option options[] = { { "help", no_argument, NULL, 'h' },
                                                 { "foreground", no_argument, NULL, 'f' },
                                                 { "allow-other", no_argument, NULL, 'o' },
                                                 { "log", required_argument, NULL, 'l' },
                                                 { "events", no_argument, NULL, 'e' },
                                                 { "check-events", no_argument, NULL, 'c' },
                                                 {} };
        Sim sim = { .lock = PTHREAD_MUTEX_INITIALIZER };
        bool foreground = false, allow_other = false, events = false;
        const char *log = NULL;
        int c, r;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case 'h':
                        usage(stdout);
                        return EXIT_SUCCESS;
                case 'f':
                        foreground = true;
                        break;
                case 'o':
                        allow_other = true;
                        break;
                case 'l':
                        log = optarg;
                        break;
                case 'e':
                        events = true;
                        break;
                case 'c':
                        r = open_events(&sim);
                        uevents_close(&sim);
                        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
                default:
                        return 2;
                }
        if (argc - optind != 2) {
                usage(stderr);
                return 2;
        }
        if (log && !(sim.log_file = fopen(log, "ae"))) {
                fprintf(stderr, "Failed to open %s: %s\n", log, strerror(errno));
                return EXIT_FAILURE;
        }
        sim.root = node_new_root();
        r = run(&sim, argv + optind, foreground, allow_other, events);
        sim_done(&sim);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
