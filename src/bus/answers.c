/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "answers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "error.h"
#include "json.h"
#include "server-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

/* The exit status of a child is its verdict, or ANSWER_FAILED. If the child refuses, it writes two strings, each with a
 * NUL: the message and the refusal as JSON. */
#define ANSWER_FAILED 255

_Static_assert(_VERDICT_MAX < ANSWER_FAILED, "a verdict is an exit status");

/* Returns true when the sender made the call on this connection of the daemon. sender NULL: any sender. */
static bool is_of(const Answer *a, const sd_bus *bus, const char *sender) {
        return sd_bus_message_get_bus(a->call) == bus &&
               (!sender || streq_ptr(sd_bus_message_get_sender(a->call), sender));
}

static bool is_running(const Answer *a) {
        return a->process.account;
}

Answer *answer_free(Answer *a) {
        if (!a)
                return NULL;
        child_watch_done(&a->child);
        validator_free(a->validator);
        cleanup_close(&a->text);
        request_done(&a->request);
        quota_give_back(&a->process);
        quota_give_back(&a->place);
        sd_bus_message_unref(a->call);
        free(a);
        return NULL;
}

Answer *answer_new(Server *s, sd_bus_message *call, uint32_t uid, AnswerMake make, int *ret_reply) {
        _cleanup_(cleanup_answer_free) Answer *a = calloc(1, sizeof(*a));
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (!a) {
                *ret_reply = -ENOMEM;
                return NULL;
        }
        a->server = s;
        a->call = sd_bus_message_ref(call);
        a->uid = uid;
        a->make = make;
        a->text = -1;
        request_init(&a->request);
        if (quota_charge(&s->quota, call, uid, QUOTA_ANSWERS, 1, &a->place))
                return TAKE_PTR(a);
        (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Wait for the replies to earlier calls.",
                      "Too many calls wait for their replies.");
        *ret_reply = refuse_sender(s, call, &refusal);
        return NULL;
}

/* The functions of the child, which writes the text. */

void answer_write(const char *text, size_t size) {
        /* Without this check the bus would disconnect the daemon for a string that is not UTF-8. */
        if (!text_is_utf8(text) || write_all_fd(CHILD_REPORT_FD, text, size) < 0)
                _exit(ANSWER_FAILED);
}

static void write_refusal(const Refusal *r) {
        _cleanup_json_ json_object *o = json_refusal(r);
        _cleanup_free_ char *json = json_text(o), *message = refusal_text(r);

        if (!json || !message)
                _exit(ANSWER_FAILED);
        answer_write(message, strlen(message) + 1);
        answer_write(json, strlen(json) + 1);
}

_Noreturn static void run_child(const Answer *a, pid_t parent) {
        HostView view = server_view(a->server);
        Refusal refusal = { 0 };
        Verdict v;

        /* The argument `go` is a->text too: this child does not wait for a byte from its parent, so it needs no other
         * descriptor. */
        if (child_settle(parent, "passthrough-txt", a->text, a->text, -1) < 0)
                _exit(ANSWER_FAILED);
        (void) setpriority(PRIO_PROCESS, 0, ANSWER_NICE);
        (void) setrlimit(RLIMIT_CPU, &(struct rlimit) { ANSWER_CPU_SEC, ANSWER_CPU_SEC });
        v = a->make(&view, a, &refusal);
        if (v != VERDICT_NONE)
                write_refusal(&refusal);
        _exit((int) v);
}

/* Long replies. Each is a memfd that can no longer be changed. When the daemon handles another answer, or when a client
 * disconnects, sweep_handouts() closes the memfds that their clients have closed, which frees the memory. */

struct Handout {
        Handout *next;
        Charge descriptor, bytes;
        int text; /* the daemon's descriptor of the memfd; it and the client's descriptor have separate open file
                     descriptions */
};

static Handout *handout_free(Handout *h) {
        if (!h)
                return NULL;
        quota_give_back(&h->descriptor);
        quota_give_back(&h->bytes);
        cleanup_close(&h->text);
        free(h);
        return NULL;
}
DEFINE_CLEANUP(Handout *, handout_free)

/* Returns true when the client has closed its descriptor: then the kernel grants a write lease, as the memfd is open
 * nowhere else, not mapped, and not in flight in a socket. A client could interfere with a lock, but not with a
 * lease. */
static bool is_closed(const Handout *h) {
        if (fcntl(h->text, F_SETLEASE, F_WRLCK) < 0)
                return false;
        (void) fcntl(h->text, F_SETLEASE, F_UNLCK);
        return true;
}

