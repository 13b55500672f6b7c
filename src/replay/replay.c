/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts and stops the child process that serves a recorded machine. */

#include "replay/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "node.h"
#include "util/strings.h"

struct Replay {
        pid_t pid; /* 0: no child */
        int fd;    /* -1: replay_take_fd() was called */
};

/* The child's descriptors after stdio. */
enum {
        REPORT_FD = 3, /* a pipe to the parent, for one NUL-terminated report: an error message, or "" on success */
        BUS_FD,
};

/* Closes all descriptors of the parent except stderr, where messages go. An inherited pipe would otherwise stay open as
 * long as the child runs, and its reader would see no end of file. */
static int arrange_descriptors(int report, int bus) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (null < 0)
                return -errno;
        /* Move report and bus above BUS_FD first, because either may be 3 or 4 now. */
        report = fcntl(report, F_DUPFD_CLOEXEC, BUS_FD + 1);
        bus = fcntl(bus, F_DUPFD_CLOEXEC, BUS_FD + 1);
        if (report < 0 || bus < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
            dup2(report, REPORT_FD) < 0 || dup2(bus, BUS_FD) < 0 || close_range(BUS_FD + 1, ~0U, 0) < 0)
                return -errno;
        return 0;
}

static int serve(ReplayNode *node) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(cleanup_server_free) Server *server = NULL;
        sigset_t mask;
        int r = sd_event_new(&event);

        /* sd_event_add_child() requires that SIGCHLD is blocked. */
        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &mask, NULL);
        if (r >= 0)
                r = server_new_peer(event, BUS_FD, &replay_node_callbacks, node, &server);
        return r < 0 ? r : sd_event_loop(event);
}

/* Runs in the child. Reads path first and closes the inherited descriptors later, because path may name one of them
 * ("/dev/fd/5"). */
_Noreturn static void run_child(const char *path, const char *config, int report, int bus, pid_t parent) {
        _cleanup_(cleanup_replay_node_free) ReplayNode *node = NULL;
        _cleanup_free_ char *problem = NULL;
        const char *report_text;
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
                _exit(EXIT_FAILURE);
        (void) prctl(PR_SET_NAME, "passthrough-replay");
        r = replay_node_load(path, config, &node, &problem);
        if (r >= 0)
                replay_node_warn(node, path);
        report_text = r < 0 ? problem ?: "Out of memory." : "";
        if (arrange_descriptors(report, bus) < 0 || write(REPORT_FD, report_text, strlen(report_text) + 1) < 0 || r < 0)
                _exit(EXIT_FAILURE);
        (void) close(REPORT_FD);
        _exit(serve(node) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static int start_child(Replay *r, const char *node, const char *config, int report, int bus) {
        pid_t parent = getpid();

        r->pid = fork();
        if (r->pid == 0)
                run_child(node, config, report, bus, parent);
        if (r->pid > 0)
                return 0;
        r->pid = 0;
        return -errno;
}

/* Waits for the report of the child. -EBADMSG if the child failed: *ret_problem is its error message, or unchanged if
 * the child died without a report. Takes ownership of fd. */
static int read_report(int fd, char **ret_problem) {
        _cleanup_free_ char *text = NULL;
        FILE *f = fdopen(fd, "re");
        size_t allocated = 0;
        ssize_t n;

        if (!f) {
                (void) close(fd);
                return -ENOMEM;
        }
        n = getdelim(&text, &allocated, '\0', f);
        (void) fclose(f);
        if (n == 1)
                return 0;
        if (n > 1)
                *ret_problem = TAKE_PTR(text);
        return -EBADMSG;
}

static int start(Replay *r, const char *node, const char *config, char **ret_problem) {
        _cleanup_close_ int bus = -1, report = -1;
        int fds[2], report_end, error;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        r->fd = fds[0];
        bus = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        report_end = fds[0];
        report = fds[1];
        error = start_child(r, node, config, report, bus);
        if (error < 0) {
                (void) close(report_end);
                return error;
        }
        /* Close the write end here, so that the parent reads end of file when the child dies. */
        (void) close(TAKE_FD(report));
        return read_report(report_end, ret_problem);
}

int replay_new(const char *node, const char *config, Replay **ret, char **ret_problem) {
        _cleanup_(cleanup_replay_free) Replay *replay = calloc(1, sizeof(*replay));
        _cleanup_free_ char *problem = NULL;
        int r = -ENOMEM;

        if (replay) {
                replay->fd = -1;
                r = start(replay, node, config, &problem);
        }
        if (r >= 0) {
                *ret = TAKE_PTR(replay);
                return 0;
        }
        if (!problem)
                (void) string_replace(&problem, "The recorded node %s could not be read: %s.", node,
                                      r == -EBADMSG ? "the process that reads it died" : strerror(-r));
        *ret_problem = TAKE_PTR(problem);
        return r;
}

int replay_take_fd(Replay *r) {
        return TAKE_FD(r->fd);
}

Replay *replay_free(Replay *r) {
        if (!r)
                return NULL;
        if (r->fd >= 0)
                (void) close(r->fd);
        /* The child removed its temporary files before it reported, so SIGKILL is safe. */
        if (r->pid > 0) {
                (void) kill(r->pid, SIGKILL);
                while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        free(r);
        return NULL;
}
