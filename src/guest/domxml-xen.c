/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The domain of a guest of Xen. libvirt's driver for Xen (libxl) ignores elements that it does not support, so the
 * document has none of them. Comments in the document name what the guest lacks.
 */

#include "domxml-xen.h"

#include <errno.h>

#include "domxml-internal.h"
#include "util/strings.h"

#define VCPUS_MAX 128U /* HVM_MAX_VCPUS of Xen's public/hvm/hvm_info_table.h */

static Verdict check_device(const AllocationDevice *dev, Refusal *ret) {
        if (dev->vgpu_type == 0 && !*dev->mdev)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_NOT_SUPPORTED, &dev->address, "Allocate a whole device.",
                      "%s is a vGPU, which needs VFIO. Xen has none.", PCI_ADDRESS_STR(dev->address));
}

Verdict xen_check(const Inventory *inv, const Allocation *a, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        if (!streq(inventory_architecture(inv), ARCHITECTURE_X86_64))
                return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, NULL, "Xen passes PCI devices on x86_64 only, not %s.",
                              QUOTABLE(inventory_architecture(inv)));
        if (a->n_pins > VCPUS_MAX)
                return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, "Allocate fewer CPUs.",
                              "'%s' has %zu vCPUs. A guest of Xen has at most %u.", a->name, a->n_pins, VCPUS_MAX);
        if (a->n_regions > 0)
                return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, "Allocate without shared memory.",
                              "'%s' shares the memory '%s', and Xen has no ivshmem.", a->name, a->regions[0].name);
        for (size_t i = 0; i < a->n_devices && v == VERDICT_NONE; i++)
                if (guest_pci_shows(&a->devices[i]))
                        v = check_device(&a->devices[i], ret);
        return v;
}

/* xl.cfg names a host node for each guest cell. libvirt takes the memory of cell i from node i (libxlMakeVnumaList() in
 * its libxl_conf.c), so its document has guest cells only if the allocation has them on these nodes. With guest cells,
 * the memory comes from the nodes of the cells alone: libxenguest allocates it with XENMEMF_exact_node(). */
bool xen_has_cells(const Allocation *a, XenDocument document) {
        for (size_t i = 0; i < a->n_cells && document == XEN_DOCUMENT_LIBVIRT; i++)
                if (cell_memory_node(&a->cells[i]) != (int) i)
                        return false;
        return true;
}

static bool shows_devices(const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (guest_pci_shows(&a->devices[i]))
                        return true;
        return false;
}

int xen_losses(const Allocation *a, GuestInfo info, XenDocument document, char **ret) {
        bool devices = shows_devices(a), services = a->n_services > 0, cells = xen_has_cells(a, document);
        _cleanup_free_ char *text = NULL;

        if (!cells && a->n_cells > 1 &&
            string_append(&text, "", "%s",
                          "No guest NUMA cells: libvirt would take their memory from other nodes than those of "
                          "the allocation. The format 'xl' has them.\n") < 0)
                return -ENOMEM;
        if (!cells && string_append(&text, "", "%s",
                                    "No strict memory policy: Xen prefers the nodes of the pinned CPUs, and takes "
                                    "memory of others when these run short.\n") < 0)
                return -ENOMEM;
        if (a->page_size > 0 &&
            string_append(&text, "", "No pages of %s: Xen chooses the size of pages.\n", FORMAT_SIZE(a->page_size)) < 0)
                return -ENOMEM;
        if (devices && string_append(&text, "", "%s",
                                     "No PCI tree: Xen chooses the addresses of devices in the guest, which does not "
                                     "see their NUMA nodes and distances.\n") < 0)
                return -ENOMEM;
        if (info != GUEST_INFO_NONE && (devices || services) &&
            string_append(&text, "", "No fw_cfg: the guest is not told %s%s%s.\n",
                          devices ? "the slots of its devices" : "", devices && services ? " and " : "",
                          services ? "the endpoints of its services" : "") < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(text);
        return 0;
}

/* Adds comments before <domain>: what the guest lacks. */
static void write_losses(Domain *d, GuestInfo info) {
        _cleanup_free_ char *losses = NULL;
        char *rest, *line;

        d->failed |= xen_losses(d->a, info, XEN_DOCUMENT_LIBVIRT, &losses) < 0;
        rest = losses;
        while (rest && (line = strsep(&rest, "\n")))
                if (*line)
                        domain_add_comment(d, "%s", line);
}

void domain_write_xen(Domain *d, GuestInfo info) {
        uint64_t memory = allocation_memory(d->a);

        node_set_size(d, domain_add(d, "memory"), NULL, memory);
        /* Xen refuses devices for a guest whose memory at start is less than its maximum (populate on demand). */
        node_set_size(d, domain_add(d, "currentMemory"), NULL, memory);
        domain_write_vcpus(d);
        if (xen_has_cells(d->a, XEN_DOCUMENT_LIBVIRT))
                domain_write_cells(d, domain_add(d, "cpu"));
        for (size_t i = 0; i < d->a->n_devices; i++)
                if (guest_pci_shows(&d->a->devices[i]))
                        (void) domain_write_hostdev(d, &d->a->devices[i]);
        write_losses(d, info);
}
