/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Replies whose text takes long to compute. Each text is computed in a child process, which has the state of the daemon
 * as it was at fork(), while the event loop serves other calls. The calls of one caller are started in the order in
 * which they arrived. A call is dropped without a reply when its sender leaves the bus.
 *
 * quota.h limits the calls and the processes of each caller.
 */

#include "bus/server.h"
#include "guest/domxml.h"
#include "host/child.h"
#include "host/validator.h"
#include "quota.h"

/* A child is killed after so much CPU time, and after this time: on a busy host it waits for the CPU. */
#define ANSWER_CPU_SEC     20U
#define ANSWER_TIMEOUT_SEC 60U
/* nice(2): the event loop, which other callers wait for, gets the CPU before the children. */
#define ANSWER_NICE        5
/* A longer text is sent as a memfd. */
#define ANSWER_STRING_MAX  16384U

typedef struct Answer Answer;
typedef struct Handout Handout;

/*
 * Runs in the child. Computes the text and writes it with answer_write(), or refuses. Must not call sd-bus or the
 * server's callbacks.
 */
typedef Verdict (*AnswerMake)(const HostView *view, const Answer *a, Refusal *ret);

struct Answer {
        Server *server;
        sd_bus_message *call;
        uint32_t uid; /* of the caller */
        Charge place, process;
        bool replied; /* or the sender is gone */
        AnswerMake make;
        /* The arguments of the call, for make(). Strings without an owner are borrowed from call. */
        Request request;  /* Plan */
        const char *name; /* the allocation */
        char id[37];      /* of the allocation of that name, when the caller was found to have the right to read it */
        DomainTemplate template;
        const char *slot;   /* of the only device to write; NULL: the whole document */
        GuestInfo info;     /* of the whole document */
        const char *format; /* DOCUMENT_FORMAT_*; NULL: xml */
        bool validate;      /* the text is for passthroughd-libvirt: domxml_make_with_lines() */

        int text; /* the memfd that the child writes to; -1: the child was not started */
        ChildWatch child;
        Validator *validator;
        Answer *next;
};

/*
 * Creates the answer to a call. On NULL the caller was sent a refusal, or *ret_reply is a negative errno; the method
 * returns *ret_reply. The method fills in the arguments, and then calls answer_queue() or answer_free().
 */
Answer *answer_new(Server *s, sd_bus_message *call, uint32_t uid, AnswerMake make, int *ret_reply);
Answer *answer_free(Answer *a);
DEFINE_CLEANUP(Answer *, answer_free)
/* Takes ownership. Returns what the method returns. */
int answer_queue(Answer *a);

/* In the child: writes the text, which has a NUL at its end or within. Ends the process on failure, and when the text
 * is not UTF-8. */
void answer_write(const char *text, size_t size);

/* Drops all calls of a connection to the daemon, or with sender those of one client of the bus: kills their children
 * and sends no reply. */
void answers_drop(Server *s, const sd_bus *bus, const char *sender);
/* Kills all children, drops all calls, and forgets all descriptors. */
void answers_done(Server *s);
