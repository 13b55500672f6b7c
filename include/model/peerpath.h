/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the way between two functions allows: how far they are apart is one thing (model/locality.h), where the fabric
 * sends what one writes to the other another. ACS of each port between them says that, and ATS of who asks. Facts and
 * words only: nothing here, or anywhere else in this program, changes either.
 */

#include "model/inventory.h"

/* Ports on a way that are looked at; a longer one makes no sense. */
#define PEER_PORTS_MAX 32U

typedef enum PeerAccess {
        PEER_ACCESS_UNKNOWN,      /* ACS of a port could not be read */
        PEER_ACCESS_CARD,         /* functions of one card: no port is between them */
        PEER_ACCESS_DIRECT,       /* by way of the switch, whatever the address */
        PEER_ACCESS_TRANSLATED,   /* so for addresses that ATS translated; ATS of who asks is on */
        PEER_ACCESS_REDIRECTED,   /* there is a shorter way, but ACS sends it through the root complex */
        PEER_ACCESS_ROOT_COMPLEX, /* no switch or root port is above both */
        _PEER_ACCESS_MAX,
} PeerAccess;
const char *peer_access_to_string(PeerAccess a);

typedef struct PeerPath {
        PeerAccess access;
        /* Root and downstream ports from one device up to where the ways meet, then from the other: indices. */
        uint32_t ports[PEER_PORTS_MAX];
        size_t n_ports;
} PeerPath;

/* asks: who reads and writes the memory of the other, as a NIC does that of a GPU. */
void peer_path_find(const Inventory *inv, const PciDevice *asks, const PciDevice *other, PeerPath *ret);

/* The port sends requests or completions between those below it up. */
bool peer_port_redirects(const PciDevice *port);
/* Whose ATS is told for a device: itself, or the PF of a VF. */
const PciDevice *peer_ats_function(const Inventory *inv, const PciDevice *dev);

/*
 * What an administrator would set for direct peer-to-peer, a sentence that the caller frees; *ret is NULL where there
 * is nothing to set, because it is direct or no setting makes it so. 0 or -ENOMEM.
 */
int peer_path_setting(const Inventory *inv, const PeerPath *path, const PciDevice *asks, char **ret);
