/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* How well a device is, by sysfs. Nothing is changed, but it may wake up. For a child only: it may take for ever. */

#include "model/health.h"
#include "util/sysfs.h"

/* port: what it is plugged into, or NULL. VFs have neither a link nor counters of their own. */
void health_read(const Sysfs *fs, const PciDevice *dev, const PciDevice *port, HealthReading *ret);
