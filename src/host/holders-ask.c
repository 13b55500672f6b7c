/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The question to passthroughd-holders and its answer, from both sides. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "holders-internal.h"
#include "util/log.h"
#include "util/strings.h"

#define NODES_MAX    65536U
#define IGNORED_MAX  65536U
#define PATIENCE_SEC (HOLDER_ANSWER_USEC / 1000000U + 1U)
/* Up to 64 processes of a job ask at a time, and the service may have to start. */
#define PATIENT_SEC  (4U * PATIENCE_SEC)

/* The arrays of nodes and of ignored units follow. */
typedef struct Question {
        uint64_t n_nodes, n_ignored;
} Question;

typedef struct Answer {
        int64_t result; /* of holder_search() */
        uint64_t node;
        Holder holder;
} Answer;

static const char *socket_path;
static unsigned patience_sec = PATIENCE_SEC;
/* The connection of a question that was not answered in time, and the process that has it. A child process closes the
 * descriptors that it inherits. */
static int unanswered = -1;
static pid_t unanswered_pid;
/* The service did not answer the last question. The log has said so. */
static bool is_silent;

void holders_use_socket(const char *path) {
        socket_path = path;
}

void holders_may_block(void) {
        patience_sec = PATIENT_SEC;
}

/* The end of the connection counts as an answer: the next question shows whether the service works. */
static bool is_hanging(void) {
        struct pollfd p = { .fd = unanswered, .events = POLLIN };

        if (unanswered < 0 || unanswered_pid != getpid())
                return false;
        if (poll(&p, 1, 0) == 0)
                return true;
        cleanup_close(&unanswered);
        unanswered = -1;
        return false;
}

static int connect_service(void) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const struct timeval patience = { .tv_sec = patience_sec };
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (fd < 0)
                return -errno;
        if (strlen(socket_path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, socket_path);
        if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
            TEMP_FAILURE_RETRY(connect(fd, (const struct sockaddr *) &address, sizeof(address))) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/*
 * Returns -EAGAIN when the service takes too long. A call on a socket with a timeout fails with EINTR when the process
 * goes on after a stop, for example by a freezer.
 */
static int exchange_question(int fd, const HolderNodes *nodes, Answer *ret) {
        Question q = { .n_nodes = nodes->n, .n_ignored = nodes->n_ignored };
        struct iovec parts[] = {
                { &q, sizeof(q) },
                { nodes->nodes, nodes->n * sizeof(*nodes->nodes) },
                { nodes->ignored, nodes->n_ignored * sizeof(*nodes->ignored) },
        };
        const struct msghdr message = { .msg_iov = parts, .msg_iovlen = ELEMENTSOF(parts) };
        ssize_t n = TEMP_FAILURE_RETRY(sendmsg(fd, &message, MSG_NOSIGNAL));

        if (n < 0)
                return -errno;
        if ((size_t) n != parts[0].iov_len + parts[1].iov_len + parts[2].iov_len)
                return -EAGAIN;
        n = TEMP_FAILURE_RETRY(recv(fd, ret, sizeof(*ret), MSG_WAITALL));
        if (n < 0)
                return -errno;
        return n == sizeof(*ret) && (ret->result <= 0 || ret->node < nodes->n) ? 0 : -ECONNRESET;
}

/* Takes from the answer what a search finds; the rest of a Holder is for the caller of holder_ask(). */
static void take_holder(const Answer *answer, const HolderNodes *nodes, Holder *ret) {
        *ret = (Holder) { .device = nodes->nodes[answer->node].device,
                          .pid = answer->holder.pid,
                          .others = answer->holder.others };
        memcpy(ret->command, answer->holder.command, sizeof(ret->command) - 1);
        memcpy(ret->unit, answer->holder.unit, sizeof(ret->unit) - 1);
}

int holder_ask(const Sysfs *fs, const HolderNodes *nodes, Holder *ret, size_t *ret_node) {
        _cleanup_close_ int fd = -1;
        Answer answer;
        int r;

        if (!socket_path)
                return holder_search_root(fs, nodes, ret, ret_node);
        if (nodes->n > NODES_MAX || nodes->n_ignored > IGNORED_MAX)
                return -E2BIG;
        if (is_hanging())
                return -EHOSTDOWN;
        fd = connect_service();
        r = fd < 0 ? fd : exchange_question(fd, nodes, &answer);
        if (r < 0 && !is_silent)
                log_warning_errno(r, "passthroughd-holders does not answer, so no device is taken or released: %m");
        if (r == -EAGAIN) {
                unanswered = TAKE_FD(fd);
                unanswered_pid = getpid();
        }
        is_silent = r < 0;
        if (r < 0)
                return -EHOSTDOWN;
        if (answer.result > 0)
                take_holder(&answer, nodes, ret);
        *ret_node = answer.node;
        return (int) answer.result;
}

static int receive_part(int fd, void *buf, size_t size) {
        ssize_t n = size > 0 ? recv(fd, buf, size, MSG_WAITALL) : 0;

        if (n < 0)
                return -errno;
        return (size_t) n == size ? 0 : -ECONNRESET;
}

static int receive_question(int fd, HolderNodes *nodes) {
        Question q;
        int r = receive_part(fd, &q, sizeof(q));

        if (r < 0)
                return r;
        if (q.n_nodes > NODES_MAX || q.n_ignored > IGNORED_MAX)
                return -E2BIG;
        nodes->nodes = calloc(q.n_nodes + 1, sizeof(*nodes->nodes));
        nodes->ignored = calloc(q.n_ignored + 1, sizeof(*nodes->ignored));
        if (!nodes->nodes || !nodes->ignored)
                return -ENOMEM;
        nodes->n = q.n_nodes;
        nodes->n_ignored = q.n_ignored;
        r = receive_part(fd, nodes->nodes, nodes->n * sizeof(*nodes->nodes));
        if (r == 0)
                r = receive_part(fd, nodes->ignored, nodes->n_ignored * sizeof(*nodes->ignored));
        for (size_t i = 0; i < nodes->n; i++)
                nodes->nodes[i].name[sizeof(nodes->nodes[i].name) - 1] = '\0';
        for (size_t i = 0; i < nodes->n_ignored; i++)
                nodes->ignored[i].unit[sizeof(nodes->ignored[i].unit) - 1] = '\0';
        return r;
}

int holders_answer(const Sysfs *fs, int fd) {
        _cleanup_(holder_nodes_done) HolderNodes nodes = { 0 };
        Answer answer = { 0 };
        size_t node = 0;
        int r = receive_question(fd, &nodes);

        if (r < 0)
                return r;
        answer.result = holder_search_root(fs, &nodes, &answer.holder, &node);
        answer.node = node;
        return send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0 ? -errno : 0;
}