/* Closes the memfds that their clients have closed. */
static void sweep_handouts(Server *s) {
        for (Handout **i = &s->handouts; *i;) {
                Handout *h = *i;

                if (!is_closed(h)) {
                        i = &h->next;
                        continue;
                }
                *i = h->next;
                handout_free(h);
        }
}

/* Opens the memfd again, for reading only. Returns a descriptor or a negative errno. */
static int open_again(int text) {
        char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
        int fd;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", text);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int seal(int text) {
        return fcntl(text, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0 ? -errno : 0;
}

/* Replies to call with a variant that holds a descriptor of the memfd `text`. Takes ownership of `text`. Returns 0 or a
 * negative errno; -EDQUOT when the caller, or all callers together, have too many descriptors of replies open, or too
 * many bytes in them. */
static int handout_reply(Server *s, sd_bus_message *call, uint32_t uid, int text, uint64_t size) {
        _cleanup_(cleanup_handout_free) Handout *h = calloc(1, sizeof(*h));
        _cleanup_close_ int owned = text, fd = -1;
        int r;

        if (!h)
                return -ENOMEM;
        h->text = -1;
        sweep_handouts(s);
        if (!quota_charge(&s->quota, call, uid, QUOTA_DESCRIPTORS, 1, &h->descriptor) ||
            !quota_charge(&s->quota, call, uid, QUOTA_DESCRIPTOR_BYTES, size, &h->bytes))
                return -EDQUOT;
        r = seal(owned);
        if (r < 0)
                return r;
        fd = open_again(owned);
        h->text = open_again(owned);
        if (fd < 0 || h->text < 0)
                return MIN(fd, h->text);
        r = sd_bus_reply_method_return(call, "v", "h", fd);
        if (r < 0)
                return r;
        h->next = s->handouts;
        s->handouts = TAKE_PTR(h);
        return 0;
}

/* The functions of the daemon, which sends at most one reply to each call. If sending a refusal fails, the daemon does
 * not try again. */

static void reply_refusal(Answer *a, const Refusal *refusal) {
        if (!a->replied)
                (void) bus_reply_refusal(a->call, refusal);
        a->replied = true;
}

static void refuse_failed(Answer *a, const char *reason) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        (void) refuse(&refusal, VERDICT_NOT_ANSWERED, NULL, "Ask for less at once, or try again.",
                      "The process that computes the reply %s.", reason);
        reply_refusal(a, &refusal);
}

static int read_text(const Answer *a, char **ret, size_t *ret_size) {
        return lseek(a->text, 0, SEEK_SET) < 0 ? -errno : read_all_fd(a->text, SIZE_MAX - 1, ret, ret_size);
}

static int reply_written_refusal(Answer *a, Verdict v) {
        _cleanup_free_ char *message = NULL;
        size_t size, length;
        int r = read_text(a, &message, &size);

        if (r < 0)
                return r;
        length = strlen(message);
        return length < size ? bus_reply_verdict(a->call, v, message, message + length + 1) : -EBADMSG;
}

/* Cuts off the lines of the template, which the child has written after the document for the validator only. */
static int cut_lines(const Answer *a) {
        _cleanup_free_ char *text = NULL;
        int r = read_text(a, &text, NULL);

        if (r < 0)
                return r;
        return ftruncate(a->text, (off_t) strlen(text)) < 0 ? -errno : 0;
}

static int reply_text(Answer *a) {
        _cleanup_free_ char *text = NULL;
        struct stat st;
        int r = a->validate ? cut_lines(a) : 0;

        if (r < 0)
                return r;
        if (fstat(a->text, &st) < 0)
                return -errno;
        if (st.st_size > ANSWER_STRING_MAX)
                return handout_reply(a->server, a->call, a->uid, TAKE_FD(a->text), (uint64_t) st.st_size);
        r = read_text(a, &text, NULL);
        return r < 0 ? r : sd_bus_reply_method_return(a->call, "v", "s", text);
}

static void reply_computed(Answer *a) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        int r = reply_text(a);

        if (r == -EDQUOT) {
                (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Close the descriptors of earlier replies.",
                              "Too many descriptors of earlier replies are open.");
                report_refused(a->server, a->call, refusal.message);
                reply_refusal(a, &refusal);
        } else if (r < 0)
                refuse_failed(a, "wrote no reply that can be sent");
        a->replied = true;
}

static void start_answers(Server *s);

