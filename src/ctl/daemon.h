/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Asks the daemon about its state. That the daemon does not answer is no error here. */

#include "model/daemon-report.h"
#include "reply.h"

/* Calls Describe of the daemon, or with --node of the recorded node, and sets *ret_node to the reply. If there is no
 * reply, *ret_node stays NULL, as the caller has set it, and ret->unreachable is the reason. The caller frees *ret_node
 * and calls daemon_report_done(). Returns 0 or -ENOMEM, reported. */
int daemon_ask(const Args *args, DaemonReport *ret, json_object **ret_node);

/* Returns the machine to examine, a root directory or a .tree file: that of --node, else the daemon's, else
 * $PASSTHROUGH_SYSROOT, else "/". Borrowed. */
const char *daemon_node(const Args *args, const DaemonReport *report);
/* Returns the path of that machine's configuration; NULL: the default search, or the recorded configuration. Borrowed.
 */
const char *daemon_config(const Args *args, const DaemonReport *report);
