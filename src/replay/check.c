/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a machine, recorded or not, and reports whether it is ready for passthrough. */
#include <errno.h>

#include "check-facts.h"
#include "model/json-text.h"
#include "node.h"
#include "replay/replay.h"
#include "root.h"

static void write_finding(JsonText *t, const Finding *f) {
        json_text_first_key(t, "check");
        json_text_string(t, f->check);
        json_text_key(t, "result");
        json_text_string(t, check_result_to_string(f->result));
        json_text_key(t, "message");
        json_text_string(t, f->message);
        json_text_key(t, "remedy");
        json_text_string(t, f->remedy);
        json_text_literal(t, "}");
}

static char *report_to_json(const CheckReport *report) {
        JsonText t = json_text_new();

        json_text_first_key(&t, "result");
        json_text_string(&t, check_result_to_string(report->result));
        json_text_key(&t, "findings");
        json_text_literal(&t, "[");
        for (size_t i = 0; i < report->n; i++) {
                if (i > 0)
                        json_text_literal(&t, ",");
                write_finding(&t, &report->findings[i]);
        }
        json_text_literal(&t, "]}");
        return json_text_finish(&t);
}

static int check_root(HostState *state, const char *node, const char *root, const char *config,
                      const DaemonReport *daemon, char **ret_json, char **ret_problem) {
        CheckFacts facts = { .running = daemon || streq(node, "/"), .daemon = daemon };
        CheckReport report = { 0 };
        char cmdline[ROOT_CMDLINE_MAX];
        /* The daemon reads its configuration from /etc of this machine, with --sysroot= as well. */
        int r = replay_read(state, node, root, daemon, config, ret_problem);

        if (r >= 0)
                r = root_read_cmdline(root, cmdline);
        facts.cmdline = cmdline;
        facts.policy = state->policy;
        if (r >= 0)
                r = check_facts_read(root, &facts);
        if (r < 0)
                return r;
        r = check_node(&facts, &report);
        if (r >= 0) {
                *ret_json = report_to_json(&report);
                r = *ret_json ? 0 : -ENOMEM;
        }
        check_report_done(&report);
        return r;
}

int replay_check(const char *node, const char *config, const DaemonReport *daemon, char **ret_json,
                 char **ret_problem) {
        _cleanup_root_ Root root = { 0 };
        HostState state = { 0 };
        int r = root_open(&root, node, ret_problem);

        if (r >= 0)
                r = check_root(&state, node, root.dir, config, daemon, ret_json, ret_problem);
        host_state_done(&state);
        return r;
}
