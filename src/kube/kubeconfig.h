/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A kubeconfig file (kubernetes.io/docs/reference/config-api/kubeconfig.v1): where the API server is, and how this
 * program proves to it who it is. Read by libyaml.
 */

typedef struct Kubeconfig {
        char *server;            /* without a slash at the end */
        char *ca_file, *ca_text; /* PEM, as the others; neither: the CAs of the system */
        char *certificate_file, *certificate_text, *key_file, *key_text;
        char *token, *token_file;
} Kubeconfig;

/* 0 or a negative errno, logged; kubeconfig_done() in both cases. */
int kubeconfig_read(const char *path, Kubeconfig *ret);
void kubeconfig_done(Kubeconfig *k);
