/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl plan: the devices that allocate would choose, and the steps of its job. */
#include <stdio.h>

#include "peerpath.h"
#include "reply.h"
#include "request.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"

/* Prints the members of the score; those with value 0 are left out. */
static void print_score(json_object *plan) {
        json_object *score = reply_object(plan, "score");
        _cleanup_free_ char *text = NULL;

        if (!score)
                return;
        json_object_object_foreach(score, key, value) {
                const char *s = json_object_get_string(value);

                if (s && !streq(s, "0") && string_append(&text, ", ", "%s %s", key, s) < 0)
                        return;
        }
        view_field("Cost", "%s", text ?: "nothing");
}

static void print_runner_up(json_object *plan) {
        json_object *second = reply_object(plan, "runner_up");
        _cleanup_free_ char *nodes = second ? view_join(second, "numa_nodes", ", ") : NULL;

        if (!second)
                view_field("Runner-up", "none: no other choice of as many NUMA nodes fits");
        else
                view_field("Runner-up", "on NUMA node%s %s. %s", PLURAL(reply_length(second, "numa_nodes")),
                           nodes ?: "-", reply_cell(second, "reason"));
}

static void print_limits(json_object *plan) {
        for (size_t i = 0; i < reply_length(plan, "limits"); i++) {
                json_object *limit = reply_element(plan, "limits", i);
                _cleanup_free_ char *pools = view_join(limit, "pools", ":");

                view_field(i ? "" : "Proximity", "%s=%s: %s at most", pools ?: "-", reply_cell(limit, "limit"),
                           reply_cell(limit, "distance"));
        }
}

static void print_path(json_object *pair) {
        json_object *path = reply_member(pair, "path");
        _cleanup_free_ char *text = NULL;

        if (!path)
                return;
        text = peer_path_text(path, false);
        if (text)
                view_field("", "  path: %s", text);
        if (reply_text(path, "setting"))
                view_field("", "  setting: %s", reply_text(path, "setting"));
}

static void print_plan(json_object *plan) {
        view_allocation(plan);
        for (size_t i = 0; i < reply_length(plan, "pairs"); i++) {
                json_object *pair = reply_element(plan, "pairs", i);
                view_field(i ? "" : "Distances", "%s to %s: %s", reply_cell(pair, "gpu"), reply_cell(pair, "nic"),
                           reply_cell(pair, "distance"));
                print_path(pair);
        }
        print_limits(plan);
        print_score(plan);
        print_runner_up(plan);
        for (size_t i = 0; i < reply_length(plan, "steps"); i++)
                view_field(i ? "" : "Steps", "%zu. %s", i + 1, reply_element_cell(plan, "steps", i));
}

/* Prints "1. node 0: 0000:13:00.0 0000:14:00.1, at most PIX". */
static void print_fit(json_object *fit, size_t number) {
        _cleanup_free_ char *nodes = view_join(fit, "numa_nodes", ","), *devices = view_join(fit, "devices", " ");
        json_object *score = reply_object(fit, "score");
        const char *worst = score ? reply_text(score, "worst_distance") : NULL;

        printf("%4zu. %s%s%s%s%s%s\n", number, nodes ? "node " : "", nodes ?: "", nodes && devices ? ": " : "",
               devices ?: "", worst ? ", at most " : "", worst ?: "");
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
                printf("%s%s%s%s\n", all && n > 0 ? "One more does not fit: " : "", reply_cell(refusal, "message"),
                       nearest ? " " : "", nearest ?: "");
}

int verb_plan(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_pool_counts_ PoolCounts pools = { 0 };
        _cleanup_json_ json_object *plan = NULL, *node = NULL;
        _cleanup_free_ char *text = NULL;
        int r;

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
        if (args_has(args, OPTION_REPEAT))
                print_repeat(plan);
        else
                print_plan(plan);
        return 0;
}
