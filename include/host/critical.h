/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the PCI devices that the host itself needs, by their current use: mounted file systems, swap, stacked and
 * exported block devices, memory, default routes, storage over the network, interfaces that KeepInterfaces= names, the
 * console and the BMC. Each use is followed down to PCI functions. The boot display is not included; PciDevice.boot_vga
 * marks it.
 *
 * The event loop calls this code, so it reads only files whose content the kernel has in memory, without a lock that a
 * driver may hold.
 */

#include "config/config.h"
#include "util/sysfs.h"

/*
 * Sets PciDevice.critical of each device that the host needs to the chain of its use, "0000:00:1f.2 <- sda1 <- /
 * (mounted)". The PF of a critical VF and the bridges and VMD controllers above a critical device are critical too.
 * Sets PciDevice.online_memory of GPUs. Sets PciDevice.console of the device that has the framebuffer of the console.
 * Clears all earlier marks first.
 *
 * Sets Inventory.critical_error when a file that exists or must exist cannot be read, or when the host uses more
 * devices, addresses or routes than this code follows. config: for KeepInterfaces=, or NULL. Returns 0 or -ENOMEM.
 */
int critical_mark(const Sysfs *fs, const Config *config, Inventory *inv);

/* Decodes in place the octal escapes of mountinfo and swaps, which stand for space ("\040"), tab, newline and
 * backslash. */
void critical_unescape(char *s);

/*
 * Returns whether a mount of this file system type names its block devices in the source field of mountinfo, although
 * its device number is anonymous (major 0). bcachefs names all its devices, separated by colons. With other types the
 * source is not reliable: for FUSE, the user who mounts chooses it.
 */
bool critical_has_true_source(const char *type);

/* Returns the next value below /dev/ in the mount options "rw,logdev=/dev/sdb1", or NULL. Modifies the options; *rest
 * is where the next call continues. */
char *critical_next_option_node(char **rest);
