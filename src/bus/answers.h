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

/* A child is killed after this CPU time, or after this longer elapsed time, because it may wait for the CPU on a busy
 * host. */
#define ANSWER_CPU_SEC     20U
#define ANSWER_TIMEOUT_SEC 60U
/* Value for nice(2): the event loop, for which other callers wait, gets the CPU before the children. */
#define ANSWER_NICE        5
/* The longest text that is sent as a string; a longer one is sent as a memfd. */
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
        uint32_t uid; /* uid of the caller */
        Charge place, process;
        bool replied; /* a reply was sent, or the sender is gone */
        AnswerMake make;
        /* The arguments of the call, for make(). Strings without an owner are borrowed from call. */
        Request request;  /* Plan */
        const char *name; /* the allocation */
        char id[37];      /* id of this allocation when the caller's right to read it was checked */
        DomainTemplate template;
        const char *slot;   /* slot of the device whose <hostdev> is written; NULL: the whole document */
        GuestInfo info;     /* for the whole document */
        const char *format; /* DOCUMENT_FORMAT_*; NULL: xml */
        bool validate;      /* the text is for passthroughd-libvirt: domxml_make_with_lines() */

        int text; /* memfd to which the child writes; -1: the child was not started */
        ChildWatch child;
        Validator *validator;
        Answer *next;
};

/*
 * Creates the answer to a call. Returns NULL when the caller was sent a refusal, or *ret_reply is a negative errno; the
 * method then returns *ret_reply. Otherwise the method sets the arguments, and calls answer_queue() or answer_free().
 */
Answer *answer_new(Server *s, sd_bus_message *call, uint32_t uid, AnswerMake make, int *ret_reply);
Answer *answer_free(Answer *a);
DEFINE_CLEANUP(Answer *, answer_free)
/* Queues the answer; takes ownership of it. Returns the return value of the method. */
int answer_queue(Answer *a);

/* In the child: writes the text, which has a NUL at its end or within. On failure, or when the text is not UTF-8, ends
 * the process. */
void answer_write(const char *text, size_t size);

/* Drops all calls of a connection to the daemon, or with sender, only those of this client of the bus. Kills their
 * children and sends no reply. */
void answers_drop(Server *s, const sd_bus *bus, const char *sender);
/* Kills all children, drops all calls, and closes all descriptors. */
void answers_done(Server *s);
