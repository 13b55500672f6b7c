/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The main program: parses the arguments, reads the environment, and runs the manager. */

#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sysexits.h>

#include "host/endpoints.h"
#include "host/holders.h"
#include "host/rootservice.h"
#include "manager.h"
#include "util/log.h"
#include "util/strings.h"

static const char *arg_sysroot = "/";
static const char *arg_config = NULL;

static void help(void) {
        puts("Usage: passthroughd [OPTION...]\n"
             "Give the PCI devices, CPUs and memory of this node to virtual machines.\n"
             "\n"
             "  --sysroot=DIR   Use sys/, proc/ and dev/ below DIR\n"
             "  --config=FILE   Read FILE and FILE.d/*.conf instead of passthroughd.conf(5)\n"
             "  --debug         Log each write to sysfs, and more\n"
             "  -h, --help      Show this help\n"
             "  --version       Show the version\n"
             "\n"
             "See passthroughd(8).");
}

/* Returns 1: continue; 0: everything is done; -1: the usage is wrong. */
static int parse_arguments(int argc, char *argv[]) {
        enum {
                ARG_SYSROOT = 0x100,
                ARG_CONFIG,
                ARG_DEBUG,
                ARG_VERSION
        };
        static const struct option options[] = {
                { "sysroot", required_argument, NULL, ARG_SYSROOT }, { "config", required_argument, NULL, ARG_CONFIG },
                { "debug", no_argument, NULL, ARG_DEBUG },           { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, ARG_VERSION },       { NULL, 0, NULL, 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case ARG_SYSROOT:
                        arg_sysroot = optarg;
                        break;
                case ARG_CONFIG:
                        arg_config = optarg;
                        break;
                case ARG_DEBUG:
                        log_set_max_level(LOG_DEBUG);
                        break;
                case ARG_VERSION:
                        puts("passthroughd " VERSION);
                        return 0;
                case 'h':
                        help();
                        return 0;
                default:
                        return -1;
                }
        if (optind == argc)
                return 1;
        (void) fprintf(stderr, "passthroughd: '%s' is not an option.\n", argv[optind]);
        return -1;
}

/* Returns the path as an absolute path. passthroughctl gets it from the daemon, and runs in another directory. The
 * caller frees; NULL when out of memory. */
static char *make_absolute(const char *path) {
        _cleanup_free_ char *directory = *path == '/' ? NULL : get_current_dir_name();

        return directory ? string_format("%s/%s", directory, path) : strdup(path);
}

int main(int argc, char *argv[]) {
        _cleanup_(cleanup_manager_free) Manager *m = NULL;
        _cleanup_free_ char *sysroot = NULL, *config = NULL;
        const char *state_dir = getenv("STATE_DIRECTORY") ?: "/var/lib/passthroughd";
        const char *holders = getenv("HOLDERS_SOCKET"), *root = getenv("ROOT_SOCKET");
        const char *endpoints = getenv("ENDPOINTS_SOCKET");
        int r = parse_arguments(argc, argv);
        sigset_t early;

        if (r < 0) {
                (void) fprintf(stderr, "Try 'passthroughd --help'.\n");
                return 2;
        }
        if (r == 0)
                return fflush(stdout) != 0 || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
        /* glibc raises this threshold whenever a large buffer is freed, and would then keep the megabytes of a
         * Describe. If the threshold is set, it stays, and such buffers return to the kernel. */
        (void) mallopt(M_MMAP_THRESHOLD, 256 * 1024);
        /* systemd starts the daemon as another user than root, with ambient capabilities. Clear them, so that no
         * program that the daemon starts inherits them. */
        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        /* Block SIGHUP, so that a reload requested this early stays pending until the event loop handles it. */
        (void) sigemptyset(&early);
        (void) sigaddset(&early, SIGHUP);
        (void) sigprocmask(SIG_BLOCK, &early, NULL);
        /* With another --sysroot=, the processes are those of a simulated machine: the daemon may search them
         * itself. */
        if (!holders && streq(arg_sysroot, "/"))
                holders = HOLDERS_SOCKET;
        holders_use_socket(holders);
        if (root)
                root_service_use_socket(root);
        if (endpoints)
                endpoints_use_socket(endpoints);
        sysroot = make_absolute(arg_sysroot);
        config = arg_config ? make_absolute(arg_config) : NULL;
        if (!sysroot || (arg_config && !config))
                return EXIT_FAILURE;
        r = manager_new(sysroot, config, state_dir, getenv("MODPROBE_DIRECTORY"), &m);
        if (r != 0)
                return r == EX_CONFIG ? EX_CONFIG : EXIT_FAILURE;
        /* With SIGPIPE ignored, a write to a closed socket fails with EPIPE. */
        (void) signal(SIGPIPE, SIG_IGN);
        return manager_run(m) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
