/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What udev tells of a change in the kernel: messages to whoever listens in this network namespace. Those of PCI
 * devices, their drivers, vfio groups, vfio devices and mediated devices; the order is that of the kernel. */
#pragma once

#include "sim.h"

typedef struct UEvent {
        char *properties; /* KEY=VALUE, each with its NUL */
        size_t size;
        uint32_t subsystem; /* its hash, as a receiver's filter compares it */
        unsigned long times;
} UEvent;

/* From here on changes are told. -EPERM and its like: not in this namespace. */
int uevents_open(Sim *sim);
void uevents_close(Sim *sim);
int uevents_enable(Sim *sim, bool on); /* off: changes are not told. -EOPNOTSUPP: not open */

/* A change of the model queues what is to be told of it; nothing where that is not open or off. */
void uevent_device(Sim *sim, const char *action, const Node *dev);
void uevent_driver(Sim *sim, const char *action, const char *name);
void uevent_vfio_group(Sim *sim, const char *action, int group);
/* subsystem: "vfio-dev" for DEVICE/vfio-dev/vfioN, "mdev" for DEVICE/UUID. */
void uevent_child(Sim *sim, const char *action, const char *subsystem, const Node *child);
/* On demand, even when off, and of a device that is not there. -EOPNOTSUPP: not open. */
int uevent_force(Sim *sim, const char *action, const char *address, unsigned long times);
/* Of a CPU ("cpu", "cpu3") or of memory, which are no part of the model. */
int uevent_system(Sim *sim, const char *action, const char *subsystem, const char *name);

/* Taken with the lock held, sent without it and once every reader can see the change. Frees them. */
UEvent *uevents_take(Sim *sim, size_t *ret_n);
void uevents_send(const Sim *sim, UEvent *events, size_t n);
