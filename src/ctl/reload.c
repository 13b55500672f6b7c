/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl reload: the daemon reads its configuration again; prints the problems found in it. */
#include <stdio.h>

#include "document.h"
#include "reply.h"
#include "verbs.h"

static int print_problems(Client *c) {
        _cleanup_json_ json_object *node = NULL;
        int r = reply_ask(c, "Describe", NULL, NULL, &node);

        for (size_t i = 0; r >= 0 && i < reply_length(node, "config_problems"); i++)
                fprintf(stderr, "%s\n", reply_element_cell(node, "config_problems", i));
        return r;
}

int verb_reload(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        int r;

        r = client_new(args, &c);
        if (r >= 0)
                r = client_ask(c, "Reload", NULL, "");
        if (r >= 0)
                r = print_problems(c);
        return r < 0 ? r : document_print_done(args);
}
