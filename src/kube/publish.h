/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Keeps the ResourceSlices of the API server equal to the node: one request at a time, each change with as few writes
 * as possible, and all read again after a conflict, at times, and when the kubelet starts, which removes them.
 */

#include "api.h"

typedef struct Publisher Publisher;

/* The arguments stay the caller's and outlive the publisher. 0 or a negative errno, logged. */
int publisher_new(sd_event *event, Api *api, const char *node, Publisher **ret);
Publisher *publisher_free(Publisher *p);

/* The daemon's document; NULL: it is away, and what is published stays. */
void publisher_update(Publisher *p, json_object *document);
/* Reads all again, and sends again what the API server has left out. */
void publisher_reread(Publisher *p);
/* The kubelet has started: it may remove slices until its plugins are registered, and a little after. */
void publisher_kubelet_started(Publisher *p);
