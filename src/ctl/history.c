/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl history: prints the events of a device that log_event() has sent to the journal of this machine. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <systemd/sd-journal.h>

#include "document.h"
#include "reply.h"
#include "report.h"
#include "table.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"

#define DAEMON_USER "passthroughd"

static const Column columns[] = {
        { "TIME", "time" },
        { "EVENT", "event" },
        { "OWNER", .text = view_owner },
        { "GENERATION", "generation", .right = true, .wide = true },
        { "ALLOCATION", "allocation", .wide = true }, /* most messages name the allocation, too */
        { "MESSAGE", "message", .wrapped = true },
};

DEFINE_CLEANUP(sd_journal *, sd_journal_close)

/* Opens the journal. Fails when sd-journal has opened no file: there is none, or the user may read none. */
static int open_journal(const Args *args, sd_journal **ret) {
        _cleanup_(cleanup_sd_journal_close) sd_journal *j = NULL;
        int r = sd_journal_open(&j, SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_SYSTEM);

        if (r < 0)
                return report_errno(args, r, "Cannot open the journal");
        if (sd_journal_has_runtime_files(j) <= 0 && sd_journal_has_persistent_files(j) <= 0) {
                if (geteuid() == 0)
                        (void) report_failure(args, SD_BUS_ERROR_FILE_NOT_FOUND, "This node has no journal.");
                else
                        (void) report_failure(args, SD_BUS_ERROR_ACCESS_DENIED,
                                              "Only root and members of the group 'systemd-journal' or 'adm' may read "
                                              "the journal of this node: sudo usermod -aG systemd-journal USER, then "
                                              "log in again.");
                return -EACCES;
        }
        *ret = TAKE_PTR(j);
        return 0;
}

/* Returns a field of the current entry. The caller frees; NULL when the entry does not have the field. */
static json_object *new_text(sd_journal *j, const char *field) {
        size_t n, skip = strlen(field) + strlen("=");
        const void *data;

        if (sd_journal_get_data(j, field, &data, &n) < 0 || n < skip)
                return NULL;
        return json_object_new_string_len((const char *) data + skip, (int) (n - skip));
}

static json_object *new_number(sd_journal *j, const char *field) {
        _cleanup_json_ json_object *text = new_text(j, field);
        uint64_t number;

        return text && parse_unsigned(json_object_get_string(text), UINT64_MAX, &number) == 0
                       ? json_object_new_uint64(number)
                       : NULL;
}

/* Adds the current entry to entries, if it is an event. Other messages about the device have no PASSTHROUGH_EVENT.
 * Returns 0 or -ENOMEM. */
static int add_entry(sd_journal *j, const char *address, bool local, json_object *entries) {
        json_object *event = new_text(j, "PASSTHROUGH_EVENT"), *o;
        char time[DOCUMENT_TIME_MAX];
        uint64_t usec = 0;

        if (!event)
                return 0;
        (void) sd_journal_get_realtime_usec(j, &usec);
        document_time(usec, local, time);
        o = json_object_new_object();
        if (!o || json_object_array_add(entries, o) < 0) {
                json_object_put(event);
                json_object_put(o);
                return -ENOMEM;
        }
        json_object_object_add(o, "device", json_object_new_string(address));
        json_object_object_add(o, "time", json_object_new_string(time));
        json_object_object_add(o, "event", event);
        json_object_object_add(o, "allocation", new_text(j, "PASSTHROUGH_ALLOCATION"));
        json_object_object_add(o, "owner", new_number(j, "PASSTHROUGH_OWNER"));
        json_object_object_add(o, "generation", new_number(j, "PASSTHROUGH_GENERATION"));
        json_object_object_add(o, "message", new_text(j, "MESSAGE"));
        return 0;
}

/* Matches entries of the daemon by its uid, or by root's uid, with which version 0.1 ran. No other user can send such
 * entries. */
static int match_daemon(sd_journal *j) {
        /* cppcheck-suppress getpwnamCalled ; passthroughctl has one thread */
        const struct passwd *user = getpwnam(DAEMON_USER);
        char match[32];
        int r = sd_journal_add_match(j, "_UID=0", 0);

        if (r < 0 || !user)
                return r;
        (void) snprintf(match, sizeof(match), "_UID=%u", user->pw_uid);
        return sd_journal_add_match(j, match, 0);
}

/* Reads the last `max` events of the device, newest first. Returns 0 or a negative errno. */
static int read_newest_first(sd_journal *j, const char *address, size_t max, bool local, json_object *entries) {
        char match[sizeof("PASSTHROUGH_DEVICE=") + PCI_ADDRESS_STRING_MAX];
        int r;

        (void) snprintf(match, sizeof(match), "PASSTHROUGH_DEVICE=%s", address);
        r = match_daemon(j);
        if (r < 0)
                return r;
        r = sd_journal_add_match(j, match, 0);
        if (r < 0)
                return r;
        r = sd_journal_seek_tail(j);
        while (r >= 0 && json_length(entries) < max) {
                r = sd_journal_previous(j);
                if (r <= 0)
                        return r;
                r = add_entry(j, address, local, entries);
        }
        return r;
}

static json_object *reversed(json_object *array) {
        json_object *o = json_object_new_array();

        for (size_t i = json_length(array); o && i > 0; i--)
                json_object_array_add(o, json_object_get(json_at(array, i - 1)));
        return o;
}

static int print_table(const Args *args, const char *address, json_object *entries) {
        char empty[PCI_ADDRESS_STRING_MAX + 32];

        (void) snprintf(empty, sizeof(empty), "The journal has no events of %s.", address);
        return table_print_array(args, columns, ELEMENTSOF(columns), entries, empty);
}

int verb_history(const Args *args) {
        size_t max = args_has(args, OPTION_LINES) ? (size_t) args->number[OPTION_LINES] : HISTORY_LINES_MAX;
        _cleanup_json_ json_object *newest_first = json_object_new_array(), *entries = NULL;
        _cleanup_(cleanup_sd_journal_close) sd_journal *j = NULL;
        char address[PCI_ADDRESS_STRING_MAX];
        int r = reply_device_address(args, args->operands[0], address);

        if (r != 0)
                return r;
        r = open_journal(args, &j);
        if (r < 0)
                return r;
        r = newest_first ? read_newest_first(j, address, max, !args_has(args, OPTION_JSON), newest_first) : -ENOMEM;
        if (r < 0)
                return report_errno(args, r, "Cannot read the journal");
        entries = reversed(newest_first);
        if (!entries)
                return report_errno(args, -ENOMEM, "Cannot read the journal");
        return args_has(args, OPTION_JSON) ? document_print(args, TAKE_PTR(entries))
                                           : print_table(args, address, entries);
}
