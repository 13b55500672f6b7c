/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Devices the host itself stands on: mounted file systems, swap and the default route, followed down through device
 * mapper, md, bonds, bridges and VLANs to PCI functions. The boot display is PciDevice.boot_vga, not here.
 */

#include "core/inventory.h"
#include "util/sysfs.h"

/*
 * Sets critical of each such device to the chain, "0000:00:1f.2 <- sda1 <- / (mounted)"; a VF marks its PF too. What
 * was set before is cleared. When a list cannot be read, critical_unknown says so. Fails only for want of memory.
 */
int critical_mark(const Sysfs *fs, Inventory *inv);

/*
 * With native multipath an NVMe disk hangs below its subsystem, whose links "nvme0", "nvme1" lead to the controllers.
 * The directory of the subsystem that path, a real one, is below (caller frees); NULL when it is not below one. 0 or
 * -ENOMEM.
 */
int critical_nvme_subsystem(const char *path, char **ret);

/* In mountinfo and swaps space, tab, newline and backslash are "\040" and so on. In place. */
void critical_unescape(char *s);
