/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Makes the domain document: checks the allocation, fills in the template, writes name, UUID and metadata, and formats
 * the text. */

#include "guest/domxml.h"

#include <errno.h>
#include <stdio.h>

#include "domxml-internal.h"
#include "domxml-xen.h"
#include "guest/define.h"
#include "ledger/ledger.h"
#include "util/strings.h"

static bool has_document(const Allocation *a) {
        return a->n_pins > 0 && a->n_cells > 0 && allocation_memory(a) > 0;
}

/* Refuses an allocation without CPUs or memory. Also refuses pins that contradict the guest cells: libvirt would
 * silently change them. */
static Verdict check_cpus(const Allocation *a, Refusal *ret) {
        CpuSet vcpus = { 0 };

        if (!has_document(a))
                return refuse_request(ret, "Allocate CPUs and memory with the devices.",
                                      "'%s' holds devices only: a domain needs CPUs and memory.", a->name);

        for (size_t i = 0; i < a->n_cells; i++)
                cpuset_merge(&vcpus, &a->cells[i].vcpus);
        for (size_t i = 0; i < a->n_pins; i++)
                if (a->pins[i].vcpu != i || !cpuset_has(&vcpus, (unsigned) i))
                        return refuse_request(ret, NULL, "vCPU %zu of '%s' is pinned to no CPU, or in no guest cell.",
                                              i, a->name);
        return VERDICT_NONE;
}

static Verdict check_devices(const Allocation *a, Refusal *ret) {
        /* The address of a lost device may be that of another card. */
        for (size_t i = 0; i < a->n_devices; i++)
                if (a->devices[i].lost)
                        return refuse(ret, VERDICT_MISSING, &a->devices[i].address,
                                      "Plug the card in again, or release the allocation.",
                                      "The card that had the address %s is no longer on this node.",
                                      PCI_ADDRESS_STR(a->devices[i].address));
        for (size_t i = 0; i < a->n_devices; i++)
                if (a->devices[i].role != DEVICE_ROLE_HELD && !pci_address_is_assignable(a->devices[i].address))
                        return refuse(ret, VERDICT_NOT_SUPPORTED, &a->devices[i].address, NULL,
                                      "QEMU cannot assign %s: its PCI domain is above ffff.",
                                      PCI_ADDRESS_STR(a->devices[i].address));
        return VERDICT_NONE;
}

Verdict domain_check(const Allocation *a, Refusal *ret) {
        Verdict v = check_cpus(a, ret);

        return v == VERDICT_NONE ? check_devices(a, ret) : v;
}

static void format_address(Domain *d, xmlNode *node, const char *attribute, PciAddress a) {
        node_set(d, node, attribute, "%s", PCI_ADDRESS_STR(a));
}

/* Writes the attributes of a VF into one element, each under its name. Writes no element if none is set. */
static void write_attributes(Domain *d, xmlNode *parent, const VfAttributes *v) {
        xmlNode *node = v->set ? node_add(d, parent, "attributes") : NULL;

        for (VfAttribute a = 0; a < _VF_ATTRIBUTE_MAX; a++) {
                char text[VF_VALUE_MAX];

                if (vf_attributes_have(v, a))
                        node_set(d, node, vf_attribute_to_string(a), "%s", vf_value_format(a, v->value[a], text));
        }
}

/* Writes a device into the metadata. `f`: the place of the device in the layout; NULL if the hypervisor chooses the
 * address. */
static void write_metadata_device(Domain *d, xmlNode *parent, const AllocationDevice *dev, const GuestFunction *f) {
        xmlNode *node = node_add(d, parent, "device");

        if (dev->slot)
                node_set(d, node, "slot", "%s", dev->slot);
        if (dev->pool)
                node_set(d, node, "pool", "%s", dev->pool);
        format_address(d, node, "address", dev->address);
        if (f)
                format_address(d, node, "guest", f->guest);
        if (f && guest_pci_port(d->pci, f)->bus_nr > 0)
                format_address(d, node, "seen", guest_pci_seen(d->pci, f));
        if (dev->is_vf)
                format_address(d, node, "physfn", dev->physfn);
        write_attributes(d, node, &dev->attributes);
}

