/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notes below the matrix: pairs without direct peer-to-peer access, which the distance does not show. */
#include <errno.h>
#include <stdlib.h>

#include "topology.h"
#include "util/strings.h"
#include "words.h"

bool pair_is_redirected(json_object *pair) {
        return pair && streq_ptr(reply_text(reply_member(pair, "path"), "peer_to_peer"), "redirected");
}

static Note *find_note(Notes *notes, const char *text) {
        for (size_t i = 0; i < notes->n; i++)
                if (streq(notes->all[i].text, text))
                        return &notes->all[i];
        return NULL;
}

static int add_pair(Notes *notes, const Members *m, json_object *pair) {
        const Member *gpu = members_find(m, reply_cell(pair, "gpu")), *peer = members_find(m, reply_cell(pair, "peer"));
        const char *access = reply_text(reply_member(pair, "path"), "peer_to_peer");
        _cleanup_free_ char *text = NULL;
        Note *note;

        if (!gpu || !peer || streq_ptr(access, "direct") || streq_ptr(access, "card"))
                return 0;
        text = peer_path_text(reply_member(pair, "path"), true);
        if (!text)
                return -ENOMEM;
        note = find_note(notes, text);
        if (!note) {
                note = &notes->all[notes->n++];
                *note = (Note) { .text = TAKE_PTR(text), .redirected = pair_is_redirected(pair) };
        }
        return string_append(&note->pairs, ", ", "%s-%s", gpu->label, peer->label);
}

int notes_init(Notes *notes, const Members *m, json_object *matrix) {
        size_t n = reply_length(matrix, "pairs");
        int r = 0;

        *notes = (Notes) { .all = calloc(n + 1, sizeof(Note)) };
        if (!notes->all)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = add_pair(notes, m, reply_element(matrix, "pairs", i));
        return r;
}

void notes_done(Notes *notes) {
        for (size_t i = 0; i < notes->n; i++) {
                free(notes->all[i].pairs);
                free(notes->all[i].text);
        }
        free(notes->all);
}
