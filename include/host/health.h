/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the health of a device from sysfs. Changes nothing, but may wake the device up. May block for ever, so only a
 * child process may call it. */

#include "model/health.h"
#include "util/sysfs.h"

/* port: the port that dev is plugged into, or NULL. For a VF neither the link nor the error counters are read: VFs have
 * none of their own. */
void health_read(const Sysfs *fs, const PciDevice *dev, const PciDevice *port, HealthReading *ret);
