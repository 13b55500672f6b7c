/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl reload: the daemon reads the configuration again. */
#include "ctl/reply.h"
#include "ctl/verbs.h"

int verb_reload(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        int r;

        r = client_new(args, &c);
        if (r >= 0)
                r = client_ask(c, "Reload", NULL, "");
        return r < 0 ? r : reply_print_done(args);
}