/* Writes a region into the metadata, with the names of all allocations that share the region. */
static void write_metadata_region(Domain *d, xmlNode *parent, const Region *r, const SharedRegion *shared) {
        xmlNode *node = node_add(d, parent, "shared-memory");

        node_set(d, node, "name", "%s", r->name);
        node_set(d, node, "size", "%llu", (unsigned long long) r->size);
        if (r->page_size > 0)
                node_set(d, node, "page-size", "%llu", (unsigned long long) r->page_size);
        node_set(d, node, "node", "%d", r->node);
        for (size_t i = 0; shared && i < shared->n_members; i++)
                node_set(d, node_add(d, node, "member"), "name", "%s", shared->members[i]->name);
}

/* Writes into the metadata whether the guest's devices use iommufd, and why. */
static void write_metadata_iommufd(Domain *d, xmlNode *parent) {
        _cleanup_free_ char *why = NULL;
        xmlNode *node;

        if (d->xen || !iommufd_is_told(d->iommufd))
                return;
        why = iommufd_explain(&d->iommufd_facts, d->iommufd);
        node = node_add(d, parent, "iommufd");
        node_set(d, node, "used", "%s", iommufd_is_used(d->iommufd) ? "yes" : "no");
        node_set(d, node, "reason", "%s", iommufd_reason_to_string(d->iommufd));
        node_set_text(d, node, "%s", why ?: "");
}

/* Writes a <warning> for each sentence about what the guest lacks. passthroughctl prints them beside the document. */
static void write_metadata_lacks(Domain *d, xmlNode *parent) {
        _cleanup_free_ char *text = NULL;
        char *rest, *line;

        if (d->xen)
                return;
        d->failed |= guest_explain_lacks(d->inv, d->config, d->a, d->pci->hole64, d->smmu, &text) < 0;
        rest = text;
        while (rest && (line = strsep(&rest, "\n")) && *line)
                node_set_text(d, node_add(d, parent, DOMXML_WARNING), "%s", line);
}

/* Writes the metadata: the allocation of the domain, its devices, shared memory and notes. All are inside one element,
 * because libvirt permits one element for each namespace. */
static void write_metadata(Domain *d) {
        xmlNode *node = node_add(d, domain_take(d, "metadata"), "allocation");
        xmlNs *ns = node ? xmlNewNs(node, (const xmlChar *) DOMXML_NAMESPACE, (const xmlChar *) DOMXML_PREFIX) : NULL;

        if (!ns) {
                d->failed = true;
                return;
        }
        xmlSetNs(node, ns);
        node_set(d, node, "name", "%s", d->a->name);
        node_set(d, node, "id", "%s", d->a->id);
        node_set(d, node, "generation", "%llu", (unsigned long long) d->a->generation);
        if (d->a->tag)
                node_set(d, node, "tag", "%s", d->a->tag);
        for (size_t i = 0, f = 0; i < d->a->n_devices; i++)
                if (guest_pci_shows(&d->a->devices[i]))
                        write_metadata_device(d, node, &d->a->devices[i], d->pci ? &d->pci->functions[f++] : NULL);
        for (size_t i = 0; i < d->a->n_regions; i++)
                write_metadata_region(d, node, &d->a->regions[i], d->a->shared[i]);
        write_metadata_iommufd(d, node);
        domain_write_confidential_notes(d, node);
        write_metadata_lacks(d, node);
}