static void answer_remove(Answer *a) {
        Server *s = a->server;

        for (Answer **i = &s->answers; *i; i = &(*i)->next)
                if (*i == a) {
                        *i = a->next;
                        break;
                }
        answer_free(a);
}

static void on_validated(const Refusal *refusal, void *userdata) {
        Answer *a = userdata;

        if (refusal)
                reply_refusal(a, refusal);
        else if (!a->replied)
                reply_computed(a);
}

static void on_validator_ended(void *userdata) {
        Answer *a = userdata;
        Server *s = a->server;

        a->validator = NULL;
        answer_remove(a);
        start_answers(s);
}

/* Starts the validation of the document. Returns true when it has begun; the reply is then sent at its end. */
static bool validate(Answer *a) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (validator_start(a->server->event, a->text, on_validated, on_validator_ended, a, &a->validator, &refusal) ==
            VERDICT_NONE)
                return true;
        reply_refusal(a, &refusal);
        return false;
}

/* Handles the text that the child has written. Returns true when the reply is sent later, when the validation ends. */
static bool take_text(Answer *a, const siginfo_t *end) {
        if (a->replied)
                return false;
        if (end->si_code != CLD_EXITED || end->si_status >= _VERDICT_MAX) {
                refuse_failed(a, end->si_code == CLD_EXITED ? "failed" : "was killed");
                return false;
        }
        if (end->si_status == VERDICT_NONE && a->validate)
                return validate(a);
        if (end->si_status == VERDICT_NONE)
                reply_computed(a);
        else if (reply_written_refusal(a, (Verdict) end->si_status) < 0)
                refuse_failed(a, "wrote no refusal that can be sent");
        return false;
}

static int on_exit_of_child(sd_event_source *source, const siginfo_t *end, void *userdata) {
        Answer *a = userdata;
        Server *s = a->server;

        child_watch_done(&a->child);
        if (take_text(a, end))
                return 0;
        answer_remove(a);
        start_answers(s);
        return 0;
}

/* Kills the child, or the validator. The Answer is freed when that process has exited, so that the limits count all
 * processes that exist. */
static void kill_process(Answer *a) {
        a->replied = true;
        child_watch_kill(&a->child);
        if (a->validator)
                validator_kill(a->validator);
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Answer *a = userdata;

        refuse_failed(a, "took too long");
        kill_process(a);
        return 0;
}

static int start(Answer *a) {
        pid_t parent = getpid(), pid;

        a->text = memfd_create("passthroughd-reply", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (a->text < 0)
                return -errno;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                run_child(a, parent);
        return child_watch(&a->child, a->server->event, pid, ANSWER_TIMEOUT_SEC * UINT64_C(1000000), on_exit_of_child,
                           on_timeout, a);
}

/* Starts, as far as the limits allow, each waiting answer whose caller has at most n children. Returns true when a
 * caller with more than n children has a waiting answer. */
static bool start_of_callers(Server *s, uint64_t n) {
        bool more = false;

        for (Answer *a = s->answers, *next; a; a = next) {
                next = a->next;
                if (is_running(a))
                        continue;
                if (quota_used(&s->quota, a->call, a->uid, QUOTA_PROCESSES) > n) {
                        more = true;
                        continue;
                }
                if (quota_charge(&s->quota, a->call, a->uid, QUOTA_PROCESSES, 1, &a->process) && start(a) < 0) {
                        refuse_failed(a, "cannot be started");
                        answer_remove(a);
                }
        }
        return more;
}

/* Starts as many waiting answers as the limits allow, first those of callers with the fewest children. */
static void start_answers(Server *s) {
        uint64_t n = 0;

        sweep_handouts(s);
        while (start_of_callers(s, n))
                n++;
}

int answer_queue(Answer *a) {
        Answer **end = &a->server->answers;

        while (*end)
                end = &(*end)->next;
        *end = a;
        start_answers(a->server);
        return 1;
}

void answers_drop(Server *s, const sd_bus *bus, const char *sender) {
        for (Answer *a = s->answers, *next; a; a = next) {
                next = a->next;
                if (!is_of(a, bus, sender))
                        continue;
                if (is_running(a))
                        kill_process(a);
                else
                        answer_remove(a);
        }
        sweep_handouts(s);
}

void answers_done(Server *s) {
        while (s->answers)
                answer_remove(s->answers);
        while (s->handouts) {
                Handout *h = s->handouts;

                s->handouts = h->next;
                handout_free(h);
        }
}
