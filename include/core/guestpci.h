/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The guest's side of PCI: which root port, expander bus and address each device of an allocation gets. Pure numbers;
 * domxml writes them down. Every card has a root port of its own; cards on a guest cell's node sit behind that cell's
 * expander bus (pxb), the rest on pcie.0.
 *
 * Bus numbers 0 to 255 are one space. An expander owns those from its busNr up to the next one's; firmware numbers the
 * buses behind it from there, and loses devices without a word when they do not fit (domain.md F9). So expanders are
 * packed at the top, each with room for its ports and a few spare, and pcie.0 keeps everything below.
 */

#include "core/allocation.h"

#define GUEST_BUSES_MAX      256U
#define GUEST_EXPANDER_SPARE 2U /* bus numbers of each expander left free */
#define GUEST_PORTS_MAX      255U

typedef enum GuestControllerType {
        GUEST_EXPANDER_BUS,
        GUEST_ROOT_PORT,
} GuestControllerType;

typedef struct GuestController {
        GuestControllerType type;
        unsigned index;  /* libvirt's index; "bus" in the address of what is plugged into it */
        int cell;        /* guest cell of the expander, or of the expander the port is behind; -1: port on pcie.0 */
        unsigned bus_nr; /* expanders */
        unsigned bus;    /* ports: index of the expander, 0 for pcie.0, where libvirt picks the slot */
        uint8_t slot;    /* ports behind an expander */
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
        GuestFunction *functions; /* assigned and companion devices, in the allocation's order */
        size_t n_functions;
        uint64_t hole64; /* bytes the 64-bit window needs, a power of two; 0: the machine's own default is enough */
} GuestPci;

/* What the rest of the machine leaves. */
typedef struct GuestPciRoom {
        unsigned first_index; /* lowest free controller index, at least 1: 0 is pcie-root */
        unsigned bus_end;     /* our bus numbers are below this */
        unsigned others;      /* root ports pcie.0 needs for devices that are not ours */
} GuestPciRoom;

/* As a domain without a template has it. */
#define GUEST_PCI_ROOM_DEFAULT ((GuestPciRoom){ .first_index = 1, .bus_end = GUEST_BUSES_MAX, .others = 16 })

/* True for the devices a guest gets: assigned ones and companions. */
bool guest_pci_shows(const AllocationDevice *dev);

/* -E2BIG: more than the bus numbers or controller indices allow. -ENOMEM. */
int guest_pci_new(const Inventory *inv, const Allocation *a, const GuestPciRoom *room, GuestPci **ret);
GuestPci *guest_pci_free(GuestPci *p);
DEFINE_CLEANUP(GuestPci *, guest_pci_free)
