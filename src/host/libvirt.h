/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the installed libvirt and its QEMUs understand, from the files they come with and keep: it need not run, and
 * nothing hangs.
 */

#include "guest/libvirt-features.h"
#include "util/sysfs.h"

/* Below the root. */
#define LIBVIRT_SCHEMAS_DIR      "usr/share/libvirt/schemas"
#define LIBVIRT_CAPABILITIES_DIR "var/cache/libvirt/qemu/capabilities"

/* What needs QEMU's help only when every QEMU with KVM that libvirt knows has it, for a guest could be started with
 * any; iommufd only when the kernel has it too. */
void libvirt_features_read(const Sysfs *fs, LibvirtFeatures *ret);
