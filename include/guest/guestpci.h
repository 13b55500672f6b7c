/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The guest's PCI layout: the controllers, and the address of each device. Numbers only; domxml writes the XML. A card
 * on the NUMA node of a guest cell sits behind an expander bus (pxb) of that cell, other cards on pcie.0.
 *
 * GUEST_TOPOLOGY_FLAT: one expander for each cell that has cards, a root port for each card. GUEST_TOPOLOGY_MIRROR: one
 * expander for each host root complex of a cell; cards that share a switch on the host share a switch in the guest, so
 * that the guest sees the distances between them. Controllers and addresses depend only on the allocation and on
 * GuestPciRoom, so they stay as promised when a device leaves the node. GuestPci.hole64 depends on the devices of the
 * node, too.
 *
 * Bus numbers 0 to 255 are one space. An expander owns the numbers from its busNr up to that of the next expander.
 * Firmware numbers the buses behind the expander from there, depth first, and silently drops devices that do not fit.
 * So expanders get the highest numbers, each with room for its ports and a few spare numbers; pcie.0 keeps all lower
 * numbers.
 */

#include "ledger/allocation.h"

#define GUEST_BUSES_MAX      256U
#define GUEST_EXPANDER_SPARE 2U  /* bus numbers that each expander leaves free */
#define GUEST_EXPANDERS_MAX  20U /* the most expanders: each takes a slot of pcie.0 */
#define GUEST_CARDS_MAX      255U

/* Size of the 64-bit MMIO window of QEMU's machines q35 and virt without pcihole64. */
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
        unsigned index;  /* index in libvirt's document: the "bus" in addresses of devices below this controller */
        int cell;        /* guest cell of this expander, or of the one above; -1: it is below pcie.0 */
        unsigned bus_nr; /* bus number that the guest's firmware assigns; 0 below pcie.0, where it is unknown */
        unsigned bus;    /* index of the controller above; 0: pcie.0, on which libvirt chooses the slot */
        uint8_t slot;    /* slot on the controller above; unset on pcie.0 */
        uint8_t function;
        bool multifunction;
} GuestController;

typedef struct GuestFunction {
        size_t device; /* index into allocation->devices */
        PciAddress guest;
        bool multifunction; /* it is function 0 of a card with several functions */
} GuestFunction;

typedef struct GuestPci {
        GuestController *controllers; /* ascending by index, dense from room->first_index */
        size_t n_controllers;
        size_t n_used;            /* number of controllers before the spare ports */
        GuestFunction *functions; /* the devices that guest_pci_shows(), in the allocation's order */
        size_t n_functions;
        uint64_t hole64; /* bytes that the 64-bit MMIO window needs, a power of two; 0: the default is enough */
        bool hint;       /* UEFI makes a window of this size only with a hint */
} GuestPci;

/* What the rest of the domain leaves for the controllers of the layout. */
typedef struct GuestPciRoom {
        unsigned first_index; /* lowest free index of a controller, at least 1: 0 is pcie-root */
        unsigned bus_end;     /* first bus number that is not free */
        unsigned others;  /* number of bus numbers that the rest of the domain may need at pcie.0, as for root ports */
        unsigned seekers; /* number of other devices that libvirt may put on a spare port, if no other port is free */
} GuestPciRoom;

/* The room in a domain without a template. */
#define GUEST_PCI_ROOM_DEFAULT ((GuestPciRoom) { .first_index = 1, .bus_end = GUEST_BUSES_MAX, .others = 16 })

/*
 * Returns true when the guest gets the device: it is assigned or a companion, and neither being attached nor detached.
 */
bool guest_pci_shows(const AllocationDevice *dev);

/* Computes the layout. Returns 0; -ENOMEM; or -E2BIG when there are more cards or expanders than their limits above, or
 * too few bus numbers, indices of controllers or slots. */
int guest_pci_new(const Inventory *inv, const Allocation *a, const GuestPciRoom *room, GuestPci **ret);
GuestPci *guest_pci_free(GuestPci *p);
DEFINE_CLEANUP(GuestPci *, guest_pci_free)

/*
 * Sets a->topology to `wanted`. If `wanted` is _GUEST_TOPOLOGY_INVALID, sets it to mirror if the allocation has more
 * than one assigned device and mirror fits, otherwise to flat. Refuses mirror if it was wanted and does not fit beside
 * the usual devices of a domain. Does not check whether flat fits. VERDICT_LIMIT: out of memory.
 */
Verdict guest_topology_choose(const Inventory *inv, GuestTopology wanted, Allocation *a, Refusal *ret);

/* Returns the guest cell on the NUMA node of the device; -1: none. */
int guest_pci_cell(const Allocation *a, const AllocationDevice *dev);

/* Returns the controller directly above a function. */
const GuestController *guest_pci_port(const GuestPci *p, const GuestFunction *f);
/* Returns the address that the guest sees; bus 0: unknown. */
PciAddress guest_pci_seen(const GuestPci *p, const GuestFunction *f);
/* Returns the place in the guest of each device of `a`, for a guest that starts with the layout `p`, which was computed
 * from `a`. The caller frees the array; NULL when out of memory. */
GuestPlace *guest_pci_places(const GuestPci *p, const Allocation *a);

/* guestport.c: chooses free ports of a running domain (SparePorts=) for devices that are attached. */

/*
 * Chooses a port for each of the n `devices`, except those that the domain has already and those that guest_pci_shows()
 * leaves out. bars: the bytes of the BARs of each device. xml: libvirt's document of the domain.
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
 * Returns VERDICT_NONE and sets *ret, which the caller frees, in the order of `devices`. Otherwise returns
 * VERDICT_NO_FREE_PORT; VERDICT_NOT_SUPPORTED if the BARs have no room or the document cannot be read; or VERDICT_LIMIT
 * when out of memory.
 */
Verdict guest_ports_choose(const Allocation *a, const PciAddress *devices, const uint64_t *bars, size_t n,
                           const char *xml, GuestFunction **ret, size_t *ret_n, Refusal *ret_refusal);
