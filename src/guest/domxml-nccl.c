/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The guest's PCI tree as a topology file of NCCL (NCCL_TOPO_FILE): <system>, a <cpu> for each guest cell, below it a
 * <pci> for each switch and device whose bus number in the guest is known. NCCL adds each GPU and network interface to
 * the <pci> with the same busid, and ignores a <pci> without any. NCCL reads no XML declaration, and no value of more
 * than 253 bytes (xml.cc of NCCL 2.29.7, xmlGetValue()).
 *
 * The file contains the link speeds of the host, because the guest sees only those of its emulated ports.
 */

#include <stdio.h>

#include "domxml-internal.h"
#include "model/pcilink.h"
#include "util/strings.h"

#define NCCL_VALUE_MAX 253U
#define CLASS_SWITCH   0x060400U

/* Writes the attribute affinity, a mask as the kernel formats it: groups of 32 bits, the highest first. Leaves out a
 * mask that is too long for NCCL. */
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
        /* NCCL asks the guest's kernel for a missing attribute. */
        if (text && strlen(text) <= NCCL_VALUE_MAX)
                node_set(d, cpu, "affinity", "%s", text);
}

/* Returns the lower of two speeds or widths, which is that of the link. 0 means unknown: then returns the other one. */
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

/* Returns the device at the physical link: the PF of a VF, else the device. */
static const PciDevice *host_card(const Domain *d, size_t device) {
        const AllocationDevice *dev = &d->a->devices[device];

        return inventory_find(d->inv, dev->is_vf ? dev->physfn : dev->address);
}

/* The first n bytes of a guest path. */
typedef struct Branch {
        const char *path;
        size_t n;
} Branch;

static bool is_below(const char *path, Branch b) {
        return strncmp(path, b.path, b.n) == 0 && path[b.n] == '/';
}

/* Returns the branch that is one component longer. */
static Branch longer(Branch b) {
        return (Branch) { b.path, b.n + 1 + strcspn(b.path + b.n + 1, "/") };
}

/* Finds the next switch on `path` below `b`, a root bus or a switch. *ret: the path of the switch's upstream port.
 * False: no switch is between `b` and the device. */
static bool find_switch(const char *path, Branch b, Branch *ret) {
        Branch port = longer((Branch) { path, b.n }), upstream = port.path[port.n] ? longer(port) : port;

        *ret = upstream;
        return upstream.path[upstream.n] && longer(upstream).path[longer(upstream).n];
}

/*
 * Returns the upstream port of the host switch that a guest switch represents: the switch above a card plugged into the
 * guest switch, else the topmost host switch above the first card below the guest switch.
 */
static const PciDevice *host_switch(const Domain *d, const GuestPlace *places, Branch upstream) {
        const PciDevice *found = NULL;
        Branch lower;

        for (size_t i = 0; i < d->a->n_devices; i++) {
                if (!is_below(places[i].path, upstream))
                        continue;
                if (!find_switch(places[i].path, upstream, &lower))
                        return bridge_above(d->inv, bridge_above(d->inv, host_card(d, i)));
                if (found)
                        continue;
                found = host_card(d, i);
                while (found && bridge_above(d->inv, found) && bridge_above(d->inv, bridge_above(d->inv, found)))
                        found = bridge_above(d->inv, found);
        }
        return found;
}

static bool is_first(const GuestPlace *places, size_t device, Branch b) {
        for (size_t i = 0; i < device; i++)
                if (is_below(places[i].path, b))
                        return false;
        return true;
}

static PciAddress branch_address(Branch b) {
        char path[GUEST_PATH_MAX];

        (void) snprintf(path, sizeof(path), "%.*s", (int) b.n, b.path);
        return guest_path_seen(path);
}

/* Writes the devices and switches below a root bus or switch. Leaves out ports, as NCCL does. */
static void write_below(Domain *d, xmlNode *parent, const GuestPlace *places, Branch above) {
        for (size_t i = 0; i < d->a->n_devices; i++) {
                const PciDevice *dev = inventory_find(d->inv, d->a->devices[i].address);
                const char *path = places[i].path;
                Branch upstream;

                if (!is_below(path, above))
                        continue;
                if (!find_switch(path, above, &upstream))
                        (void) write_pci(d, parent, guest_path_seen(path), dev ? dev->class : 0, host_card(d, i));
                else if (is_first(places, i, upstream))
                        write_below(d,
                                    write_pci(d, parent, branch_address(upstream), CLASS_SWITCH,
                                              host_switch(d, places, upstream)),
                                    places, upstream);
        }
}

static void write_cpu(Domain *d, xmlNode *system, const GuestPlace *places, size_t cell) {
        xmlNode *cpu = node_add(d, system, "cpu");

        node_set(d, cpu, "numaid", "%zu", cell);
        write_affinity(d, cpu, &d->a->cells[cell].vcpus);
        node_set(d, cpu, "arch", d->aarch64 ? "arm64" : "x86_64"); /* NCCL's names of architectures */
        for (size_t i = 0; i < d->a->n_devices; i++) {
                Branch root = { places[i].path, strcspn(places[i].path, "/") };

                if (root.n > 0 && guest_pci_cell(d->a, &d->a->devices[i]) == (int) cell && is_first(places, i, root))
                        write_below(d, cpu, places, root);
        }
}

xmlDoc *domain_nccl(Domain *d, const GuestPlace *places) {
        xmlDoc *doc = xmlNewDoc((const xmlChar *) "1.0");
        xmlNode *system = doc ? xmlNewDocNode(doc, NULL, (const xmlChar *) "system", NULL) : NULL;

        if (!system) {
                xmlFreeDoc(doc);
                return NULL;
        }
        (void) xmlDocSetRootElement(doc, system);
        node_set(d, system, "version", "1");
        for (size_t i = 0; i < d->a->n_cells; i++)
                write_cpu(d, system, places, i);
        return doc;
}
