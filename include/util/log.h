/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One line per event, to the journal with fields when stderr is the journal, else to stderr.
 * Levels: error = a request failed; warning = went on, says ", ignoring"; notice = hardware changed; info = an
 * allocation was made or released; debug = every sysfs write. util/ and core/ do not log.
 */

#include <syslog.h>

#include "util/cleanup.h"

/* What an event is about; any member may be NULL. They become PASSTHROUGH_DEVICE=, _ALLOCATION= and _STEP=. */
typedef struct LogFields {
        const char *device;
        const char *allocation;
        const char *step;
} LogFields;

/* Messages less urgent than level are dropped; LOG_INFO until set. */
void log_set_max_level(int level);

/* error: 0 or a negative errno that %m prints. Returns error, so that a caller can write: return log_error_errno(r,
 * ...). */
int log_internal(int level, int error, const LogFields *fields, const char *format, ...) _printf_(4, 5);

#define log_full(level, error, fields, ...) log_internal((level), (error), (fields), __VA_ARGS__)
#define log_debug(...)                      log_internal(LOG_DEBUG, 0, NULL, __VA_ARGS__)
#define log_info(...)                       log_internal(LOG_INFO, 0, NULL, __VA_ARGS__)
#define log_notice(...)                     log_internal(LOG_NOTICE, 0, NULL, __VA_ARGS__)
#define log_warning(...)                    log_internal(LOG_WARNING, 0, NULL, __VA_ARGS__)
#define log_warning_errno(error, ...)       log_internal(LOG_WARNING, (error), NULL, __VA_ARGS__)
#define log_error(...)                      log_internal(LOG_ERR, 0, NULL, __VA_ARGS__)
#define log_error_errno(error, ...)         log_internal(LOG_ERR, (error), NULL, __VA_ARGS__)
