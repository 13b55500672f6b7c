/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is out of sight for now and may come back where it was: removed devices, and what a driver shows of a device
 * while it is bound. Also what vfio shows, which is made afresh each time. */
#pragma once

#include "sim.h"

void park(Sim *sim, Node *node, Node *device, const char *driver);
void unpark(Sim *sim, size_t i);

void device_vfio_add(Sim *sim, Node *dev);
void device_vfio_remove(Sim *sim, Node *dev);
void device_park_driver(Sim *sim, Node *dev, const char *driver);
void device_unpark_driver(Sim *sim, Node *dev, const char *driver);
void device_forget(Sim *sim, Node *dev); /* it will not come back */
