/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The guest's PCI layout: the controllers, and the address of each device. Numbers only; domxml writes the XML. A card
 * on the NUMA node of a guest cell sits behind an expander bus (pxb) of that cell, other cards on pcie.0.
 *
 * GUEST_TOPOLOGY_FLAT: one expander for each cell, a root port for each card. GUEST_TOPOLOGY_MIRROR: one expander for
 * each host root complex; cards that share a switch on the host share a switch in the guest, so that the guest sees the
 * distances between them. The layout depends only on the allocation, so it stays as promised when a device leaves the
 * node.
 *
 * Bus numbers 0 to 255 are one space. An expander owns the numbers from its busNr up to that of the next expander.
 * Firmware numbers the buses behind the expander from there, depth first, and silently drops devices that do not fit.
 * So expanders get the highest numbers, each with room for its ports and a few spare numbers; pcie.0 keeps all lower
 * numbers.
 */

#include "ledger/allocation.h"

#define GUEST_BUSES_MAX      256U
#define GUEST_EXPANDER_SPARE 2U  /* bus numbers of each expander left free */
#define GUEST_EXPANDERS_MAX  20U /* each occupies a slot of pcie.0 */
#define GUEST_CARDS_MAX      255U

/* The 64-bit MMIO window of QEMU's machine types q35 and virt without pcihole64. */
#define GUEST_HOLE64_Q35  (32ULL << 30)
#define GUEST_HOLE64_VIRT (512ULL << 30)

typedef enum GuestControllerType {
        GUEST_EXPANDER_BUS,
        GUEST_ROOT_PORT,
        GUEST_UPSTREAM_PORT,
        GUEST_DOWNSTREAM_PORT,
} GuestControllerType;

typedef struct GuestController {
        GuestControllerType type;
        unsigned index;  /* libvirt's index, which is the "bus" in the address of devices plugged into it */
        int cell;        /* guest cell of the expander, or of the expander above it; -1: below pcie.0 */
        unsigned bus_nr; /* bus number that the guest's firmware assigns; 0 below pcie.0, where it is unknown */
        unsigned bus;    /* index of the controller above; 0: pcie.0, where libvirt picks the slot */
        uint8_t slot;    /* not set on pcie.0 */
        uint8_t function;
        bool multifunction;
} GuestController;

typedef struct GuestFunction {
        size_t device; /* index into allocation->devices */
        PciAddress guest;
        bool multifunction; /* this is function 0 of a card with several functions */
} GuestFunction;

typedef struct GuestPci {
        GuestController *controllers; /* ascending by index, dense from room->first_index */
        size_t n_controllers;
        size_t n_used;            /* controllers before the spare ports */
        GuestFunction *functions; /* assigned and companion devices, in the allocation's order */
        size_t n_functions;
        uint64_t hole64; /* bytes of the 64-bit MMIO window, a power of two; 0: the machine's default suffices */
        bool hint;       /* UEFI needs a hint to create a window of this size */
} GuestPci;

/* The indices and bus numbers that the rest of the machine leaves free. */
typedef struct GuestPciRoom {
        unsigned first_index; /* lowest free controller index, at least 1: 0 is pcie-root */
        unsigned bus_end;     /* bus numbers of our controllers are below this */
        unsigned others;      /* root ports on pcie.0 for other devices than ours */
        unsigned seekers;     /* other devices that libvirt plugs into a spare port if no other port is free */
} GuestPciRoom;

/* The free indices and bus numbers in a domain without a template. */
#define GUEST_PCI_ROOM_DEFAULT ((GuestPciRoom) { .first_index = 1, .bus_end = GUEST_BUSES_MAX, .others = 16 })

/* Returns true for the devices that a guest gets: assigned ones and companions, unless they are being attached or
 * detached. */
bool guest_pci_shows(const AllocationDevice *dev);

/* Computes the layout. 0, -ENOMEM, -E2BIG when bus numbers, controller indices or slots do not suffice. */
int guest_pci_new(const Inventory *inv, const Allocation *a, const GuestPciRoom *room, GuestPci **ret);
GuestPci *guest_pci_free(GuestPci *p);
DEFINE_CLEANUP(GuestPci *, guest_pci_free)

/*
 * Sets a->topology to wanted. If wanted is invalid, to mirror for more than one assigned device if that fits, otherwise
 * to flat. Refuses a layout that does not fit beside the usual devices of a domain.
 */
Verdict guest_topology_choose(const Inventory *inv, GuestTopology wanted, Allocation *a, Refusal *ret);

/* Returns the guest cell on the NUMA node of the device; -1: none. */
int guest_pci_cell(const Allocation *a, const AllocationDevice *dev);

/* Returns the controller above a function. */
const GuestController *guest_pci_port(const GuestPci *p, const GuestFunction *f);
/* Returns the address of the function that the guest sees; bus 0: unknown. */
PciAddress guest_pci_seen(const GuestPci *p, const GuestFunction *f);
/* Returns the place in the guest of each device of `a`, for a guest that starts with layout p, which was computed from
 * `a`. The caller frees; NULL when out of memory. */
GuestPlace *guest_pci_places(const GuestPci *p, const Allocation *a);

/* guestport.c: the free ports of a domain (SparePorts=), into which devices are plugged while it runs. */

/*
 * Chooses a port for each of the n devices of the allocation that the domain does not have yet. bars: the bytes of the
 * BARs of each device. xml: libvirt's document of the domain.
 *
 * A device on the NUMA node of a guest cell gets a port behind an expander of that cell. If the guest mirrors the
 * host's root complexes, this is preferably an expander with other devices of the same root complex. Any other device
 * gets a port on pcie.0, and so does every device when the guest has a single cell and no expander. Companions get
 * ports of their own, because libvirt cannot unplug one function of a multifunction card.
 *
 * The BARs must fit into the MMIO windows of the running guest. The guest enlarges the window of a port on pcie.0, up
 * to pcihole64. It cannot enlarge that of a port behind an expander, because the guest's ACPI tables limit it to what
 * the firmware reserved. QEMU's command line can make the firmware reserve more (-global
 * pcie-root-port.pref64-reserve=SIZE).
 *
 * Returns VERDICT_NONE and sets *ret, which the caller frees, in the order of devices. Otherwise VERDICT_NO_FREE_PORT,
 * VERDICT_NOT_SUPPORTED for BARs without room, or for a document that cannot be read, or VERDICT_LIMIT: out of memory.
 */
Verdict guest_ports_choose(const Allocation *a, const PciAddress *devices, const uint64_t *bars, size_t n,
                           const char *xml, GuestFunction **ret, size_t *ret_n, Refusal *ret_refusal);
