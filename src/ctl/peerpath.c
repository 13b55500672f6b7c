/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The path of a pair as a line of text. */
#include <stdio.h>

#include "ctl/peerpath.h"
#include "ctl/view.h"
#include "util/strings.h"

/* "0000:12:00.0 (RR CR UF), 0000:12:01.0 (RR CR UF)" */
static void write_ports(FILE *f, json_object *path) {
        size_t n = 0;

        for (size_t i = 0; i < reply_length(path, "ports"); i++) {
                json_object *port = reply_element(path, "ports", i);
                _cleanup_free_ char *bits = view_join(port, "acs_control", " ");

                if (streq_ptr(reply_text(port, "redirects"), "true"))
                        fprintf(f, "%s%s (%s)", n++ > 0 ? ", " : "", reply_cell(port, "address"), bits ? bits : "");
        }
}

static void write_ats(FILE *f, json_object *path) {
        json_object *ats;

        if (!json_object_object_get_ex(path, "ats", &ats) || !json_object_is_type(ats, json_type_object))
                return;
        json_object_object_foreach(ats, address, state) {
                const char *text = json_object_get_string(state);

                if (text_is_clean(address) && (!text || text_is_clean(text)))
                        fprintf(f, "; ATS of %s %s", address, text ? text : "unknown");
        }
}

static void write_path(FILE *f, json_object *path) {
        const char *access = reply_text(path, "peer_to_peer");

        if (!access) {
                fputs("not known whether peer-to-peer is direct: not all of ACS and ATS could be read", f);
                write_ats(f, path);
        } else if (streq(access, "redirected")) {
                fputs("peer-to-peer redirected by ACS at ", f);
                write_ports(f, path);
                write_ats(f, path);
        } else if (streq(access, "translated"))
                fputs("peer-to-peer direct for what ATS translated, else redirected by ACS", f);
        else if (streq(access, "root-complex"))
                fputs("peer-to-peer by way of the root complex, no switch is above both", f);
        else if (streq(access, "card"))
                fputs("functions of one card", f);
        else
                fprintf(f, "peer-to-peer %s", access);
}

char *peer_path_text(json_object *path) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        bool failed;

        if (!f)
                return NULL;
        write_path(f, path);
        failed = ferror(f);
        if (fclose(f) == 0 && !failed)
                return text;
        free(text);
        return NULL;
}
