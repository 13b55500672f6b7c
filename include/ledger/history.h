/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The history of devices: one JSON object a line. The file on disk (host/history.h) and the answer of GetHistory have
 * the same format; org.passthroughd1(5) documents the keys. Pure.
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
        uint64_t time; /* microseconds since the epoch */
        HistoryEvent event;
        PciAddress device;
        const Allocation *allocation; /* the allocation that has the device, or NULL */
        const char *message;          /* a sentence, cut at HISTORY_MESSAGE_MAX bytes */
} HistoryEntry;

#define HISTORY_MESSAGE_MAX 1024U
/* The longest line that history_format() makes; a longer line in the file is ignored. */
#define HISTORY_LINE_MAX    4096U

/* Formats the entry as a line with a newline. The caller frees; NULL when out of memory. */
char *history_format(const HistoryEntry *e);

/* Entries about one device, newest first. */
typedef struct HistoryList {
        json_object **entries;
        size_t n, max;
} HistoryList;

void history_list_done(HistoryList *l);
#define _cleanup_history_list_ _cleanup_(history_list_done)

/*
 * Adds the entries about device in text, last line first, until the list has l->max entries. Torn or invalid lines are
 * skipped. When there are several texts, add the newer one first. 0 or -ENOMEM.
 */
int history_list_add(HistoryList *l, const char *text, size_t size, PciAddress device);
/* Formats the entries as a JSON array, newest last. The caller frees; NULL when out of memory. */
char *history_list_format(const HistoryList *l);
