/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nodesim: serves a .tree file as the /sys, /proc and /dev of a machine whose kernel answers. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "control.h"
#include "device.h"
#include "driver.h"
#include "dump.h"
#include "fault.h"
#include "load.h"
#include "mount.h"
#include "park.h"
#include "uevent.h"

static void usage(FILE *f) {
        fputs("nodesim [OPTIONS...] TREE MOUNTPOINT\n"
              "nodesim --print TREE\n\n"
              "Serve a simulated node, or print it as a recording.\n\n"
              "  -h --help         Show this help\n"
              "     --foreground   Stay in the foreground\n"
              "     --allow-other  Let other users in\n"
              "     --log=FILE     Append every write to FILE\n"
              "     --check-events Say by the exit status whether --events would work, and why not\n"
              "     --events       Send the events of udev to all in this network namespace, which is better not the "
              "host's\n",
              f);
}

static void sim_done(Sim *sim) {
        uevents_close(sim);
        device_forget(sim, NULL);
        faults_reset(sim);
        nodes_free();
        for (size_t i = 0; i < sim->n_drivers; i++)
                driver_free(sim->drivers[i]);
        for (size_t i = 0; i < sim->n_vfs; i++) {
                free(sim->vfs[i].pf);
                free(sim->vfs[i].device);
                free(sim->vfs[i].reset_method);
        }
        free(sim->drivers);
        free(sim->vfs);
        free(sim->parked);
        free(sim->log);
        free(sim->faults);
        if (sim->log_file)
                fclose(sim->log_file);
}

static int open_events(Sim *sim) {
        int r = uevents_open(sim);

        if (r < 0)
                fprintf(stderr, "Failed to open a socket for events: %s\n", strerror(-r));
        return r;
}

static int print(Sim *sim, const char *path) {
        int r = tree_load(sim, path);

        if (r < 0)
                return r;
        devices_complete(sim);
        sim_print(sim, stdout);
        return 0;
}

static int run(Sim *sim, char *paths[], bool foreground, bool allow_other, bool events) {
        int r = tree_load(sim, paths[0]);

        if (r < 0)
                return r;
        devices_complete(sim);
        if (events) /* not before: what the node was made with is no change */
                r = open_events(sim);
        if (r < 0)
                return r;
        control_make(sim);
        r = mount_serve(sim, paths[1], foreground, allow_other);
        if (r < 0)
                fprintf(stderr, "Failed to serve %s on %s: %s\n", paths[0], paths[1], strerror(-r));
        return r;
}

int main(int argc, char *argv[]) {
        static const struct option options[] = {
                { "help", no_argument, NULL, 'h' },         { "foreground", no_argument, NULL, 'f' },
                { "allow-other", no_argument, NULL, 'o' },  { "log", required_argument, NULL, 'l' },
                { "events", no_argument, NULL, 'e' },       { "print", no_argument, NULL, 'p' },
                { "check-events", no_argument, NULL, 'c' }, {}
        };
        Sim sim = { .lock = PTHREAD_MUTEX_INITIALIZER };
        bool foreground = false, allow_other = false, events = false, only_print = false;
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
                case 'p':
                        only_print = true;
                        break;
                case 'c':
                        r = open_events(&sim);
                        uevents_close(&sim);
                        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
                default:
                        return 2;
                }
        if (argc - optind != (only_print ? 1 : 2)) {
                usage(stderr);
                return 2;
        }
        if (log && !(sim.log_file = fopen(log, "ae"))) {
                fprintf(stderr, "Failed to open %s: %s\n", log, strerror(errno));
                return EXIT_FAILURE;
        }
        sim.root = node_new_root();
        r = only_print ? print(&sim, argv[optind]) : run(&sim, argv + optind, foreground, allow_other, events);
        sim_done(&sim);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
