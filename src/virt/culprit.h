/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which element of a template makes libvirt refuse a document. libvirt's own message often names another element,
 * because its schema is unordered; so the document is validated again with fewer and fewer of the template's elements.
 */

#include <libxml/tree.h>

#include "libvirt.h"

typedef struct Culprit {
        long line;        /* of the template; 0: the element comes from no template */
        const char *name; /* the element's, borrowed from the document */
        char *reason;     /* libvirt's, of the smallest document with the element that libvirt refuses */
} Culprit;

void culprit_done(Culprit *c);

/*
 * doc: refused by libvirt for reason, which is taken over. The _private of each of its elements is the line of the
 * template, 0 for none. VALIDATION_UNKNOWN when libvirt refuses the rest of the document too, without any element of
 * the template, though the schema permits it: ret->reason is why. Else VALIDATION_INVALID.
 *
 * Ends after VALIDATION_SEARCH_SEC: *ret is the element that is known to contain the culprit by then.
 */
Validation culprit_find(Libvirt *l, xmlDoc *doc, char *reason, Culprit *ret);

long culprit_line(const xmlNode *element);
