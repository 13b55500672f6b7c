/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Runs requests to libvirt about the devices of a domain (guest/plug.h), each in a process of its own. Blocks, so the
 * event loop must not call it. */

#include <stdbool.h>

#include "guest/plug.h"

typedef struct PlugRequest {
        PlugAction action;
        const char *uuid;     /* UUID of the domain */
        const char *hostdev;  /* text of one <hostdev>; "" for PLUG_DESCRIBE */
        unsigned timeout_sec; /* how long PLUG_DETACH waits for the guest. libvirt gets PLUG_GRACE_SEC more */
} PlugRequest;

/*
 * Runs passthroughd-libvirt with the request to the libvirt at uri, and kills it if it has not ended timeout_sec +
 * PLUG_GRACE_SEC later. *ret_text: what guest/plug.h describes, printable and without a full stop unless it is a
 * document; the caller frees; NULL: there is none. A process that is killed gives PLUG_UNKNOWN: libvirt may still serve
 * the request. Repeat the request to know the result.
 */
PlugResult plug_make(const char *uri, const PlugRequest *request, char **ret_text);
