/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCI devices of the simulated kernel: their presence, IOMMU groups, and the files that VFIO and other drivers add. */
#pragma once

#include "sim.h"

bool address_is_valid(const char *name);
bool node_is_device(const Node *node); /* a directory under sys/devices named like a PCI address */
Node *device_find(const Sim *sim, const char *address);
char *device_override(const Node *dev); /* NULL: there is no override */

void devices_complete(Sim *sim);                      /* after loading: adds files that the tree lacks */
void device_register(Sim *sim, Node *dev, int group); /* adds links, files and group; group < 0: none */
void device_unregister(Sim *sim, Node *dev);          /* unbinds the device, and reverts device_register() */
void device_remove(Sim *sim, Node *dev);              /* a write to remove: also removes the devices below */
void devices_rescan(Sim *sim, const Node *below);     /* below: NULL for all devices */

/* power/control and D-states of a device on a VFIO driver, as in vfio_pci_core.c: its probe sets the file to auto, its
 * remove to on. A device that was in D3cold never answers again. */
void device_allow_suspend(Node *dev, bool allow);
int device_suspend(const Sim *sim, const char *address);
void device_resume(Node *dev);

int group_lowest_free(const Sim *sim);
int group_of(const Node *dev); /* -ENOENT: none */
