/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reading the documents of libvirt; interfaces between the files of this room. */

#include "guest/xmlnode.h"
#include "model/pciaddr.h"

/* The caller frees with xmlFreeDoc(). NULL when malformed, or out of memory. */
xmlDoc *domain_document_read(const char *xml);
/* <devices> of a <domain>; NULL when there is none. doc: or NULL. */
const xmlNode *domain_document_devices(const xmlDoc *doc);
/* The host PCI function of an element of <devices>. */
bool domain_device_source(const xmlNode *device, PciAddress *ret);
