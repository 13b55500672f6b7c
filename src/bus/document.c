/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GetDomainXML and GetNcclTopology. GetDomainXML replies with a document made from a template only after libvirt
 * validated the document. A separate process validates one document at a time; the event loop serves other calls
 * meanwhile. */

#include <errno.h>

#include "bus/names.h"
#include "error.h"
#include "guest/domxml.h"
#include "server-internal.h"
#include "util/strings.h"

/* Parses one option. *ret is borrowed from the message. */
static Verdict read_option(sd_bus_message *m, const char *key, DomainTemplate *ret, Refusal *ret_refusal) {
        bool is_text = streq(key, OPTION_KEY_TEMPLATE);
        int r, permitted;

        if (!is_text && !streq(key, OPTION_KEY_QEMU_COMMANDLINE))
                return refuse_request(
                        ret_refusal, "The options are '" OPTION_KEY_TEMPLATE "' and '" OPTION_KEY_QEMU_COMMANDLINE "'.",
                        "There is no option '%s'.", QUOTABLE(key));
        r = is_text ? sd_bus_message_read(m, "v", "s", &ret->text) : sd_bus_message_read(m, "v", "b", &permitted);
        if (r < 0)
                return refuse_request(ret_refusal, NULL, "The option '%s' is not a %s.", key,
                                      is_text ? "string" : "boolean");
        if (!is_text)
                ret->qemu_commandline = permitted;
        return VERDICT_NONE;
}

/* Parses the options (a{sv}). */
static Verdict read_options(sd_bus_message *m, DomainTemplate *ret, Refusal *ret_refusal) {
        const char *key;
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                Verdict v;

                r = sd_bus_message_read(m, "s", &key);
                if (r < 0)
                        break;
                v = read_option(m, key, ret, ret_refusal);
                if (v != VERDICT_NONE)
                        return v;
                r = sd_bus_message_exit_container(m);
        }
        if (r < 0)
                return refuse_request(ret_refusal, NULL, "The options could not be read.");
        return VERDICT_NONE;
}

static Verdict check_state(const Allocation *a, Refusal *ret) {
        if (a->state != ALLOCATION_FAILED && a->state != ALLOCATION_RELEASING)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_WRONG_STATE, NULL,
                      a->state == ALLOCATION_FAILED ? "Release the allocation and allocate again."
                                                    : "Allocate again after the release.",
                      "Allocation '%s' is %s: no guest can start with it.%s%s", a->name,
                      allocation_state_to_string(allocation_shown_state(a)), a->reason ? " " : "", a->reason ?: "");
}

/* Reads and checks the arguments of both methods. On NULL the caller was sent an error or *ret_reply is a negative
 * errno; the method returns *ret_reply. */
static const Allocation *read_call(Server *s, sd_bus_message *call, HostView *ret_view, DomainTemplate *ret_template,
                                   int *ret_reply) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        const Allocation *a;
        const char *name;

        *ret_reply = sd_bus_message_read(call, "s", &name);
        if (*ret_reply < 0)
                return NULL;
        if (read_options(call, ret_template, &refusal) != VERDICT_NONE ||
            s->callbacks->check_runnable(s->userdata, name, &refusal) != VERDICT_NONE) {
                *ret_reply = bus_reply_refusal(call, &refusal);
                return NULL;
        }
        *ret_view = server_view(s);
        a = bus_find_allocation(call, ret_view, name, ret_reply);
        if (!a || check_state(a, &refusal) == VERDICT_NONE)
                return a;
        *ret_reply = bus_reply_refusal(call, &refusal);
        return NULL;
}

static void document_done(WaitingDocument *w) {
        sd_bus_message_unref(w->call);
        free(w->document);
        *w = (WaitingDocument){ 0 };
}

void documents_done(Server *s) {
        s->validator = validator_free(s->validator);
        while (s->n_documents > 0)
                document_done(&s->documents[--s->n_documents]);
}

