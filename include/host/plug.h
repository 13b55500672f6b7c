/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Requests to libvirt that change the devices of a domain or print its document (guest/plug.h), in a process of their
 * own. For child processes and services: it blocks. */

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
 * *ret_text: what guest/plug.h describes, printable and without a full stop unless it is a document; the caller frees;
 * NULL: there is none. A process that is killed gives PLUG_UNKNOWN: libvirt may still serve the request; repeat it to
 * know the result.
 */
PlugResult plug_make(const char *uri, const PlugRequest *request, char **ret_text);
