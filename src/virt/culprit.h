/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the element of a template because of which libvirt refuses a document. libvirt's own message often names
 * another element, because its schema is unordered. Therefore the search validates the document repeatedly, each time
 * without some elements of the template.
 */

#include <libxml/tree.h>

#include "libvirt.h"

typedef struct Culprit {
        long line;        /* of the element in the template; 0: passthroughd added the element */
        const char *name; /* of the element; borrowed from the document */
        char *reason;     /* why libvirt refuses the smallest document that has the element; owned */
} Culprit;

void culprit_done(Culprit *c);

/*
 * doc: the document that libvirt refuses; culprit_line() of each element must be set. first: libvirt's verdict. reason:
 * libvirt's reason; owned by this function, and possibly moved to *ret. Returns VALIDATION_INVALID with the culprit in
 * *ret, or the root with libvirt's first reason when there is no better one. Returns VALIDATION_UNKNOWN when libvirt
 * refuses the document even without the template's elements, and not because of the schema; ret->reason is why.
 *
 * The search ends when the process has used VALIDATION_SEARCH_CPU_SEC, or after VALIDATION_SEARCH_SEC. Then *ret is the
 * smallest element found to contain the culprit.
 */
Validation culprit_find(Libvirt *l, xmlDoc *doc, Validation first, char *reason, Culprit *ret);

/*
 * Returns the template line of the element, which the caller has stored in _private. 0: passthroughd added the element.
 */
long culprit_line(const xmlNode *element);
