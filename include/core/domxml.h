/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The libvirt domain document for exactly one allocation (libvirt formatdomain; domain.md F). Pure: libxml2 in memory, no file, no network.
 * It owns: name, uuid, our metadata, memory, memoryBacking, vcpu, cputune, numatune, cpu, machine, PCI hostdevs and the PCI controllers
 * they need, memballoon. Disk, network, firmware and the rest come from the template, or from a bootable skeleton.
 */

#include "core/allocation.h"
#include "core/config.h"
#include "core/refusal.h"

#define DOMXML_TEMPLATE_MAX (256U * 1024U)
#define DOMXML_NAMESPACE "https://passthroughd.org/xmlns/domain/1"

/* Where a device sits in the guest. */
typedef struct GuestAddress {
        PciAddress host;
        PciAddress guest; /* bus is the index of its libvirt controller */
} GuestAddress;

/*
 * template: text of a <domain>, or NULL. *ret: the document, caller frees. Refusal: VERDICT_INVALID_TEMPLATE, VERDICT_INVALID_REQUEST (no
 * CPUs or no memory, more devices than there are bus numbers). Returns VERDICT_NONE when *ret was set.
 */
Verdict domxml_make(const Inventory *inv, const Config *config, const Allocation *a, const char *template, char **ret, Refusal *ret_refusal);

/* The guest address of each assigned and companion device, as domxml_make() without a template gives it. Caller frees. -ENOMEM, -E2BIG. */
int domxml_guest_addresses(const Inventory *inv, const Allocation *a, GuestAddress **ret, size_t *ret_n);
