/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl check: whether the node is ready for passthrough, and what it lacks. It needs no daemon. */
#include <errno.h>
#include <stdio.h>

#include "daemon.h"
#include "model/json-parse.h"
#include "page.h"
#include "replay/replay.h"
#include "report.h"
#include "util/strings.h"
#include "verbs.h"

enum {
        EXIT_WARNING = 1,
        EXIT_NOT_READY = 2
};

#define INDENT 24 /* of the message and the remedy */

static void print_finding(json_object *finding) {
        const char *remedy = reply_text(finding, "remedy");

        printf("%-8s %-14s ", reply_cell(finding, "result"), reply_cell(finding, "check"));
        page_wrap(stdout, reply_cell(finding, "message"), INDENT, INDENT);
        if (remedy) {
                printf("%*s", INDENT, "");
                page_wrap(stdout, remedy, INDENT, INDENT);
        }
}

static int exit_status(const char *result) {
        return streq(result, "ok") ? EXIT_SUCCESS : streq(result, "warning") ? EXIT_WARNING : EXIT_NOT_READY;
}

static int print_report(const Args *args, const char *text) {
        json_object *report, *findings;
        int status, r = json_parse(text, strlen(text), &report);

        if (r < 0)
                return report_errno(args, r, "Cannot print");
        findings = member(report, "findings");
        status = exit_status(reply_cell(report, "result"));
        if (args_has(args, OPTION_JSON))
                puts(text);
        for (size_t i = 0; !args_has(args, OPTION_JSON) && i < json_length(findings); i++)
                print_finding(json_at(findings, i));
        json_object_put(report);
        return status;
}

int verb_check(const Args *args) {
        _cleanup_daemon_report_ DaemonReport daemon = { 0 };
        _cleanup_free_ char *problem = NULL, *text = NULL;
        _cleanup_json_ json_object *node = NULL;
        bool recorded = args_has(args, OPTION_NODE);
        int r = recorded ? 0 : daemon_ask(args, &daemon, &node);

        if (r < 0)
                return EXIT_NOT_READY;
        r = replay_check(daemon_node(args, &daemon), daemon_config(args, &daemon), recorded ? NULL : &daemon, &text,
                         &problem);
        if (r < 0)
                (void) report_failure(args, NULL, "%s", problem ?: "Out of memory.");
        else
                r = print_report(args, text);
        return r < 0 ? EXIT_NOT_READY : r;
}
