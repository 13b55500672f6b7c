/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the daemon says of itself, asked without an error message when it does not answer. */

#include "model/daemon-report.h"
#include "reply.h"

/*
 * Asks the daemon, or with --node the recorded node, for its Description. *ret_node is NULL when ret->unreachable says
 * why there is none. The caller calls daemon_report_done() and frees *ret_node. 0 or -ENOMEM, reported.
 */
int daemon_ask(const Args *args, DaemonReport *ret, json_object **ret_node);

/* The machine to look at: that of --node, else that of the daemon, else that of $PASSTHROUGH_SYSROOT, else this one.
 * Borrowed. */
const char *daemon_node(const Args *args, const DaemonReport *report);
/* The configuration file of that machine; NULL: by the default search. Borrowed. */
const char *daemon_config(const Args *args, const DaemonReport *report);
