/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * syscalls PID: prints "ready", then, when its input has ended and the process is idle, "CALLS OPENED": how many system
 * calls the process and the children it made meanwhile have begun, and how many of those open a file. By ptrace, which
 * slows the process down, so nothing is timed under it.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IDLE_MSEC 200

static unsigned long calls, opened;

static bool opens_file(unsigned long call) {
        return call == SYS_openat || call == SYS_openat2;
}

static void count(pid_t pid) {
        struct __ptrace_syscall_info info;

        if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY)
                return;
        calls++;
        opened += opens_file(info.entry.nr);
}

/* Continues the stopped process until its next system call begins or ends. */
static void go_on(pid_t pid, int status) {
        bool is_call = WSTOPSIG(status) == (SIGTRAP | 0x80), is_event = status >> 16 != 0;

        if (is_call)
                count(pid);
        (void) ptrace(PTRACE_SYSCALL, pid, NULL, (long) (is_call || is_event ? 0 : WSTOPSIG(status)));
}

/* Handles all processes that have stopped. */
static void take_stops(void) {
        pid_t pid;
        int status;

        while ((pid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
                if (WIFSTOPPED(status))
                        go_on(pid, status);
}

/* Returns a descriptor that is readable when a process has stopped. */
static int open_stops(void) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -1;
        return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char *argv[]) {
        pid_t pid = argc == 2 ? (pid_t) strtol(argv[1], NULL, 10) : 0;
        struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = open_stops(), .events = POLLIN } };
        struct signalfd_siginfo ignored;

        if (pid <= 0 || fds[1].fd < 0 ||
            ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK) < 0 ||
            ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0) {
                (void) fprintf(stderr, "syscalls: %s\n", pid > 0 ? strerror(errno) : "usage: syscalls PID");
                return EXIT_FAILURE;
        }
        puts("ready");
        (void) fflush(stdout);
        for (;;) {
                /* After the input has ended, the processes are counted until they have been idle for a while. */
                if (poll(fds, 2, fds[0].fd < 0 ? IDLE_MSEC : -1) <= 0)
                        break;
                if (fds[0].revents)
                        fds[0].fd = -1;
                /* Before the stops, so that one that comes meanwhile makes it readable again. */
                (void) !read(fds[1].fd, &ignored, sizeof(ignored));
                take_stops();
        }
        /* The kernel detaches from the processes when this one exits. */
        printf("%lu %lu\n", calls, opened);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
