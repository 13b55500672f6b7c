/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PCI drivers of the simulated kernel: matching, binding and unbinding. */
#pragma once

#include "sim.h"

int driver_declare(Sim *sim, const char *name, const char *options); /* options: the words after %driver NAME */
void driver_free(Driver *driver);
int driver_load(Sim *sim, const char *name, const char *options); /* loads the module, which binds matching devices */
void driver_unload(Sim *sim, Driver *driver);                     /* unbinds its devices first */

Driver *driver_find(const Sim *sim, const char *name);
Driver *driver_get(Sim *sim, const char *name);     /* makes the driver and its directory if needed */
void driver_learn(Driver *driver, const Node *dev); /* an undeclared driver matches all devices like dev */
int driver_new_id(Driver *driver, const char *vendor, const char *device);
int driver_remove_id(Driver *driver, const char *vendor, const char *device);

Driver *driver_of(const Sim *sim, const Node *dev); /* NULL: no driver */
bool driver_enables_vfs(const Sim *sim, const Driver *driver);
bool driver_matches(const Sim *sim, const Driver *driver, const Node *dev);
int driver_attach(Sim *sim, Driver *driver, Node *dev); /* a write to bind: -ENODEV, -EBUSY, -EINVAL */
void driver_link(Sim *sim, Driver *driver, Node *dev);  /* adds the binding's links, without checks */
void driver_detach(Sim *sim, Node *dev);
void driver_probe(Sim *sim, Node *dev); /* binds the first driver that matches and accepts the device */
