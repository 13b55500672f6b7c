/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Checks that the devices of the allocation fit beside the devices of the template. */

#include <errno.h>
#include <libxml/hash.h>
#include <stdio.h>

#include "domxml-internal.h"
#include "util/strings.h"

#define LIBVIRT_ACCEL 12007000U

#define PCI_INDEX_MAX 255U
#define OTHERS_SPARE  8U /* root ports that stay free for hot-plug */

/* Controllers of the template, for which the layout must leave room. */
typedef struct Controllers {
        CpuSet indices;
        unsigned unnumbered; /* number of controllers without index: libvirt gives each the lowest free index */
        unsigned unplaced;   /* number of expanders without busNr: libvirt gives each a bus number below all others */
} Controllers;

static Verdict check_index(Domain *d, xmlNode *node, Controllers *c, Refusal *ret) {
        const char *const remedy = "Number them as 'virsh dumpxml' does, or leave the numbers out.";
        bool is_root = node_has(node, "model", "pcie-root");
        _cleanup_free_ char *text = node_get(node, "index");
        uint64_t index = 0;

        if (node_has(node, "model", "pci-root"))
                return refuse_template(
                        ret, node, NULL, "Remove its PCI controllers and use machine='q35'.",
                        "The template's PCI root is 'pci-root': it describes a machine without PCI Express.");
        if (text && parse_unsigned(text, PCI_INDEX_MAX, &index) < 0)
                return refuse_template(
                        ret, node, NULL, remedy,
                        "The template has a PCI controller with the index '%s', which is no decimal number up "
                        "to %u.",
                        QUOTABLE(text), PCI_INDEX_MAX);
        if (!text && !is_root) {
                c->unnumbered++;
                return VERDICT_NONE;
        }
        if (is_root != (index == 0))
                return refuse_template(ret, node, NULL, NULL, "The template's PCI controller 0 is not its pcie-root.");
        if (is_root && cpuset_has(&c->indices, 0))
                return refuse_template(ret, node, NULL, NULL, "The template has more than one pcie-root.");
        if (cpuset_has(&c->indices, (unsigned) index))
                return refuse_template(ret, node, NULL, remedy,
                                       "The template has more than one PCI controller with the index %u.",
                                       (unsigned) index);
        cpuset_add(&c->indices, (unsigned) index);
        if (is_root)
                node_set(d, node, "index", "0");
        d->room.first_index = MAX(d->room.first_index, (unsigned) index + 1);
        return VERDICT_NONE;
}

static Verdict check_controller(Domain *d, xmlNode *node, Controllers *c, Refusal *ret) {
        unsigned bus_nr = GUEST_BUSES_MAX;
        const xmlNode *target = node_find(node, "target");
        Verdict v = check_index(d, node, c, ret);
        int r;

        if (v != VERDICT_NONE)
                return v;
        r = target ? node_get_number(target, "busNr", GUEST_BUSES_MAX - 1, &bus_nr) : -ENOENT;
        if (r < 0 && r != -ENOENT)
                return refuse_template(ret, node, NULL, NULL,
                                       "The template has a PCI controller whose busNr is not a number up to 255.");
        if (r == -ENOENT && node_has(node, "model", "pcie-expander-bus"))
                c->unplaced++;
        d->room.bus_end = MIN(d->room.bus_end, bus_nr);
        return VERDICT_NONE;
}

/* With more than DOMXML_PLAIN_VCPUS_MAX vCPUs, refuses an IOMMU of the template that is not Intel's. */
static Verdict check_iommu(const Domain *d, const xmlNode *node, Refusal *ret) {
        if (!domain_needs_iommu(d) || !node_is(node, "iommu") || node_has(node, "model", "intel"))
                return VERDICT_NONE;
        return refuse_template(ret, node, NULL, "Remove it, or use model='intel'.",
                               "The template's <iommu> cannot serve more than %u vCPUs.", DOMXML_PLAIN_VCPUS_MAX);
}

static bool shows_devices(const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (guest_pci_shows(&a->devices[i]))
                        return true;
        return false;
}

/*
 * Checks the template's SMMU, which domain_write_devices() copies for each expander. Behind an SMMU without accel='on'
 * QEMU cannot use VFIO devices: with a container QEMU exits ("requires iommu MAP notifier"), with iommufd DMA fails.
 * libvirt before 12.7 drops accel='on' where it defines a domain without validation.
 */
