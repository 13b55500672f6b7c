/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Requests to libvirt that change the devices of a domain or print its document (guest/plug.h), in a process of their
 * own. For child processes and services: both functions block. */

#include <stdbool.h>

#include "guest/plug.h"

typedef struct PlugRequest {
        PlugAction action;
        const char *uuid;     /* UUID of the domain */
        const char *hostdev;  /* text of a single <hostdev>; "" for PLUG_DESCRIBE */
        unsigned timeout_sec; /* time that PLUG_DETACH waits for the guest; libvirt itself gets PLUG_GRACE_SEC more */
} PlugRequest;

/*
 * Runs passthroughd-libvirt with the request to the libvirt at uri, and kills it timeout_sec + PLUG_GRACE_SEC later.
 * Its standard output, which guest/plug.h describes, goes to the file output. PLUG_UNKNOWN if the process was killed:
 * libvirt may still serve the request; repeat it to learn the result.
 */
PlugResult plug_make(const char *uri, const PlugRequest *request, int output);

/* Reads the text from the file output. Makes it printable, without a full stop, unless it is a document. The caller
 * frees *ret. 0 or a negative errno. */
int plug_read_text(int output, bool is_document, char **ret);
