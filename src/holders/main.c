/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughd-holders: finds the processes that have device nodes open. host/holders.h says why it is a service. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "host/holders.h"
#include "util/log.h"
#include "util/program.h"

/* Number of worker processes, each of which answers one question at a time. */
#define WORKERS            8U
/* A worker is killed after this time: its client may send no question, or the kernel may block it. */
#define ANSWER_TIMEOUT_SEC (HOLDER_ANSWER_USEC / 1000000U + 2U)

static const char help[] = "Usage: passthroughd-holders [OPTION...]\n"
                           "Tell passthroughd which processes have device nodes open. systemd starts this\n"
                           "program with passthroughd, and again when it has died.\n"
                           "\n"
                           "  --sysroot=DIR   Use proc/ below DIR\n"
                           "  -h, --help      Show this help\n"
                           "  --version       Show the version\n"
                           "\n"
                           "See passthroughd(8).";

/* The loop of a worker: answers one question after the other. */
_Noreturn static void work(const Sysfs *fs, int socket_fd) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
                /* cppcheck-suppress nullPointer ; NULL means that the address is not wanted */
                _cleanup_close_ int fd = accept4(socket_fd, NULL, NULL, SOCK_CLOEXEC);

                if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
                        _exit(EXIT_FAILURE);
                (void) alarm(ANSWER_TIMEOUT_SEC);
                if (fd >= 0)
                        (void) holders_answer(fs, fd);
                (void) alarm(0);
        }
}

/* Starts the workers, and a new one for each that was killed. Returns a negative errno when a worker cannot be started
 * or waited for, or has exited by itself. */
static int serve(const Sysfs *fs, int socket_fd) {
        for (unsigned n = 1;; n++) {
                pid_t pid = fork();
                int status;

                if (pid < 0)
                        return -errno;
                if (pid == 0)
                        work(fs, socket_fd);
                if (n < WORKERS)
                        continue;
                if (wait(&status) < 0)
                        return -errno;
                /* A worker exits by itself only if it cannot accept connections. */
                if (WIFEXITED(status))
                        return -ECONNABORTED;
        }
}

int main(int argc, char *argv[]) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        const char *sysroot = "/";
        const ProgramOption option = { "sysroot", &sysroot };
        int r = program_read_arguments(argc, argv, "passthroughd-holders", help, &option, 1);

        if (r >= 0)
                return r;
        r = sysfs_new(sysroot, &fs);
        if (r < 0)
                return log_error_errno(r, "Failed to open the root %s: %m", sysroot), EXIT_FAILURE;
        if (sd_listen_fds(true) != 1)
                return log_error("No socket: systemd starts this program for passthroughd."), 2;
        r = serve(fs, SD_LISTEN_FDS_START);
        return log_error_errno(r, "Failed to answer questions: %m"), EXIT_FAILURE;
}
