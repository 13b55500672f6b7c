/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads which features the installed libvirt and its QEMUs support from libvirt's XML schemas and its cache of QEMU
 * capabilities. libvirtd need not run, and a hung libvirtd cannot block the daemon.
 */

#include "guest/libvirt-features.h"
#include "util/sysfs.h"

/* Below the root. */
#define LIBVIRT_SCHEMAS_DIR      "usr/share/libvirt/schemas"
#define LIBVIRT_CAPABILITIES_DIR "var/cache/libvirt/qemu/capabilities"

/*
 * A feature that depends on QEMU is set only when every QEMU with KVM that libvirt knows has it, because a guest can be
 * started with any of them. iommufd also requires the kernel's /dev/iommu.
 */
void libvirt_features_read(const Sysfs *fs, LibvirtFeatures *ret);
