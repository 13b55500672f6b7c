/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the health of a device from sysfs. Changes nothing, but may wake the device up. May block for ever, so only a
 * child process may call it. */

#include "model/health.h"
#include "util/sysfs.h"

/* Reads the health of a device. Of a VF no errors are counted: it has no counter. */
void health_read(const Sysfs *fs, const PciDevice *dev, HealthReading *ret);
