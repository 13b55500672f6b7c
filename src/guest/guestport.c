/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Chooses free ports of a domain for new devices. */

#include "domain-facts-internal.h"
#include "guest/guestpci.h"

#define ROOT_BUS 0U /* the index of pcie.0 */
#define NO_CELL  -1

/* The PCI tree of the domain. Each array has one element per index of a PCI controller. */
typedef struct Tree {
        bool is_expander[GUEST_BUSES_MAX];
        bool is_free_port[GUEST_BUSES_MAX]; /* a root port without a device */
        int cell[GUEST_BUSES_MAX];          /* of an expander; NO_CELL: none */
        unsigned above[GUEST_BUSES_MAX];    /* the bus that the controller is plugged into */
        /* Of an expander: a device of the allocation behind it; NULL: none. */
        const AllocationDevice *device[GUEST_BUSES_MAX];
} Tree;

/* The bus that a device or a controller of the guest is plugged into. False when it has no PCI address. */
static bool read_bus(const xmlNode *device, unsigned *ret) {
        const xmlNode *address = node_find(device, "address");

        return address && node_has(address, "type", "pci") &&
               node_get_number(address, "bus", GUEST_BUSES_MAX - 1, ret) == 0;
}

static void read_controller(Tree *t, const xmlNode *controller) {
        const xmlNode *target = node_find(controller, "target"), *node = node_find(target, "node");
        _cleanup_free_ char *text = node ? node_get_text(node) : NULL;
        unsigned index;

        if (node_get_number(controller, "index", GUEST_BUSES_MAX - 1, &index) < 0)
                return;
        t->is_expander[index] = node_has(controller, "model", "pcie-expander-bus");
        t->is_free_port[index] =
                node_has(controller, "model", "pcie-root-port") && !(target && node_has(target, "hotplug", "off"));
        t->cell[index] = text ? atoi(text) : NO_CELL;
        (void) read_bus(controller, &t->above[index]);
}

/* The expander above the bus, or ROOT_BUS. A document with a circle ends after as many steps as there are indices. */
static unsigned find_root(const Tree *t, unsigned bus) {
        for (unsigned i = 0; i < GUEST_BUSES_MAX && !t->is_expander[bus]; i++)
                bus = t->above[bus];
        return t->is_expander[bus] ? bus : ROOT_BUS;
}

static bool is_pci_controller(const xmlNode *n) {
        return node_is(n, "controller") && node_has(n, "type", "pci");
}

static const AllocationDevice *find_device(const Allocation *a, const char *source) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (streq(ALLOCATION_DEVICE_SOURCE(&a->devices[i]), source))
                        return &a->devices[i];
        return NULL;
}

static void read_tree(Tree *t, const xmlNode *devices, const Allocation *a) {
        *t = (Tree) { 0 };
        for (const xmlNode *n = devices->children; n; n = n->next)
                if (is_pci_controller(n))
                        read_controller(t, n);
        for (const xmlNode *n = devices->children; n; n = n->next) {
                const AllocationDevice *device;
                char source[UUID_STRING_MAX];
                unsigned bus;

                if (!read_bus(n, &bus))
                        continue;
                t->is_free_port[bus] = false;
                device = domain_device_source(n, source) ? find_device(a, source) : NULL;
                if (device && !t->device[find_root(t, bus)])
                        t->device[find_root(t, bus)] = device;
        }
}

static bool shares_host_bridge(const AllocationDevice *a, const AllocationDevice *b) {
        size_t length = a && a->path && b->path ? pci_path_host_length(a->path) : 0;

        return length > 0 && pci_path_host_length(b->path) == length && memcmp(a->path, b->path, length) == 0;
}

/* The number of expanders of the cell; with a device, of those that have devices of its host bridge. */
static unsigned count_expanders(const Tree *t, int cell, const AllocationDevice *dev) {
        unsigned n = 0;

        for (unsigned i = 0; i < GUEST_BUSES_MAX; i++)
                n += t->is_expander[i] && t->cell[i] == cell && (!dev || shares_host_bridge(t->device[i], dev));
        return n;
}

