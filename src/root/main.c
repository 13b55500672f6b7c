/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughd-root: carries out one request of passthroughd that needs root. host/rootservice.h lists the requests. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/configfiles.h"
#include "host/rootservice.h"
#include "util/log.h"
#include "util/program.h"

static const char help[] = "Usage: passthroughd-root [OPTION...]\n"
                           "Stop or start a unit of StopServices=, run a CleanerCommand=, write the options\n"
                           "of mlx4_core, change the devices of a domain of Libvirt=, have the Fabric\n"
                           "Manager of Manager= activate an NVLink partition, ask NVIDIA's driver about a GPU,\n"
                           "or read which devices guests of Xen have, for passthroughd.\n"
                           "systemd starts this program for each connection to its socket, which is its\n"
                           "standard input.\n"
                           "\n"
                           "  --sysroot=DIR   Use sys/ below DIR\n"
                           "  --config=FILE   Read FILE and FILE.d/*.conf instead of passthroughd.conf(5)\n"
                           "  --persistence=ADDRESS\n"
                           "                  Turn on persistence mode of an NVIDIA GPU, and answer no request\n"
                           "  -h, --help      Show this help\n"
                           "  --version       Show the version\n"
                           "\n"
                           "See passthroughd(8).";

int main(int argc, char *argv[]) {
        _cleanup_(cleanup_config_free) Config *config = NULL;
        const char *file = NULL, *gpu = NULL;
        RootHost host = { .sysroot = "/",
                          .state_directory = getenv("STATE_DIRECTORY") ?: "/var/lib/passthroughd",
                          .modprobe_directory = getenv("MODPROBE_DIRECTORY") };
        const ProgramOption options[] = { { "sysroot", &host.sysroot }, { "config", &file }, { "persistence", &gpu } };
        int r = program_read_arguments(argc, argv, "passthroughd-root", help, options, ELEMENTSOF(options));

        if (r >= 0)
                return r;
        if (gpu)
                return root_enable_persistence(gpu) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        r = config_files_load("", file, true, &config);
        if (r < 0)
                return log_error_errno(r, "Failed to read the configuration: %m"), EXIT_FAILURE;
        if (config->unreadable)
                log_error("%s", config->unreadable);
        host.config = config;
        r = root_answer(STDIN_FILENO, &host);
        if (r < 0)
                return log_error_errno(r, "Failed to answer a request: %m"), EXIT_FAILURE;
        return EXIT_SUCCESS;
}