static Verdict write_domain(Domain *d, GuestInfo info, Refusal *ret) {
        node_set_text(d, domain_add(d, "name"), "%s", d->a->name);
        node_set_text(d, domain_add(d, "uuid"), "%s", d->a->id);
        write_metadata(d);
        if (d->xen) {
                domain_write_xen(d, info);
                return VERDICT_NONE;
        }
        domain_write_memory(d);
        domain_write_cpus(d);
        domain_write_devices(d);
        domain_write_confidential(d);
        return domain_write_guest_info(d, info, ret);
}

/* Chooses whether the devices use iommufd. With Iommufd=auto, <iommufd enabled=> of the template decides for all
 * devices of the domain. Without that element, an SMMU of the template requires iommufd. */
static void choose_iommufd(Domain *d) {
        const xmlNode *element = node_find(d->root, "iommufd");

        d->iommufd_facts = iommufd_facts(d->inv, d->config, d->a);
        if (element && d->iommufd_facts.mode == IOMMUFD_MODE_AUTO)
                d->iommufd_facts.mode = node_has(element, "enabled", "yes") ? IOMMUFD_MODE_YES : IOMMUFD_MODE_NO;
        if (d->smmu && d->iommufd_facts.mode == IOMMUFD_MODE_AUTO)
                d->iommufd_facts.mode = IOMMUFD_MODE_YES;
        d->iommufd_facts.confidential = confidential_is_private(d->confidential);
        d->iommufd = iommufd_choose(&d->iommufd_facts);
}

/* Checks devices and host, and loads the template. Except for Xen, also chooses iommufd and computes the layout of PCI
 * buses. */
static Verdict prepare_devices(Domain *d, const DomainTemplate *template, Refusal *ret) {
        Verdict v = check_devices(d->a, ret);
        int r;

        if (v == VERDICT_NONE && !inventory_has_domains(d->inv))
                v = refuse(ret, VERDICT_NOT_SUPPORTED, NULL, NULL, "There is no domain document for %s.",
                           QUOTABLE(inventory_architecture(d->inv)));
        if (v == VERDICT_NONE && d->xen)
                v = xen_check(d->inv, d->a, ret);
        if (v == VERDICT_NONE)
                v = domain_load(d, template, ret);
        if (v != VERDICT_NONE)
                return v;
        if (d->failed)
                return refuse_no_memory(ret);
        if (d->xen)
                return VERDICT_NONE;
        v = domain_set_confidential(d, ret);
        if (v != VERDICT_NONE)
                return v;
        choose_iommufd(d);
        if (d->smmu && d->iommufd == IOMMUFD_OFF)
                return refuse_template(ret, d->smmu, NULL, "Set Iommufd=auto in passthroughd.conf.",
                                       "The template's <iommu> has accel='on', which needs iommufd, and the "
                                       "configuration or the template turns that off.");
        d->memory_cells = memory_cells_each(d->inv, d->config, d->a);
        if (d->emulated && domain_needs_iommu(d))
                return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, "Use type='kvm', or allocate fewer CPUs.",
                              "A domain without KVM cannot have %zu vCPUs, but %u.", d->a->n_pins,
                              DOMXML_PLAIN_VCPUS_MAX);

        r = guest_pci_new(d->inv, d->a, &d->room, &d->pci);
        if (r == -E2BIG)
                return refuse_request(
                        ret,
                        d->a->topology == GUEST_TOPOLOGY_MIRROR
                                ? "Allocate them with --topology flat, or take some out of the template."
                                : "Ask for fewer devices, or take some out of the template.",
                        "The devices of '%s' and its template need more than the %u PCI buses a guest has.", d->a->name,
                        GUEST_BUSES_MAX);
        return r < 0 ? refuse_no_memory(ret) : VERDICT_NONE;
}

/* Prepares a whole document. Calls prepare_devices(), and also checks the CPUs and, except for Xen, the template's SMMU
 * and the rules for confidential guests. make_hostdev() calls only prepare_devices(): a pool's ConfidentialMode= may
 * have changed since the guest started. */
