/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report that the checks write. */
#include <stdio.h>

#include "check-internal.h"
#include "util/strings.h"
#include "util/stringtable.h"

static const char *const check_result_table[_CHECK_RESULT_MAX] = {
        [CHECK_OK] = "ok",
        [CHECK_UNKNOWN] = "unknown",
        [CHECK_WARNING] = "warning",
        [CHECK_FAILURE] = "failure",
};
DEFINE_STRING_TABLE_TO_STRING(check_result, CheckResult, _CHECK_RESULT_MAX)

void check_add(CheckReport *report, CheckResult result, const char *remedy, const char *format, ...) {
        Finding f = { .result = result };
        va_list ap;

        va_start(ap, format);
        f.message = string_vformat(format, ap);
        va_end(ap);
        if (!f.message || string_copy(&f.remedy, remedy) < 0 || ARRAY_RESERVE(report->findings, report->n) < 0) {
                free(f.message);
                free(f.remedy);
                report->failed = true;
                return;
        }
        report->findings[report->n++] = f;
        if (result != CHECK_UNKNOWN)
                report->result = MAX(report->result, result);
}

void check_report_done(CheckReport *report) {
        for (size_t i = 0; i < report->n; i++) {
                free(report->findings[i].message);
                free(report->findings[i].remedy);
        }
        free(report->findings);
        *report = (CheckReport) { 0 };
}