static bool suits(const Tree *t, const Allocation *a, const AllocationDevice *dev, unsigned root) {
        int cell = guest_pci_cell(a, dev);

        if (cell == NO_CELL || (a->n_cells == 1 && count_expanders(t, cell, NULL) == 0))
                return root == ROOT_BUS;
        if (root == ROOT_BUS || t->cell[root] != cell)
                return false;
        return a->topology != GUEST_TOPOLOGY_MIRROR || count_expanders(t, cell, dev) == 0 ||
               shares_host_bridge(t->device[root], dev);
}

/* 0: none is free. */
static unsigned take_port(Tree *t, const Allocation *a, const AllocationDevice *dev) {
        for (unsigned i = 1; i < GUEST_BUSES_MAX; i++)
                if (t->is_free_port[i] && suits(t, a, dev, find_root(t, i))) {
                        t->is_free_port[i] = false;
                        return i;
                }
        return 0;
}

static Verdict refuse_no_port(const Allocation *a, const AllocationDevice *dev, Refusal *ret) {
        int cell = guest_pci_cell(a, dev);

        if (cell == NO_CELL)
                return refuse(ret, VERDICT_NO_FREE_PORT, &dev->address,
                              "Detach another device from the guest, or allocate anew with a larger SparePorts=.",
                              "The guest of '%s' has no free PCI port for %s on its bus pcie.0.", a->name,
                              PCI_ADDRESS_STR(dev->address));
        return refuse(ret, VERDICT_NO_FREE_PORT, &dev->address,
                      "Detach another device from the guest, or allocate anew with a larger SparePorts=.",
                      "The guest of '%s' has no free PCI port for %s near its cell %d.", a->name,
                      PCI_ADDRESS_STR(dev->address), cell);
}

static bool has_source(const xmlNode *devices, const char *device) {
        char source[UUID_STRING_MAX];

        for (const xmlNode *n = devices->children; n; n = n->next)
                if (domain_device_source(n, source) && streq(source, device))
                        return true;
        return false;
}

static Verdict choose(const Allocation *a, const PciAddress *addresses, size_t n, const xmlNode *devices,
                      GuestFunction *chosen, size_t *ret_n, Refusal *ret) {
        Tree t;

        read_tree(&t, devices, a);
        for (size_t i = 0; i < n; i++) {
                const AllocationDevice *dev = allocation_find_device(a, addresses[i]);
                unsigned bus;

                if (!dev || !guest_pci_shows(dev) || has_source(devices, ALLOCATION_DEVICE_SOURCE(dev)))
                        continue;
                bus = take_port(&t, a, dev);
                if (bus == 0)
                        return refuse_no_port(a, dev, ret);
                chosen[(*ret_n)++] =
                        (GuestFunction) { .device = (size_t) (dev - a->devices), .guest.bus = (uint8_t) bus };
        }
        return VERDICT_NONE;
}

Verdict guest_ports_choose(const Allocation *a, const PciAddress *devices, size_t n, const char *xml,
                           GuestFunction **ret, size_t *ret_n, Refusal *ret_refusal) {
        _cleanup_free_ GuestFunction *chosen = calloc(n + 1, sizeof(GuestFunction));
        xmlDoc *doc = domain_document_read(xml);
        const xmlNode *list = domain_document_devices(doc);
        size_t n_chosen = 0;
        Verdict v;

        if (!chosen)
                v = refuse_no_memory(ret_refusal);
        else if (!list)
                v = refuse(ret_refusal, VERDICT_NOT_SUPPORTED, NULL, NULL,
                           "libvirt's document of the guest of '%s' cannot be read.", a->name);
        else
                v = choose(a, devices, n, list, chosen, &n_chosen, ret_refusal);
        xmlFreeDoc(doc);
        if (v != VERDICT_NONE)
                return v;
        *ret = TAKE_PTR(chosen);
        *ret_n = n_chosen;
        return VERDICT_NONE;
}
