/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Facts in the documents of libvirt: the host devices of a domain, and the features of libvirt and QEMU. */

#include "model/libvirt.h"
#include "util/strings.h"

/*
 * Lists the host devices of a live <domain>: the <source> of each element of <devices>, such as <hostdev>, <interface
 * type='hostdev'> and <disk type='nvme'> (libvirt formatdomain). A PCI function is named by its address, a mediated
 * device by its UUID. NULL follows the last name; mark the variable _cleanup_names_ (util/fileio.h). Returns 0, -EINVAL
 * when xml is no such document, or -ENOMEM.
 */
int domain_facts_devices(const char *xml, char ***ret, size_t *ret_n);
/* The same, each name followed by a space and the place in the guest (ledger/guestplace.h) if the domain tells it. */
int domain_facts_places(const char *xml, char ***ret, size_t *ret_n);
/*
 * The host device of a text that is one <hostdev> as passthroughd writes it: of a PCI device that libvirt shall not
 * bind to a driver, or of a mediated device, with no element twice and nothing that names a file or another device. 0,
 * -EINVAL for any other text.
 */
int domain_facts_hostdev(const char *xml, char ret[static UUID_STRING_MAX]);
/* <driver iommufd=> of the PCI devices of a <domain>: "yes", "no", or "" without it. NULL: it has no such device. */
const char *domain_facts_iommufd(const char *xml);
/* The alias of the element with this host device. The caller frees; NULL when there is none, or out of memory. */
char *domain_facts_alias(const char *xml, const char *device);
/* Whether it is a <domain> for libvirt's driver for Xen. */
bool domain_facts_xen(const char *xml);

/*
 * The features of a libvirt and a QEMU of these versions (major * 1000000 + minor * 1000 + micro). capabilities: the
 * <domainCapabilities> of libvirt (formatdomaincaps), which take precedence over the versions, or NULL.
 */
LibvirtFeatures domain_facts_features(unsigned long libvirt, unsigned long qemu, const char *capabilities);
/* Sets f->firmware by a firmware descriptor of QEMU (docs/interop/firmware.json). */
void domain_facts_firmware(const char *descriptor, size_t size, LibvirtFeatures *f);
