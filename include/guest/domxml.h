/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The libvirt domain document of one allocation (libvirt formatdomain). Pure: libxml2 in memory, no file, no network.
 * These elements come from the allocation: name, uuid, metadata of the daemon, memory, memoryBacking, vcpu, cputune,
 * numatune, cpu, machine, hostdevs and their PCI controllers, shmem, memballoon, sysinfo for fw_cfg, an iommu for many
 * vCPUs, and launchSecurity for a confidential guest. Disk, network, firmware and the rest come from the template, or
 * from a bootable skeleton.
 */

#include "config/config.h"
#include "guest/guestpci.h"
#include "model/refusal.h"

#define DOMXML_TEMPLATE_MAX (256U * 1024U)
#define DOMXML_NAMESPACE    "https://passthroughd.org/xmlns/domain/1"

/*
 * The addresses of a device: on the host, and in its <hostdev>, where the bus is the index of a libvirt controller. The
 * guest sees the same slot and function as in the <hostdev>, but another bus number, which its firmware assigns. Behind
 * an expander the firmware assigns the numbers depth first, so they can be computed; below pcie.0 they cannot.
 */
typedef struct GuestAddress {
        PciAddress host;
        PciAddress guest; /* in the <hostdev> */
        PciAddress seen;  /* as the guest sees it; bus 0: unknown */
} GuestAddress;

/* A domain document of the caller, to be filled in. */
typedef struct DomainTemplate {
        const char *text;      /* the text of a <domain> */
        bool qemu_commandline; /* keep elements of other namespaces, such as QEMU's, unchecked; false: refuse them */
} DomainTemplate;

/* What the document gives the guest in fw_cfg: the topology for NCCL, and the slots and addresses of devices. */
typedef enum GuestInfo {
        GUEST_INFO_GUEST, /* with addresses in the guest only */
        GUEST_INFO_HOST,  /* also with addresses on the host */
        GUEST_INFO_NONE,
} GuestInfo;

/*
 * Refuses a text of more than DOMXML_TEMPLATE_MAX bytes with VERDICT_INVALID_TEMPLATE. The functions below do so, too.
 */
Verdict domxml_check_size(const char *text, Refusal *ret);

/*
 * Makes the document from a template; NULL: from a bootable skeleton. Returns VERDICT_NONE and sets *ret, which the
 * caller frees. Otherwise VERDICT_INVALID_TEMPLATE; VERDICT_INVALID_REQUEST: no CPUs or no memory, more devices than
 * bus numbers, or more guest information than fw_cfg can hold; VERDICT_NOT_SUPPORTED: libvirt, QEMU or Xen cannot run
 * such a guest (for example with a PCI domain above ffff, or more than 255 vCPUs without KVM); VERDICT_MISSING: a card
 * of the allocation is lost; or VERDICT_LIMIT: out of memory.
 *
 * An x86 domain with more than 255 vCPUs gets an Intel IOMMU with extended interrupt mode and QEMU's own I/O APIC, as
 * libvirt requires.
 */
Verdict domxml_make(const Inventory *inv, const Config *config, const Allocation *a, const DomainTemplate *template,
                    GuestInfo info, char **ret, Refusal *ret_refusal);
/*
 * As domxml_make(), but makes the input of passthroughd-libvirt: the document, a NUL, then the template lines in the
 * format of guest/validation.h. *ret_size is the size of all of it.
 */
Verdict domxml_make_with_lines(const Inventory *inv, const Config *config, const Allocation *a,
                               const DomainTemplate *template, GuestInfo info, char **ret, size_t *ret_size,
                               Refusal *ret_refusal);

/*
 * Makes the <hostdev> of one assigned or companion device, as in the document of domxml_make(). While a guest runs, the
 * <hostdev> has the address that the device has in this guest. It has no address, so that libvirt or Xen chooses the
 * place, if the running guest does not have the device, if the allocation has no CPUs and hence no document, or with
 * Xen. VERDICT_NO_SUCH_DEVICE when no device has the slot; otherwise as domxml_make().
 */
Verdict domxml_hostdev(const Inventory *inv, const Config *config, const Allocation *a, const DomainTemplate *template,
                       const char *slot, char **ret, Refusal *ret_refusal);
/* As domxml_hostdev(), for a->devices[device] and a running guest: the <hostdev> has no address. */
Verdict domxml_hostdev_anywhere(const Inventory *inv, const Config *config, const Allocation *a, size_t device,
                                char **ret, Refusal *ret_refusal);
/* Returns a copy of the <hostdev> with the attribute iommufd of its <driver> set to iommufd; "" removes it. The
 * <hostdev> of a mediated device, which has no <driver>, is not changed. The caller frees; NULL: out of memory. */
char *domxml_hostdev_with_iommufd(const char *hostdev, const char *iommufd);
/* Returns a copy of hostdev with an <address>: the place that guest_ports_choose() chose. hostdev must have no address
 * yet, and must end with </hostdev>. The caller frees. NULL: out of memory, or no </hostdev>. */
char *domxml_place_hostdev(const char *hostdev, const GuestFunction *place);

/* Formats what the guest of a document without a template lacks. Returns as guest_explain_lacks(), or -E2BIG: the guest
 * has too few PCI buses. */
int domxml_explain_lacks(const Inventory *inv, const Config *config, const Allocation *a, char **ret);

/*
 * Makes an XML document for NCCL_TOPO_FILE of the guest's PCI tree. Returns as domxml_make(); VERDICT_NOT_SUPPORTED
 * also with Xen. While a guest runs, the document has the PCI tree of the running guest, and the template is only
 * checked. Devices below pcie.0 are left out: NCCL finds them without the file.
 */
Verdict domxml_nccl_topology(const Inventory *inv, const Config *config, const Allocation *a,
                             const DomainTemplate *template, char **ret, Refusal *ret_refusal);

/*
 * Lists the guest addresses of the devices. While a guest runs (allocation_has_guest()), they are those that libvirt's
 * document of the domain has. Otherwise they are computed for each assigned and companion device, as in domxml_make()
 * without a template; a template with PCI controllers of its own moves the daemon's controllers to higher indices. With
 * Xen, which chooses the addresses itself, *ret is unchanged. The caller frees. 0, -ENOMEM, or -E2BIG: the guest has
 * too few PCI buses.
 */
int domxml_guest_addresses(const Inventory *inv, const Config *config, const Allocation *a, GuestAddress **ret,
                           size_t *ret_n);
