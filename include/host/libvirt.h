/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which running domains have which PCI functions of this host, as libvirt tells it (domain.md H1, H2). It may not be
 * installed, may not run, and may hang: only a process of its own asks.
 */

#include <stdbool.h>

#include "core/pciaddr.h"

#define LIBVIRT_DOMAIN_NAME_MAX 64U /* longer ones are cut */

/* Told one after the other; between BEGIN and END stands all that is true then. */
typedef enum LibvirtReportKind {
        LIBVIRT_BEGIN,
        LIBVIRT_DEVICE,
        LIBVIRT_END,
        LIBVIRT_LOST,    /* what was told last is not followed any more */
        LIBVIRT_MISSING, /* the library is not installed: the process ends */
} LibvirtReportKind;

typedef struct LibvirtReport {
        LibvirtReportKind kind;
        PciAddress address;                       /* LIBVIRT_DEVICE */
        char domain[LIBVIRT_DOMAIN_NAME_MAX + 1]; /* LIBVIRT_DEVICE */
} LibvirtReport;

/*
 * Connects, reports, and reports again whenever a domain starts, ends, or gets or loses a device, and after each
 * reconnection. uri: "qemu:///system". report returns false when nobody listens any more. Returns then, or when the
 * library is missing.
 */
void libvirt_follow(const char *uri, bool (*report)(const LibvirtReport *r, void *userdata), void *userdata);
