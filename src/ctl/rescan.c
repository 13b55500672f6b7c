/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl rescan: the daemon reads the hardware again. */
#include "document.h"
#include "reply.h"
#include "verbs.h"

int verb_rescan(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        int r;

        r = client_new(args, &c);
        if (r >= 0)
                r = client_ask(c, "Rescan", NULL, "");
        return r < 0 ? r : document_print_done(args);
}
