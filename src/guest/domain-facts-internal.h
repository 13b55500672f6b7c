/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reading the documents of libvirt; interfaces between the files of this room. */

#include "guest/xmlnode.h"
#include "util/strings.h"

/* The caller frees with xmlFreeDoc(). NULL when malformed, or out of memory. */
xmlDoc *domain_document_read(const char *xml);
/* <devices> of a <domain>; NULL when there is none. doc: or NULL. */
const xmlNode *domain_document_devices(const xmlDoc *doc);
/* The host device of an element of <devices>, as domain_facts_devices() names it. */
bool domain_device_source(const xmlNode *device, char ret[static UUID_STRING_MAX]);
