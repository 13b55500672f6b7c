/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reading the documents of libvirt; interfaces between the files of this room. */

#include "guest/guestpci.h"
#include "guest/xmlnode.h"
#include "util/strings.h"

/* The caller frees with xmlFreeDoc(). NULL when malformed, or out of memory. */
xmlDoc *domain_document_read(const char *xml);
/* <devices> of a <domain>; NULL when there is none. doc: or NULL. */
const xmlNode *domain_document_devices(const xmlDoc *doc);
/* The host device of an element of <devices>, as domain_facts_devices() names it. */
bool domain_device_source(const xmlNode *device, char ret[static UUID_STRING_MAX]);
/* The PCI address of an element of <devices> in the guest. False when it has none. */
bool domain_device_address(const xmlNode *device, PciAddress *ret);

/* domain-places.c: the PCI buses of a running domain. */

#define PCI_PLACES_MAX 256U /* slots and functions of a bus */

typedef struct DomainBus {
        bool is_expander, is_bridge; /* neither: there is no such controller, or its address is unknown */
        unsigned above;              /* index of the bus that a bridge is plugged into */
        uint8_t slot, function;      /* of a bridge */
        unsigned number;             /* in the guest; 0 unknown, as below pcie.0 */
} DomainBus;

typedef struct DomainBuses {
        DomainBus buses[GUEST_BUSES_MAX]; /* by the index of the controller */
} DomainBuses;

void domain_buses_read(const xmlNode *devices, DomainBuses *ret);
/* Where the domain has an element of <devices>. False when it has no PCI address. */
bool domain_buses_find(const DomainBuses *b, const xmlNode *device, GuestPlace *ret);
