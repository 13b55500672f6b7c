/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The libvirt domain document of one allocation (libvirt formatdomain; domain.md F). Pure: libxml2 in memory, no file,
 * no network. The document takes from the allocation: name, uuid, metadata of the daemon, memory, memoryBacking, vcpu,
 * cputune, numatune, cpu, machine, PCI hostdevs and their PCI controllers, memballoon, and an iommu for many vCPUs.
 * Disk, network, firmware and the rest come from the template, or from a bootable skeleton.
 */

#include "config/config.h"
#include "guest/guestpci.h"
#include "model/refusal.h"

#define DOMXML_TEMPLATE_MAX (256U * 1024U)
#define DOMXML_NAMESPACE    "https://passthroughd.org/xmlns/domain/1"

/*
 * The address of a device in its <hostdev>. Its bus is the index of a libvirt controller. The guest sees the same slot
 * and function, but another bus number, which its firmware assigns depth first behind each expander. Behind an expander
 * that number can be computed; below pcie.0 it cannot.
 */
typedef struct GuestAddress {
        PciAddress host;
        PciAddress guest;
        PciAddress seen; /* as the guest sees it; bus 0: unknown */
} GuestAddress;

/* A document to fill in. */
typedef struct DomainTemplate {
        const char *text;      /* of a <domain> */
        bool qemu_commandline; /* permits elements of QEMU's namespace, and keeps them unchanged and unchecked */
} DomainTemplate;

/* What the document tells the guest in fw_cfg: the topology for NCCL, and the slots and addresses of the devices. */
typedef enum GuestInfo {
        GUEST_INFO_GUEST, /* addresses in the guest only */
        GUEST_INFO_HOST,  /* addresses on the host, too */
        GUEST_INFO_NONE,
} GuestInfo;

/* VERDICT_INVALID_TEMPLATE for a text longer than DOMXML_TEMPLATE_MAX, otherwise VERDICT_NONE. The functions below
 * check this too. */
Verdict domxml_check_size(const char *text, Refusal *ret);

/*
 * template: NULL: a bootable skeleton. Returns VERDICT_NONE and sets *ret to the document, which the caller frees.
 * Otherwise VERDICT_INVALID_TEMPLATE; VERDICT_INVALID_REQUEST: no CPUs or no memory, more devices than bus numbers, or
 * more for the guest than fw_cfg takes;
 * VERDICT_NOT_SUPPORTED: libvirt has no way to express it (a PCI domain above ffff, more than 255 vCPUs without KVM);
 * VERDICT_LIMIT: out of memory.
 *
 * A domain with more than 255 vCPUs gets an Intel IOMMU with extended interrupt mode and QEMU's own I/O APIC, as
 * libvirt requires.
 */
Verdict domxml_make(const Inventory *inv, const Config *config, const Allocation *a, const DomainTemplate *template,
                    GuestInfo info, char **ret, Refusal *ret_refusal);
/*
 * As domxml_make(), as input for passthroughd-libvirt: the document, a NUL, then the template lines in the format of
 * guest/validation.h. *ret_size is the size of all of it.
 */
Verdict domxml_make_with_lines(const Inventory *inv, const Config *config, const Allocation *a,
                               const DomainTemplate *template, GuestInfo info, char **ret, size_t *ret_size,
                               Refusal *ret_refusal);

/*
 * The <hostdev> of one assigned or companion device, as in the document of domxml_make(), but with the address that a
 * running guest has given the device. It has no address if the guest that runs does not have the device, or if the
 * allocation has no CPUs, and hence no document: libvirt chooses a port. VERDICT_NO_SUCH_DEVICE when no device has the
 * slot; otherwise as domxml_make().
 */
Verdict domxml_hostdev(const Inventory *inv, const Config *config, const Allocation *a, const DomainTemplate *template,
                       const char *slot, char **ret, Refusal *ret_refusal);
/* The same for a->devices[device] and a guest that runs: without an address. */
Verdict domxml_hostdev_anywhere(const Inventory *inv, const Config *config, const Allocation *a, size_t device,
                                char **ret, Refusal *ret_refusal);
/* The text of a <hostdev> with another <driver iommufd=>, as domain_facts_iommufd() tells it. The caller frees; NULL:
 * out of memory. */
char *domxml_hostdev_with_iommufd(const char *hostdev, const char *iommufd);
/* Adds the place that guest_ports_choose() has chosen to the text of a <hostdev> without an address. The caller frees;
 * NULL: out of memory. */
char *domxml_place_hostdev(const char *hostdev, const GuestFunction *place);

/* What the guest of a document without a template lacks, as guest_explain_lacks(). */
int domxml_explain_lacks(const Inventory *inv, const Config *config, const Allocation *a, char **ret);

/*
 * The guest's PCI tree as an XML document for NCCL_TOPO_FILE; otherwise as domxml_make(). While a guest runs, the
 * document has the PCI tree of the running guest, and the template is ignored. Devices below pcie.0 are left out: NCCL
 * finds them without the file.
 */
Verdict domxml_nccl_topology(const Inventory *inv, const Config *config, const Allocation *a,
                             const DomainTemplate *template, char **ret, Refusal *ret_refusal);

/*
 * The guest addresses of the devices. While a guest runs (allocation_has_guest()) these are facts: of the devices that
 * it has, those of libvirt's document of the domain. Otherwise they are computed: of each assigned and companion
 * device, as in domxml_make() without a template; a template with PCI controllers of its own moves the daemon's
 * controllers to higher indices. Xen chooses the addresses: *ret is unchanged. The caller frees. 0, -ENOMEM, -E2BIG.
 */
int domxml_guest_addresses(const Inventory *inv, const Config *config, const Allocation *a, GuestAddress **ret,
                           size_t *ret_n);
