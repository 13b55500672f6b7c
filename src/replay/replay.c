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
#include "util/fileio.h"
#include "util/strings.h"

struct Replay {
        pid_t pid; /* 0: no child */
        int fd;    /* the caller's end of the socket pair; -1: replay_take_fd() has returned it */
};

#define BUS_FD 3 /* the child has no other descriptors but stdio */

/* Of the parent's descriptors, keeps only stderr, for messages. If the child kept a pipe open, the reader of the pipe
 * would see no end of file while the child runs. */
static int arrange_descriptors(int bus) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        bus = fcntl(bus, F_DUPFD_CLOEXEC, BUS_FD);
        if (null < 0 || bus < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
            dup2(bus, BUS_FD) < 0 || close_range(BUS_FD + 1, ~0U, 0) < 0)
                return -errno;
        return 0;
}

static int serve(ReplayNode *node) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(cleanup_server_free) Server *server = NULL;
        sigset_t mask;
        int r = sd_event_new(&event);

        /* sd_event_add_child() needs SIGCHLD to be blocked. */
        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &mask, NULL);
        if (r < 0)
                return r;
        r = server_new_peer(event, BUS_FD, &replay_node_callbacks, node, &server);
        return r < 0 ? r : sd_event_loop(event);
}

/* Runs in the child. Reads the node at `path` first, and closes the inherited descriptors later, because `path` may
 * name one of them ("/dev/fd/5"). */
_Noreturn static void run_child(const char *path, const char *config, int bus, pid_t parent) {
        _cleanup_(cleanup_replay_node_free) ReplayNode *node = NULL;
        _cleanup_free_ char *problem = NULL;
        const char *report;
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
                _exit(EXIT_FAILURE);
        (void) prctl(PR_SET_NAME, "passthrough-replay");
        r = replay_node_load(path, config, &node, &problem);
        if (r >= 0)
                replay_node_warn(node, path);
        report = r < 0 ? problem ?: "Out of memory." : "";
        if (arrange_descriptors(bus) < 0 || write_all_fd(BUS_FD, report, strlen(report) + 1) < 0 || r < 0)
                _exit(EXIT_FAILURE);
        _exit(serve(node) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/*
 * Reads the child's report, a text that ends with a NUL: "" for success, or an error message. -EBADMSG if the child
 * failed, with *ret_problem unless it died without a report. The stream may read ahead: no D-Bus message can follow,
 * because the client speaks first.
 */
static int read_report(int bus, char **ret_problem) {
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = fcntl(bus, F_DUPFD_CLOEXEC, 0);
        FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
        size_t allocated = 0;
        ssize_t n;

        if (!f)
                return -errno;
        (void) TAKE_FD(fd);
        n = getdelim(&text, &allocated, '\0', f);
        (void) fclose(f);
        if (n == 1)
                return 0;
        if (n > 1)
                *ret_problem = TAKE_PTR(text);
        return -EBADMSG;
}

static int spawn_replay(Replay *r, const char *node, const char *config, char **ret_problem) {
        pid_t parent = getpid(), pid;
        int fds[2], error;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        r->fd = fds[0];
        pid = fork();
        if (pid == 0)
                run_child(node, config, fds[1], parent);
        error = -errno;
        /* Close the child's end here, so that the parent reads end of file when the child dies. */
        (void) close(fds[1]);
        if (pid < 0)
                return error;
        r->pid = pid;
        return read_report(r->fd, ret_problem);
}

int replay_new(const char *node, const char *config, Replay **ret, char **ret_problem) {
        _cleanup_(cleanup_replay_free) Replay *replay = calloc(1, sizeof(*replay));
        _cleanup_free_ char *problem = NULL;
        int r = -ENOMEM;

        if (replay) {
                replay->fd = -1;
                r = spawn_replay(replay, node, config, &problem);
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
