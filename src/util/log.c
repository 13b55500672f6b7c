/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/cleanup.h"
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
static void (*printer)(const char *message);

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

void log_set_printer(void (*print)(const char *message)) {
        printer = print;
}

const char *log_level_to_string(int level) {
        return level >= 0 && level < (int) ELEMENTSOF(level_table) ? level_table[level] : NULL;
}

int log_level_from_string(const char *s) {
        return string_table_find(level_table, ELEMENTSOF(level_table), s);
}

/* Journal entries, in systemd's native protocol. sd_journal_send() would wait while the queue of journald is full; the
 * functions below never wait. */

/* Appends a field to an entry. value has size bytes, and may contain any bytes. */
static void journal_add_field(FILE *entry, const char *key, const char *value, size_t size) {
        uint64_t length = htole64(size);

        (void) fputs(key, entry);
        if (memchr(value, '\n', size)) {
                /* In the protocol, a value with several lines is preceded by its length. */
                (void) fputc('\n', entry);
                (void) fwrite(&length, sizeof(length), 1, entry);
        } else
                (void) fputc('=', entry);
        (void) fwrite(value, 1, size, entry);
        (void) fputc('\n', entry);
}

/* Sends an entry to the journal. Returns 0 or a negative errno; -EAGAIN: the queue of journald is full. */
static int journal_send(const char *entry, size_t size) {
        static const struct sockaddr_un journald = { .sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket" };
        /* No socket is kept open between messages, because child processes close all descriptors. */
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || sendto(fd, entry, size, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *) &journald,
                             sizeof(journald)) < 0)
                return -errno;
        return 0;
}

/* Returns true when stderr is the stream that systemd connected to the journal: $JOURNAL_STREAM has its device and
 * inode. They are compared with those of stderr, which may have been redirected since (systemd.exec(5)). */
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

/* Adds a field for each word of list, which may be NULL. Commas and spaces separate words. */
static void add_fields(FILE *entry, const char *key, const char *list) {
        for (const char *at = list ?: ""; *at; at += strspn(at, ", ")) {
                size_t n = strcspn(at, ", ");

                journal_add_field(entry, key, at, n);
                at += n;
        }
}

static int log_to_journal(int level, const char *message, const LogFields *fields) {
        const LogFields f = fields ? *fields : (LogFields) { 0 };
        const struct {
                const char *key, *value;
        } single[] = {
                { "MESSAGE", message },
                { "PRIORITY", (char[]) { (char) ('0' + level), 0 } },
                { "SYSLOG_IDENTIFIER", program_invocation_short_name },
                { "MESSAGE_ID", f.id },
                { "PASSTHROUGH_EVENT", f.event },
                { "PASSTHROUGH_ALLOCATION", f.allocation },
                { "PASSTHROUGH_STEP", f.step },
                { "PASSTHROUGH_OWNER", f.owner },
                { "PASSTHROUGH_GENERATION", f.generation },
                { "PASSTHROUGH_TAG", f.tag },
        };
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *entry = open_memstream(&text, &size);

        if (!entry)
                return -ENOMEM;
        add_fields(entry, "PASSTHROUGH_DEVICE", f.device);
        for (size_t i = 0; i < ELEMENTSOF(single); i++)
                if (single[i].value)
                        journal_add_field(entry, single[i].key, single[i].value, strlen(single[i].value));
        return fclose(entry) != 0 ? -ENOMEM : journal_send(text, size);
}

static int log_to_stderr(const char *message) {
        struct iovec line[] = {
                { .iov_base = (char *) message, .iov_len = strlen(message) },
                { .iov_base = (char *) "\n", .iov_len = 1 },
        };
        struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };

        if (printer) {
                printer(message);
                return 0;
        }
        /* poll() reports a pipe or a socket as writable only when a line fits into it. Otherwise the message is
         * dropped. */
        if (poll(&fd, 1, 0) == 0)
                return -EAGAIN;
        /* A single writev(2), so that the lines of the daemon and of its jobs do not mix. */
        return writev(STDERR_FILENO, line, ELEMENTSOF(line)) < 0 ? -errno : 0;
}

/* Sends the message to the log target. Returns 0 or a negative errno; -EAGAIN: the reader of the target is too slow. */
static int send_message(int level, const char *message, const LogFields *fields) {
        int r = wants_journal() ? log_to_journal(level, message, fields) : -ENOENT;

        return r >= 0 || r == -EAGAIN ? r : log_to_stderr(message);
}

/* Number of messages that were dropped because the reader of the log was too slow; the daemon must not wait for the
 * reader. The number is logged before the next message that the reader can take. */
static unsigned lost;

static bool report_lost(void) {
        char message[64];

        (void) snprintf(message, sizeof(message), "Messages that nothing read in time were lost: %u.", lost);
        if (lost > 0 && send_message(LOG_WARNING, message, NULL) == -EAGAIN)
                return false;
        lost = 0;
        return true;
}

static void send_or_count(int level, const char *message, const LogFields *fields) {
        if (!report_lost() || send_message(level, message, fields) == -EAGAIN)
                lost++;
}

int log_internal(int level, int error, const LogFields *fields, const char *format, ...) {
        char message[LOG_LINE_MAX];
        int saved = errno;
        va_list ap;

        if (level > max_level || target == LOG_TARGET_NULL)
                return error;

        errno = error < 0 ? -error : 0; /* for %m in format */
        va_start(ap, format);
        (void) vsnprintf(message, sizeof(message), format, ap);
        va_end(ap);

        send_or_count(level, message, fields);
        errno = saved;
        return error;
}

void log_event(int level, const LogFields *fields, const char *message) {
        bool shown = level <= max_level && target != LOG_TARGET_NULL;

        if (shown && wants_journal()) {
                send_or_count(level, message, fields);
                return;
        }
        if (log_to_journal(level, message, fields) == -EAGAIN)
                lost++;
        if (shown)
                send_or_count(level, message, fields);
}
