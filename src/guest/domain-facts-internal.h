/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that read libvirt's documents; interfaces between the files of this room. */

#include "guest/guestpci.h"
#include "guest/xmlnode.h"
#include "util/strings.h"

/* The caller frees with xmlFreeDoc(). Returns NULL for a malformed document, or when out of memory. */
xmlDoc *domain_document_read(const char *xml);
/* Returns <devices> of a <domain>, or NULL when there is none. doc may be NULL. */
const xmlNode *domain_document_devices(const xmlDoc *doc);
/* Finds the host device of an element of <devices>, in the format of domain_facts_devices(). */
bool domain_device_source(const xmlNode *device, char ret[static UUID_STRING_MAX]);
/* Finds the guest's PCI address of an element of <devices>. False: the element has none. */
bool domain_device_address(const xmlNode *device, PciAddress *ret);

/* domain-places.c: the PCI buses of a running domain. */

#define PCI_PLACES_MAX 256U /* slots times functions of a bus */

typedef struct DomainBus {
        bool is_expander, is_bridge; /* both false: there is no such controller, or its address is unknown */
        unsigned above;              /* index of the bus that a bridge is plugged into */
        uint8_t slot, function;      /* where the bridge is on that bus */
        unsigned number;             /* bus number in the guest; 0: unknown, as for bridges of pcie.0 */
} DomainBus;

typedef struct DomainBuses {
        DomainBus buses[GUEST_BUSES_MAX]; /* by the index of the controller */
} DomainBuses;

void domain_buses_read(const xmlNode *devices, DomainBuses *ret);
/* Finds the place in the guest of an element of <devices>. False: the element has no PCI address. */
bool domain_buses_find(const DomainBuses *b, const xmlNode *device, GuestPlace *ret);
