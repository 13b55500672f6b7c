/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The libvirt domain document for exactly one allocation (libvirt formatdomain; domain.md F). Pure: libxml2 in memory,
 * no file, no network. It owns: name, uuid, our metadata, memory, memoryBacking, vcpu, cputune, numatune, cpu, machine,
 * PCI hostdevs and the PCI controllers they need, memballoon, and for many vCPUs the iommu. Disk, network, firmware and
 * the rest come from the template, or from a bootable skeleton.
 */

#include "config/config.h"
#include "ledger/allocation.h"
#include "model/refusal.h"

#define DOMXML_TEMPLATE_MAX (256U * 1024U)
#define DOMXML_NAMESPACE    "https://passthroughd.org/xmlns/domain/1"

/*
 * Where a device sits in the domain: the address in its <hostdev>. Its bus is the index of a libvirt controller. The
 * bus number that the guest itself sees is another one: the guest's firmware assigns it, depth first behind each
 * expander, so that there it is known, and below pcie.0 it is not. Slot and function are the same.
 */
typedef struct GuestAddress {
        PciAddress host;
        PciAddress guest;
        PciAddress seen; /* bus 0: nobody can tell */
} GuestAddress;

/*
 * template: text of a <domain>, or NULL. *ret: the document, caller frees. Returns VERDICT_NONE when *ret was set, else
 * a refusal: VERDICT_INVALID_TEMPLATE; VERDICT_INVALID_REQUEST: no CPUs or no memory, more devices than there are bus
 * numbers; VERDICT_NOT_SUPPORTED: libvirt cannot say it (a PCI domain beyond ffff, more than 255 vCPUs without KVM);
 * VERDICT_LIMIT: out of memory.
 *
 * More than 255 vCPUs get an Intel IOMMU with extended interrupt mode and QEMU's own I/O APIC, as libvirt demands.
 */
Verdict domxml_make(const Inventory *inv, const Config *config, const Allocation *a, const char *template, char **ret,
                    Refusal *ret_refusal);
/* The same for libvirt to validate: a NUL follows the document, and then the lines of the template as
 * guest/validation.h has them. *ret_size is with all of it. */
Verdict domxml_make_with_lines(const Inventory *inv, const Config *config, const Allocation *a, const char *template,
                               char **ret, size_t *ret_size, Refusal *ret_refusal);

/* What NCCL in the guest is to be told of its PCI tree, an XML document for NCCL_TOPO_FILE; the rest as domxml_make().
 * Devices below pcie.0 are not in it: NCCL finds them without. */
Verdict domxml_nccl_topology(const Inventory *inv, const Config *config, const Allocation *a, const char *template,
                             char **ret, Refusal *ret_refusal);

/* The address in the domain of each assigned and companion device, as domxml_make() without a template gives it: one
 * that comes with PCI controllers of its own moves ours to higher indices. Caller frees. -ENOMEM, -E2BIG. */
int domxml_guest_addresses(const Inventory *inv, const Allocation *a, GuestAddress **ret, size_t *ret_n);
