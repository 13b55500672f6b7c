/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Logging: one line per event. By default messages go to the journal, with fields, when stderr is connected to the
 * journal; otherwise they go to stderr. Levels: error: a request failed, or an admin has to act; warning: the program
 * continues after a failure; notice: hardware changed; info: an allocation was made or released; debug: every sysfs
 * write. util/sysfs.c logs these writes; the other files of util/ and the pure rooms do not log. No function here waits
 * for a slow reader: a message for which the journal or the pipe has no room is dropped, and a later message gives the
 * number of dropped messages.
 */

#include <syslog.h>

#include "util/cleanup.h"

/* Journal fields of a message; any member may be NULL. Their names are MESSAGE_ID= and, with the prefix PASSTHROUGH_,
 * EVENT=, DEVICE=, ALLOCATION=, STEP=, OWNER=, GENERATION= and TAG=. */
typedef struct LogFields {
        const char *id;     /* MESSAGE_* of util/messages.h */
        const char *event;  /* the kind of event; set only for log_event() */
        const char *device; /* a PCI address, or several separated by ", ": the entry then repeats the field */
        const char *allocation;
        const char *step;
        const char *owner;      /* uid of the allocation's owner */
        const char *generation; /* generation of the allocation */
        const char *tag;        /* tag of the allocation */
} LogFields;

typedef enum LogTarget {
        LOG_TARGET_AUTO,    /* the journal when stderr is connected to it, else stderr */
        LOG_TARGET_JOURNAL, /* the journal, or stderr if there is no journal */
        LOG_TARGET_CONSOLE, /* stderr */
        LOG_TARGET_NULL,
        _LOG_TARGET_MAX,
        _LOG_TARGET_INVALID = -22,
} LogTarget;
const char *log_target_to_string(LogTarget t);
LogTarget log_target_from_string(const char *s);

/* Drops messages less urgent than level. The default is LOG_INFO. */
void log_set_max_level(int level);
int log_max_level(void);
/* The default is LOG_TARGET_AUTO. */
void log_set_target(LogTarget target);
LogTarget log_target(void);
/* Passes the messages for stderr to print() instead. For a program whose messages a person reads. */
void log_set_printer(void (*print)(const char *message));

/* Convert between levels and their names in syslog(3), "emerg" to "debug". log_level_from_string() returns -EINVAL for
 * other text, log_level_to_string() NULL for other numbers. */
int log_level_from_string(const char *s);
const char *log_level_to_string(int level);

/* Logs a message. error: 0, or a negative errno for %m in format. Returns error, so that callers can write "return
 * log_error_errno(r, ...)". */
int log_internal(int level, int error, const LogFields *fields, const char *format, ...) _printf_(4, 5);

#define log_full(level, error, fields, ...) log_internal((level), (error), (fields), __VA_ARGS__)
#define log_debug(...)                      log_internal(LOG_DEBUG, 0, NULL, __VA_ARGS__)
#define log_info(...)                       log_internal(LOG_INFO, 0, NULL, __VA_ARGS__)
#define log_notice(...)                     log_internal(LOG_NOTICE, 0, NULL, __VA_ARGS__)
#define log_warning(...)                    log_internal(LOG_WARNING, 0, NULL, __VA_ARGS__)
#define log_warning_errno(error, ...)       log_internal(LOG_WARNING, (error), NULL, __VA_ARGS__)
#define log_error(...)                      log_internal(LOG_ERR, 0, NULL, __VA_ARGS__)
#define log_error_errno(error, ...)         log_internal(LOG_ERR, (error), NULL, __VA_ARGS__)

/* Sends an event to the journal, where 'passthroughctl history' finds it. Maximum level and target of the log do not
 * matter. If the target is not the journal, the message is also sent to the target, as by log_internal(). */
void log_event(int level, const LogFields *fields, const char *message);