static Verdict prepare(Domain *d, const DomainTemplate *template, Refusal *ret) {
        Verdict v = check_cpus(d->a, ret);

        if (v == VERDICT_NONE)
                v = prepare_devices(d, template, ret);
        if (v == VERDICT_NONE && d->pci)
                v = domain_check_smmus(d, ret);
        return v == VERDICT_NONE && !d->xen ? domain_check_confidential(d, ret) : v;
}

/* Sets *ret to the text of `node`, or of the whole document if `node` is NULL. Returns VERDICT_NONE, or VERDICT_LIMIT
 * when out of memory. */
static Verdict take_text(const Domain *d, xmlDoc *doc, xmlNode *node, char **ret, Refusal *ret_refusal) {
        char *text = d->failed || !doc ? NULL : document_text(doc, node);

        if (!text)
                return refuse_no_memory(ret_refusal);
        *ret = text;
        return VERDICT_NONE;
}

static void domain_done(Domain *d) {
        guest_pci_free(d->pci);
        xmlFreeDoc(d->doc);
}

/* Appends the template line of the element and of each element inside it, in document order. The line is 0 for an
 * element that the daemon has added. */
static void append_lines(const xmlNode *element, xmlBuffer *lines) {
        char line[24];

        (void) snprintf(line, sizeof(line), "%ld\n", xmlGetLineNo(element));
        (void) xmlBufferCat(lines, (const xmlChar *) line);
        for (xmlNode *n = xmlFirstElementChild((xmlNode *) element); n; n = xmlNextElementSibling(n))
                append_lines(n, lines);
}

/* Appends the template lines to *text, after its NUL. *ret_size: the size of both together. */
static Verdict take_lines(const Domain *d, char **text, size_t *ret_size, Refusal *ret_refusal) {
        xmlBuffer *lines = xmlBufferCreate();
        size_t length = strlen(*text) + 1, size;
        char *both = NULL;

        if (lines) {
                append_lines(d->root, lines);
                size = (size_t) xmlBufferLength(lines);
                both = realloc(*text, length + size + 1);
        }
        if (both) {
                memcpy(both + length, xmlBufferContent(lines), size + 1);
                *text = both;
                *ret_size = length + size;
        }
        xmlBufferFree(lines);
        return both ? VERDICT_NONE : refuse_no_memory(ret_refusal);
}

/* Makes a document. Unless ret_size is NULL, appends the template lines of its elements. */
static Verdict make(const Inventory *inv, const Config *config, const Allocation *a, const DomainTemplate *template,
                    GuestInfo info, char **ret, size_t *ret_size, Refusal *ret_refusal) {
        Domain d = { .inv = inv, .config = config, .a = a, .xen = config->hypervisor == HYPERVISOR_XEN };
        _cleanup_free_ char *text = NULL;
        Verdict v = prepare(&d, template, ret_refusal);

        if (v == VERDICT_NONE)
                v = iommufd_check(&d.iommufd_facts, d.iommufd, ret_refusal);
        if (v == VERDICT_NONE)
                v = write_domain(&d, info, ret_refusal);
        if (v == VERDICT_NONE)
                v = take_text(&d, d.doc, NULL, &text, ret_refusal);
        if (v == VERDICT_NONE && ret_size)
                v = take_lines(&d, &text, ret_size, ret_refusal);
        if (v == VERDICT_NONE)
                *ret = TAKE_PTR(text);
        domain_done(&d);
        return v;
}

Verdict domxml_make(const Inventory *inv, const Config *config, const Allocation *a, const DomainTemplate *template,
                    GuestInfo info, char **ret, Refusal *ret_refusal) {
        return make(inv, config, a, template, info, ret, NULL, ret_refusal);
}

Verdict domxml_make_with_lines(const Inventory *inv, const Config *config, const Allocation *a,
                               const DomainTemplate *template, GuestInfo info, char **ret, size_t *ret_size,
                               Refusal *ret_refusal) {
        return make(inv, config, a, template, info, ret, ret_size, ret_refusal);
}

