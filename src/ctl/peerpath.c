/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats the PCI path between two devices as a line of text. */
#include <stdio.h>

#include "peerpath.h"
#include "util/strings.h"
#include "view.h"

/* Writes the ports that redirect: "0000:12:00.0 (SV RR CR UF), 0000:12:01.0 (SV RR CR UF)". */
static void write_ports(FILE *f, json_object *path, bool brief) {
        size_t n = 0;

        for (size_t i = 0; i < reply_length(path, "ports"); i++) {
                json_object *port = reply_element(path, "ports", i);
                _cleanup_free_ char *bits = view_join(port, "acs_control", " ");

                if (!streq_ptr(reply_text(port, "redirects"), "true"))
                        continue;
                fprintf(f, "%s%s", n++ > 0 ? ", " : "", reply_cell(port, "address"));
                if (!brief)
                        fprintf(f, " (%s)", bits ? bits : "");
        }
}

/* Writes ATS of both devices, or with brief of the first one, which is the requester. */
static void write_ats(FILE *f, json_object *path, bool brief) {
        json_object *ats = reply_object(path, "ats");

        if (!ats)
                return;
        json_object_object_foreach(ats, address, state) {
                const char *text = json_object_get_string(state);

                if (text_is_clean(address) && (!text || text_is_clean(text)))
                        fprintf(f, "; ATS of %s %s", address, text ? text : "unknown");
                if (brief)
                        return;
        }
}

static void write_path(FILE *f, json_object *path, bool brief) {
        const char *access = reply_text(path, "peer_to_peer");

        if (!brief)
                fputs("peer-to-peer ", f);
        if (!access) {
                fputs("unknown: ACS or ATS could not be read", f);
                write_ats(f, path, brief);
        } else if (streq(access, "redirected")) {
                fputs("redirected by ACS at ", f);
                write_ports(f, path, brief);
                write_ats(f, path, brief);
        } else if (streq(access, "translated"))
                fputs("direct for requests translated by ATS, else redirected by ACS", f);
        else if (streq(access, "root-complex"))
                fputs("through the root complex, no switch is above both", f);
        else if (streq(access, "card"))
                fputs("within one card", f);
        else
                fputs(access, f);
}

char *peer_path_text(json_object *path, bool brief) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        bool failed;

        if (!f)
                return NULL;
        write_path(f, path, brief);
        failed = ferror(f);
        if (fclose(f) == 0 && !failed)
                return text;
        free(text);
        return NULL;
}
