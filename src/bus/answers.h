/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Answers: replies whose text takes long to compute. A child process computes each text from the state of the daemon at
 * the time of fork(), while the event loop serves other calls. The calls of one caller are started in the order in
 * which they arrived. A call is dropped without a reply when its sender leaves the bus.
 *
 * quota.h limits the calls and the children of each caller.
 */

#include "bus/server.h"
#include "guest/domxml.h"
#include "host/child.h"
#include "host/validator.h"
#include "quota.h"

/* A child is killed after this much CPU time, or after this much elapsed time, which is longer because a busy host may
 * give the child no CPU. */
#define ANSWER_CPU_SEC     20U
#define ANSWER_TIMEOUT_SEC 60U
/* nice(2) value of the children: the event loop, on which all other callers depend, gets the CPU first. */
#define ANSWER_NICE        5
/* The longest text that is sent as a string. A longer text is sent as a memfd. */
#define ANSWER_STRING_MAX  16384U

typedef struct Answer Answer;
typedef struct Handout Handout;

/* Runs in the child: computes the text and writes it with answer_write(), or refuses. Must not call sd-bus or the
 * callbacks of the server. Returns the verdict. */
typedef Verdict (*AnswerMake)(const HostView *view, const Answer *a, Refusal *ret);

struct Answer {
        Server *server;
        sd_bus_message *call;
        uint32_t uid; /* uid of the caller */
        Charge place, process;
        bool replied; /* a reply was sent, or the sender or the connection is gone */
        AnswerMake make;
        /* The arguments of the call, for AnswerMake. All strings except those of request are borrowed from call. */
        Request request;  /* only of Plan */
        const char *name; /* name of the allocation */
        char id[37];      /* id that the allocation had when the right of the caller to read it was checked */
        DomainTemplate template;
        const char *slot;   /* slot of the device whose <hostdev> is the reply; NULL: the reply is the whole document */
        GuestInfo info;     /* only for the whole document */
        const char *format; /* DOCUMENT_FORMAT_*; NULL: xml */
        bool validate; /* passthroughd-libvirt validates the document before the reply; the child writes the result of
                          domxml_make_with_lines() */

        int text; /* memfd to which the child writes; -1: no child was started, or the reply took the memfd */
        ChildWatch child;
        Validator *validator;
        Answer *next;
};

/* Creates the answer to a call; the method then sets the arguments, and calls answer_queue() or answer_free(). Returns
 * NULL when the caller was sent a refusal, or on an error. The method then returns *ret_reply to sd-bus. */
Answer *answer_new(Server *s, sd_bus_message *call, uint32_t uid, AnswerMake make, int *ret_reply);
Answer *answer_free(Answer *a);
DEFINE_CLEANUP(Answer *, answer_free)
/* Queues the answer; takes ownership of it. The method returns the result to sd-bus. */
int answer_queue(Answer *a);

/* Runs in the child: writes `size` bytes of text, which must have a NUL at or before text[size]. On a failure, or when
 * the text up to the first NUL is not UTF-8, ends the child. */
void answer_write(const char *text, size_t size);

/* Drops the calls that were made on this connection of the daemon: all of them (sender NULL), or only those of one
 * client of the bus. Kills their children and sends no reply. */
void answers_drop(Server *s, const sd_bus *bus, const char *sender);
/* Kills all children, drops all calls, and closes all memfds. */
void answers_done(Server *s);
