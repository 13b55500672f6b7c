/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formatting and reading of history lines. */

#include "ledger/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "model/json-value.h"
#include "util/strings.h"
#include "util/stringtable.h"

#define USEC_PER_SEC UINT64_C(1000000)

static const char *const history_event_table[_HISTORY_EVENT_MAX] = {
        [HISTORY_RESERVED] = "reserved",
        [HISTORY_READY] = "ready",
        [HISTORY_RELEASED] = "released",
        [HISTORY_FAILED] = "failed",
        [HISTORY_RESUMED] = "resumed",
        [HISTORY_STUCK] = "stuck",
        [HISTORY_UNSTUCK] = "unstuck",
        [HISTORY_CONTESTED] = "contested",
        [HISTORY_UNCONTESTED] = "uncontested",
        [HISTORY_VFS_CREATED] = "vfs-created",
        [HISTORY_VFS_CHANGED] = "vfs-changed",
        [HISTORY_VFS_REMOVED] = "vfs-removed",
        [HISTORY_HARDWARE_CHANGED] = "hardware-changed",
        [HISTORY_MISSING] = "missing",
        [HISTORY_BACK] = "back",
        [HISTORY_MOVED] = "moved",
        [HISTORY_ACCEPTED] = "accepted",
        [HISTORY_QUARANTINED] = "quarantined",
        [HISTORY_CLEARED] = "cleared",
        [HISTORY_UNHEALTHY] = "unhealthy",
        [HISTORY_HEALTHY] = "healthy",
        [HISTORY_PROMISE_BROKEN] = "promise-broken",
        [HISTORY_PROMISE_KEPT] = "promise-kept",
};

DEFINE_STRING_TABLE(history_event, HistoryEvent, _HISTORY_EVENT_MAX)

static json_object *new_time(uint64_t usec) {
        time_t seconds = (time_t) (usec / USEC_PER_SEC);
        char date[32], text[48];
        struct tm tm;

        if (!gmtime_r(&seconds, &tm) || strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
                return NULL;
        (void) snprintf(text, sizeof(text), "%s.%06" PRIu64 "Z", date, usec % USEC_PER_SEC);
        return json_object_new_string(text);
}

/* Cuts a long message between UTF-8 characters. */
static json_object *new_message(const char *s) {
        _cleanup_free_ char *cut = NULL;
        size_t n = HISTORY_MESSAGE_MAX - strlen("...");

        if (strlen(s) <= HISTORY_MESSAGE_MAX)
                return json_object_new_string(s);
        while (n > 0 && ((unsigned char) s[n] & 0xc0) == 0x80)
                n--;
        return string_replace(&cut, "%.*s...", (int) n, s) < 0 ? NULL : json_object_new_string(cut);
}

char *history_format(const HistoryEntry *e) {
        _cleanup_json_ json_object *o = json_object_new_object();
        const Allocation *a = e->allocation;
        _cleanup_free_ char *text = NULL;

        if (!o)
                return NULL;
        /* "device" comes first, because is_about() compares the start of the line. */
        json_object_object_add(o, "device", json_object_new_string(PCI_ADDRESS_STR(e->device)));
        json_object_object_add(o, "time", new_time(e->time));
        json_object_object_add(o, "event", json_object_new_string(history_event_to_string(e->event)));
        json_object_object_add(o, "allocation", a ? json_object_new_string(a->name) : NULL);
        json_object_object_add(o, "owner", a ? json_object_new_int64(a->owner) : NULL);
        json_object_object_add(o, "generation", a ? json_object_new_uint64(a->generation) : NULL);
        json_object_object_add(o, "message", new_message(e->message));
        text = json_text(o, false);
        return text ? string_format("%s\n", text) : NULL;
}

void history_list_done(HistoryList *l) {
        for (size_t i = 0; i < l->n; i++)
                json_object_put(l->entries[i]);
        free(l->entries);
        *l = (HistoryList){ 0 };
}

/* Compares text, because parsing thousands of lines about other devices would be slow. */
static bool is_about(const char *line, size_t size, PciAddress device) {
        char start[48];
        int n = snprintf(start, sizeof(start), "{\"device\":\"%s\",", PCI_ADDRESS_STR(device));

        return n > 0 && (size_t) n <= size && memcmp(line, start, (size_t) n) == 0;
}

static bool has(json_object *o, const char *key, json_type type, bool or_null) {
        json_object *value;

        return json_object_object_get_ex(o, key, &value) && (json_object_is_type(value, type) || (or_null && !value));
}

/* Accepts unknown events, which a newer version may have written. */
static bool is_entry(json_object *o) {
        return json_object_is_type(o, json_type_object) && has(o, "device", json_type_string, false) &&
               has(o, "time", json_type_string, false) && has(o, "event", json_type_string, false) &&
               has(o, "allocation", json_type_string, true) && has(o, "owner", json_type_int, true) &&
               has(o, "generation", json_type_int, true) && has(o, "message", json_type_string, false);
}

/* NULL when the line is not a valid entry. */
static json_object *parse(const char *line, size_t size) {
        _cleanup_json_ json_object *o = NULL;
        char text[HISTORY_LINE_MAX + 1];

        if (size > HISTORY_LINE_MAX)
                return NULL;
        memcpy(text, line, size);
        text[size] = '\0';
        if (strlen(text) != size || !text_is_clean(text))
                return NULL;
        o = json_tokener_parse(text);
        return is_entry(o) ? TAKE_PTR(o) : NULL;
}

int history_list_add(HistoryList *l, const char *text, size_t size, PciAddress device) {
        while (size > 0 && l->n < l->max) {
                const char *newline = memrchr(text, '\n', size), *line = newline ? newline + 1 : text;
                size_t n = size - (size_t) (line - text);
                json_object *o = is_about(line, n, device) ? parse(line, n) : NULL;

                if (o && ARRAY_RESERVE(l->entries, l->n) < 0) {
                        json_object_put(o);
                        return -ENOMEM;
                }
                if (o)
                        l->entries[l->n++] = o;
                size = newline ? (size_t) (newline - text) : 0;
        }
        return 0;
}

char *history_list_format(const HistoryList *l) {
        _cleanup_json_ json_object *array = json_object_new_array();

        for (size_t i = l->n; array && i > 0; i--)
                if (json_object_array_add(array, json_object_get(l->entries[i - 1])) < 0) {
                        json_object_put(l->entries[i - 1]);
                        return NULL;
                }
        return array ? json_text(array, false) : NULL;
}
