/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl check: whether the node is ready for passthrough, and what it lacks. It needs no daemon. */
#include <errno.h>
#include <stdio.h>

#include "replay/replay.h"
#include "reply.h"
#include "report.h"
#include "util/strings.h"
#include "verbs.h"

enum {
        EXIT_WARNING = 1,
        EXIT_NOT_READY = 2
};

static void print_finding(json_object *finding) {
        const char *remedy = reply_text(finding, "remedy");

        printf("%-8s %-14s %s\n", reply_cell(finding, "result"), reply_cell(finding, "check"),
               reply_cell(finding, "message"));
        if (remedy)
                printf("%23s %s\n", "", remedy);
}

static int exit_status(const char *result) {
        return streq(result, "ok") ? EXIT_SUCCESS : streq(result, "warning") ? EXIT_WARNING : EXIT_NOT_READY;
}

static int print_report(const Args *args, const char *text) {
        json_object *report = json_tokener_parse(text), *findings = reply_member(report, "findings");
        int status;

        if (!report)
                return report_errno(args, -ENOMEM, "Cannot print");
        status = exit_status(reply_cell(report, "result"));
        if (args_has(args, OPTION_JSON))
                puts(text);
        for (size_t i = 0; !args_has(args, OPTION_JSON) && i < json_object_array_length(findings); i++)
                print_finding(json_object_array_get_idx(findings, i));
        json_object_put(report);
        return status;
}

int verb_check(const Args *args) {
        _cleanup_free_ char *problem = NULL, *text = NULL;
        int r = replay_check(args->text[OPTION_NODE] ?: "/", args->text[OPTION_CONFIG], &text, &problem);

        if (r < 0)
                (void) report_failure(args, NULL, "%s", problem ?: "Out of memory.");
        else
                r = print_report(args, text);
        return r < 0 ? EXIT_NOT_READY : r;
}
