/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "guest/iommufd.h"

#include <stdio.h>
#include <string.h>

#include "guest/guestpci.h"
#include "util/strings.h"
#include "util/stringtable.h"

#define KERNEL_CDEV  6006U /* Linux 6.6 has VFIO character devices */
#define KERNEL_PEERS 6019U /* Linux 6.19: iommufd maps BARs that VFIO exports as DMA buffers */
#define LIBVIRT_HAS  12001000U
#define QEMU_HAS     9000000U
#define QEMU_PEERS   11000000U /* QEMU 11.0 has iommufd map the BARs of devices; QEMU 10 does not (its documentation) */

static const char *const iommufd_reason_table[_IOMMUFD_REASON_MAX] = {
        [IOMMUFD_NO_DEVICE] = "no-device",         [IOMMUFD_OFF] = "configured",
        [IOMMUFD_UNKNOWN] = "libvirt-unknown",     [IOMMUFD_MEDIATED] = "mediated-device",
        [IOMMUFD_OLD_LIBVIRT] = "libvirt-version", [IOMMUFD_OLD_QEMU] = "qemu-version",
        [IOMMUFD_NOT_OFFERED] = "not-offered",     [IOMMUFD_NO_CDEV] = "no-character-device",
        [IOMMUFD_NO_PEERS] = "no-peer-to-peer",    [IOMMUFD_ON] = "configured",
        [IOMMUFD_ONE_DEVICE] = "one-device",       [IOMMUFD_PEERS] = "peer-to-peer",
        [IOMMUFD_CONFIDENTIAL] = "confidential",
};
DEFINE_STRING_TABLE_TO_STRING(iommufd_reason, IommufdReason, _IOMMUFD_REASON_MAX)

/* Returns true when device i is the first function of its card. A VF is a card of its own. */
static bool is_first_of_card(const Allocation *a, size_t i) {
        PciAddress card = a->devices[i].address;

        for (size_t k = 0; k < i && !a->devices[i].is_vf; k++) {
                PciAddress other = a->devices[k].address;

                other.function = card.function;
                if (guest_pci_shows(&a->devices[k]) && !a->devices[k].is_vf && pci_address_equal(other, card))
                        return false;
        }
        return true;
}

void iommufd_find_cdevs(const Inventory *inv, IommufdFacts *f) {
        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];

                f->has_cdev = f->has_cdev || *dev->vfio_cdev;
                f->lacks_cdev = f->lacks_cdev || (dev->vfio && !*dev->vfio_cdev);
        }
}

IommufdFacts iommufd_facts(const Inventory *inv, const Config *config, const Allocation *a) {
        IommufdFacts f = {
                .mode = config->iommufd,
                .libvirt = inv->libvirt,
                .kernel = inv->kernel,
                .xen = config->hypervisor == HYPERVISOR_XEN,
                .confidential = confidential_is_private(a->confidential),
        };

        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(inv, a->devices[i].address);

                if (!guest_pci_shows(&a->devices[i]))
                        continue;
                f.n_devices += is_first_of_card(a, i);
                f.mediated =
                        f.mediated || *a->devices[i].mdev || (a->devices[i].vgpu_type > 0 && dev && dev->mdev_parent);
        }
        iommufd_find_cdevs(inv, &f);
        return f;
}

bool iommufd_has_peers(const IommufdFacts *f) {
        return f->kernel >= KERNEL_PEERS && f->libvirt.qemu >= QEMU_PEERS;
}

/* Returns the first reason why iommufd cannot be used; IOMMUFD_ON: there is none. */
static IommufdReason find_obstacle(const IommufdFacts *f) {
        bool lacks = f->libvirt.known && !f->libvirt.iommufd;

        if (!f->libvirt.known && f->mode != IOMMUFD_MODE_YES && !f->confidential)
                return IOMMUFD_UNKNOWN;
        if (f->mediated)
                return IOMMUFD_MEDIATED;
        if (lacks && f->libvirt.libvirt < LIBVIRT_HAS)
                return IOMMUFD_OLD_LIBVIRT;
        if (lacks && f->libvirt.qemu < QEMU_HAS)
                return IOMMUFD_OLD_QEMU;
        if (f->lacks_cdev || (f->kernel > 0 && f->kernel < KERNEL_CDEV && !f->has_cdev))
                return IOMMUFD_NO_CDEV;
        return lacks ? IOMMUFD_NOT_OFFERED : IOMMUFD_ON;
}

