/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The driver pciback of Xen's dom0, to which the devices of guests are bound. Only the kernel's
 * drivers/xen/xen-pciback/pci_stub.c documents it.
 *
 * pciback has a list of slots: addresses that it binds without driver_override. It adds a device that it binds by
 * driver_override (pcistub_seize()), and keeps the slot when the device is unbound. A slot that is left would bind the
 * device to pciback again at the next probe.
 *
 * When a device is unbound while a guest has it, the kernel takes it from the guest and only logs a warning
 * (pcistub_remove()).
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* 0, also when the device is not bound to pciback. -EUSERS: a guest has it, or may have it. Otherwise a negative errno.
 */
int pciback_check_unused(const Sysfs *fs, PciAddress address);

/* Before a device is unbound from pciback: as pciback_check_unused(), then removes its slot. The order matters: after a
 * crash the device is still bound, and the removal is repeated. 0 or a negative errno. */
int pciback_release(const Sysfs *fs, PciAddress address);

/* Adds the slot of a device that is bound to pciback, if it has none. 0 or a negative errno. */
int pciback_add_slot(const Sysfs *fs, PciAddress address);
