/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that read libvirt's documents, for domain-facts.c, domain-places.c and guestport.c. */

#include "guest/guestpci.h"
#include "guest/xmlnode.h"
#include "util/strings.h"

/* Parses a document. The caller frees with xmlFreeDoc(). NULL: the document is malformed, too long or has a DOCTYPE,
 * or out of memory. */
xmlDoc *domain_document_read(const char *xml);
/* Returns the <devices> of a <domain>; NULL: there is none. doc may be NULL. */
const xmlNode *domain_document_devices(const xmlDoc *doc);
/* Sets ret to the name of the host device of an element of <devices>, as domain_facts_devices() names it. Returns false
 * if the element has none, or a malformed one. */
bool domain_device_source(const xmlNode *device, char ret[static UUID_STRING_MAX]);
/* Finds the PCI address in the guest of an element of <devices>. False: the element has none, or a malformed one. */
bool domain_device_address(const xmlNode *device, PciAddress *ret);

/* domain-places.c: the PCI buses of a running domain. */

#define PCI_PLACES_MAX 256U /* slots of a bus times functions of a slot */

typedef struct DomainBus {
        bool is_expander, is_bridge; /* both false: pcie.0, or no controller with this index whose place is known */
        unsigned above;              /* of a bridge: index of the bus above it */
        uint8_t slot, function;      /* of a bridge: its place on that bus */
        unsigned number;             /* bus number in the guest; 0: pcie.0, or unknown, as of each bus that is
                                        neither an expander nor below one */
} DomainBus;

typedef struct DomainBuses {
        DomainBus buses[GUEST_BUSES_MAX]; /* by index of the controller */
} DomainBuses;

void domain_buses_read(const xmlNode *devices, DomainBuses *ret);
/* Finds the place in the guest of an element of <devices>. False: the element has no PCI address, or one in another PCI
 * domain than 0. */
bool domain_buses_find(const DomainBuses *b, const xmlNode *device, GuestPlace *ret);