IommufdReason iommufd_choose(const IommufdFacts *f) {
        IommufdReason obstacle;

        if (f->xen || f->n_devices == 0)
                return IOMMUFD_NO_DEVICE;
        if (f->mode == IOMMUFD_MODE_NO)
                return IOMMUFD_OFF;
        obstacle = find_obstacle(f);
        if (obstacle != IOMMUFD_ON || f->mode == IOMMUFD_MODE_YES)
                return obstacle;
        if (f->confidential)
                return IOMMUFD_CONFIDENTIAL;
        if (f->n_devices == 1)
                return IOMMUFD_ONE_DEVICE;
        return iommufd_has_peers(f) ? IOMMUFD_PEERS : IOMMUFD_NO_PEERS;
}

#define VERSION_TEXT_MAX 40

/* Formats a program and its version, "Linux 6.12". number: major * 1000 + minor, or 0 for an unknown version. */
static const char *version_text(const char *program, unsigned number, char buf[static VERSION_TEXT_MAX]) {
        if (number == 0)
                (void) snprintf(buf, VERSION_TEXT_MAX, "an unknown %s", program);
        else
                (void) snprintf(buf, VERSION_TEXT_MAX, "%s %u.%u", program, number / 1000, number % 1000);
        return buf;
}
#define VERSION_TEXT(program, number) version_text(program, number, (char[VERSION_TEXT_MAX]) { 0 })

static char *explain_no_peers(const IommufdFacts *f, const char *before) {
        return string_format("%s: that takes Linux 6.19 and QEMU 11.0, and this node has %s and %s.", before,
                             VERSION_TEXT("Linux", f->kernel), VERSION_TEXT("QEMU", f->libvirt.qemu / 1000));
}

char *iommufd_explain_lost_peers(const IommufdFacts *f) {
        return explain_no_peers(f, "The guest has its devices by iommufd, so peer-to-peer DMA (GPUDirect) between them "
                                   "does not work");
}

char *iommufd_explain(const IommufdFacts *f, IommufdReason r) {
        switch (r) {
        case IOMMUFD_NO_DEVICE:
                return strdup("The guest has no device that it could have by iommufd.");
        case IOMMUFD_OFF:
                return strdup("The configuration or the template turns it off.");
        case IOMMUFD_UNKNOWN:
                return strdup("What libvirt and QEMU can do is unknown.");
        case IOMMUFD_MEDIATED:
                return strdup("A mediated device cannot have it.");
        case IOMMUFD_OLD_LIBVIRT:
                return string_format("It takes libvirt 12.1, and this node has %s.",
                                     VERSION_TEXT("libvirt", f->libvirt.libvirt / 1000));
        case IOMMUFD_OLD_QEMU:
                return string_format("It takes QEMU 9.0, and this node has %s.",
                                     VERSION_TEXT("QEMU", f->libvirt.qemu / 1000));
        case IOMMUFD_NOT_OFFERED:
                return strdup("libvirt reports that QEMU has no iommufd, or that /dev/iommu is missing.");
        case IOMMUFD_NO_CDEV:
                return string_format("VFIO has no character devices (CONFIG_VFIO_DEVICE_CDEV, Linux 6.6): this node "
                                     "has %s.",
                                     VERSION_TEXT("Linux", f->kernel));
        case IOMMUFD_NO_PEERS:
                return explain_no_peers(f, "Peer-to-peer DMA (GPUDirect) would not work with it");
        case IOMMUFD_ON:
                return iommufd_has_peers(f) || f->n_devices < 2 || f->confidential
                               ? strdup("The configuration or the template asks for it.")
                               : explain_no_peers(f, "The configuration or the template asks for it, but peer-to-peer "
                                                     "DMA (GPUDirect) between the devices "
                                                     "of the guest does not work with it");
        case IOMMUFD_ONE_DEVICE:
                return strdup("The guest has one device, which has no peer.");
        case IOMMUFD_PEERS:
                return string_format("%s and %s keep peer-to-peer DMA (GPUDirect).", VERSION_TEXT("Linux", f->kernel),
                                     VERSION_TEXT("QEMU", f->libvirt.qemu / 1000));
        case IOMMUFD_CONFIDENTIAL:
                return strdup("A confidential guest needs it.");
        default:
                return NULL;
        }
}

Verdict iommufd_check(const IommufdFacts *f, IommufdReason r, Refusal *ret) {
        _cleanup_free_ char *why = NULL;

        if (f->mode != IOMMUFD_MODE_YES || iommufd_is_used(r) || r == IOMMUFD_NO_DEVICE)
                return VERDICT_NONE;
        why = iommufd_explain(f, r);
        return why ? refuse(ret, VERDICT_NOT_SUPPORTED, NULL,
                            "Set Iommufd=auto in passthroughd.conf, and take <iommufd> out of the template.",
                            "The guest cannot have iommufd, which Iommufd=yes or the template asks for. %s", why)
                   : refuse_no_memory(ret);
}
