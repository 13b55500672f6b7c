/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The status file that libvirt's QEMU driver keeps for each running domain: the PID of QEMU, name and UUID of the
 * domain, and the host PCI functions that it has.
 */

#include "model/pciaddr.h"

typedef struct DomainStatus {
        char *name;
        char *uuid;    /* NULL: not in the file */
        int pid;       /* of QEMU */
        bool starting; /* QEMU may not have allocated all its memory yet */
        PciAddress *devices;
        size_t n_devices;
} DomainStatus;

void domain_status_done(DomainStatus *s);

/*
 * Parses a <domstatus pid=''> document, which contains the <domain>. Devices are the PCI addresses in the <source> of
 * each element of <devices>, or of its <actual>: <hostdev>, <interface type='hostdev'>, <disk type='nvme'> (libvirt
 * formatdomain). 0, -EINVAL when xml is no such document, -ENOMEM.
 */
int domain_status_parse(const char *xml, DomainStatus *ret);
