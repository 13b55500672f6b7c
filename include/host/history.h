/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The history on disk: STATE/history, to which lines of ledger/history.h are appended, and STATE/history.1, the one
 * before it. Nothing is decided by it and nothing waits for the disk: a crash of the machine may take the last lines.
 */

#include "ledger/history.h"

/* Of each of the two files; together they hold at least so much of the past. */
#define HISTORY_FILE_MAX (4U * 1024U * 1024U)

typedef struct History History;

/* Nothing is made before the first line. 0 or a negative errno. */
int history_open(const char *state_dir, History **ret);
History *history_close(History *h);
DEFINE_CLEANUP(History *, history_close)

/* Whole lines, with one write. A line that an earlier write left torn is ended before. */
int history_append(const History *h, const char *lines, size_t size);

/* As history_list_add(), of both files. Those that are not there say nothing. */
int history_read(const History *h, PciAddress device, HistoryList *l);
