/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl allocate: reserves devices, CPUs and memory, then follows the job that prepares the devices. */
#include <errno.h>
#include <stdio.h>

#include "job.h"
#include "reply.h"
#include "report.h"
#include "request.h"
#include "verbs.h"
#include "view.h"

/* Prints one item of the list after the colon; nothing when text is NULL or empty. */
static void print_part(const char **separator, const char *before, const char *text) {
        if (!text || !*text)
                return;
        printf("%s%s%s", *separator, before, text);
        *separator = ", ";
}

/* Prints "md-worker-0 is ready: 0000:82:00.0 0000:83:00.1, CPUs 8-15, 20 GiB on node 1, held with it: 0000:0a:00.0". */
static int print_summary(Client *c, const char *name) {
        _cleanup_free_ char *addresses = NULL, *memory = NULL, *held = NULL;
        _cleanup_json_ json_object *node = NULL;
        const char *separator = ": ";
        json_object *a;
        int r;

        r = reply_ask(c, "Describe", NULL, NULL, &node);
        if (r < 0)
                return r;
        a = reply_find(node, "allocations", "name", name);
        if (!a)
                return report_failure(c->args, NULL, "'%s' was prepared, but has been released since.", name);
        addresses = view_addresses(a, " ");
        memory = view_memory(a);
        held = view_held(a, " ");
        printf("%s is %s", name, reply_cell(a, "state"));
        print_part(&separator, "", addresses);
        print_part(&separator, "CPUs ", reply_text(a, "cpus"));
        print_part(&separator, "", memory);
        print_part(&separator, "held with it: ", held);
        putchar('\n');
        return 0;
}

static int print_reserved(const Args *args, const char *name, const char *allocation, const char *job) {
        if (args_has(args, OPTION_JSON))
                return watch_print_json(args, NULL, name, allocation, job, NULL);
        printf("%s is reserved and is being prepared. See 'passthroughctl show %s'.\n", name, name);
        return 0;
}

static int follow(Client *c, Watch *w, const char *name, sd_bus_message *reply) {
        const char *allocation, *job;
        int r;

        r = sd_bus_message_read(reply, "oo", &allocation, &job);
        if (r < 0)
                return client_bad_reply(c, r);
        if (streq(job, JOB_NONE))
                return args_has(c->args, OPTION_JSON) ? watch_print_json(c->args, NULL, name, allocation, job, NULL)
                                                      : print_summary(c, name);
        if (!w)
                return print_reserved(c->args, name, allocation, job);
        r = watch_wait(w, reply, job);
        if (args_has(c->args, OPTION_JSON))
                return watch_result(w) ? watch_print_json(c->args, w, name, allocation, job, NULL) : r;
        return r == EXIT_SUCCESS ? print_summary(c, name) : r;
}

int verb_allocate(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(cleanup_watch_free) Watch *w = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_pool_counts_ PoolCounts pools = { 0 };
        const char *name = args->operands[0];
        int r;

        r = pool_counts_parse(args, 1, &pools);
        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r >= 0 && !args_has(args, OPTION_NO_WAIT))
                r = watch_new(c, "allocate", name, &w);
        if (r >= 0)
                r = client_method(c, "Allocate", &call);
        if (r >= 0)
                r = request_append(args, name, &pools, call);
        if (r >= 0)
                r = client_call(c, call, &reply);
        if (r == -EINTR && w)
                return watch_interrupted(w);
        return r < 0 ? r : follow(c, w, name, reply);
}
