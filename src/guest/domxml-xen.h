/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A guest of Xen, as both of its documents describe it: libvirt's XML (domxml-xen.c) and the configuration of xl
 * (xlcfg.c). The guest is HVM: a PVH guest gets no PCI device (Xen, SUPPORT.md), a PV guest no virtual NUMA
 * (xl.cfg(5)).
 */

#include "guest/domxml.h"

#define XEN_BRIDGE "xenbr0" /* the default of xl-network-configuration(5) */

typedef enum XenDocument {
        XEN_DOCUMENT_LIBVIRT,
        XEN_DOCUMENT_XL,
} XenDocument;

/* Refuses an allocation that no guest of Xen on this node can have. */
Verdict xen_check(const Inventory *inv, const Allocation *a, Refusal *ret);
/* Returns true when the document has guest NUMA cells. */
bool xen_has_cells(const Allocation *a, XenDocument document);
/* Formats what the guest lacks as sentences, each with a newline at its end, and without "--", which XML forbids in
 * comments. The caller frees *ret, which is NULL if the guest lacks nothing. Returns 0 or -ENOMEM. */
int xen_losses(const Allocation *a, GuestInfo info, XenDocument document, char **ret);
