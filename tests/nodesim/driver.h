/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PCI drivers of the simulated kernel: which matches what, binding and unbinding. */
#pragma once

#include "sim.h"

int driver_declare(Sim *sim, const char *name, const char *options); /* the words after %driver NAME */
void driver_free(Driver *driver);
int driver_load(Sim *sim, const char *name, const char *options); /* its module: it takes what matches it */
void driver_unload(Sim *sim, Driver *driver);                     /* its devices are unbound first */

Driver *driver_find(const Sim *sim, const char *name);
Driver *driver_get(Sim *sim, const char *name);     /* makes it and its directory if need be */
void driver_learn(Driver *driver, const Node *dev); /* an undeclared driver matches what the tree shows it with */
int driver_new_id(Driver *driver, const char *vendor, const char *device);
int driver_remove_id(Driver *driver, const char *vendor, const char *device);

Driver *driver_of(const Sim *sim, const Node *dev); /* NULL: not bound */
bool driver_enables_vfs(const Sim *sim, const Driver *driver);
bool driver_matches(const Sim *sim, const Driver *driver, const Node *dev);
int driver_attach(Sim *sim, Driver *driver, Node *dev); /* as a write to bind would: -ENODEV, -EBUSY, -EINVAL */
void driver_link(Sim *sim, Driver *driver, Node *dev);  /* shows the binding, asks nothing */
void driver_detach(Sim *sim, Node *dev);
void driver_probe(Sim *sim, Node *dev); /* the first that matches and succeeds, if any */
