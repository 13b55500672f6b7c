/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What happened to devices, one JSON object a line, the same in the history on disk (host/history.h) and in the answer
 * of GetHistory; org.passthroughd1(5) documents the keys. Pure.
 */

#include <json-c/json.h>

#include "ledger/allocation.h"

typedef enum HistoryEvent {
        HISTORY_RESERVED,
        HISTORY_READY,
        HISTORY_RELEASED,
        HISTORY_FAILED,
        HISTORY_RESUMED,
        HISTORY_STUCK,
        HISTORY_UNSTUCK,
        HISTORY_CONTESTED,
        HISTORY_UNCONTESTED,
        HISTORY_VFS_CREATED,
        HISTORY_VFS_CHANGED,
        HISTORY_VFS_REMOVED,
        HISTORY_HARDWARE_CHANGED,
        HISTORY_MISSING,
        HISTORY_BACK,
        HISTORY_MOVED,
        HISTORY_ACCEPTED,
        HISTORY_QUARANTINED,
        HISTORY_CLEARED,
        HISTORY_UNHEALTHY,
        HISTORY_HEALTHY,
        HISTORY_PROMISE_BROKEN,
        HISTORY_PROMISE_KEPT,
        _HISTORY_EVENT_MAX,
        _HISTORY_EVENT_INVALID = -22,
} HistoryEvent;
const char *history_event_to_string(HistoryEvent e);
HistoryEvent history_event_from_string(const char *s);

typedef struct HistoryEntry {
        uint64_t time; /* usec since the epoch */
        HistoryEvent event;
        PciAddress device;
        const Allocation *allocation; /* that has the device, or NULL */
        const char *message;          /* a sentence, cut where it is longer than HISTORY_MESSAGE_MAX */
} HistoryEntry;

#define HISTORY_MESSAGE_MAX 1024U
/* No line is longer; a longer one is not ours. */
#define HISTORY_LINE_MAX    4096U

/* Its line with the newline. Caller frees; NULL when out of memory. */
char *history_format(const HistoryEntry *e);

/* Entries about one device, the newest first. */
typedef struct HistoryList {
        json_object **entries;
        size_t n, max;
} HistoryList;

void history_list_done(HistoryList *l);
#define _cleanup_history_list_ _cleanup_(history_list_done)

/*
 * Adds what the lines of text say of the device, from the last line on and up to l->max; lines that are torn or broken
 * are passed over. Newer texts before older ones. 0 or -ENOMEM.
 */
int history_list_add(HistoryList *l, const char *text, size_t size, PciAddress device);
/* A JSON array, the newest last. Caller frees; NULL when out of memory. */
char *history_list_format(const HistoryList *l);
