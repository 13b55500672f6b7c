/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughd-root: does one thing that takes root, for passthroughd. host/rootservice.h says what. */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/configfiles.h"
#include "host/rootservice.h"
#include "util/log.h"

static void help(void) {
        puts("Usage: passthroughd-root [OPTION...]\n"
             "Stop or start a unit of StopServices=, run a CleanerCommand=, write the options\n"
             "of mlx4_core, change the devices of a domain of Libvirt=, or have the Fabric\n"
             "Manager of Manager= activate an NVLink partition, for passthroughd.\n"
             "systemd starts this program for each connection to its socket, which is its\n"
             "standard input.\n"
             "\n"
             "  --config=FILE   Read FILE and FILE.d/*.conf instead of passthroughd.conf(5)\n"
             "  -h, --help      Show this help\n"
             "  --version       Show the version\n"
             "\n"
             "See passthroughd(8).");
}

/* 1: go on. 0: done. -1: usage error. */
static int parse_arguments(int argc, char *argv[], const char **config) {
        static const struct option options[] = {
                { "config", required_argument, NULL, 'c' },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'v' },
                { NULL, 0, NULL, 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case 'c':
                        *config = optarg;
                        break;
                case 'h':
                        help();
                        return 0;
                case 'v':
                        puts("passthroughd-root " VERSION);
                        return 0;
                default:
                        return -1;
                }
        return optind == argc ? 1 : -1;
}

int main(int argc, char *argv[]) {
        _cleanup_(cleanup_config_free) Config *config = NULL;
        const char *file = NULL;
        int r = parse_arguments(argc, argv, &file);

        if (r < 0) {
                (void) fprintf(stderr, "Try 'passthroughd-root --help'.\n");
                return 2;
        }
        if (r == 0)
                return fflush(stdout) != 0 || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
        r = config_files_load("", file, &config);
        if (r < 0)
                return log_error_errno(r, "Failed to read the configuration: %m"), EXIT_FAILURE;
        r = root_answer(STDIN_FILENO, config, getenv("MODPROBE_DIRECTORY"));
        if (r < 0)
                return log_error_errno(r, "Failed to answer a request: %m"), EXIT_FAILURE;
        return EXIT_SUCCESS;
}
