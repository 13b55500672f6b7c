/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* passthrough-placement.conf. */

#include "util/cleanup.h"

#define SETTINGS_FILE "/etc/passthroughd/passthrough-placement.conf"

typedef struct Settings {
        char *url;     /* of Placement; NULL: from Keystone's catalog */
        char *token;   /* for a Placement without Keystone */
        char *ca_file; /* NULL: the CAs of the system */
        char *host;    /* the name of the root provider */
        bool add_root;
        char *project, *user; /* in the claims */

        char *keystone_url; /* NULL: no Keystone */
        char *credential;   /* the id of the application credential */
        char *secret_file;  /* NULL: the credential of the service */
        char *secret;       /* its text */
        char *region;       /* NULL: any */
        char *interface;    /* public, internal, admin */
} Settings;

/* Reads the file and fills in the defaults. A negative errno was logged. */
int settings_read(const char *path, Settings *ret);
void settings_done(Settings *s);
