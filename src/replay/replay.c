/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process that answers for a recorded machine. */

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
        pid_t pid; /* 0: none */
        int fd;    /* -1: taken */
};

/* The child's descriptors after stdio. */
enum {
        REPORT_FD = 3, /* its word to the parent: a sentence on why it failed, or an empty one, and a NUL */
        BUS_FD,
};

/* Everything of the parent's is closed, so that nobody waits for this process in its place. Messages still go to
 * stderr. */
static int arrange_descriptors(int report, int bus) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (null < 0)
                return -errno;
        /* Out of the way first: what goes to 3 and 4 may be there already. */
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

        /* As sd_event_add_child() wants it. */
        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &mask, NULL);
        if (r >= 0)
                r = server_new_peer(event, BUS_FD, &replay_node_callbacks, node, &server);
        return r < 0 ? r : sd_event_loop(event);
}

/* What the caller names may be one of its descriptors, "/dev/fd/5": they are there until it is read. */
_Noreturn static void run_child(const char *path, const char *config, int report, int bus, pid_t parent) {
        _cleanup_(cleanup_replay_node_free) ReplayNode *node = NULL;
        _cleanup_free_ char *problem = NULL;
        const char *word;
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
                _exit(EXIT_FAILURE);
        (void) prctl(PR_SET_NAME, "passthrough-replay");
        r = replay_node_load(path, config, &node, &problem);
        if (r >= 0)
                replay_node_warn(node, path);
        word = r < 0 ? problem ?: "Out of memory." : "";
        if (arrange_descriptors(report, bus) < 0 || write(REPORT_FD, word, strlen(word) + 1) < 0 || r < 0)
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

/* Waits until the node is read, or cannot be. *ret_problem is NULL when the child died without a word. */
static int read_word(int fd, char **ret_problem) {
        _cleanup_free_ char *word = NULL;
        FILE *f = fdopen(fd, "re");
        size_t allocated = 0;
        ssize_t n;

        if (!f) {
                (void) close(fd);
                return -ENOMEM;
        }
        n = getdelim(&word, &allocated, '\0', f);
        (void) fclose(f);
        if (n == 1)
                return 0;
        if (n > 1)
                *ret_problem = TAKE_PTR(word);
        return -EBADMSG;
}

static int start(Replay *r, const char *node, const char *config, char **ret_problem) {
        _cleanup_close_ int bus = -1, report = -1;
        int fds[2], word, error;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        r->fd = fds[0];
        bus = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        word = fds[0];
        report = fds[1];
        error = start_child(r, node, config, report, bus);
        if (error < 0) {
                (void) close(word);
                return error;
        }
        /* The end of the pipe comes when the child has ended. */
        (void) close(TAKE_FD(report));
        return read_word(word, ret_problem);
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
                                      r == -EBADMSG ? "the process for it died" : strerror(-r));
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
        /* Once it gave its word it has nothing to put away. */
        if (r->pid > 0) {
                (void) kill(r->pid, SIGKILL);
                while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        free(r);
        return NULL;
}
