/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "host/validator.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "host/child.h"
#include "util/strings.h"
#include "virtprogram.h"

#define REMEDY_START "Reinstall the package passthroughd and libvirt's library, or make the request without a template."
#define REMEDY_END   "See the journal, or make the request without a template."

struct Validator {
        ValidatorAnswered answered; /* NULL after it was called */
        ValidatorEnded ended;
        void *userdata;
        int answer; /* where the process's standard output is read */
        ChildWatch child;
};

static Verdict refuse_unknown(Refusal *ret, const char *remedy, const char *reason) {
        return refuse(ret, VERDICT_NOT_VALIDATED, NULL, remedy,
                      "libvirt did not validate the document made from the template: %s.", reason);
}

static void tell_answer(Validator *v, const Refusal *refusal) {
        ValidatorAnswered answered = TAKE_PTR(v->answered);

        if (answered)
                answered(refusal, v->userdata);
}

/* Makes a refusal from the text that passthroughd-libvirt printed, "LINE ELEMENT\nREASON". LINE is 0 when the reason
 * concerns no line of the template. */
static Verdict refuse_invalid(Refusal *ret, char *text) {
        char *reason = text, *name, *first = strsep(&reason, "\n");
        long line = strtol(first, &name, 10);

        if (!reason || *name != ' ')
                return refuse_unknown(ret, REMEDY_END, "the answer of " VALIDATION_PROGRAM " is incomplete");
        virt_make_quotable(reason);
        if (line <= 0)
                return refuse(ret, VERDICT_INVALID_TEMPLATE, NULL, "Try the template with virt-xml-validate.",
                              "libvirt refuses the document made from the template: %s.", reason);
        return refuse(ret, VERDICT_INVALID_TEMPLATE, NULL, "Correct or remove the element.",
                      "libvirt refuses the template's <%s>: %s. See line %ld.", QUOTABLE(name + 1), reason, line);
}

static Verdict read_answer(const Validator *v, const siginfo_t *end, Refusal *ret) {
        char text[VALIDATION_ANSWER_MAX] = "";
        ssize_t n = read(v->answer, text, sizeof(text) - 1);

        text[n > 0 ? n : 0] = '\0';
        if (end->si_code != CLD_EXITED)
                return refuse_unknown(ret, REMEDY_END, VALIDATION_PROGRAM " was killed");
        switch (end->si_status) {
        case VALIDATION_VALID:
                return VERDICT_NONE;
        case VALIDATION_INVALID:
                return refuse_invalid(ret, text);
        case VALIDATION_UNKNOWN:
                virt_make_quotable(text);
                return refuse_unknown(ret, REMEDY_START, text);
        default:
                return refuse_unknown(ret, REMEDY_START, VALIDATION_PROGRAM " failed");
        }
}

static int on_validation_end(sd_event_source *source, const siginfo_t *end, void *userdata) {
        Validator *v = userdata;
        _cleanup_refusal_ Refusal refusal = { 0 };
        ValidatorEnded ended = v->ended;
        void *owner = v->userdata;

        tell_answer(v, read_answer(v, end, &refusal) == VERDICT_NONE ? NULL : &refusal);
        validator_free(v);
        ended(owner);
        return 0;
}

void validator_kill(Validator *v) {
        child_watch_kill(&v->child);
}

static int on_validation_late(sd_event_source *source, uint64_t usec, void *userdata) {
        Validator *v = userdata;
        _cleanup_refusal_ Refusal refusal = { 0 };

        validator_kill(v);
        (void) refuse_unknown(&refusal, REMEDY_END, VALIDATION_PROGRAM " takes too long");
        tell_answer(v, &refusal);
        return 0;
}

Validator *validator_free(Validator *v) {
        if (!v)
                return NULL;
        child_watch_done(&v->child);
        cleanup_close(&v->answer);
        free(v);
        return NULL;
}
DEFINE_CLEANUP(Validator *, validator_free)

static int start_process(Validator *v, sd_event *event, int document) {
        _cleanup_close_ int output = -1;
        int fds[2], r;
        pid_t pid;

        if (lseek(document, 0, SEEK_SET) < 0)
                return -errno;
        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        v->answer = fds[0];
        output = fds[1];
        r = virt_program_start(NULL, 0, document, output, &pid);
        return r < 0 ? r
                     : child_watch(&v->child, event, pid, VALIDATION_TIMEOUT_SEC * UINT64_C(1000000), on_validation_end,
                                   on_validation_late, v);
}

Verdict validator_start(sd_event *event, int document, ValidatorAnswered answered, ValidatorEnded ended, void *userdata,
                        Validator **ret, Refusal *ret_refusal) {
        _cleanup_(cleanup_validator_free) Validator *v = calloc(1, sizeof(*v));
        int r;

        if (!v)
                return refuse_no_memory(ret_refusal);
        *v = (Validator) { .answered = answered, .ended = ended, .userdata = userdata, .answer = -1 };
        r = start_process(v, event, document);
        if (r < 0)
                return refuse(ret_refusal, VERDICT_NOT_VALIDATED, NULL, REMEDY_START,
                              "libvirt did not validate the document made from the template: " VALIDATION_PROGRAM
                              " cannot be started: %s.",
                              strerror(-r));
        *ret = TAKE_PTR(v);
        return VERDICT_NONE;
}
