/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The path of peer-to-peer requests between two functions. model/locality.h tells how far apart the functions are; this
 * file tells where the PCIe fabric routes the requests of one to the other. ACS of the ports between them and ATS of
 * the requester decide that. This program only reads these settings and never changes them.
 */

#include "model/inventory.h"

/* The most ports of a path. No real topology has more. */
#define PEER_PORTS_MAX 32U

typedef enum PeerAccess {
        PEER_ACCESS_UNKNOWN,      /* the path, ACS of a port or ATS of the requester is unknown */
        PEER_ACCESS_CARD,         /* functions of one card, with no port between them */
        PEER_ACCESS_DIRECT,       /* through a switch, translated or not */
        PEER_ACCESS_TRANSLATED,   /* through a switch, but only for addresses that ATS has translated; the requester has
                                     ATS enabled */
        PEER_ACCESS_REDIRECTED,   /* below one switch or root port, but ACS redirects the requests to the root complex,
                                     and ATS does not avoid that */
        PEER_ACCESS_ROOT_COMPLEX, /* no switch or root port is above both */
        _PEER_ACCESS_MAX,
} PeerAccess;
const char *peer_access_to_string(PeerAccess a);

typedef struct PeerPath {
        PeerAccess access;
        /*
         * Inventory indices of the ports between each device and the nearest bridge above both or, if there is none,
         * the root bus: first from the requester up, then from the other device up. The bridge above both and ports
         * with PCI_ACS_CLEAN are left out.
         */
        uint32_t ports[PEER_PORTS_MAX];
        size_t n_ports;
} PeerPath;

/* Finds the path of requests from the device `asks`, which reads and writes the memory of the other (as a NIC does with
 * a GPU). */
void peer_path_find(const Inventory *inv, const PciDevice *asks, const PciDevice *other, PeerPath *ret);

/* Returns true when ACS of the port sends requests or completions between devices below it to the root complex. */
bool peer_port_redirects(const PciDevice *port);
/* Returns the function whose ATS setting counts for dev: the PF of a VF, else dev. */
const PciDevice *peer_ats_function(const Inventory *inv, const PciDevice *dev);

/*
 * Sets *ret to a sentence about what an administrator would set for direct peer-to-peer, which the caller frees. NULL
 * unless the access is PEER_ACCESS_REDIRECTED. 0 or -ENOMEM.
 */
int peer_path_setting(const Inventory *inv, const PeerPath *path, const PciDevice *asks, char **ret);
