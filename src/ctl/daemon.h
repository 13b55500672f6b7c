/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Asks the daemon about its state, without an error message when it does not answer. */

#include "model/daemon-report.h"
#include "reply.h"

/*
 * Calls Describe of the daemon, or with --node of the recorded node. *ret_node is NULL when ret->unreachable says why
 * there is no reply. The caller calls daemon_report_done() and frees *ret_node. 0 or -ENOMEM, reported.
 */
int daemon_ask(const Args *args, DaemonReport *ret, json_object **ret_node);

/* Returns the machine to examine: that of --node, else that of the daemon, else that of $PASSTHROUGH_SYSROOT, else this
 * one. Borrowed. */
const char *daemon_node(const Args *args, const DaemonReport *report);
/* Returns the configuration file of that machine; NULL: the default search. Borrowed. */
const char *daemon_config(const Args *args, const DaemonReport *report);
