/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What libvirt's QEMU driver writes down of a running domain: its process, who it is, and which PCI functions of the
 * host it has.
 */

#include "model/pciaddr.h"

typedef struct DomainStatus {
        char *name;
        char *uuid;    /* NULL: not told */
        int pid;       /* of QEMU */
        bool starting; /* QEMU may not have got all its memory yet */
        PciAddress *devices;
        size_t n_devices;
} DomainStatus;

void domain_status_done(DomainStatus *s);

/*
 * <domstatus pid=''> around the <domain>. Devices are all <address> of a PCI function in the <source> of an element of
 * <devices>, or in its <actual>: <hostdev>, <interface type='hostdev'>, <disk type='nvme'> (libvirt formatdomain).
 * -EINVAL: not such a document; -ENOMEM.
 */
int domain_status_parse(const char *xml, DomainStatus *ret);