static Verdict check_smmu(Domain *d, xmlNode *node, Refusal *ret) {
        const xmlNode *driver = node_find(node, "driver");

        if (!d->aarch64 || !node_is(node, "iommu") || !node_has(node, "model", "smmuv3") || !shows_devices(d->a))
                return VERDICT_NONE;
        if (driver && xmlHasProp((xmlNode *) driver, (const xmlChar *) "pciBus"))
                return refuse_template(ret, node, NULL, "Remove pciBus.",
                                       "The template's <iommu> has pciBus, and each expander bus of the document gets "
                                       "an <iommu> with a pciBus of its own.");
        if (d->smmu)
                return refuse_template(ret, node, NULL, "Remove all but one.",
                                       "The template has more than one <iommu> for the expander buses.");
        if (!driver || !node_has(driver, "accel", "on"))
                return refuse_template(ret, node, NULL, "Add <driver accel='on'/>, or remove it.",
                                       "The template's <iommu> is emulated by QEMU alone, which then cannot give "
                                       "devices of the host to the guest.");
        if (d->inv->libvirt.libvirt < LIBVIRT_ACCEL)
                return refuse_template(ret, node, NULL, "Remove it, or use a later libvirt.",
                                       "The template's <iommu> has accel='on', which takes libvirt 12.7, and the "
                                       "libvirt of this node is %s.",
                                       d->inv->libvirt.known ? "older" : "not known");
        d->smmu = node;
        return VERDICT_NONE;
}

/* Returns the controller on pcie.0 that the function is below: an expander or a root port. */
static const GuestController *root_of(const GuestPci *pci, const GuestFunction *f) {
        const GuestController *c = guest_pci_port(pci, f);

        while (c->bus > 0)
                c = &pci->controllers[c->bus - pci->controllers[0].index];
        return c;
}

Verdict domain_check_smmus(const Domain *d, Refusal *ret) {
        const char *hosts[GUEST_BUSES_MAX] = { NULL }; /* by index of the expander: path of the first device below it */

        for (size_t i = 0; d->smmu && i < d->pci->n_functions; i++) {
                const AllocationDevice *dev = &d->a->devices[d->pci->functions[i].device];
                const GuestController *root = root_of(d->pci, &d->pci->functions[i]);
                const char *path = dev->path ?: "", *first = hosts[root->index] ?: path;
                size_t n = pci_path_host_length(path);

                if (root->type != GUEST_EXPANDER_BUS)
                        return refuse_template(ret, d->smmu, &dev->address,
                                               "Remove the <iommu>, or allocate devices on the NUMA nodes of its CPUs.",
                                               "The template's <iommu> cannot serve %s: its NUMA node is none of the "
                                               "guest's, so it is behind no expander bus.",
                                               PCI_ADDRESS_STR(dev->address));
                if (n != pci_path_host_length(first) || memcmp(path, first, n) != 0)
                        return refuse_template(ret, d->smmu, &dev->address,
                                               "Allocate them with --topology mirror, or remove the <iommu>.",
                                               "The template's <iommu> cannot serve %s: an SMMU serves the devices of "
                                               "one host bridge, and others share the expander bus with it.",
                                               PCI_ADDRESS_STR(dev->address));
                hosts[root->index] = first;
        }
        return VERDICT_NONE;
}

/* Refuses an alias that a device of the allocation will have: libvirt refuses a document with one alias twice. */
static Verdict check_alias(const Domain *d, const xmlNode *node, Refusal *ret) {
        const xmlNode *alias = node_find(node, "alias");
        _cleanup_free_ char *name = alias ? node_get(alias, "name") : NULL;

        for (size_t i = 0; name && i < d->a->n_devices; i++) {
                const AllocationDevice *dev = &d->a->devices[i];

                if (!guest_pci_shows(dev) || !dev->slot || strncmp(name, "ua-", 3) != 0 || !streq(name + 3, dev->slot))
                        continue;
                return refuse_template(ret, node, &dev->address, "Give the template's device another alias.",
                                       "A device of the template has the alias '%s', which is that of %s.",
                                       QUOTABLE(name), PCI_ADDRESS_STR(dev->address));
        }
        return VERDICT_NONE;
}

