/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl cdi: prints the device nodes of an allocation as a document of CDI. */
#include <stdio.h>

#include "client.h"
#include "verbs.h"

int verb_cdi(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_free_ char *text = NULL;
        int r = client_new(args, &c);

        if (r < 0)
                return r;
        r = client_ask(c, "GetDomainXML", &reply, "sa{sv}", args->operands[0], 1, OPTION_KEY_FORMAT, "s",
                       DOCUMENT_FORMAT_CDI);
        if (r < 0)
                return r;
        r = client_read_text(c, reply, &text);
        if (r < 0)
                return r;
        puts(text);
        return 0;
}
