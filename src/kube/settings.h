/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The settings of passthrough-dra, passthrough-dra(8). */

#define SETTINGS_FILE "/etc/passthroughd/passthrough-dra.conf"

typedef struct Settings {
        char *kubeconfig; /* where the API server is, and the credential */
        char *node;       /* the name of this node in Kubernetes */
        char *kubelet;    /* the directory of the kubelet */
        char *cdi;        /* the directory of CDI documents */
} Settings;

/* 0 or a negative errno, logged. A missing file is one without lines. */
int dra_settings_read(const char *path, Settings *ret);
void dra_settings_done(Settings *s);
