/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the element of a template that makes libvirt refuse a document. libvirt's own message often names another
 * element, because its schema is unordered. So the document is validated repeatedly with different elements of the
 * template left out.
 */

#include <libxml/tree.h>

#include "libvirt.h"

typedef struct Culprit {
        long line;        /* in the template; 0: passthroughd added the element */
        const char *name; /* of the element; borrowed from the document */
        char *reason;     /* libvirt's reason to refuse the smallest such document; owned */
} Culprit;

void culprit_done(Culprit *c);

/*
 * doc: the document that libvirt refuses; culprit_line() of each element must be set. first: libvirt's verdict; reason:
 * its reason, which this function frees or puts into *ret. VALIDATION_INVALID: *ret is the culprit, or the root with
 * libvirt's first reason when there is none better. VALIDATION_UNKNOWN: libvirt refuses the document even without the
 * template's elements, and not because of the schema; ret->reason is why.
 *
 * The search ends when the process has used VALIDATION_SEARCH_CPU_SEC, or after VALIDATION_SEARCH_SEC; *ret is then the
 * smallest element found to contain the culprit.
 */
Validation culprit_find(Libvirt *l, xmlDoc *doc, Validation first, char *reason, Culprit *ret);

/* The line of an element in the template, which the caller stored in _private; 0: passthroughd added the element. */
long culprit_line(const xmlNode *element);
