/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The guest's PCI tree as a topology file of NCCL (NCCL_TOPO_FILE): <system>, a <cpu> for each guest cell, below it a
 * <pci> for each switch and device. NCCL adds the GPUs and networks that it finds to the <pci> with the same busid, and
 * ignores a <pci> without any. NCCL reads no XML declaration, and no value of more than 253 bytes
 * (xml.cc of NCCL 2.29.7, xmlGetValue()).
 *
 * The file contains the link speeds of the host, because the guest sees only those of its emulated ports.
 */

#include <stdio.h>

#include "domxml-internal.h"
#include "model/pcilink.h"
#include "util/strings.h"

#define NCCL_VALUE_MAX 253U
#define CLASS_SWITCH   0x060400U

/* Formats a mask as the kernel does: groups of 32 bits, the highest first. */
static void write_affinity(Domain *d, xmlNode *cpu, const CpuSet *set) {
        _cleanup_free_ char *text = NULL;
        unsigned words = 1;

        for (int n = cpuset_next(set, 0); n >= 0; n = cpuset_next(set, (unsigned) n + 1))
                words = (unsigned) n / 32 + 1;
        for (unsigned i = words; i-- > 0;) {
                uint32_t bits = 0;

                for (unsigned bit = 0; bit < 32; bit++)
                        bits |= cpuset_has(set, i * 32 + bit) ? UINT32_C(1) << bit : 0;
                if (string_replace(&text, "%s%s%08x", text ?: "", text ? "," : "", bits) < 0) {
                        d->failed = true;
                        return;
                }
        }
        /* NCCL reads a missing attribute from the guest kernel. */
        if (text && strlen(text) <= NCCL_VALUE_MAX)
                node_set(d, cpu, "affinity", "%s", text);
}

/* The slower end determines the speed of a link; 0: unknown. */
static unsigned slower(unsigned a, unsigned b) {
        return a == 0 ? b : b == 0 ? a : MIN(a, b);
}

static const PciDevice *bridge_above(const Inventory *inv, const PciDevice *dev) {
        return dev && dev->parent >= 0 ? &inv->devices[dev->parent] : NULL;
}

static void write_link(Domain *d, xmlNode *pci, const PciDevice *dev) {
        const PciDevice *above = bridge_above(d->inv, dev);
        unsigned speed = dev ? slower(dev->link_speed, above ? above->link_speed : 0) : 0;
        unsigned width = dev ? slower(dev->link_width, above ? above->link_width : 0) : 0;

        if (speed > 0)
                node_set(d, pci, "link_speed", "%s PCIe", PCI_LINK_SPEED_STR(speed));
        if (width > 0)
                node_set(d, pci, "link_width", "%u", width);
}

static xmlNode *write_pci(Domain *d, xmlNode *parent, PciAddress address, uint32_t class, const PciDevice *link) {
        xmlNode *pci = node_add(d, parent, "pci");

        node_set(d, pci, "busid", "%s", PCI_ADDRESS_STR(address));
        if (class > 0)
                node_set(d, pci, "class", "0x%06x", class);
        write_link(d, pci, link);
        return pci;
}

static const PciDevice *host_device(const Domain *d, const GuestFunction *f) {
        return inventory_find(d->inv, d->a->devices[f->device].address);
}

/* The link of a VF is that of its PF. */
static const PciDevice *host_card(const Domain *d, const GuestFunction *f) {
        const AllocationDevice *dev = &d->a->devices[f->device];

        return inventory_find(d->inv, dev->is_vf ? dev->physfn : dev->address);
}

/*
 * The host switch that a guest switch represents: the one above a card plugged into it, else the topmost switch above
 * the first card below it.
 */
static const PciDevice *host_switch(const Domain *d, const GuestController *upstream) {
        const PciDevice *found = NULL;

        for (size_t i = 0; i < d->pci->n_functions; i++) {
                const GuestFunction *f = &d->pci->functions[i];
                const GuestController *port = guest_pci_port(d->pci, f);

                if (port->bus == upstream->index)
                        return bridge_above(d->inv, bridge_above(d->inv, host_card(d, f)));
                if (found || guest_pci_root_port(d->pci, port)->index != upstream->bus)
                        continue;
                found = host_card(d, f);
                while (found && bridge_above(d->inv, found) && bridge_above(d->inv, bridge_above(d->inv, found)))
                        found = bridge_above(d->inv, found);
        }
        return found;
}

static void write_devices(Domain *d, xmlNode *parent, const GuestController *port) {
        for (size_t i = 0; i < d->pci->n_functions; i++) {
                const GuestFunction *f = &d->pci->functions[i];
                const PciDevice *dev = host_device(d, f);

                if (f->guest.bus == port->index)
                        (void) write_pci(d, parent, guest_pci_seen(d->pci, f), dev ? dev->class : 0, host_card(d, f));
        }
}

/* Writes the devices and switches below a root bus or a switch. Ports are omitted; NCCL skips them too. */
static void write_below(Domain *d, xmlNode *parent, const GuestController *above) {
        for (size_t i = 0; i < d->pci->n_used; i++) {
                const GuestController *c = &d->pci->controllers[i];

                if (c->bus != above->index)
                        continue;
                if (c->type == GUEST_UPSTREAM_PORT)
                        write_below(d,
                                    write_pci(d, parent, (PciAddress) { .bus = (uint8_t) above->bus_nr }, CLASS_SWITCH,
                                              host_switch(d, c)),
                                    c);
                else {
                        write_devices(d, parent, c);
                        if (c->type != GUEST_EXPANDER_BUS)
                                write_below(d, parent, c);
                }
        }
}

static void write_cpu(Domain *d, xmlNode *system, size_t cell) {
        xmlNode *cpu = node_add(d, system, "cpu");

        node_set(d, cpu, "numaid", "%zu", cell);
        write_affinity(d, cpu, &d->a->cells[cell].vcpus);
        node_set(d, cpu, "arch", d->aarch64 ? "arm64" : "x86_64"); /* NCCL's names */
        for (size_t i = 0; i < d->pci->n_used; i++) {
                const GuestController *c = &d->pci->controllers[i];

                if (c->type == GUEST_EXPANDER_BUS && c->cell == (int) cell)
                        write_below(d, cpu, c);
        }
}

xmlDoc *domain_nccl(Domain *d) {
        xmlDoc *doc = xmlNewDoc((const xmlChar *) "1.0");
        xmlNode *system = doc ? xmlNewDocNode(doc, NULL, (const xmlChar *) "system", NULL) : NULL;

        if (!system) {
                xmlFreeDoc(doc);
                return NULL;
        }
        (void) xmlDocSetRootElement(doc, system);
        node_set(d, system, "version", "1");
        for (size_t i = 0; i < d->a->n_cells; i++)
                write_cpu(d, system, i);
        return doc;
}
