/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The serial number of a card, from its config space. A few registers of one device: cheap enough for those that an
 * allocation has, not for all.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* 0 in *ret when it has none. Negative errno when that cannot be told, as without privilege; -ENODEV when it is gone.
 */
int serial_read(const Sysfs *fs, PciAddress address, uint64_t *ret);