/* Replies to the oldest call: with the refusal, or with the document if refusal is NULL. */
static void answer_oldest(Server *s, const Refusal *refusal) {
        _cleanup_(document_done) WaitingDocument w = s->documents[0];

        s->n_documents--;
        memmove(&s->documents[0], &s->documents[1], s->n_documents * sizeof(s->documents[0]));
        if (refusal)
                (void) bus_reply_refusal(w.call, refusal);
        else
                (void) sd_bus_reply_method_return(w.call, "s", w.document);
}

/* After a time-out the validator process may never exit, and no other document can be validated until it does. So this
 * sends the refusal to all queued calls. */
static void on_answered(const Refusal *refusal, void *userdata) {
        Server *s = userdata;

        answer_oldest(s, refusal);
        while (s->n_documents > 0 && validator_is_late(s->validator))
                answer_oldest(s, refusal);
}

static void validate_oldest(Server *s);

static void on_ended(void *userdata) {
        Server *s = userdata;

        s->validator = NULL;
        validate_oldest(s);
}

static void validate_oldest(Server *s) {
        while (s->n_documents > 0 && !s->validator) {
                const WaitingDocument *w = &s->documents[0];
                _cleanup_refusal_ Refusal refusal = { 0 };

                if (validator_start(s->event, w->document, w->size, on_answered, on_ended, s, &s->validator,
                                    &refusal) != VERDICT_NONE)
                        answer_oldest(s, &refusal);
        }
}

/* sender: NULL for a peer without a bus. All such peers count as one. */
static size_t count_waiting(const Server *s, const char *sender) {
        size_t n = 0;

        for (size_t i = 0; i < s->n_documents; i++)
                n += streq_ptr(sd_bus_message_get_sender(s->documents[i].call), sender);
        return n;
}

/* Takes ownership of the document. */
static int validate_and_reply(Server *s, sd_bus_message *call, char *document, size_t size) {
        _cleanup_free_ char *owned = document;
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (s->n_documents >= DOCUMENTS_WAITING_MAX ||
            count_waiting(s, sd_bus_message_get_sender(call)) >= DOCUMENTS_WAITING_OF_ONE)
                (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Wait for the replies to earlier calls.",
                              "Too many documents wait for libvirt to validate them.");
        else if (s->validator && validator_is_late(s->validator))
                (void) refuse(&refusal, VERDICT_NOT_VALIDATED, NULL,
                              "See the journal of passthroughd, or ask without a template.",
                              "libvirt did not validate an earlier document in time, and the validating process does "
                              "not exit.");
        if (refusal.verdict != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        s->documents[s->n_documents++] =
                (WaitingDocument){ .call = sd_bus_message_ref(call), .document = TAKE_PTR(owned), .size = size };
        validate_oldest(s);
        return 1;
}

int bus_method_get_domain_xml(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_free_ char *document = NULL;
        DomainTemplate template = { 0 };
        const Allocation *a;
        HostView view;
        size_t size;
        int r;

        a = read_call(userdata, call, &view, &template, &r);
        if (!a)
                return r;
        if (domxml_make_with_lines(view.inventory, view.config, a, template.text ? &template : NULL, &document, &size,
                                   &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        /* passthroughd wrote all of a document without a template. Such a document is always valid. */
        return template.text ? validate_and_reply(userdata, call, TAKE_PTR(document), size)
                             : sd_bus_reply_method_return(call, "s", document);
}

int bus_method_get_nccl_topology(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_free_ char *document = NULL;
        DomainTemplate template = { 0 };
        const Allocation *a;
        HostView view;
        int r;

        a = read_call(userdata, call, &view, &template, &r);
        if (!a)
                return r;
        if (domxml_nccl_topology(view.inventory, view.config, a, template.text ? &template : NULL, &document,
                                 &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return sd_bus_reply_method_return(call, "s", document);
}
