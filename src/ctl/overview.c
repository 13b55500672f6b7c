/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl without a verb: prints the node in about ten lines. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon.h"
#include "model/json-parse.h"
#include "replay/replay.h"
#include "report.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"

/* The most elements that a line lists. */
#define LISTED_MAX 6U

static bool has_finding(json_object *report, const char *check, const char *result) {
        for (size_t i = 0; i < member_length(report, "findings"); i++) {
                json_object *finding = member_at(report, "findings", i);

                if (streq_ptr(reply_text(finding, "check"), check) && streq_ptr(reply_text(finding, "result"), result))
                        return true;
        }
        return false;
}

/* Lists the names of the checks with this result. Leaves out checks that also have the worse result. The caller frees
 * *ret; NULL when there are none. Returns 0 or -ENOMEM. */
static int list_checks(json_object *report, const char *result, const char *worse, char **ret) {
        _cleanup_free_ char *text = NULL;
        const char *last = "";

        for (size_t i = 0; i < member_length(report, "findings"); i++) {
                json_object *finding = member_at(report, "findings", i);
                const char *check = reply_cell(finding, "check");

                if (streq_ptr(reply_text(finding, "result"), result) && !streq(check, last) &&
                    !has_finding(report, check, worse) && string_append(&text, ", ", "%s", last = check) < 0)
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(text);
        return 0;
}

static int print_readiness(json_object *report) {
        _cleanup_free_ char *failures = NULL, *warnings = NULL;

        if (list_checks(report, "failure", "", &failures) < 0 ||
            list_checks(report, "warning", "failure", &warnings) < 0)
                return -ENOMEM;
        view_field("Ready", "%s%s%s%s", failures ? "no: " : "yes", failures ?: "", warnings ? "; warnings: " : "",
                   warnings ?: "");
        return 0;
}

static char *describe_pool(json_object *pool) {
        return string_format("%s %s of %s free", reply_cell(pool, "name"), reply_cell(pool, "available"),
                             reply_cell(pool, "total"));
}

/* Returns the free CPUs and memory of a NUMA node: "node 0 100 of 112 CPUs and 60 of 64 GiB". */
static char *describe_node(json_object *node) {
        return string_format("node %s %u of %u CPUs and %" PRId64 " of %" PRId64 " GiB", reply_cell(node, "id"),
                             view_count_cpus(node, "cpus_free"), view_count_cpus(node, "cpus"),
                             member_number(node, "memory_free") >> 30, member_number(node, "memory") >> 30);
}

static char *describe_allocation(json_object *allocation) {
        return string_format("%s %s", reply_cell(allocation, "name"), reply_cell(allocation, "state"));
}

/* Prints a description of each of the first LISTED_MAX elements of the list, and the number of the others. empty:
 * printed for an empty list. */
static int print_list(const char *title, json_object *node, const char *key, char *(*describe)(json_object *element),
                      const char *empty) {
        _cleanup_free_ char *text = NULL;
        size_t n = member_length(node, key), shown = n < LISTED_MAX ? n : LISTED_MAX;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < shown; i++) {
                _cleanup_free_ char *item = describe(member_at(node, key, i));

                r = item ? string_append(&text, ", ", "%s", item) : -ENOMEM;
        }
        if (r >= 0 && shown < n)
                r = string_append(&text, "", "%s", AND_MORE(n - shown));
        view_field(title, "%s", text ?: empty);
        return r;
}

static int print_node(const DaemonReport *daemon, json_object *node) {
        int r;

        if (!node) {
                view_field("Daemon", "%s", daemon->unreachable);
                return 0;
        }
        r = print_list("Pools", node, "pools", describe_pool, "none");
        if (r >= 0)
                r = print_list("Free", node, "nodes", describe_node, "unknown");
        if (r >= 0)
                r = print_list("Allocations", node, "allocations", describe_allocation, "none");
        if (daemon->read_only)
                view_field("Problems", "%s", daemon->read_only);
        else
                view_field("Problems", "%s", daemon->n_problems > 0 ? daemon->problems[0] : "none");
        if (daemon->n_problems > 1)
                view_field("", "and %zu more: 'passthroughctl check' lists them", daemon->n_problems - 1);
        return r;
}

/* Returns true when there are pools. If node is NULL, because the daemon did not answer, looks into the report, whose
 * check "pools" fails only when the configuration has no pool and no service. */
static bool has_pools(json_object *report, json_object *node) {
        json_object *finding = json_find(member(report, "findings"), "check", "pools");

        return node ? member_length(node, "pools") > 0 : !streq_ptr(reply_text(finding, "result"), "failure");
}

/* Prints the two commands that are most useful now. */
static void print_next(json_object *report, json_object *node) {
        const char *commands[4];
        size_t n = 0;

        if (!has_pools(report, node))
                commands[n++] = "passthroughctl suggest >passthroughd.conf # a configuration";
        if (!node)
                commands[n++] = "systemctl status passthroughd             # whether it runs";
        if (!streq_ptr(reply_text(report, "result"), "ok"))
                commands[n++] = "passthroughctl check                      # what is missing";
        commands[n++] = node && member_length(node, "allocations") > 0
                                ? "passthroughctl allocations                # who has what"
                                : "passthroughctl list --all                 # all devices";
        if (n < 2)
                commands[n++] = "passthroughctl topology                   # where they are";
        for (size_t i = 0; i < 2; i++)
                view_field(i ? "" : "Next", "%s", commands[i]);
}

static int print(const Args *args, const DaemonReport *daemon, json_object *node, const char *text) {
        _cleanup_json_ json_object *report = NULL;
        int r = json_parse(text, strlen(text), &report);

        if (r < 0)
                return report_errno(args, r, "Cannot print");
        r = print_readiness(report);
        if (r < 0)
                return report_errno(args, r, "Cannot print");
        r = print_node(daemon, node);
        if (r < 0)
                return report_errno(args, r, "Cannot print");
        print_next(report, node);
        return node ? EXIT_SUCCESS : EXIT_FAILURE;
}

int overview_run(const Args *args) {
        _cleanup_daemon_report_ DaemonReport daemon = { 0 };
        _cleanup_free_ char *problem = NULL, *text = NULL;
        _cleanup_json_ json_object *node = NULL;
        bool recorded = args_has(args, OPTION_NODE);
        int r = daemon_ask(args, &daemon, &node);

        if (r >= 0)
                r = replay_check(daemon_node(args, &daemon), daemon_config(args, &daemon), recorded ? NULL : &daemon,
                                 &text, &problem);
        if (r < 0)
                return report_failure(args, NULL, "%s", problem ?: "Out of memory.");
        return print(args, &daemon, node, text);
}
