/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The history on disk: new lines (ledger/history.h) are appended to STATE/history. A full file is renamed to
 * STATE/history.1 and replaces the former one. No decision depends on the history and no write is flushed, so a crash
 * of the machine may lose the last lines.
 */

#include "ledger/history.h"

/* Maximum size of each of the two files, in bytes. Together they hold at least this much history. */
#define HISTORY_FILE_MAX (4U * 1024U * 1024U)

typedef struct History History;

/* Opens the history. The file is created with the first line. Returns 0 or a negative errno. */
int history_open(const char *state_dir, History **ret);
History *history_close(History *h);
DEFINE_CLEANUP(History *, history_close)

/* Appends whole lines with one write. Completes an incomplete last line with a newline first. Returns 0 or a negative
 * errno; -ENOSPC after a short write, -E2BIG when size is too large. */
int history_append(const History *h, const char *lines, size_t size);

/* Calls history_list_add() for both files, the newer one first. A missing file is not an error. */
int history_read(const History *h, PciAddress device, HistoryList *l);