static Verdict check_node(Domain *d, xmlNode *node, Controllers *c, Refusal *ret) {
        const xmlNode *address = node_find(node, "address");
        Verdict v = check_alias(d, node, ret);
        unsigned bus;

        if (v == VERDICT_NONE)
                v = check_iommu(d, node, ret);
        if (v == VERDICT_NONE)
                v = check_smmu(d, node, ret);
        if (v == VERDICT_NONE && node_is(node, "controller") && node_has(node, "type", "pci"))
                v = check_controller(d, node, c, ret);
        if (address && node_has(address, "type", "pci") && node_get_number(address, "bus", PCI_INDEX_MAX, &bus) == 0)
                d->room.first_index = MAX(d->room.first_index, bus + 1);
        return v;
}

/* Formats an element's PCI address in the guest. Returns false if the address is missing or malformed, or has only
 * zeros, for which libvirt chooses an address. */
static bool has_place(const xmlNode *node, char ret[static 32]) {
        static const struct {
                const char *name;
                unsigned max;
        } fields[] = { { "domain", UINT32_MAX }, { "bus", 255 }, { "slot", 31 }, { "function", 7 } };
        const xmlNode *address = node_find(node, "address");
        unsigned n[ELEMENTSOF(fields)] = { 0 };

        if (!address || !node_has(address, "type", "pci"))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                if (node_get_number(address, fields[i].name, fields[i].max, &n[i]) == -EINVAL)
                        return false;
        (void) snprintf(ret, 32, "%04x:%02x:%02x.%u", n[0], n[1], n[2], n[3]);
        return n[0] || n[1] || n[2] || n[3];
}

/*
 * Refuses two devices at one address: libvirt detects this only when its QEMU driver defines the domain. The template's
 * memory balloon is skipped, because the document has its own.
 */
static Verdict check_places(const Domain *d, Refusal *ret) {
        xmlHashTable *taken = xmlHashCreate(0);
        Verdict v = taken ? VERDICT_NONE : refuse_no_memory(ret);

        for (xmlNode *n = xmlFirstElementChild(d->devices); n && v == VERDICT_NONE; n = xmlNextElementSibling(n)) {
                const xmlNode *other;
                char place[32];

                if (node_is(n, "memballoon") || !has_place(n, place) ||
                    xmlHashAddEntry(taken, (const xmlChar *) place, n) == 0)
                        continue;
                other = xmlHashLookup(taken, (const xmlChar *) place);
                if (!other)
                        v = refuse_no_memory(ret);
                else
                        v = refuse_template(ret, n, NULL, "Give one of them another address, or none.",
                                            "The template's <%s> has the PCI address %s of its <%s> in line %ld.",
                                            QUOTABLE((const char *) n->name), place,
                                            QUOTABLE((const char *) other->name), node_line(other));
        }
        xmlHashFree(taken, NULL);
        return v;
}

/* Returns true when libvirt may choose a PCI address for the device, perhaps on a port for hot-plug. */
static bool seeks_port(const xmlNode *node) {
        static const char *const names[] = { "disk",   "interface", "filesystem", "controller", "rng",  "vsock",
                                             "crypto", "shmem",     "sound",      "watchdog",   "input" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (node_is(node, names[i]))
                        return !node_find(node, "address") && !node_has(node, "model", "none");
        return false;
}

Verdict domain_check_devices(Domain *d, Refusal *ret) {
        Controllers c = { 0 };
        unsigned others = 0;
        Verdict v = check_places(d, ret);

        d->room = GUEST_PCI_ROOM_DEFAULT;
        for (xmlNode *n = xmlFirstElementChild(d->devices); n && v == VERDICT_NONE; n = xmlNextElementSibling(n)) {
                v = check_node(d, n, &c, ret);
                if (node_is(n, "controller") && node_has(n, "type", "pci"))
                        continue;
                others++;
                d->room.seekers += seeks_port(n);
        }
        /* All shared memory devices are below one bridge to conventional PCI, for which libvirt uses a port. */
        if (d->a->n_regions > 0) {
                others++;
                d->room.seekers++;
        }
        /*
         * Count the bus numbers that the rest of the domain may need at pcie.0. Each device may need a root port. Each
         * index of a controller below first_index needs a bus, because libvirt adds the controllers that the template
         * lacks. Each controller without index needs a bus, and each expander without busNr needs two more.
         */
        others += d->room.first_index - 1 + c.unnumbered + 2 * c.unplaced + OTHERS_SPARE;
        d->room.others = MAX(d->room.others, others);
        return v;
}
