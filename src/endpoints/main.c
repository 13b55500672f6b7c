/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughd-endpoints: finds out which endpoints accept connections. It is a service of its own for the reasons in
 * host/endpoints.h. A child process for each endpoint looks up the host and connects, because the lookup may block, or
 * crash in a library. The exit status of the child is the answer. */

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/endpoints.h"
#include "util/log.h"
#include "util/program.h"
#include "util/strings.h"

static const char help[] = "Usage: passthroughd-endpoints [OPTION...]\n"
                           "Tell passthroughd which endpoints of services accept connections. systemd starts\n"
                           "this program for each connection to its socket, which is its standard input.\n"
                           "\n"
                           "  -h, --help      Show this help\n"
                           "  --version       Show the version\n"
                           "\n"
                           "See passthroughd(8).";

/* The exit status of this child, an EndpointAnswer, if its time runs out. */
static volatile sig_atomic_t late;

static void on_alarm(int signal_number _unused_) {
        _exit(late);
}

static void set_alarm(unsigned seconds, EndpointAnswer answer) {
        late = (sig_atomic_t) answer;
        (void) alarm(seconds);
}

/* Returns what an errno of connect() says about the endpoint. An errno that is not listed is a failure of this node,
 * and says nothing about the endpoint. */
static EndpointAnswer answer_of(int error) {
        switch (error) {
        case 0:
                return ENDPOINT_ACCEPTS;
        case ECONNREFUSED:
        case ECONNRESET:
                return ENDPOINT_REFUSES;
        case EINPROGRESS: /* the socket's timeout has passed */
        case ETIMEDOUT:
                return ENDPOINT_SILENT;
        case EHOSTUNREACH:
        case ENETUNREACH:
                return ENDPOINT_UNREACHABLE;
        default:
                return ENDPOINT_UNKNOWN;
        }
}

static EndpointAnswer connect_to(const struct addrinfo *to, const struct timeval *timeout) {
        _cleanup_close_ int fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, to->ai_protocol);

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, timeout, sizeof(*timeout)) < 0)
                return ENDPOINT_UNKNOWN;
        return answer_of(connect(fd, to->ai_addr, to->ai_addrlen) < 0 ? errno : 0);
}

/* Connects to the addresses of the endpoint, until one accepts. Returns ENDPOINT_ACCEPTS then; otherwise the first of
 * the answers in the order of EndpointAnswer, but ENDPOINT_UNKNOWN only if there is no other. */
static EndpointAnswer connect_to_any(const struct addrinfo *list) {
        EndpointAnswer answer = ENDPOINT_UNKNOWN;
        suseconds_t each = ENDPOINT_CONNECT_SEC * 1000000;
        struct timeval timeout;
        unsigned n = 0;

        for (const struct addrinfo *a = list; a; a = a->ai_next)
                n++;
        each /= MAX(n, 1U);
        timeout = (struct timeval) { .tv_sec = each / 1000000, .tv_usec = each % 1000000 };
        for (const struct addrinfo *a = list; a && answer != ENDPOINT_ACCEPTS; a = a->ai_next) {
                EndpointAnswer one = connect_to(a, &timeout);

                if (answer == ENDPOINT_UNKNOWN || (one != ENDPOINT_UNKNOWN && one < answer))
                        answer = one;
        }
        return answer;
}

/* Runs in a child: returns the answer about the endpoint. If no name server answers, nothing is known about the
 * endpoint. */
static EndpointAnswer check(char *endpoint) {
        const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
        char *port = strrchr(endpoint, ':');
        struct addrinfo *list;
        EndpointAnswer answer;
        int r;

        *port++ = '\0';
        set_alarm(ENDPOINT_LOOKUP_SEC, ENDPOINT_UNKNOWN);
        r = getaddrinfo(endpoint, port, &hints, &list);
        if (r != 0)
                return r == EAI_NONAME || r == EAI_NODATA ? ENDPOINT_NAMELESS : ENDPOINT_UNKNOWN;
        set_alarm(ENDPOINT_CONNECT_SEC + 1, ENDPOINT_SILENT);
        answer = connect_to_any(list);
        freeaddrinfo(list);
        return answer;
}

/* Starts a child for each endpoint. pids[i] is 0 if the child for names[i] could not be started. */
static void start(EndpointName *names, pid_t *pids, size_t n) {
        for (size_t i = 0; i < n; i++) {
                pids[i] = fork();
                if (pids[i] == 0) {
                        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                        _exit((int) check(names[i].text));
                }
                pids[i] = MAX(pids[i], 0);
        }
}

static void gather(const pid_t *pids, EndpointAnswer *answers, size_t n) {
        for (size_t i = 0; i < n; i++) {
                int status;

                if (pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status))
                        answers[i] = (EndpointAnswer) WEXITSTATUS(status);
        }
}

static int answer(int fd) {
        static EndpointName names[ENDPOINTS_MAX];
        EndpointAnswer answers[ENDPOINTS_MAX] = { 0 };
        pid_t pids[ENDPOINTS_MAX];
        int n = endpoints_receive(fd, names);

        if (n < 0)
                return n;
        start(names, pids, (size_t) n);
        gather(pids, answers, (size_t) n);
        return endpoints_send(fd, answers, (size_t) n);
}

int main(int argc, char *argv[]) {
        int r = program_read_arguments(argc, argv, "passthroughd-endpoints", help, NULL, 0);

        if (r >= 0)
                return r;
        (void) signal(SIGALRM, on_alarm);
        r = answer(STDIN_FILENO);
        if (r < 0)
                return log_error_errno(r, "Failed to answer a question: %m"), EXIT_FAILURE;
        return EXIT_SUCCESS;
}