static GuestPlace *told_places(const Allocation *a) {
        GuestPlace *places = calloc(a->n_devices + 1, sizeof(*places));

        for (size_t i = 0; places && i < a->n_devices; i++)
                places[i] = a->devices[i].guest;
        return places;
}

Verdict domxml_nccl_topology(const Inventory *inv, const Config *config, const Allocation *a,
                             const DomainTemplate *template, char **ret, Refusal *ret_refusal) {
        Domain d = { .inv = inv, .config = config, .a = a, .xen = config->hypervisor == HYPERVISOR_XEN };
        Verdict v = prepare(&d, template, ret_refusal);

        if (v == VERDICT_NONE && d.xen)
                v = refuse(ret_refusal, VERDICT_NOT_SUPPORTED, NULL, NULL,
                           "There is no topology for NCCL: Xen chooses the addresses of devices in the guest.");
        if (v == VERDICT_NONE) {
                _cleanup_free_ GuestPlace *places =
                        allocation_has_guest(a) ? told_places(a) : guest_pci_places(d.pci, a);
                xmlDoc *doc = places ? domain_nccl(&d, places) : NULL;

                v = take_text(&d, doc, NULL, ret, ret_refusal);
                xmlFreeDoc(doc);
        }
        domain_done(&d);
        return v;
}

static const AllocationDevice *find_slot(const Allocation *a, const char *slot) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (guest_pci_shows(&a->devices[i]) && streq_ptr(a->devices[i].slot, slot))
                        return &a->devices[i];
        return NULL;
}

static Verdict refuse_slot(const Allocation *a, const char *slot, Refusal *ret) {
        _cleanup_free_ char *slots = NULL;

        for (size_t i = 0; i < a->n_devices; i++)
                if (guest_pci_shows(&a->devices[i]) && a->devices[i].slot &&
                    string_append(&slots, ", ", "%s", a->devices[i].slot) < 0)
                        return refuse_no_memory(ret);
        return refuse(ret, VERDICT_NO_SUCH_DEVICE, NULL, "Give one of its slots.",
                      "Allocation '%s' has no device in a slot '%s'. Its slots: %s.", a->name, QUOTABLE(slot),
                      slots ?: "none");
}

static const GuestFunction *find_function(const GuestPci *pci, size_t device) {
        for (size_t i = 0; i < pci->n_functions; i++)
                if (pci->functions[i].device == device)
                        return &pci->functions[i];
        return NULL;
}

static Verdict make_hostdev(const Inventory *inv, const Config *config, const Allocation *a,
                            const DomainTemplate *template, const AllocationDevice *dev, bool placed, char **ret,
                            Refusal *ret_refusal) {
        Domain d = { .inv = inv, .config = config, .a = a, .xen = config->hypervisor == HYPERVISOR_XEN };
        Verdict v = prepare_devices(&d, template, ret_refusal);

        /* Without `placed` the guest runs already, and was started with or without iommufd. */
        if (v == VERDICT_NONE && placed)
                v = iommufd_check(&d.iommufd_facts, d.iommufd, ret_refusal);
        if (v == VERDICT_NONE) {
                xmlNode *hostdev = domain_write_hostdev(&d, dev);

                if (placed && d.pci && dev->guest.known)
                        domain_write_address(&d, hostdev, dev->guest.address);
                else if (placed && d.pci && has_document(a) && !allocation_has_guest(a))
                        domain_write_place(&d, hostdev, find_function(d.pci, (size_t) (dev - a->devices)));
                v = take_text(&d, d.doc, hostdev, ret, ret_refusal);
        }
        domain_done(&d);
        return v;
}

