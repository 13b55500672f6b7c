/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Which PCI functions of the host a domain has, from its document. */

#include "core/pciaddr.h"

/*
 * All <address> of a PCI function under the <source> of an element of <devices>: <hostdev>, <interface type='hostdev'>
 * and <disk type='nvme'> (libvirt formatdomain). Appends to *devices. -EINVAL: not a domain document; -ENOMEM.
 */
int domain_devices_append(const char *xml, PciAddress **devices, size_t *n);
