/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Makes the request (a{sv}) of Plan, Allocate and Attach from the operands POOL=COUNT and SLOT:ATTRIBUTES, and from
 * options. Checks only the form of the operands and options; the daemon checks the values. */

#include "client.h"

/* An item of a list of the request, such as gpu=2, mpi=1G:2M or gpu=0000:13:00.0. name: the text before '=', or before
 * ':' for attributes of a slot. text: the attributes or the address. numbers: the count or the host NUMA node; or for
 * shared memory, its size and its page size (0: not given). */
typedef struct RequestItem {
        char *name, *text;
        uint64_t numbers[2];
} RequestItem;

/* The keys of the request whose values are lists. */
typedef enum RequestList {
        REQUEST_LIST_DEVICES,
        REQUEST_LIST_VFS,
        REQUEST_LIST_SHARED_MEMORY,
        REQUEST_LIST_AT,
        REQUEST_LIST_HOST_NODES,
        _REQUEST_LIST_MAX,
} RequestList;

typedef struct RequestItems {
        RequestItem *items[_REQUEST_LIST_MAX];
        size_t n[_REQUEST_LIST_MAX];
} RequestItems;

/* Parses --shared-memory, --at, --host-nodes, and the operands from index `first` on. The caller frees *ret with
 * request_items_done(). Returns 0, EXIT_USAGE or a negative errno; both failures were reported. */
int request_items_parse(const Args *args, size_t first, RequestItems *ret);
void request_items_done(RequestItems *r);
#define _cleanup_request_items_ _cleanup_(request_items_done)

/* Appends to a call the name (unless it is NULL) and the request. Returns 0 or a negative errno, reported. */
int request_append(const Args *args, const char *name, const RequestItems *items, sd_bus_message *call);
