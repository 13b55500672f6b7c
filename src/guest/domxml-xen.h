/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a guest of Xen gets, in both of its documents: libvirt's XML (domxml-xen.c) and the configuration of xl
 * (xlcfg.c). Both describe an HVM guest: a PVH guest gets no PCI device (Xen, SUPPORT.md), a PV guest no virtual NUMA
 * (xl.cfg(5)).
 */

#include "guest/domxml.h"

#define XEN_BRIDGE "xenbr0" /* the default of xl-network-configuration(5) */

typedef enum XenDocument {
        XEN_DOCUMENT_LIBVIRT,
        XEN_DOCUMENT_XL,
} XenDocument;

/* Refuses what Xen cannot give a guest at all. */
Verdict xen_check(const Inventory *inv, const Allocation *a, Refusal *ret);
/* Whether the document has guest NUMA cells. */
bool xen_has_cells(const Allocation *a, XenDocument document);
/* What the guest does without: sentences, each with a newline at its end. They have no "--", which a comment of XML
 * cannot contain. The caller frees *ret, which is NULL for none. 0 or -ENOMEM. */
int xen_losses(const Allocation *a, GuestInfo info, XenDocument document, char **ret);