Verdict domxml_hostdev(const Inventory *inv, const Config *config, const Allocation *a, const DomainTemplate *template,
                       const char *slot, char **ret, Refusal *ret_refusal) {
        const AllocationDevice *dev = find_slot(a, slot);

        return dev ? make_hostdev(inv, config, a, template, dev, true, ret, ret_refusal)
                   : refuse_slot(a, slot, ret_refusal);
}

Verdict domxml_hostdev_anywhere(const Inventory *inv, const Config *config, const Allocation *a, size_t device,
                                char **ret, Refusal *ret_refusal) {
        return make_hostdev(inv, config, a, NULL, &a->devices[device], false, ret, ret_refusal);
}

char *domxml_hostdev_with_iommufd(const char *hostdev, const char *iommufd) {
        static const char driver[] = "<driver name=\"vfio\"", attribute[] = " iommufd=\"";
        const char *at = strstr(hostdev, driver), *old = strstr(hostdev, attribute), *rest;

        if (!at) /* a mediated device has no <driver> */
                return strdup(hostdev);
        at = old ?: at + strlen(driver);
        rest = old ? strchr(old + strlen(attribute), '"') + 1 : at;
        return string_format("%.*s%s%s%s%s", (int) (at - hostdev), hostdev, *iommufd ? attribute : "", iommufd,
                             *iommufd ? "\"" : "", rest);
}

char *domxml_place_hostdev(const char *hostdev, const GuestFunction *place) {
        const char *end = strstr(hostdev, "</hostdev>");

        return end ? string_format(
                             "%.*s<address type='pci' domain='0x0000' bus='0x%02x' slot='0x%02x' function='0x%u'/>%s",
                             (int) (end - hostdev), hostdev, place->guest.bus, place->guest.slot, place->guest.function,
                             end)
                   : NULL;
}

static int told_addresses(const Allocation *a, GuestAddress **ret, size_t *ret_n) {
        GuestAddress *addresses = calloc(a->n_devices + 1, sizeof(GuestAddress));
        size_t n = 0;

        if (!addresses)
                return -ENOMEM;
        for (size_t i = 0; i < a->n_devices; i++)
                if (a->devices[i].guest.known)
                        addresses[n++] = (GuestAddress) {
                                .host = a->devices[i].address,
                                .guest = a->devices[i].guest.address,
                                .seen = guest_path_seen(a->devices[i].guest.path),
                        };
        *ret = addresses;
        *ret_n = n;
        return 0;
}

int domxml_guest_addresses(const Inventory *inv, const Config *config, const Allocation *a, GuestAddress **ret,
                           size_t *ret_n) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;
        GuestAddress *addresses;
        int r;

        if (config->hypervisor == HYPERVISOR_XEN)
                return 0;
        if (allocation_has_guest(a))
                return told_addresses(a, ret, ret_n);
        r = guest_pci_new(inv, a, &GUEST_PCI_ROOM_DEFAULT, &pci);
        if (r < 0)
                return r;
        addresses = calloc(pci->n_functions + 1, sizeof(GuestAddress));
        if (!addresses)
                return -ENOMEM;
        for (size_t i = 0; i < pci->n_functions; i++)
                addresses[i] = (GuestAddress) {
                        .host = a->devices[pci->functions[i].device].address,
                        .guest = pci->functions[i].guest,
                        .seen = guest_pci_seen(pci, &pci->functions[i]),
                };
        *ret = addresses;
        *ret_n = pci->n_functions;
        return 0;
}

int domxml_explain_lacks(const Inventory *inv, const Config *config, const Allocation *a, char **ret) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;
        int r = 0;

        /* Only on AArch64 is the size of the window needed: on x86 libvirt can set any size. */
        if (streq(inventory_architecture(inv), ARCHITECTURE_AARCH64))
                r = guest_pci_new(inv, a, &GUEST_PCI_ROOM_DEFAULT, &pci);
        return r < 0 ? r : guest_explain_lacks(inv, config, a, pci ? pci->hole64 : 0, false, ret);
}
