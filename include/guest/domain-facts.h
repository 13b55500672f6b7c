/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads facts from libvirt's documents: the host devices of a domain, and the features of libvirt and QEMU. */

#include "model/libvirt.h"
#include "util/strings.h"

/*
 * Lists the host devices of a live <domain>: the <source> of each element of <devices>, such as <hostdev>, <interface
 * type='hostdev'> and <disk type='nvme'> (libvirt formatdomain). A PCI function is named by its address, a mediated
 * device by its UUID. NULL follows the last name; mark the variable _cleanup_names_ (util/fileio.h). Returns 0, -EINVAL
 * when xml is no such document, or -ENOMEM.
 */
int domain_facts_devices(const char *xml, char ***ret, size_t *ret_n);
/* As domain_facts_devices(), but each name is followed by a space and the place in the guest (ledger/guestplace.h) if
 * the document has it. */
int domain_facts_places(const char *xml, char ***ret, size_t *ret_n);
/*
 * Returns the device of a single <hostdev>. Accepts only what passthroughd writes: a PCI device with managed='no' or a
 * mediated device, no repeated element, no reference to a file or second device. 0, or -EINVAL for any other text.
 */
int domain_facts_hostdev(const char *xml, char ret[static UUID_STRING_MAX]);
/* Returns the attribute iommufd of the <driver> of a domain's first PCI <hostdev>: "yes", "no", or "" without it. NULL:
 * the domain has no PCI <hostdev>, or xml cannot be parsed. */
const char *domain_facts_iommufd(const char *xml);
/* Returns the alias of the element with this host device. The caller frees; NULL when no element has it, or when out of
 * memory. */
char *domain_facts_alias(const char *xml, const char *device);
/* Returns true when xml is a <domain type='xen'>. */
bool domain_facts_xen(const char *xml);

/*
 * Returns the features of a libvirt and a QEMU of these versions (major * 1000000 + minor * 1000 + micro).
 * capabilities: libvirt's <domainCapabilities> (formatdomaincaps), or NULL. They list the kinds of confidential guests;
 * without them no kind is set. If they tell about iommufd, they override the versions.
 */
LibvirtFeatures domain_facts_features(unsigned long libvirt, unsigned long qemu, const char *capabilities);
/* Reads a firmware descriptor of QEMU (docs/interop/firmware.json), and sets f->firmware for the kinds of confidential
 * guests that the firmware is for. Firmware in flash does not count. */
void domain_facts_firmware(const char *descriptor, size_t size, LibvirtFeatures *f);
