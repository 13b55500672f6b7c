/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Makes Placement's tree equal to the wanted tree. A Sync keeps Placement's tree and its generations between runs, so a
 * change on the node costs one or two requests. A conflict means that another program has changed Placement: then the
 * provider or claim is read again.
 */

#include "api.h"
#include "tree.h"

typedef struct Sync {
        const Settings *settings; /* not owned */
        Api *api;                 /* not owned */
        /* Reads the daemon's document. 0 or a negative errno, logged. */
        int (*describe)(void *userdata, json_object **ret);
        void *userdata;
        bool dry_run;  /* only print the changes */
        Tree *have;    /* Placement's tree; NULL: not read yet */
        bool is_stale; /* other programs may have changed Placement: read it again */
        char root[TREE_UUID_SIZE];
        json_object *known;    /* resource classes and traits that Placement has */
        json_object *returned; /* names of Nova's providers that need no read: at the last comparison their devices were
                                  clean, and not reserved for a consumer */
        unsigned changes;      /* number of changes that Placement has accepted so far */
} Sync;

void sync_done(Sync *s);

/* Makes the next run read all claims again, and every provider whose generation has changed. */
void sync_reread(Sync *s);

/* Compares Placement with the wanted tree, and changes Placement. 0, or a negative errno, logged; a later run may
 * succeed. */
int sync_run(Sync *s);
