/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl reload: the daemon reads its configuration again; prints which devices that withdrew, and the problems
 * found in it. */
#include <errno.h>
#include <stdio.h>

#include "bus/names.h"
#include "document.h"
#include "page.h"
#include "reply.h"
#include "report.h"
#include "verbs.h"
#include "view.h"

/* The consequence first, then its causes. Returns whether broken lines withdraw devices. */
static bool print_problems(json_object *node) {
        bool withdrawn = view_not_offered(node);

        for (size_t i = 0; i < reply_length(node, "config_problems"); i++)
                page_wrap(stderr, reply_element_cell(node, "config_problems", i), 0, 0);
        return withdrawn;
}

static int print_json(const Args *args, json_object *node) {
        json_object *o = json_object_new_object();

        if (!o || !document_add(o, "result", JOB_RESULT_DONE) ||
            !document_add(o, "none_offered", reply_text(node, "none_offered")) ||
            json_object_object_add(o, "withdrawn", json_object_get(reply_member(node, "withdrawn"))) < 0) {
                json_object_put(o);
                return report_errno(args, -ENOMEM, "Cannot print");
        }
        return document_print(args, o);
}

int verb_reload(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_json_ json_object *node = NULL;
        bool withdrawn;
        int r;

        r = client_new(args, &c);
        if (r >= 0)
                r = client_ask(c, "Reload", NULL, "");
        if (r >= 0)
                r = reply_ask(c, "Describe", NULL, NULL, &node);
        if (r < 0)
                return r;
        withdrawn = print_problems(node);
        if (args_has(args, OPTION_JSON))
                r = print_json(args, node);
        return r < 0 ? r : withdrawn ? EXIT_FAILURE : EXIT_SUCCESS;
}
