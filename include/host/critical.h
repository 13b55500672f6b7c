/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Devices the host itself stands on, from what it uses at this moment and never from a class alone: mounted file
 * systems, swap, stacks of block devices, the default route, interfaces the configuration names, the console and the
 * BMC, each followed down to PCI functions. The boot display is PciDevice.boot_vga, not here.
 *
 * Only what the kernel answers from memory and without a lock that a driver may hold is read: this runs in the event
 * loop.
 */

#include "config/config.h"
#include "util/sysfs.h"

/*
 * Sets critical of each such device to the chain, "0000:00:1f.2 <- sda1 <- / (mounted)", and that of its PF and of
 * what is above it, bridges and VMD; console of the one whose framebuffer the console is on. What was set before is
 * cleared. When something that is there cannot be read, or stacks are too deep to be followed, critical_unknown says
 * so. config: KeepInterfaces=; NULL: none. Fails only for want of memory.
 */
int critical_mark(const Sysfs *fs, const Config *config, Inventory *inv);

/*
 * With native multipath an NVMe disk hangs below its subsystem, whose links "nvme0", "nvme1" lead to the controllers.
 * The directory of the subsystem that path, a real one, is below (caller frees); NULL when it is not below one. 0 or
 * -ENOMEM.
 */
int critical_nvme_subsystem(const char *path, char **ret);

/* In mountinfo and swaps space, tab, newline and backslash are "\040" and so on. In place. */
void critical_unescape(char *s);

/* Directories with an entry for each block device that a file system of one kind is mounted from, in whatever mount
 * namespace; NULL at the end. btrfs has CRITICAL_BTRFS/UUID/devices/. */
extern const char *const critical_mounted_dirs[];
#define CRITICAL_BTRFS "sys/fs/btrfs"

/* Whether a file system of this type is on block devices although its number is made up, and names them as its source:
 * bcachefs all of them, with colons between. The source of any other may be what a user chose who mounts by FUSE. */
bool critical_has_true_source(const char *type);

/* Of the options of a file system, "rw,logdev=/dev/sdb1", the next value that is a device node, in place; NULL: none.
 * *rest goes on after it. */
char *critical_next_option_node(char **rest);
