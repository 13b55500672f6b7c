/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The guest's side of PCI: which controllers its devices are behind, and at which address. Pure numbers; domxml writes
 * them down. A card on a guest cell's node sits behind an expander bus (pxb) of that cell, the rest on pcie.0.
 *
 * GUEST_TOPOLOGY_FLAT: one expander for each cell, a root port for each card. GUEST_TOPOLOGY_MIRROR: one expander for
 * each host root complex, and where cards share a switch on the host they share one here, so that a guest finds them as
 * near to each other as they are. What the allocation says of its devices is all this goes by: the guest's tree stays
 * as it was promised when a device goes missing.
 *
 * Bus numbers 0 to 255 are one space. An expander owns those from its busNr up to the next one's; firmware numbers the
 * buses behind it from there, depth first, and loses devices without a word when they do not fit (domain.md F9). So
 * expanders are packed at the top, each with room for its ports and a few spare, and pcie.0 keeps everything below.
 */

#include "ledger/allocation.h"

#define GUEST_BUSES_MAX      256U
#define GUEST_EXPANDER_SPARE 2U  /* bus numbers of each expander left free */
#define GUEST_EXPANDERS_MAX  20U /* each takes a slot of pcie.0 */
#define GUEST_CARDS_MAX      255U

typedef enum GuestControllerType {
        GUEST_EXPANDER_BUS,
        GUEST_ROOT_PORT,
        GUEST_UPSTREAM_PORT,
        GUEST_DOWNSTREAM_PORT,
} GuestControllerType;

typedef struct GuestController {
        GuestControllerType type;
        unsigned index;  /* libvirt's index; "bus" in the address of what is plugged into it */
        int cell;        /* guest cell of the expander, or of the expander it is behind; -1: below pcie.0 */
        unsigned bus_nr; /* as the guest's firmware numbers it; 0 below pcie.0, where nobody can tell */
        unsigned bus;    /* index of the controller it is plugged into; 0 is pcie.0, where libvirt picks the slot */
        uint8_t slot;    /* unless on pcie.0 */
        uint8_t function;
        bool multifunction;
} GuestController;

typedef struct GuestFunction {
        size_t device; /* index into allocation->devices */
        PciAddress guest;
        bool multifunction; /* function 0 of a card with more than one */
} GuestFunction;

typedef struct GuestPci {
        GuestController *controllers; /* ascending by index, dense from room->first_index */
        size_t n_controllers;
        size_t n_used;            /* those before the spare ports */
        GuestFunction *functions; /* assigned and companion devices, in the allocation's order */
        size_t n_functions;
        uint64_t hole64; /* bytes the 64-bit window needs, a power of two; 0: the machine's own default is enough */
        bool hint;       /* UEFI makes no window of that size by itself */
} GuestPci;

/* What the rest of the machine leaves. */
typedef struct GuestPciRoom {
        unsigned first_index; /* lowest free controller index, at least 1: 0 is pcie-root */
        unsigned bus_end;     /* our bus numbers are below this */
        unsigned others;      /* root ports pcie.0 needs for devices that are not ours */
        unsigned seekers;     /* of those devices, ones that would take a spare port when they find no other */
} GuestPciRoom;

/* As a domain without a template has it. */
#define GUEST_PCI_ROOM_DEFAULT ((GuestPciRoom){ .first_index = 1, .bus_end = GUEST_BUSES_MAX, .others = 16 })

/* True for the devices a guest gets: assigned ones and companions. */
bool guest_pci_shows(const AllocationDevice *dev);

/* -E2BIG: more than the bus numbers, controller indices or slots allow. -ENOMEM. */
int guest_pci_new(const Inventory *inv, const Allocation *a, const GuestPciRoom *room, GuestPci **ret);
GuestPci *guest_pci_free(GuestPci *p);
DEFINE_CLEANUP(GuestPci *, guest_pci_free)

/*
 * Sets a->topology to what was asked for, or, when that is invalid, to what serves it best: mirror for more than one
 * assigned device when it fits, else flat. Refuses what does not fit beside a domain's usual devices.
 */
Verdict guest_topology_choose(const Inventory *inv, GuestTopology wanted, Allocation *a, Refusal *ret);

/* The controller a function is plugged into, and the root port above any but an expander. */
const GuestController *guest_pci_port(const GuestPci *p, const GuestFunction *f);
const GuestController *guest_pci_root_port(const GuestPci *p, const GuestController *c);
/* The address by which the guest itself knows it; bus 0 when nobody can tell. */
PciAddress guest_pci_seen(const GuestPci *p, const GuestFunction *f);
