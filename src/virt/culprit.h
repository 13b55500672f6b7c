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
        char *reason;     /* why libvirt refuses a document that has the element; owned; NULL: out of memory */
} Culprit;

void culprit_done(Culprit *c);

/*
 * doc: the document that libvirt refuses; the caller has stored the culprit_line() of each element. first: libvirt's
 * verdict. reason: libvirt's reason, which this function takes over. Returns VALIDATION_INVALID with the culprit in
 * *ret, or with the root when the search has found no smaller element. Returns VALIDATION_UNKNOWN when libvirt refuses
 * the document with and without the template's elements, neither time because of the schema, and no single element is
 * to blame; then ret->reason says why libvirt refuses the document without these elements.
 *
 * The search ends when the process has used VALIDATION_SEARCH_CPU_SEC of CPU time, or after VALIDATION_SEARCH_SEC. Then
 * *ret is the smallest element found to contain the culprit.
 */
Validation culprit_find(Libvirt *l, xmlDoc *doc, Validation first, char *reason, Culprit *ret);

/* Returns the template line of the element, which the caller of culprit_find() has stored in the element's _private. 0:
 * passthroughd added the element. */
long culprit_line(const xmlNode *element);
