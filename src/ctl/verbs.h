/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The verbs. Verbs with little code are in verbs.c; the others are in files of their own, attach and detach in
 * allocate.c, xml and define in domain.c. A verb checks all its arguments before it connects to the daemon. It returns
 * an exit status, or a negative errno, after it has reported the failure. */

#include "options.h"

typedef struct Verb {
        const char *name;
        int (*run)(const Args *args);
        const char *arguments; /* the operands, for --help */
        size_t min, max;       /* the least and the largest number of operands */
        uint64_t options;      /* OPTION_BIT()s of the options besides OPTIONS_GLOBAL */
        const char *help;      /* one line for --help */
        const OptionNote *notes;
        const char *hint; /* text before a surplus operand when it is refused; NULL: none */
} Verb;

/* Runs passthroughctl without a verb. */
int overview_run(const Args *args);

int verb_check(const Args *args);
int verb_suggest(const Args *args);
int verb_list(const Args *args);
int verb_show(const Args *args);
int verb_explain(const Args *args);
int verb_topology(const Args *args);
int verb_plan(const Args *args);
int verb_allocate(const Args *args);
int verb_allocations(const Args *args);
int verb_release(const Args *args);
int verb_accept(const Args *args);
int verb_prepare(const Args *args);
int verb_renew(const Args *args);
int verb_attach(const Args *args);
int verb_detach(const Args *args);
int verb_define(const Args *args);
int verb_xml(const Args *args);
int verb_cdi(const Args *args);
int verb_sriov(const Args *args);
int verb_monitor(const Args *args);
int verb_snapshot(const Args *args);
int verb_history(const Args *args);
int verb_quarantine(const Args *args);
int verb_pools(const Args *args);
int verb_gres(const Args *args);
int verb_nova_config(const Args *args);
int verb_metrics(const Args *args);
int verb_rescan(const Args *args);
int verb_reload(const Args *args);

/* Runs the verb on the node of --host, by ssh. Files that the options name are read and written here, and a file to
 * write keeps its content when the verb fails. Without a file to write, this process becomes ssh. Returns the exit
 * status, or a negative errno, reported. */
int remote_run(const Args *args);
