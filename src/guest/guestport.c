/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Chooses free ports of a domain for devices that are attached. */

#include "domain-facts-internal.h"
#include "guest/guestpci.h"

#define ROOT_BUS 0U /* index of pcie.0 */
#define NO_CELL  -1
#define RESERVE  "pcie-root-port.pref64-reserve="

/* The most that firmware reserves for large BARs below an empty port. OVMF reserves 1/256 of its MMIO window, which is
 * at most a quarter of an address space of 47 bits. */
#define RESERVE_MAX (128ULL << 30)

/* The PCI tree of a domain. Arrays are by the index of a controller. */
typedef struct Tree {
        bool is_expander[GUEST_BUSES_MAX];
        bool is_free_port[GUEST_BUSES_MAX]; /* a root port with hot-plug and without a device */
        int cell[GUEST_BUSES_MAX];          /* guest cell of an expander; NO_CELL: none */
        unsigned above[GUEST_BUSES_MAX];    /* index of the bus that the controller is on */
        /* A device of the allocation below the expander; NULL: none. */
        const AllocationDevice *device[GUEST_BUSES_MAX];
        bool running;     /* the domain runs: libvirt's document has an id */
        uint64_t hole64;  /* size of the 64-bit window of pcie.0 */
        uint64_t reserve; /* what QEMU's command line makes firmware reserve for each root port; 0: the firmware's
                             default */
} Tree;

/* Finds the bus that a device or controller is on. Returns false if it has no PCI address. */
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

/* Returns the expander above the bus; ROOT_BUS: none. Limits the number of steps, in case the document has a loop. */
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

/* Reads the reserve from the arguments in <qemu:commandline>. The last such argument counts. */
static void read_reserve(Tree *t, const xmlNode *domain) {
        for (const xmlNode *n = domain->children; n; n = n->next)
                for (const xmlNode *arg = n->ns && xmlStrEqual(n->name, (const xmlChar *) "commandline") ? n->children
                                                                                                         : NULL;
                     arg; arg = arg->next) {
                        _cleanup_free_ char *value = arg->type == XML_ELEMENT_NODE ? node_get(arg, "value") : NULL;

                        if (value && strncmp(value, RESERVE, strlen(RESERVE)) == 0 &&
                            parse_size(value + strlen(RESERVE), &t->reserve) < 0)
                                t->reserve = 0;
                }
}

static void read_hole64(Tree *t, const xmlNode *devices) {
        const xmlNode *type = node_find(node_find(devices->parent, "os"), "type");

        t->hole64 = type && node_has(type, "arch", ARCHITECTURE_AARCH64) ? GUEST_HOLE64_VIRT : GUEST_HOLE64_Q35;
        for (const xmlNode *n = devices->children; n; n = n->next) {
                const xmlNode *hole =
                        is_pci_controller(n) && node_has(n, "index", "0") ? node_find(n, "pcihole64") : NULL;

                if (hole)
                        t->hole64 = node_get_size(hole);
        }
}

static void read_tree(Tree *t, const xmlNode *devices, const Allocation *a) {
        *t = (Tree) { 0 };
        t->running = xmlHasProp(devices->parent, (const xmlChar *) "id");
        read_reserve(t, devices->parent);
        read_hole64(t, devices);
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

/*
 * Returns the number of expanders of a cell. Unless `dev` is NULL, counts only those that have a device of the same
 * host bridge as `dev`.
 */
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

/* Takes a free port that suits the device, and returns its index; 0: there is none. */
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

static Verdict check_room(const Tree *t, const Allocation *a, const AllocationDevice *dev, uint64_t bars, unsigned port,
                          Refusal *ret) {
        bool on_root = find_root(t, port) == ROOT_BUS;
        uint64_t room = MAX(on_root ? t->hole64 : t->reserve > 0 ? t->reserve : RESERVE_MAX, t->reserve);

        /* Firmware sizes the windows when the guest starts, so only a running guest can lack room. */
        if (!t->running || bars <= room)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_NOT_SUPPORTED, &dev->address,
                      "Shut the guest down, attach the device, define the domain again from 'passthroughctl xml', and "
                      "start it.",
                      "The BARs of %s take %s, and a port %s of the running guest of '%s' has room for at most %s.",
                      PCI_ADDRESS_STR(dev->address), FORMAT_SIZE_WANTED(bars),
                      on_root ? "on pcie.0" : "behind an expander", a->name, FORMAT_SIZE(room));
}

static bool has_source(const xmlNode *devices, const char *device) {
        char source[UUID_STRING_MAX];

        for (const xmlNode *n = devices->children; n; n = n->next)
                if (domain_device_source(n, source) && streq(source, device))
                        return true;
        return false;
}

static Verdict choose(const Allocation *a, const PciAddress *addresses, const uint64_t *bars, size_t n,
                      const xmlNode *devices, GuestFunction *chosen, size_t *ret_n, Refusal *ret) {
        Tree t;

        read_tree(&t, devices, a);
        for (size_t i = 0; i < n; i++) {
                const AllocationDevice *dev = allocation_find_device(a, addresses[i]);
                unsigned bus;
                Verdict v;

                if (!dev || !guest_pci_shows(dev) || has_source(devices, ALLOCATION_DEVICE_SOURCE(dev)))
                        continue;
                bus = take_port(&t, a, dev);
                if (bus == 0)
                        return refuse_no_port(a, dev, ret);
                v = check_room(&t, a, dev, bars[i], bus, ret);
                if (v != VERDICT_NONE)
                        return v;
                chosen[(*ret_n)++] =
                        (GuestFunction) { .device = (size_t) (dev - a->devices), .guest.bus = (uint8_t) bus };
        }
        return VERDICT_NONE;
}

Verdict guest_ports_choose(const Allocation *a, const PciAddress *devices, const uint64_t *bars, size_t n,
                           const char *xml, GuestFunction **ret, size_t *ret_n, Refusal *ret_refusal) {
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
                v = choose(a, devices, bars, n, list, chosen, &n_chosen, ret_refusal);
        xmlFreeDoc(doc);
        if (v != VERDICT_NONE)
                return v;
        *ret = TAKE_PTR(chosen);
        *ret_n = n_chosen;
        return VERDICT_NONE;
}
