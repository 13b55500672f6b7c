/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats the PCI path between two devices as a line of text. */
#include "peerpath.h"
#include "util/strings.h"
#include "view.h"

/* Adds the ports that redirect: "0000:12:00.0 (SV RR CR UF), 0000:12:01.0 (SV RR CR UF)". */
static int add_ports(char **text, json_object *path, bool brief) {
        _cleanup_free_ char *ports = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < reply_length(path, "ports"); i++) {
                json_object *port = reply_element(path, "ports", i);
                _cleanup_free_ char *bits = view_join(port, "acs_control", " ");

                if (!streq_ptr(reply_text(port, "redirects"), "true"))
                        continue;
                r = brief ? string_append(&ports, ", ", "%s", reply_cell(port, "address"))
                          : string_append(&ports, ", ", "%s (%s)", reply_cell(port, "address"), bits ?: "");
        }
        return r < 0 ? r : string_append(text, "", "redirected by ACS at %s", ports ?: "");
}

/* Adds ATS of both devices, or with brief of the first one, which is the requester. */
static int add_ats(char **text, json_object *path, bool brief) {
        json_object *ats = reply_object(path, "ats");

        if (!ats)
                return 0;
        json_object_object_foreach(ats, address, state) {
                const char *s = json_object_get_string(state);
                int r = 0;

                if (text_is_clean(address) && (!s || text_is_clean(s)))
                        r = string_append(text, "; ", "ATS of %s %s", address, s ?: "unknown");
                if (r < 0 || brief)
                        return r;
        }
        return 0;
}

char *peer_path_text(json_object *path, bool brief) {
        static const struct {
                const char *access, *text;
        } texts[] = {
                { "translated", "direct for requests translated by ATS, else redirected by ACS" },
                { "root-complex", "through the root complex, no switch is above both" },
                { "card", "within one card" },
        };
        const char *access = reply_text(path, "peer_to_peer"), *known = access;
        _cleanup_free_ char *text = NULL;
        int r = brief ? 0 : string_append(&text, "", "peer-to-peer ");

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (streq_ptr(access, texts[i].access))
                        known = texts[i].text;
        if (r >= 0 && streq_ptr(access, "redirected"))
                r = add_ports(&text, path, brief);
        else if (r >= 0)
                r = string_append(&text, "", "%s", known ?: "unknown: ACS or ATS could not be read");
        if (r >= 0 && (streq_ptr(access, "redirected") || (!access && !brief)))
                r = add_ats(&text, path, brief);
        return r < 0 ? NULL : TAKE_PTR(text);
}
