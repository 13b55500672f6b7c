/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Documents in JSON that passthroughctl makes itself. */

#include "document.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "bus/names.h"
#include "model/json-value.h"
#include "report.h"

int document_print(const Args *args, json_object *o) {
        _cleanup_free_ char *text = json_text(o);

        if (text)
                puts(text);
        json_object_put(o);
        return text ? 0 : report_errno(args, -ENOMEM, "Cannot print");
}

int document_print_done(const Args *args) {
        if (args_has(args, OPTION_JSON))
                puts("{\"result\":\"" JOB_RESULT_DONE "\"}");
        return 0;
}

void document_time(uint64_t usec, bool local, char buf[static DOCUMENT_TIME_MAX]) {
        time_t seconds = (time_t) (usec / 1000000);
        unsigned rest = (unsigned) (usec % 1000000);
        struct tm tm = { 0 };
        size_t n;

        (void) (local ? localtime_r(&seconds, &tm) : gmtime_r(&seconds, &tm));
        n = strftime(buf, DOCUMENT_TIME_MAX, local ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%dT%H:%M:%S", &tm);
        (void) snprintf(buf + n, DOCUMENT_TIME_MAX - n, local ? ".%03u" : ".%06uZ", local ? rest / 1000 : rest);
}

bool document_add(json_object *o, const char *key, const char *value) {
        json_object *s = value ? json_object_new_string(value) : NULL;

        if ((value && !s) || json_object_object_add(o, key, s) < 0) {
                json_object_put(s);
                return false;
        }
        return true;
}
