/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the health of a device from sysfs. Changes nothing, but may wake the device up. May block for ever, so only a
 * child process may call it. */

#include "model/health.h"
#include "util/sysfs.h"

/* Reads the health of a device. A VF has no counter of errors, so HealthReading.counted is false for it. */
void health_read(const Sysfs *fs, const PciDevice *dev, HealthReading *ret);
