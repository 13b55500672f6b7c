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

static void add_field(struct iovec *iov, int *n, char *buf, size_t size, const char *key, const char *value) {
        if (!value)
                return;
        (void) snprintf(buf, size, "%s=%s", key, value);
        iov[(*n)++] = (struct iovec){ .iov_base = buf, .iov_len = strlen(buf) };
}

static int log_to_journal(int level, const char *message, const LogFields *fields) {
        char priority[2] = { (char) ('0' + level), 0 };
        char buf[7][128], text[LOG_LINE_MAX + sizeof("MESSAGE=")];
        struct iovec iov[8];
        int n = 0;

        add_field(iov, &n, text, sizeof(text), "MESSAGE", message);
        add_field(iov, &n, buf[0], sizeof(buf[0]), "PRIORITY", priority);
        if (fields) {
                add_field(iov, &n, buf[1], sizeof(buf[1]), "PASSTHROUGH_DEVICE", fields->device);
                add_field(iov, &n, buf[2], sizeof(buf[2]), "PASSTHROUGH_ALLOCATION", fields->allocation);
                add_field(iov, &n, buf[3], sizeof(buf[3]), "PASSTHROUGH_STEP", fields->step);
                add_field(iov, &n, buf[4], sizeof(buf[4]), "PASSTHROUGH_OWNER", fields->owner);
                add_field(iov, &n, buf[5], sizeof(buf[5]), "PASSTHROUGH_GENERATION", fields->generation);
                add_field(iov, &n, buf[6], sizeof(buf[6]), "MESSAGE_ID", fields->id);
        }
        return sd_journal_sendv(iov, n);
}

static void log_to_stderr(const char *message) {
        char line[LOG_LINE_MAX + 1];
        int n = snprintf(line, sizeof(line), "%s\n", message);

        /*
         * One write(2), so that lines of the daemon and of its jobs do not mix. A failure cannot be reported anywhere.
         */
        if (n > 0 && write(STDERR_FILENO, line, (size_t) n) < 0)
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
