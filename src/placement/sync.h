/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Makes Placement's tree equal to the wanted tree. A Sync stores Placement's tree with its generations, so that a
 * change of the node costs one or two requests. After a conflict, which means that another program changed Placement,
 * the subject is read again.
 */

#include "api.h"
#include "tree.h"

typedef struct Sync {
        const Settings *settings; /* not owned */
        Api *api;                 /* not owned */
        /* Reads the daemon's document. 0 or a negative errno, logged. */
        int (*describe)(void *userdata, json_object **ret);
        void *userdata;
        bool dry_run;  /* print the changes only */
        Tree *have;    /* Placement's tree; NULL: not read yet */
        bool is_stale; /* other programs may have changed Placement since */
        char root[TREE_UUID_SIZE];
        json_object *known;    /* resource classes and traits that Placement has */
        json_object *returned; /* names of Nova's providers with devices that were clean at the last comparison */
        unsigned changes;      /* number of changes so far */
} Sync;

void sync_done(Sync *s);

/* Makes the next run a full comparison: it reads all claims again, and every provider with another generation. */
void sync_reread(Sync *s);

/* Compares and changes Placement. 0, or a negative errno, logged; a later run may succeed. */
int sync_run(Sync *s);
