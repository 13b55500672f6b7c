/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* Suppresses CODE_FILE= and CODE_LINE=, which would always name this file. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "util/log.h"
#include "util/strings.h"
#include "util/stringtable.h"

#define LOG_LINE_MAX 2048

static const char *const log_target_table[_LOG_TARGET_MAX] = {
        [LOG_TARGET_AUTO] = "auto",
        [LOG_TARGET_JOURNAL] = "journal",
        [LOG_TARGET_CONSOLE] = "console",
        [LOG_TARGET_NULL] = "null",
};

DEFINE_STRING_TABLE(log_target, LogTarget, _LOG_TARGET_MAX)

static const char *const level_table[] = {
        [LOG_EMERG] = "emerg",     [LOG_ALERT] = "alert",   [LOG_CRIT] = "crit", [LOG_ERR] = "err",
        [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice", [LOG_INFO] = "info", [LOG_DEBUG] = "debug",
};

static int max_level = LOG_INFO;
static LogTarget target = LOG_TARGET_AUTO;

void log_set_max_level(int level) {
        max_level = level;
}

int log_max_level(void) {
        return max_level;
}

void log_set_target(LogTarget t) {
        target = t;
}

LogTarget log_target(void) {
        return target;
}

const char *log_level_to_string(int level) {
        return level >= 0 && level < (int) ELEMENTSOF(level_table) ? level_table[level] : NULL;
}

int log_level_from_string(const char *s) {
        return string_table_find(level_table, ELEMENTSOF(level_table), s);
}

/*
 * $JOURNAL_STREAM names the stream that systemd connected to stderr. fstat() detects a later redirection
 * (systemd.exec(5)).
 */
static bool stderr_is_journal(void) {
        static int known = -1;
        const char *stream;
        uint64_t dev, ino;
        struct stat st;

        if (known < 0) {
                stream = secure_getenv("JOURNAL_STREAM");
                known = stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &dev, &ino) == 2 &&
                        fstat(STDERR_FILENO, &st) == 0 && st.st_dev == (dev_t) dev && st.st_ino == (ino_t) ino;
        }
        return known;
}

static bool wants_journal(void) {
        return target == LOG_TARGET_JOURNAL || (target == LOG_TARGET_AUTO && stderr_is_journal());
}

/* The fields of a journal entry, each "KEY=VALUE". */
typedef struct JournalEntry {
        struct iovec *fields;
        size_t n;
} JournalEntry;

static void journal_entry_done(JournalEntry *e) {
        for (size_t i = 0; i < e->n; i++)
                free(e->fields[i].iov_base);
        free(e->fields);
}

static int add_field(JournalEntry *e, const char *key, const char *value, size_t size) {
        char *text;

        if (ARRAY_RESERVE(e->fields, e->n) < 0)
                return -ENOMEM;
        text = string_format("%s=%.*s", key, (int) size, value);
        if (!text)
                return -ENOMEM;
        e->fields[e->n++] = (struct iovec){ .iov_base = text, .iov_len = strlen(text) };
        return 0;
}

/* Adds a field for each word of list, which may be NULL. Words are separated by commas and spaces. */
static int add_fields(JournalEntry *e, const char *key, const char *list) {
        int r = 0;

        for (const char *at = list ?: ""; r >= 0 && *at; at += strspn(at, ", ")) {
                size_t n = strcspn(at, ", ");

                r = add_field(e, key, at, n);
                at += n;
        }
        return r;
}

static int log_to_journal(int level, const char *message, const LogFields *fields) {
        const LogFields f = fields ? *fields : (LogFields){ 0 };
        const struct {
                const char *key, *value;
        } single[] = {
                { "MESSAGE", message },
                { "PRIORITY", (char[]){ (char) ('0' + level), 0 } },
                { "MESSAGE_ID", f.id },
                { "PASSTHROUGH_EVENT", f.event },
                { "PASSTHROUGH_ALLOCATION", f.allocation },
                { "PASSTHROUGH_STEP", f.step },
                { "PASSTHROUGH_OWNER", f.owner },
                { "PASSTHROUGH_GENERATION", f.generation },
        };
        _cleanup_(journal_entry_done) JournalEntry e = { 0 };
        int r = add_fields(&e, "PASSTHROUGH_DEVICE", f.device);

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(single); i++)
                if (single[i].value)
                        r = add_field(&e, single[i].key, single[i].value, strlen(single[i].value));
        return r < 0 ? r : sd_journal_sendv(e.fields, (int) e.n);
}

static void log_to_stderr(const char *message) {
        struct iovec line[] = {
                { .iov_base = (char *) message, .iov_len = strlen(message) },
                { .iov_base = (char *) "\n", .iov_len = 1 },
        };

        /*
         * One writev(2), so that lines of the daemon and of its jobs do not mix. A failure cannot be reported anywhere.
         */
        if (writev(STDERR_FILENO, line, ELEMENTSOF(line)) < 0)
                return;
}

int log_internal(int level, int error, const LogFields *fields, const char *format, ...) {
        char message[LOG_LINE_MAX];
        int saved = errno;
        va_list ap;

        if (level > max_level || target == LOG_TARGET_NULL)
                return error;

        errno = error < 0 ? -error : 0; /* for %m */
        va_start(ap, format);
        (void) vsnprintf(message, sizeof(message), format, ap);
        va_end(ap);

        if (!wants_journal() || log_to_journal(level, message, fields) < 0)
                log_to_stderr(message);

        errno = saved;
        return error;
}

void log_event(int level, const LogFields *fields, const char *message) {
        bool sent = log_to_journal(level, message, fields) >= 0;

        if (level <= max_level && target != LOG_TARGET_NULL && !(sent && wants_journal()))
                log_to_stderr(message);
}
