/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl plan: what allocate would choose, or how many such requests fit. */
#include <stdio.h>

#include "page.h"
#include "plan-view.h"
#include "reply.h"
#include "report.h"
#include "request.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"

/* "2 of gpu1:9999, 1 of gpu2:9999": the slots of services. NULL: none. */
static char *list_slots(json_object *fit) {
        char *text = NULL;

        for (size_t i = 0; i < reply_length(fit, "services"); i++) {
                json_object *s = reply_element(fit, "services", i);

                (void) string_append(&text, ", ", "%s of %s", reply_cell(s, "slots"), reply_cell(s, "endpoint"));
        }
        return text;
}

#define FIT_INDENT 6 /* of the text behind "   1." */

/* Prints "1. node 0: 0000:13:00.0 0000:14:00.1, at most PIX, 2 of gpu1:9999". */
static void print_fit(json_object *fit, size_t number) {
        _cleanup_free_ char *nodes = view_join(fit, "numa_nodes", ","), *devices = view_join(fit, "devices", " ");
        json_object *score = reply_object(fit, "score");
        const char *worst = score ? reply_text(score, "worst_distance") : NULL;
        _cleanup_free_ char *slots = list_slots(fit);

        page_print(stdout, FIT_INDENT, "%4zu. %s%s%s%s%s%s%s%s", number, nodes ? "node " : "", nodes ?: "",
                   nodes && devices ? ": " : "", devices ?: "", worst ? ", at most " : "", worst ?: "",
                   slots && (nodes || devices) ? ", " : "", slots ?: "");
}

static void print_repeat(json_object *repeat) {
        json_object *refusal = reply_object(repeat, "refusal");
        bool all = json_object_get_boolean(reply_member(repeat, "complete"));
        size_t n = reply_length(repeat, "fits");
        const char *nearest = refusal ? reply_text(refusal, "nearest") : NULL;

        printf("%s%zu such request%s fit%s.\n", all ? "" : "At least ", n, PLURAL(n), n == 1 ? "s" : "");
        for (size_t i = 0; i < n; i++)
                print_fit(reply_element(repeat, "fits", i), i + 1);
        if (refusal)
                page_print(stdout, 0, "%s%s%s%s", all && n > 0 ? "One more does not fit: " : "",
                           reply_cell(refusal, "message"), nearest ? " " : "", nearest ?: "");
}

int verb_plan(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_pool_counts_ PoolCounts pools = { 0 };
        _cleanup_json_ json_object *plan = NULL, *node = NULL;
        _cleanup_free_ char *text = NULL;
        int r;

        if (args_has(args, OPTION_REPEAT) && (args_has(args, OPTION_PATHS) || args_has(args, OPTION_STEPS)))
                return report_usage(args, "--repeat prints no single plan: leave out --paths and --steps");
        r = pool_counts_parse(args, 0, &pools);
        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r >= 0)
                r = client_method(c, "Plan", &call);
        if (r >= 0)
                r = request_append(args, NULL, &pools, call);
        if (r >= 0)
                r = client_call(c, call, &reply);
        if (r >= 0)
                r = reply_parse(c, reply, &text, &plan);
        if (r < 0)
                return r;
        if (args_has(args, OPTION_JSON)) {
                puts(text);
                return 0;
        }
        r = reply_ask(c, "Describe", NULL, NULL, &node);
        if (r < 0)
                return r;
        view_read_only(node);
        if (!args_has(args, OPTION_REPEAT))
                return plan_print(args, plan);
        print_repeat(plan);
        return 0;
}
