/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes that are parked outside of the tree until they return to their place: removed devices, and the files of a
 * driver while the device is unbound. Also the files of VFIO, which are made anew each time. */
#pragma once

#include "sim.h"

void park(Sim *sim, Node *node, Node *device, const char *driver);
void unpark(Sim *sim, size_t i);

void device_vfio_add(Sim *sim, Node *dev);
void device_vfio_remove(Sim *sim, Node *dev);
void device_park_driver(Sim *sim, Node *dev, const char *driver);
void device_unpark_driver(Sim *sim, Node *dev, const char *driver);
void device_forget(Sim *sim, Node *dev); /* drops its parked nodes */
