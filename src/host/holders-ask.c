/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks and answers the question to passthroughd-holders. */

#include <errno.h>
#include <poll.h>

#include "holders-internal.h"
#include "util/log.h"
#include "util/wire.h"

#define NODES_MAX    65536U
#define IGNORED_MAX  65536U
#define PATIENCE_SEC (HOLDER_ANSWER_USEC / 1000000U + 1U)
/* For processes that may block: up to 64 processes of a job ask at the same time, and systemd may have to start the
 * service. */
#define PATIENT_SEC  (4U * PATIENCE_SEC)

/* Head of a question. Nodes and ignored units follow in the message. */
typedef struct Question {
        uint64_t n_nodes, n_ignored;
} Question;
#define QUESTION_SIZE(n_nodes, n_ignored)                                                                              \
        (sizeof(Question) + (n_nodes) * sizeof(HolderNode) + (n_ignored) * sizeof(HolderIgnored))

/* An answer. The code of its message is what holder_search_root() returned. */
typedef struct Answer {
        uint64_t node;
        Holder holder;
} Answer;

static const char *socket_path;
static unsigned patience_sec = PATIENCE_SEC;
/* Connection of a question that has no answer yet, and the process that asked. A child process closes the connection,
 * like all descriptors that it inherits. */
static int unanswered = -1;
static pid_t unanswered_pid;
/* True after a warning that the service does not answer, until it answers. */
static bool is_silent;

void holders_use_socket(const char *path) {
        socket_path = path;
}

void holders_may_block(void) {
        patience_sec = PATIENT_SEC;
}

/* Returns true while the last question of this process has no answer. When an answer has come at last, or the service
 * has closed the connection, drops that question and returns false: the next question will tell whether the service
 * answers. */
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

static int exchange_question(int fd, const HolderNodes *nodes, WireMessage *ret) {
        const Question q = { .n_nodes = nodes->n, .n_ignored = nodes->n_ignored };
        const struct iovec parts[] = {
                { (void *) &q, sizeof(q) },
                { nodes->nodes, nodes->n * sizeof(*nodes->nodes) },
                { nodes->ignored, nodes->n_ignored * sizeof(*nodes->ignored) },
        };
        int r = wire_exchange(fd, 0, parts, ELEMENTSOF(parts), sizeof(Answer), ret);

        if (r < 0)
                return r;
        return ret->size == sizeof(Answer) && (ret->code <= 0 || ((const Answer *) ret->data)->node < nodes->n)
                       ? 0
                       : -EBADMSG;
}

/* Copies the members that holder_search() sets. The caller of holder_ask() sets the other members. */
static void take_holder(const Answer *answer, const HolderNodes *nodes, Holder *ret) {
        *ret = (Holder) { .device = nodes->nodes[answer->node].device,
                          .pid = answer->holder.pid,
                          .others = answer->holder.others };
        memcpy(ret->command, answer->holder.command, sizeof(ret->command) - 1);
        memcpy(ret->unit, answer->holder.unit, sizeof(ret->unit) - 1);
}

int holder_ask(const Sysfs *fs, const HolderNodes *nodes, Holder *ret, size_t *ret_node) {
        _cleanup_wire_ WireMessage m = { 0 };
        _cleanup_close_ int fd = -1;
        const Answer *answer;
        int r;

        if (!socket_path)
                return holder_search_root(fs, nodes, ret, ret_node);
        if (nodes->n > NODES_MAX || nodes->n_ignored > IGNORED_MAX)
                return -E2BIG;
        if (is_hanging())
                return -EHOSTDOWN;
        fd = wire_connect(socket_path, patience_sec * UINT64_C(1000000));
        r = fd < 0 ? fd : exchange_question(fd, nodes, &m);
        if (r < 0 && !is_silent)
                log_warning_errno(r, "passthroughd-holders does not answer, so no device is taken or released: %m");
        if (r == -EAGAIN) {
                unanswered = TAKE_FD(fd);
                unanswered_pid = getpid();
        }
        is_silent = r < 0;
        if (r < 0)
                return -EHOSTDOWN;
        answer = m.data;
        if (m.code > 0)
                take_holder(answer, nodes, ret);
        *ret_node = answer->node;
        return m.code;
}

/* Reads the nodes and units of a question; they point into the message. Returns 0 or -EBADMSG. */
static int read_question(const WireMessage *m, HolderNodes *nodes) {
        Question *q = m->data;

        if (m->size < sizeof(*q) || q->n_nodes > NODES_MAX || q->n_ignored > IGNORED_MAX ||
            m->size != QUESTION_SIZE(q->n_nodes, q->n_ignored))
                return -EBADMSG;
        nodes->n = q->n_nodes;
        nodes->n_ignored = q->n_ignored;
        nodes->nodes = (void *) (q + 1);
        nodes->ignored = (void *) (nodes->nodes + nodes->n);
        for (size_t i = 0; i < nodes->n; i++)
                nodes->nodes[i].name[sizeof(nodes->nodes[i].name) - 1] = '\0';
        for (size_t i = 0; i < nodes->n_ignored; i++)
                nodes->ignored[i].unit[sizeof(nodes->ignored[i].unit) - 1] = '\0';
        return 0;
}

int holders_answer(const Sysfs *fs, int fd) {
        _cleanup_wire_ WireMessage m = { 0 };
        HolderNodes nodes = { 0 };
        Answer answer = { 0 };
        size_t node = 0;
        int r = wire_receive(fd, QUESTION_SIZE(NODES_MAX, IGNORED_MAX), &m);

        if (r < 0)
                return r;
        r = read_question(&m, &nodes);
        if (r < 0)
                return r;
        r = holder_search_root(fs, &nodes, &answer.holder, &node);
        answer.node = node;
        return wire_send(fd, r, &(struct iovec) { &answer, sizeof(answer) }, 1);
}
